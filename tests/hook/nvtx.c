/* Uses NVTX as libraries do, by a small copy of what its header-only code does: the library named
 * in NVTX_INJECTION64_PATH is asked to fill in the functions. Ends with a copy, so that there is a
 * recording. With "threads" a range ends on another thread than it began. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CORE = 1, CORE2 = 5 };
static void *core[16], *core2[16];
static void **core_table[17], **core2_table[17];

static int module_table(uint32_t module, void ***table, unsigned *count)
{
	if (module != CORE && module != CORE2)
		return 0;
	*table = (void **)(module == CORE ? core_table : core2_table);
	*count = 17;
	return 1;
}

static const struct {
	size_t size;
	int (*module_table)(uint32_t, void ***, unsigned *);
} callbacks = {sizeof(callbacks), module_table};

static const void *export_table(uint32_t id)
{
	return id == 1 ? &callbacks : NULL;
}

struct attributes {
	uint16_t version, size;
	uint32_t category;
	int32_t color_type;
	uint32_t color;
	int32_t payload_type, reserved;
	uint64_t payload;
	int32_t message_type;
	const void *message;
};

static uint64_t open_range;

static void *ender(void *arg)
{
	((void (*)(uint64_t))core[7])(open_range);
	return arg;
}

int main(void)
{
	const char *path = getenv("NVTX_INJECTION64_PATH");
	void *lib = path ? dlopen(path, RTLD_LAZY) : NULL;
	void *cuda = dlopen("libcuda.so.1", RTLD_NOW), *memory = NULL;
	int (*init)(const void *(*)(uint32_t)) =
		lib ? (int (*)(const void *(*)(uint32_t)))dlsym(lib, "InitializeInjectionNvtx2")
		    : NULL;
	struct attributes a = {.version = 3, .size = sizeof(a), .message_type = 1};
	char host[64] = "";
	pthread_t thread;
	void *context;
	uint64_t device;

	for (int i = 1; i < 16; i++) {
		core_table[i] = &core[i];
		core2_table[i] = &core2[i];
	}
	if (!init || !init(export_table) || !core[9] || !core2[4] || !cuda) {
		fputs("nvtx: not filled in\n", stderr);
		return 1;
	}
	((int (*)(unsigned))dlsym(cuda, "cuInit"))(0);
	((int (*)(void **, unsigned, int))dlsym(cuda, "cuCtxCreate_v2"))(&context, 0, 0);
	((int (*)(uint64_t *, size_t))dlsym(cuda, "cuMemAlloc_v2"))(&device, sizeof(host));
	((int (*)(uint64_t, const void *, size_t))dlsym(cuda, "cuMemcpyHtoD_v2"))(device, host,
										  sizeof(host));
	(void)memory;
	if (((int (*)(const char *))core[9])("outer") != 0)
		return 2;
	a.message = "inner";
	void *domain = ((void *(*)(const char *))core2[12])("loader");
	((int (*)(void *, const struct attributes *))core2[4])(domain, &a);
	((int (*)(void *))core2[5])(domain);
	a.message_type = 3;
	a.message = ((void *(*)(void *, const char *))core2[10])(domain, "registered");
	((int (*)(void *, const struct attributes *))core2[4])(domain, &a);
	((int (*)(void *))core2[5])(domain);
	open_range = ((uint64_t(*)(const char *))core[5])("handed over");
	pthread_create(&thread, NULL, ender, NULL);
	pthread_join(thread, NULL);
	if (((int (*)(void))core[11])() != 0)
		return 3;
	return 0;
}
