/* Inner parts of libtrain.c: how it calls the driver, and its kernels. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

long tf_data_iterator_get_next(long self, long b, long c, long d, long e, long f);
double train_now(void);
void train_defect(double t0, double t1);
void train_open(const char *text, long steps);
void train_step(double from);
void train_eval(double ms);
void train_close(void);

#define SPIN(name)                                                                                 \
	".visible .entry " name "(.param .u64 ns)\n{\n"                                            \
	"\t.reg .u64 %t<4>;\n\t.reg .pred %p;\n"                                                   \
	"\tld.param.u64 %t0, [ns];\n\tmov.u64 %t1, %globaltimer;\n"                                \
	"AGAIN:\n\tmov.u64 %t2, %globaltimer;\n\tsub.u64 %t3, %t2, %t1;\n"                         \
	"\tsetp.lt.u64 %p, %t3, %t0;\n\t@%p bra AGAIN;\n\tret;\n}\n"

static const char train_ptx[] = ".version 7.0\n.target sm_50\n.address_size 64\n" SPIN("spin")
	SPIN("spin_gemm") SPIN("spin_conv") SPIN("spin_norm") SPIN("spin_loss")
		SPIN("spin_eval") ".visible .entry rendezvous_all_reduce(.param .u64 group, .param "
				  ".u32 rank,\n"
				  ".param .u32 ranks, .param .u64 ns)\n{\n\tret;\n}\n";

/* The driver's function of that name; stops the program if there is none. */
static inline void *train_find(const char *name)
{
	static void *cuda;
	if (!cuda)
		cuda = dlopen("libcuda.so.1", RTLD_NOW);
	void *f = cuda ? dlsym(cuda, name) : NULL;
	if (!f) {
		fprintf(stderr, "train: no %s: %s\n", name, dlerror());
		exit(1);
	}
	return f;
}

/* Calls the driver's function with the types of its arguments; stops the program on an error. */
#define CALL(name, types, ...)                                                                     \
	do {                                                                                       \
		static int(*f_) types;                                                             \
		if (!f_)                                                                           \
			*(void **)&f_ = train_find(#name);                                         \
		int r_ = f_(__VA_ARGS__);                                                          \
		if (r_) {                                                                          \
			fprintf(stderr, "train: " #name ": error %d\n", r_);                       \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)
