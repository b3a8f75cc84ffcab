#include "base/text.h"

#include <strings.h>

bool tfh_names_compiling(const char *name)
{
	/* TorchDynamo's own ranges */
	if (!strcmp(name, "dynamo") || strstr(name, "dynamo_timed"))
		return true;
	for (const char *at = name; (at = strcasestr(at, "compil")); at++) {
		const char *rest = at + 6;
		if (!strncasecmp(rest, "ing", 3) || !strncasecmp(rest, "ation", 5))
			return true;
		if ((*rest | 32) == 'e' && rest[1] != 'd' && rest[1] != 'r')
			return true;
	}
	return false;
}
