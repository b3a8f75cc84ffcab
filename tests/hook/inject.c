/* A job whose driver loads the library of CUDA_INJECTION64_PATH inside cuInit, as NVIDIA's does;
 * the simulated one does not, so the program does it itself. Then N kernels. Optionally it forks,
 * or leaves by _exit: inject N [fork|_exit|signal];
 * signal: its handler calls exit(), most likely inside a launch. */
#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static const char ptx[] = ".version 7.0\n.target sm_50\n.address_size 64\n"
			  ".visible .entry spin(.param .u64 ns)\n{\n\tret;\n}\n";
static void *cuda;

static void leave(int number)
{
	(void)number;
	exit(0);
}

/* Looked up once: exit() in a handler inside dlsym may wait for glibc's lock of the loader for ever, which its own thread
 * holds and does not know of yet. */
#define CU(name, types, ...)                                                                       \
	do {                                                                                       \
		static int(*f_) types;                                                             \
		f_ = f_ ? f_ : (int(*) types)dlsym(cuda, #name);                                   \
		int r_ = f_ ? f_(__VA_ARGS__) : -1;                                                \
		if (r_) {                                                                          \
			fprintf(stderr, "inject: " #name ": error %d\n", r_);                      \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

int main(int argc, char **argv)
{
	const char *path = getenv("CUDA_INJECTION64_PATH");
	int n = argc > 1 ? atoi(argv[1]) : 10;
	const char *how = argc > 2 ? argv[2] : "";
	void *context, *module, *function;
	uint64_t ns = 1000000;
	void *params[] = {&ns};

	cuda = dlopen("libcuda.so.1", RTLD_NOW);
	if (!cuda)
		return 1;
	CU(cuInit, (unsigned), 0);
	if (path) {
		void *lib = dlopen(path, RTLD_NOW);
		int (*init)(void) = lib ? (int (*)(void))dlsym(lib, "InitializeInjection") : NULL;
		if (!init || !init()) {
			fprintf(stderr, "inject: %s\n", dlerror());
			return 1;
		}
	}
	CU(cuCtxCreate_v2, (void **, unsigned, int), &context, 0, 0);
	CU(cuModuleLoadData, (void **, const void *), &module, ptx);
	CU(cuModuleGetFunction, (void **, void *, const char *), &function, module, "spin");
	if (!strcmp(how, "signal")) {
		struct itimerval after = {.it_value.tv_usec = 30000};
		signal(SIGALRM, leave);
		setitimer(ITIMER_REAL, &after, NULL);
		ns = 1000;
	}
	for (int i = 0; i < n; i++) {
		CU(cuLaunchKernel,
		   (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
		    void *, void **, void **),
		   function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL);
		if (strcmp(how, "signal"))
			CU(cuCtxSynchronize, (void));
	}
	if (!strcmp(how, "fork")) {
		pid_t child = fork();
		if (!child)
			exit(0); /* the parent's exit handlers run here, too */
		int status = -1;
		if (child < 0 || waitpid(child, &status, 0) != child || status)
			return 2;
		CU(cuLaunchKernel,
		   (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
		    void *, void **, void **),
		   function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL);
		CU(cuCtxSynchronize, (void));
	} else if (!strcmp(how, "_exit")) {
		_exit(0);
	}
	return 0;
}
