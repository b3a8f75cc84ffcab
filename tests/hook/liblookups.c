/*
 * A preload in front of the recorder, or alone, that writes down every answer which the program got
 * for a driver's name. A line of the file $LOOKUPS is
 *
 *     DOOR SYMBOL VERSION FLAGS RESULT STATUS OBJECT NAME TARGET
 *
 * DOOR is dlsym, v1 or v2; OBJECT and NAME are what the pointer is (- for NULL); TARGET is what the
 * wrapper at that pointer goes on to, by its code, or -. $LOOKUPS_OLD: cuGetProcAddress is not
 * found, as in old drivers.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arch.h"

typedef int (*getproc_v1)(const char *, void **, int, uint64_t);
typedef int (*getproc_v2)(const char *, void **, int, uint64_t, int *);

static getproc_v1 real_v1;
static getproc_v2 real_v2;

static const char *file_of(const Dl_info *info)
{
	const char *slash = strrchr(info->dli_fname, '/');
	return slash ? slash + 1 : info->dli_fname;
}

/* endbr64; mov tfh_real[...](%rip), %rax */
static void *target_of(const void *wrapper)
{
	static const unsigned char start[] = {0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x8b, 0x05};
	const char *code = wrapper;
	int32_t distance;
	void *target;

	if (memcmp(code, start, sizeof(start)))
		return NULL;
	memcpy(&distance, code + sizeof(start), sizeof(distance));
	memcpy(&target, code + sizeof(start) + sizeof(distance) + distance, sizeof(target));
	return target;
}

static void note(const char *door, const char *symbol, int version, uint64_t flags, int result,
		 int status, const void *answer)
{
	static FILE *file;
	Dl_info info = {0}, target = {0};
	const char *object = "-";

	if (!file && !(file = fopen(getenv("LOOKUPS"), "w")))
		abort();
	if (answer && dladdr(answer, &info)) {
		object = file_of(&info);
		if (!strncmp(object, "libtfhook", 9))
			dladdr(target_of(answer), &target);
	}
	fprintf(file, "%s %s %d %d %d %d %s %s %s\n", door, *symbol ? symbol : "-", version,
		(int)flags, result, status, object,
		info.dli_sname && info.dli_saddr == answer ? info.dli_sname : "-",
		target.dli_sname ? target.dli_sname : "-");
	fflush(file);
}

static int seen_v1(const char *symbol, void **answer, int version, uint64_t flags);
static int seen_v2(const char *symbol, void **answer, int version, uint64_t flags, int *status);

/* What the program gets: the lookup itself may be looked up by either door. */
static void *seen(const char *name, void *answer)
{
	if (answer && !strcmp(name, "cuGetProcAddress")) {
		real_v1 = (getproc_v1)answer;
		return (void *)seen_v1;
	}
	if (answer && !strcmp(name, "cuGetProcAddress_v2")) {
		real_v2 = (getproc_v2)answer;
		return (void *)seen_v2;
	}
	return answer;
}

static const char *versioned(const char *symbol, int version)
{
	return !strcmp(symbol, "cuGetProcAddress") && version >= 12000 ? "cuGetProcAddress_v2"
								       : symbol;
}

static int seen_v1(const char *symbol, void **answer, int version, uint64_t flags)
{
	int result = real_v1(symbol, answer, version, flags);

	note("v1", symbol, version, flags, result, 0, answer ? *answer : NULL);
	if (!result && answer)
		*answer = seen(versioned(symbol, version), *answer);
	return result;
}

static int seen_v2(const char *symbol, void **answer, int version, uint64_t flags, int *status)
{
	int result = real_v2(symbol, answer, version, flags, status);

	note("v2", symbol, version, flags, result, status ? *status : -1, answer ? *answer : NULL);
	if (!result && answer)
		*answer = seen(versioned(symbol, version), *answer);
	return result;
}

void *dlsym(void *handle, const char *name)
{
	static void *(*next)(void *, const char *);

	if (!next)
		next = (void *(*)(void *, const char *))dlvsym(RTLD_NEXT, "dlsym", TFH_ARCH_GLIBC);
	if (strncmp(name, "cu", 2) || name[2] < 'A' || name[2] > 'Z')
		return next(handle, name);
	int old = getenv("LOOKUPS_OLD") && !strncmp(name, "cuGetProcAddress", 16);
	void *answer = old ? NULL : next(handle, name);
	note("dlsym", name, 0, 0, 0, 0, answer);
	return seen(name, answer);
}
