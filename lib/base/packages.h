/* Folders of installed Python packages in paths. */
#ifndef TFH_BASE_PACKAGES_H
#define TFH_BASE_PACKAGES_H

#include <string.h>

/* The part of a path below site-packages or dist-packages (Debian, NVIDIA's containers); below the
 * last one if there are several; NULL: the path has neither. */
static inline const char *tfh_in_packages(const char *path)
{
	static const char end[] = "-packages/";
	const char *found = NULL;

	for (const char *at = path; (at = strstr(at, end)); at++)
		if (at - path >= 5 && (!memcmp(at - 5, "/site", 5) || !memcmp(at - 5, "/dist", 5)))
			found = at + sizeof(end) - 1;
	return found;
}

#endif
