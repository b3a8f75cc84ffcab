/*
 * A client of the driver that is compiled with a sanitizer: sanitized THREADS COPIES. Each thread
 * copies to the device and back, some of them under marks, and looks at what came back; the exit
 * status is 3. Compiled by sanitizers.sh.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIZE 256

static void *cuda, *context;
static int copies;

#define CU(name, types, ...)                                                                       \
	do {                                                                                       \
		int(*f_) types = (int(*) types)dlsym(cuda, #name);                                 \
		int r_ = f_ ? f_(__VA_ARGS__) : -1;                                                \
		if (r_) {                                                                          \
			printf(#name ": error %d\n", r_);                                          \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

static void *work(void *arg)
{
	unsigned long long address = *(unsigned long long *)arg;
	char to[SIZE], back[SIZE];

	CU(cuCtxSetCurrent, (void *), context);
	for (int i = 0; i < copies; i++) {
		memset(to, i, sizeof(to));
		CU(cuMemcpyHtoD_v2, (unsigned long long, const void *, size_t), address, to,
		   sizeof(to));
		CU(cuMemcpyDtoH_v2, (void *, unsigned long long, size_t), back, address,
		   sizeof(back));
		if (memcmp(to, back, sizeof(to))) {
			printf("the copies differ\n");
			exit(1);
		}
	}
	return arg;
}

int main(int argc, char **argv)
{
	int threads = argc > 2 ? atoi(argv[1]) : 1;
	unsigned long long address[16];
	pthread_t t[16];

	copies = argc > 2 ? atoi(argv[2]) : 1;
	cuda = dlopen("libcuda.so.1", RTLD_NOW);
	if (!cuda)
		return 1;
	CU(cuInit, (unsigned), 0);
	CU(cuCtxCreate_v2, (void **, unsigned, int), &context, 0, 0);
	/* Here, not in the threads: one's memory would be another's before its free has returned.
	 */
	for (int i = 0; i < threads && i < 16; i++)
		CU(cuMemAlloc_v2, (unsigned long long *, size_t), &address[i], SIZE);
	for (int i = 0; i < threads && i < 16; i++)
		pthread_create(&t[i], NULL, work, &address[i]);
	for (int i = 0; i < threads && i < 16; i++)
		pthread_join(t[i], NULL);
	for (int i = 0; i < threads && i < 16; i++)
		CU(cuMemFree_v2, (unsigned long long), address[i]);
	printf("all copies are the same\n");
	return 3;
}
