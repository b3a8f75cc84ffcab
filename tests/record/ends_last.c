/* A job whose main thread leaves by pthread_exit after 1.5 s of copies: the process ends with it. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static void said_goodbye(void)
{
	if (write(1, "the end\n", 8) != 8)
		_exit(1);
}

int main(void)
{
	void *cuda = dlopen("libcuda.so.1", RTLD_NOW);
	int (*copy)(unsigned long long, const void *, size_t);

	*(void **)&copy = cuda ? dlsym(cuda, "cuMemcpyHtoD_v2") : NULL;
	if (!copy)
		return 1;
	atexit(said_goodbye);
	for (int i = 0; i < 150; i++, usleep(10000))
		copy(4096, &cuda, sizeof(cuda));
	pthread_exit(NULL);
}
