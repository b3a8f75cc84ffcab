/* Libraries opened and closed beside calls and lookups: doors WAY N LIBRARY. */
#include "job.h"

typedef int (*lookup_fn)(const char *, void **, int, uint64_t, int *);

static volatile int enough;

/* The driver's library is closed and opened again; what was looked up before stays good, as one
 * reference is kept. */
static int closes_driver(int n, char **more)
{
	(void)more;
	for (int i = 0; i < n; i++) {
		void *lib = driver();

		copy = (int (*)(uint64_t, const void *, size_t))dlsym(lib, "cuMemcpyHtoD_v2");
		steps(5);
		dlclose(lib);
		step();
	}
	return 7;
}

static void count_calls(int n)
{
	__atomic_fetch_add(&mine->tried, (uint64_t)n, __ATOMIC_RELAXED);
	__atomic_fetch_add(&mine->done, (uint64_t)n, __ATOMIC_RELAXED);
}

/* Libraries with constructors that call the driver, while other threads record. */
static int constructors(int n, char **more)
{
	pthread_t t = spawn(steps_until, (intptr_t)&enough);

	for (int i = 0; i < n; i++) {
		void *lib = dlopen(more[0], RTLD_NOW | RTLD_LOCAL);

		must(lib != NULL, "dlopen");
		must(!dlclose(lib), "dlclose");
		count_calls(4);
	}
	enough = 1;
	pthread_join(t, NULL);
	return 7;
}

static pthread_barrier_t at_once;

static void *looks_up(void *n)
{
	lookup_fn lookup = (lookup_fn)dlsym(driver(), "cuGetProcAddress_v2");

	pthread_barrier_wait(&at_once);
	for (intptr_t i = 0; i < (intptr_t)n; i++) {
		int (*found)(uint64_t, const void *, size_t) = NULL;

		must(!lookup("cuMemcpyHtoD", (void **)&found, 12000, 0, NULL) && found, "lookup");
		found(0, NULL, 0);
		count_calls(1);
	}
	return NULL;
}

/* First lookups through cuGetProcAddress beside a dlopen whose constructor makes one: loader's lock
 * against ours. */
static int lookups(int n, char **more)
{
	pthread_t t[2];

	pthread_barrier_init(&at_once, NULL, 3);
	for (int i = 0; i < 2; i++)
		t[i] = spawn(looks_up, n);
	pthread_barrier_wait(&at_once);
	void *lib = dlopen(more[0], RTLD_NOW | RTLD_LOCAL);

	must(lib != NULL, "dlopen");
	count_calls(2);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	return 7;
}

/* And a fork in the middle of it. */
static int lookups_forked(int n, char **more)
{
	pthread_t t[2];
	int bad = 0;

	(void)more;
	pthread_barrier_init(&at_once, NULL, 3);
	for (int i = 0; i < 2; i++)
		t[i] = spawn(looks_up, n);
	pthread_barrier_wait(&at_once);
	for (int i = 0; i < n; i++) {
		pid_t pid = fork();

		if (!pid) {
			pthread_barrier_init(&at_once, NULL, 1);
			looks_up((void *)2);
			_exit(3);
		}
		bad += ended(pid) != 3;
	}
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	printf("bad %d\n", bad);
	return 7;
}

/* A library with much static TLS still finds room: doors tls N LIBRARY */
static int tls(int n, char **more)
{
	steps(n);
	void *lib = dlopen(more[0], RTLD_NOW);

	puts(lib ? "there is room" : dlerror());
	steps(n);
	return 7;
}

int main(int argc, char **argv)
{
	static const struct way ways[] = {{"closes", closes_driver},
					  {"constructors", constructors},
					  {"lookups", lookups},
					  {"lookupsforked", lookups_forked},
					  {"tls", tls},
					  {NULL, NULL}};

	return choose(ways, argc, argv);
}
