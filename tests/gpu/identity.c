/*
 * For each name that the recorder hooks: what dlsym and cuGetProcAddress answer. A line is
 *
 *     NAME VERSION FLAGS DLSYM GETPROC OBJECT
 *
 * with offsets in the object that holds the second address, - for none; OBJECT is that file, or the
 * one that holds the first where there is no second.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/fn.h"

struct row {
	const char *name;
	int version;
	uint8_t props;
};

static const struct row rows[] = {
#define CUDA_FN(name, family, args, dir, props, version, ...) {#name, version, props},
#include "base/cuda_api.def"
};

static void put(const void *address)
{
	Dl_info info;

	if (address && dladdr(address, &info))
		printf(" %#lx", (unsigned long)((const char *)address - (char *)info.dli_fbase));
	else
		printf(" -");
}

/* The name without _v<n>, _ptsz or _ptds. */
static void base_of(const char *name, char base[128])
{
	static const char *const ending[] = {"_ptsz", "_ptds"};
	size_t n = strlen(strcpy(base, name));

	for (int i = 0; i < 2; i++)
		if (n > 5 && !strcmp(base + n - 5, ending[i]))
			base[n -= 5] = '\0';
	if (n > 3 && base[n - 3] == '_' && base[n - 2] == 'v')
		base[n - 3] = '\0';
}

int main(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);
	int (*get)(const char *, void **, int, uint64_t, int *) =
		driver ? (int (*)(const char *, void **, int, uint64_t, int *))dlsym(
				 driver, "cuGetProcAddress_v2")
		       : NULL;
	int (*version)(int *) = driver ? (int (*)(int *))dlsym(driver, "cuDriverGetVersion") : NULL;
	int newest = 0;

	if (!get || !version || version(&newest))
		return 1;
	printf("# driver %d\n", newest);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		uint64_t flags = rows[i].props & TFH_FN_PTDS ? 2 : 0;
		void *by_name = dlsym(driver, rows[i].name), *by_version = NULL;
		const char *file = "-";
		char base[128];
		int status;
		Dl_info info;

		base_of(rows[i].name, base);
		if (!rows[i].version || get(base, &by_version, rows[i].version, flags, &status))
			by_version = NULL;
		if (dladdr(by_version ? by_version : by_name, &info))
			file = strrchr(info.dli_fname, '/') ? strrchr(info.dli_fname, '/') + 1
							    : info.dli_fname;
		printf("%s %d %d", rows[i].name, rows[i].version, (int)flags);
		put(by_name);
		put(by_version);
		printf(" %s\n", file);
	}
	return 0;
}
