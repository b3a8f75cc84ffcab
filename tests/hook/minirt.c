/*
 * A program on several runtimes at once: minirt OBJECT... runs rt_work of each, first one after the
 * other, then each on a thread of its own. "-" is the one linked into this program, if there is
 * one.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { MOST = 8 };
static int (*work[MOST])(unsigned);
static int results[MOST];

#pragma weak rt_work
int rt_work(unsigned bytes);

static void *run(void *i)
{
	size_t n = (size_t)i;

	results[n] |= work[n](2000 + 100 * (unsigned)n);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread[MOST];
	int n = 0, failed = 0;

	for (int i = 1; i < argc && n < MOST; i++) {
		void *object = strcmp(argv[i], "-") ? dlopen(argv[i], RTLD_NOW | RTLD_LOCAL) : NULL;
		work[n] = strcmp(argv[i], "-") ? NULL : rt_work;
		if (object)
			work[n] = (int (*)(unsigned))dlsym(object, "rt_work");
		if (!work[n++])
			return printf("%s: no rt_work\n", argv[i]), 1;
	}
	for (int i = 0; i < n; i++)
		results[i] = work[i](1000 + 100 * (unsigned)i);
	for (int i = 0; i < n; i++)
		pthread_create(&thread[i], NULL, run, (void *)(size_t)i);
	for (int i = 0; i < n; i++) {
		pthread_join(thread[i], NULL);
		printf("%s: %d\n", argv[i + 1], results[i]);
		failed |= results[i];
	}
	return failed != 0 || n == 0;
}
