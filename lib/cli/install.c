/* Finding the parts of the installation from where the command itself lies. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

/* Relative to the folder of the command; %s is the part. The first two serve the build tree. */
static const char *const places[] = {
	"../lib/%s",
	"../%s",
	"../lib/tfhook/%s",
	"../lib64/tfhook/%s",
	"../lib/x86_64-linux-gnu/tfhook/%s",
	"../share/tfhook/%s",
	"../../scripts/%s",
};

int tfh_install_find(const char *part, char path[4096])
{
	char self[4096], first[4096] = "";
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n <= 0)
		return -ENOENT;
	self[n] = '\0';
	*strrchr(self, '/') = '\0';
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		char rest[512], joined[8192], real[4096];
		snprintf(rest, sizeof(rest), places[i], part);
		snprintf(joined, sizeof(joined), "%s/%s", self, rest);
		if (!realpath(joined, real)) {
			if (!*first)
				snprintf(first, sizeof(first), "%.4095s", joined);
			continue;
		}
		memcpy(path, real, strlen(real) + 1);
		return 0;
	}
	/* `make demo` with its objects in another place than the source tree */
	const char *source = getenv("TFH_SRC");
	char below[4096];
	if (source && *source) {
		snprintf(below, sizeof(below), "%.3072s/scripts/%s", source, part);
		if (realpath(below, path))
			return 0;
	}
	memcpy(path, first, strlen(first) + 1);
	return -ENOENT;
}
