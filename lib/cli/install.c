/* Finds the parts of the installation relative to the command. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/arch.h"
#include "cli/cli.h"

/* Relative to the folder above the command's; %s is the part. The first two are the build tree's,
 * whose share/tfhook is a link to scripts/. */
static const char *const places[] = {
	"lib/%s", "%s", "lib/tfhook/%s", "lib64/tfhook/%s", TFH_ARCH_FOLDER "/tfhook/%s",
	"share/tfhook/%s",
	/* an unpacked wheel, to which uv's UV_LINK_MODE=symlink leads */
	"data/lib/tfhook/%s", "data/share/tfhook/%s",
	"../lib/%s", /* built, not installed: the Python package of the sources */
};

int tfh_install_find(const char *part, char path[4096])
{
	char above[4096], rest[512], joined[8192], real[4096];
	ssize_t n = readlink("/proc/self/exe", above, sizeof(above) - 1);

	above[n > 0 ? n : 0] = '\0';
	for (int up = 0; up < 2 && strrchr(above, '/'); up++)
		*strrchr(above, '/') = '\0';
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(rest, sizeof(rest), places[i], part);
		snprintf(joined, sizeof(joined), "%s/%s", above, rest);
		if (!i)
			snprintf(path, 4096, "%.4095s", joined);
		if (realpath(joined, real)) {
			memcpy(path, real, strlen(real) + 1);
			return 0;
		}
	}
	return -ENOENT;
}
