/*
 * Runs the cases of a stand-in TensorFlow that it opens as Python does, locally.
 *
 * usage: mock LIBRARY CASE [N [MICROSECONDS]]
 *	batches, faults		N batches of two epochs; with exceptions, pthread_exit, longjmp and
 *backtraces before eager, session		N calls loader			N calls of
 *tf_data_iterator_get_next, LIBRARY "-": no one defines it but the preload
 */
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>

typedef long (*get_next)(long, long, long, long, long, long);

static int loader(void *library, int n)
{
	get_next call = (get_next)dlsym(RTLD_DEFAULT, "tf_data_iterator_get_next");

	if (!call)
		call = (get_next)dlsym(library ? library : RTLD_DEFAULT,
				       "tf_data_iterator_get_next");
	for (long i = 0; call && i < n; i++) {
		errno = 5;
		long result = call(i, 2, 3, 4, 5, 6);
		if (result != (library ? i + 4 + 9 + 16 + 25 + 36 : 0) ||
		    errno != (library ? 6 : 5))
			return 50;
	}
	return 0;
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	int n = argc > 3 ? atoi(argv[3]) : 100, us = argc > 4 ? atoi(argv[4]) : 0;
	void *library = strcmp(argv[1], "-") ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : nullptr;
	int result = 3;

	if (!library && strcmp(argv[1], "-")) {
		fprintf(stderr, "%s\n", dlerror());
		return 3;
	}
	if (!strcmp(argv[2], "loader")) {
		result = loader(library, n);
	} else if (!strcmp(argv[2], "batches") || !strcmp(argv[2], "faults")) {
		auto run = (int (*)(int, unsigned, int))dlsym(library, "mock_run");
		result = run(n, (unsigned)us, argv[2][0] == 'f');
	} else {
		auto run = (int (*)(int))dlsym(library, !strcmp(argv[2], "eager") ? "mock_eager"
										  : "mock_session");
		result = run(n);
	}
	printf("%s %d\n", argv[2], result);
	return result;
}
