/*
 * A program that reaches the driver by every lookup there is. Run with and without the preload: the
 * results of all calls are the same; with it (argument "hooked"), the pointers of hooked names are
 * ours and all others the driver's. A second argument "behind" says that another preload wraps
 * dlsym in front of us: then the driver's own lookups look like that preload's, and may find us.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long ptr;
typedef int (*getproc)(const char *, void **, int, unsigned long long, int *);
typedef int (*getproc_v1)(const char *, void **, int, unsigned long long);

static int hooked, behind, failures;

#define CHECK(what)                                                                                \
	do {                                                                                       \
		if (!(what)) {                                                                     \
			printf("line %d: %s\n", __LINE__, #what);                                  \
			failures++;                                                                \
		}                                                                                  \
	} while (0)

static int ours(const void *address)
{
	Dl_info info;
	return dladdr(address, &info) && info.dli_fname &&
	       strstr(info.dli_fname, "libtfhook") != NULL;
}

/* A lookup is ours when we are hooked, and never otherwise. */
#define ROUTED(address) (ours(address) == hooked)

static void *driver;

static void by_dlsym(void)
{
	CHECK(ROUTED(dlsym(driver, "cuInit")));
	CHECK(ROUTED(dlsym(driver, "cuMemcpyHtoD_v2")));
	CHECK(ROUTED(dlsym(driver, "cuMemcpyHtoD")));
	CHECK(dlsym(driver, "cuMemcpyHtoD") != dlsym(driver, "cuMemcpyHtoD_v2"));
	CHECK(!ours(dlsym(driver, "cuDeviceGetCount")));
	CHECK(!ours(dlsym(driver, "cuFrobnicate")));
	CHECK(!ours(dlsym(driver, "fake_calls")));
	dlerror();
	CHECK(dlsym(driver, "cuMemFree_v2") == NULL);
	const char *error = dlerror();
	CHECK(error && strstr(error, "cuMemFree_v2"));
	CHECK(dlerror() == NULL);
	CHECK(dlvsym(driver, "cuInit", "NOPE_1") == NULL);
	CHECK(dlerror() != NULL);
	/* The program's own handle and scope. */
	CHECK(dlsym(RTLD_NEXT, "printf") == (void *)printf || dlsym(RTLD_NEXT, "printf") != NULL);
	CHECK(dlsym(RTLD_DEFAULT, "no_such_function") == NULL);
}

static void by_getproc(void)
{
	getproc get = (getproc)dlsym(driver, "cuGetProcAddress_v2");
	getproc_v1 get_v1 = (getproc_v1)dlsym(driver, "cuGetProcAddress");
	void *found = NULL;
	int status = 7;

	CHECK(ROUTED((void *)get) && ROUTED((void *)get_v1));
	CHECK(get("cuMemcpyHtoD", &found, 3020, 0, &status) == 0 &&
	      found == dlsym(driver, "cuMemcpyHtoD_v2"));
	CHECK(get("cuMemcpyHtoD", &found, 2000, 0, NULL) == 0 &&
	      found == dlsym(driver, "cuMemcpyHtoD"));
	CHECK(get_v1("cuMemcpyHtoD", &found, 3020, 0) == 0 &&
	      found == dlsym(driver, "cuMemcpyHtoD_v2"));
	CHECK(get("cuMemcpyHtoDAsync", &found, 7000, 2, &status) == 0 &&
	      found == dlsym(driver, "cuMemcpyHtoDAsync_v2_ptsz") && ROUTED(found));
	CHECK(get("cuMemcpyHtoDAsync", &found, 7000, 1, &status) == 0 &&
	      found == dlsym(driver, "cuMemcpyHtoDAsync_v2"));
	/* The lookup looks itself up, in both versions. */
	CHECK(get("cuGetProcAddress", &found, 12000, 0, &status) == 0 && found == (void *)get);
	CHECK(get("cuGetProcAddress", &found, 11030, 0, &status) == 0 && found == (void *)get_v1);
	/* Newer than our tables: the driver's own pointer. */
	CHECK(get("cuMemcpyHtoD", &found, 90000, 0, &status) == 0 &&
	      found == dlsym(driver, "cuMemcpyHtoD_v9") && !ours(found));
	CHECK(get("cuDeviceGetCount", &found, 2000, 0, &status) == 0 && found && !ours(found));
	CHECK(get("cuFrobnicate", &found, 2000, 0, &status) == 0 && found && !ours(found));
	found = (void *)1;
	CHECK(get("", &found, 0, 0, &status) == 0 && found == NULL);
	CHECK(get("cuNoSuchThing", &found, 2000, 0, &status) == 0 && found == NULL && status == 1);
	CHECK(get("cuInit", NULL, 2000, 0, &status) == 1);
	CHECK(get("cuInit", &found, 99999, 0, &status) == 1);
}

/* Two names, one address: of two versions both are ours; of a name that is hooked and one that is
 * left alone, each is what it is by its name. */
static void aliases(void)
{
	getproc get = (getproc)dlsym(driver, "cuGetProcAddress_v2");
	int *count = dlsym(driver, "fake_calls"), before = *count;
	void *found[4], *name;
	int status;

	found[0] = dlsym(driver, "cuStreamDestroy");
	found[1] = dlsym(driver, "cuStreamDestroy_v2");
	CHECK(get("cuStreamDestroy", &found[2], 2000, 0, &status) == 0);
	CHECK(get("cuStreamDestroy", &found[3], 4000, 0, &status) == 0);
	for (int i = 0; i < 4; i++) {
		CHECK(found[i] && ROUTED(found[i]));
		CHECK(((int (*)(void *))found[i])(NULL) == 1);
		CHECK(((int (*)(void *))found[i])(&status) == 0);
	}
	CHECK(*count == before + 8);
	CHECK(ROUTED(dlsym(driver, "cuMemMapArrayAsync")));
	CHECK(!ours(dlsym(driver, "cuMulticastCreate")));
	CHECK(get("cuMemMapArrayAsync", &name, 11010, 0, &status) == 0 && ROUTED(name));
	CHECK(get("cuMulticastCreate", &name, 12010, 0, &status) == 0 && name && !ours(name));
}

static void calls(void)
{
	int (*init)(unsigned) = (int (*)(unsigned))dlsym(driver, "cuInit");
	int (*copy)(ptr, const void *, size_t) =
		(int (*)(ptr, const void *, size_t))dlsym(driver, "cuMemcpyHtoD_v2");
	int (*alloc)(ptr *, size_t) = (int (*)(ptr *, size_t))dlsym(driver, "cuMemAlloc_v2");
	int (*lookup)(void **, void *, const char *) =
		(int (*)(void **, void *, const char *))dlsym(driver, "cuModuleGetFunction");
	int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
		      void *, void **, void **) =
		(int (*)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
			 unsigned, void *, void **, void **))dlsym(driver, "cuLaunchKernel");
	int *count = dlsym(driver, "fake_calls");
	int (*wrong)(void) = (int (*)(void))dlsym(driver, "fake_self_lookup_wrong");
	void *function = NULL;
	ptr memory = 0;

	CHECK(init(0) == 0 && init(1) == 1);
	CHECK(alloc(&memory, 64) == 0 && memory == 0x1000);
	CHECK(alloc(NULL, 64) == 1);
	CHECK(copy(memory, "x", 1) == 0 && copy(0, "x", 1) == 1);
	CHECK(lookup(&function, (void *)9, "kernel") == 0 && function == (void *)0x7000);
	CHECK(lookup(NULL, (void *)9, "kernel") == 500 &&
	      lookup(&function, (void *)9, "missing") == 500);
	CHECK(launch(function, 1, 2, 3, 4, 5, 6, 7, NULL, (void **)8, (void **)9) == 0);
	CHECK(*count == 10);
	CHECK(behind || wrong() == 0);
}

int main(int argc, char **argv)
{
	hooked = argc > 1 && !strcmp(argv[1], "hooked");
	behind = argc > 2 && !strcmp(argv[2], "behind");
	driver = dlopen("libcuda.so.1", RTLD_NOW);
	if (!driver) {
		printf("no driver: %s\n", dlerror());
		return 2;
	}
	by_dlsym();
	by_getproc();
	calls();
	aliases();
	by_dlsym();
	printf("%s: %d failures\n", hooked ? "hooked" : "plain", failures);
	return failures != 0;
}
