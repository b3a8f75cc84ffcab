/* Installed Python packages outside of site-packages: in a folder that `pip install --target`, a
 * build system or PEP 582 filled. Beside each package lies a list of its files (RECORD). Source
 * trees have none, so a package that is being developed is the program's own. */
#ifndef TFH_BASE_INSTALLED_H
#define TFH_BASE_INSTALLED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/packages.h"

#define TFH_INSTALLED_FOLDERS 128u
#define TFH_INSTALLED_NAMES 2048u

/* What was found. Begins with all 0. */
struct tfh_installed {
	struct tfh_installed_folder {
		uint64_t key;
		uint32_t first, names; /* in `name` */
	} folder[TFH_INSTALLED_FOLDERS];
	uint64_t name[TFH_INSTALLED_NAMES]; /* hashes of modules' and packages' names */
	uint32_t folders, names;
};

/* The offset of a package's part, such as "numpy/lib/npyio.py", in an absolute path. 0: the file is
 * in none of these packages, or its path already shows that it is in one. Reads each folder once,
 * without malloc. */
size_t tfh_installed_part(struct tfh_installed *in, const char *path);

/* Copies a path, with the mark before the package if only the folder shows it. Returns the length,
 * without the NUL: at most the path's + sizeof(TFH_INSTALLED_MARK) - 1. */
size_t tfh_installed_path(struct tfh_installed *in, const char *path, char *to);

#endif
