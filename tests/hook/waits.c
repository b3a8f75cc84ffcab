/*
 * waits CASE LIBRARY [hooked]: nobody's first questions to the driver may wait for somebody else's.
 *	join	a constructor, under the loader's lock, waits for a thread that asks
 *	both	a thread asks, and a constructor asks meanwhile
 *	fork	a process forks while a thread asks, and the child asks
 *	first	a constructor waits for a thread that makes the process' first context and copy, with
 *		which device times begin, and libcupti is loaded
 * Every answer must be there, and (hooked) be one of our wrappers.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int (*get)(const char *, void **, int, unsigned long long, int *);
static int (*alloc)(unsigned long long *, size_t);
static void *answer[4]; /* looked at afterwards: dladdr needs the loader */
static int answers, hooked, wrong;

static void ask(void)
{
	unsigned long long address = 0;
	int status;

	if (get("cuMemAlloc", &answer[__atomic_fetch_add(&answers, 1, __ATOMIC_RELAXED)], 3020, 0,
		&status) ||
	    alloc(&address, 5) || address != 5) {
		printf("a call went wrong\n");
		wrong = 1;
	}
}

static int (*retain)(void **, int), (*set)(void *);
static int (*copy)(unsigned long long, const void *, size_t);

static void *first_copy(void *arg)
{
	unsigned long long address;
	void *context;

	if (retain(&context, 0) || set(context) || alloc(&address, 64) || copy(address, "", 1)) {
		printf("a call went wrong\n");
		wrong = 1;
	}
	return arg;
}

static void wait_for_first(void)
{
	pthread_t t;

	pthread_create(&t, NULL, first_copy, NULL);
	pthread_join(t, NULL);
}

static int judge(void)
{
	for (int i = 0; i < answers; i++) {
		Dl_info who = {0};
		if (answer[i] && dladdr(answer[i], &who) &&
		    (!hooked || strstr(who.dli_fname, "libtfhook")))
			continue;
		printf("an answer is %p, of %s\n", answer[i], who.dli_fname);
		wrong = 1;
	}
	return wrong;
}

static void *thread(void *arg)
{
	ask();
	return arg;
}

static pthread_t start(void)
{
	pthread_t t;

	pthread_create(&t, NULL, thread, NULL);
	return t;
}

static void wait_for_a_thread(void)
{
	pthread_join(start(), NULL);
}

static void load(const char *library, void (*constructor)(void))
{
	char text[32];

	snprintf(text, sizeof(text), "%p", (void *)constructor);
	setenv("CONSTRUCTOR", text, 1);
	if (!dlopen(library, RTLD_NOW)) {
		printf("%s\n", dlerror());
		wrong = 1;
	}
}

static void in_a_child(void)
{
	int status;
	pid_t child = fork();

	if (!child) {
		answers = 0;
		ask();
		exit(judge());
	}
	if (waitpid(child, &status, 0) != child || status) {
		printf("the child ended with %d\n", status);
		wrong = 1;
	}
}

int main(int argc, char **argv)
{
	void *cuda = dlopen("libcuda.so.1", RTLD_NOW);
	int (*init)(unsigned);
	pthread_t t = 0;

	if (argc < 3 || !cuda)
		return 2;
	alarm(20); /* also in a child that hangs: the signal ends it */
	hooked = argc > 3;
	init = (int (*)(unsigned))dlsym(cuda, "cuInit");
	get = (int (*)(const char *, void **, int, unsigned long long, int *))dlsym(
		cuda, "cuGetProcAddress_v2");
	alloc = (int (*)(unsigned long long *, size_t))dlsym(cuda, "cuMemAlloc_v2");
	retain = (int (*)(void **, int))dlsym(cuda, "cuDevicePrimaryCtxRetain");
	set = (int (*)(void *))dlsym(cuda, "cuCtxSetCurrent");
	copy = (int (*)(unsigned long long, const void *, size_t))dlsym(cuda, "cuMemcpyHtoD_v2");
	init(0);
	if (!strcmp(argv[1], "join")) {
		load(argv[2], wait_for_a_thread);
		return judge();
	}
	if (!strcmp(argv[1], "first")) {
		load(argv[2], wait_for_first);
		return judge();
	}
	t = start();
	usleep(20000);
	if (!strcmp(argv[1], "both"))
		load(argv[2], ask);
	else
		in_a_child();
	pthread_join(t, NULL);
	return judge();
}
