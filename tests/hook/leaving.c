/*
 * A job that launches kernels and then leaves in the way that argv[1] names; what it prints and how
 * it ends must not depend on who watches. `profiler`: has a profiler of its own, whose functions
 * say on which thread they were called.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static const char ptx[] = ".version 7.0\n.target sm_50\n.address_size 64\n"
			  ".visible .entry spin(.param .u64 ns)\n{\n\tret;\n}\n";
static void *cuda, *context, *function;

#define CU(name, types, ...) (((int(*) types)dlsym(cuda, #name))(__VA_ARGS__))

static void must(int result, const char *what)
{
	if (!result)
		return;
	printf("%s: error %d\n", what, result);
	fflush(stdout);
	exit(1);
}
#define MUST(name, types, ...) must(CU(name, types, __VA_ARGS__), #name)

static void launch(int n)
{
	uint64_t ns = 20000;
	void *params[] = {&ns};

	for (int i = 0; i < n; i++)
		MUST(cuLaunchKernel,
		     (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
		      void *, void **, void **),
		     function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL);
}

static void wait_for_all(void)
{
	MUST(cuCtxSynchronize, (void));
}

static void *for_ever(void *arg)
{
	(void)arg;
	CU(cuCtxSetCurrent, (void *), context);
	for (;;) {
		launch(20);
		wait_for_all();
	}
	return NULL;
}

static void *leave_with_11(void *arg)
{
	(void)arg;
	CU(cuCtxSetCurrent, (void *), context);
	launch(5);
	exit(11);
}

static void late(void)
{
	launch(3);
	wait_for_all();
	puts("late");
}

static void early(void)
{
	puts("early");
}

static void on_signal(int number)
{
	(void)number;
	exit(12);
}

static int end_of(pid_t child)
{
	int status = -1;

	waitpid(child, &status, 0);
	return status;
}

/* ---- the profiler ---- */

enum { HELD = 64, BYTES = 65536 };
static uint8_t *held[HELD]; /* by CUPTI */
static int on_ours, records;
static int (*next_record)(uint8_t *, size_t, uint8_t **);

static void look_where(void)
{
	char name[16] = "";

	prctl(PR_GET_NAME, name, 0, 0, 0);
	on_ours += !strncmp(name, "tfhook", 6);
}

static void requested(uint8_t **buffer, size_t *size, size_t *most)
{
	look_where();
	*size = BYTES;
	*most = 0;
	*buffer = mmap(NULL, *size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < HELD; i++) {
		if (held[i])
			continue;
		held[i] = *buffer;
		break;
	}
}

static void completed(void *ctx, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
	uint8_t *record = NULL;
	uint32_t kind;

	(void)ctx, (void)stream, (void)size;
	look_where();
	while (!next_record(buffer, valid, &record)) {
		memcpy(&kind, record, sizeof(kind));
		__atomic_fetch_add(&records, kind == 10, __ATOMIC_RELAXED);
	}
	for (int i = 0; i < HELD; i++)
		if (held[i] == buffer)
			held[i] = NULL;
	munmap(buffer, size ? size : BYTES);
}

static int profile(void)
{
	void *cupti = dlopen("libcupti.so.13", RTLD_NOW);
	enum { ROUNDS = 150, KERNEL = 10 };

	if (!cupti)
		return 2;
	next_record =
		(int (*)(uint8_t *, size_t, uint8_t **))dlsym(cupti, "cuptiActivityGetNextRecord");
	((int (*)(void *, void *))dlsym(cupti, "cuptiActivityRegisterCallbacks"))(
		(void *)requested, (void *)completed);
	((int (*)(int))dlsym(cupti, "cuptiActivityEnable"))(KERNEL);
	for (int i = 0; i < ROUNDS; i++) { /* the flusher comes by */
		launch(2);
		wait_for_all();
		usleep(10000);
	}
	((int (*)(uint32_t))dlsym(cupti, "cuptiActivityFlushAll"))(0);
	printf("%d of %d kernels, %d calls on another's thread\n", records, 2 * ROUNDS, on_ours);
	launch(5); /* and goes on to the end */
	wait_for_all();
	for (int i = 0; i < HELD; i++) /* as an interpreter's memory is that ends */
		if (held[i])
			munmap(held[i], BYTES);
	return 7;
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	pthread_t thread;
	void *module;
	pid_t child;

	atexit(early);
	cuda = dlopen("libcuda.so.1", RTLD_NOW);
	if (!cuda)
		return 1;
	MUST(cuInit, (unsigned), 0);
	MUST(cuCtxCreate_v2, (void **, unsigned, int), &context, 0, 0);
	MUST(cuModuleLoadData, (void **, const void *), &module, ptx);
	MUST(cuModuleGetFunction, (void **, void *, const char *), &function, module, "spin");
	launch(20);
	wait_for_all();
	if (!strcmp(how, "profiler"))
		return profile();
	if (!strcmp(how, "threads")) {
		for (int i = 0; i < 16; i++)
			pthread_create(&thread, NULL, for_ever, NULL);
		usleep(100000);
		exit(8);
	}
	if (!strcmp(how, "thread")) { /* that exits; main waits for it */
		pthread_create(&thread, NULL, leave_with_11, NULL);
		pthread_join(thread, NULL);
	}
	if (!strcmp(how, "atexit"))
		atexit(late);
	if (!strcmp(how, "signal")) {
		signal(SIGTERM, on_signal);
		raise(SIGTERM);
	}
	if (!strcmp(how, "dlclose")) {
		launch(5);
		dlclose(cuda);
	}
	if (!strcmp(how, "fork")) { /* a child that runs the exit handlers, and one that does not */
		for (int i = 0; i < 2; i++) {
			fflush(stdout);
			child = fork();
			if (!child && i)
				_exit(5);
			if (!child)
				exit(6);
			printf("child %d\n", end_of(child));
		}
	}
	if (!strcmp(how, "vfork")) {
		child = vfork();
		if (!child) {
			execl("/nowhere", "nowhere", NULL);
			_exit(4);
		}
		printf("child %d\n", end_of(child));
	}
	if (!strcmp(how, "spawn")) {
		char *args[] = {"false", NULL};

		posix_spawnp(&child, "false", NULL, NULL, args, environ);
		printf("child %d\n", end_of(child));
	}
	if (!strcmp(how, "daemon") && daemon(1, 1))
		return 1;
	if (!strcmp(how, "_exit"))
		_exit(9);
	if (!strcmp(how, "quick_exit"))
		quick_exit(10);
	if (!strcmp(how, "abort"))
		abort();
	if (!strcmp(how, "term"))
		raise(SIGTERM);
	if (!strcmp(how, "exec"))
		execlp("false", "false", NULL);
	puts("end");
	return 3;
}
