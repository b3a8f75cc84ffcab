/* Makes, launches and destroys an executable graph over and over, with 1,000 others at hand:
 * graphs_made TIMES. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	static void *exec[1000];
	void *cuda = dlopen("libcuda.so.1", RTLD_NOW);
	int times = argc > 1 ? atoi(argv[1]) : 1, failed = 0;

	if (!cuda)
		return 2;
	int (*init)(unsigned) = (int (*)(unsigned))dlsym(cuda, "cuInit");
	int (*make)(void **, void *, unsigned long long) =
		(int (*)(void **, void *, unsigned long long))dlsym(cuda,
								    "cuGraphInstantiateWithFlags");
	int (*launch)(void *, void *) = (int (*)(void *, void *))dlsym(cuda, "cuGraphLaunch");
	int (*destroy)(void *) = (int (*)(void *))dlsym(cuda, "cuGraphExecDestroy");
	int (*flush)(unsigned) = (int (*)(unsigned))dlsym(RTLD_DEFAULT, "tfhook_flush");
	failed |= init(0);
	for (int i = 0; i < times; i++) {
		void **place = &exec[i % 1000];
		if (*place)
			failed |= destroy(*place);
		failed |= make(place, cuda, 0);
		failed |= launch(*place, NULL);
		if (flush && i % 100 == 99) /* none of the records is to be dropped */
			flush(10000);
	}
	return failed;
}
