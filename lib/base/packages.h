/* Folders of installed Python packages in paths. */
#ifndef TFH_BASE_PACKAGES_H
#define TFH_BASE_PACKAGES_H

#include <string.h>

/* What the recorder puts before a package that only its folder shows to be installed
 * (base/installed.h): "/srv/lib" TFH_INSTALLED_MARK "numpy/lib/npyio.py" is the path of the same
 * file. Nothing else makes such paths. */
#define TFH_INSTALLED_MARK "/././"

/* The part of a path below site-packages or dist-packages (Debian, NVIDIA's containers), below the
 * last one if there are several, or after the mark; NULL: the path has none of them. */
static inline const char *tfh_in_packages(const char *path)
{
	static const char end[] = "-packages/";
	const char *found = NULL;

	for (const char *at = path; (at = strstr(at, end)); at++)
		if (at - path >= 5 && (!memcmp(at - 5, "/site", 5) || !memcmp(at - 5, "/dist", 5)))
			found = at + sizeof(end) - 1;
	if (!found && (found = strstr(path, TFH_INSTALLED_MARK)))
		found += sizeof(TFH_INSTALLED_MARK) - 1;
	return found;
}

#endif
