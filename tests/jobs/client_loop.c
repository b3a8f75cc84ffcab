/*
 * A training-like loop on the CUDA driver interface, without any runtime or Python; works on a real
 * GPU as well as on the simulated one (put its directory into LD_LIBRARY_PATH). One step is: sleep
 * on the host, copy a batch to the device, launch kernels that take a set time, copy a result back,
 * wait.
 *
 *   client_loop [--steps N] [--h2d BYTES] [--d2h BYTES] [--mem pageable|pinned] [--spin US]
 * [--launches N]
 *               [--sync ctx|stream|event|dtoh|none] [--sleep MS] [--stream legacy|own|nonblocking]
 *               [--copy async|sync] [--mark 0|1] [--seconds S] [--until FILE]
 *
 * The same options as client_cb.py; it ends early after --seconds, or once the file of --until exists and it has made as many steps as a report needs. With --mark 1
 * each step is bracketed by the tfhook marks, where the process has them. Prints one line: steps and seconds per step.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tfhook/tfhook.h"

static const char ptx[] = ".version 7.0\n.target sm_50\n.address_size 64\n"
			  ".visible .entry spin(.param .u64 ns)\n{\n"
			  "\t.reg .u64 %t<4>;\n\t.reg .pred %p;\n"
			  "\tld.param.u64 %t0, [ns];\n\tmov.u64 %t1, %globaltimer;\n"
			  "AGAIN:\n\tmov.u64 %t2, %globaltimer;\n\tsub.u64 %t3, %t2, %t1;\n"
			  "\tsetp.lt.u64 %p, %t3, %t0;\n\t@%p bra AGAIN;\n\tret;\n}\n";

static void *cuda;

/* Calls the driver function `name` with integer and pointer arguments; stops the program on
 * failure. */
static void *find(const char *name)
{
	void *f = dlsym(cuda, name);
	if (!f) {
		fprintf(stderr, "client_loop: no %s: %s\n", name, dlerror());
		exit(1);
	}
	return f;
}

#define CALL(name, types, ...)                                                                     \
	do {                                                                                       \
		static int(*f_) types;                                                             \
		if (!f_)                                                                           \
			*(void **)&f_ = find(#name);                                               \
		int r_ = f_(__VA_ARGS__);                                                          \
		if (r_) {                                                                          \
			fprintf(stderr, "client_loop: " #name ": error %d\n", r_);                 \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

enum { JUDGED = 50 };

struct options {
	long steps, launches, mark;
	double h2d, d2h, spin, sleep, seconds;
	const char *mem, *sync, *stream, *copy, *until;
};

static void parse(struct options *o, int argc, char **argv)
{
	const struct {
		const char *name;
		long *l;
		double *d;
		const char **s;
	} table[] = {{"--steps", &o->steps, NULL, NULL},   {"--launches", &o->launches, NULL, NULL},
		     {"--mark", &o->mark, NULL, NULL},	   {"--h2d", NULL, &o->h2d, NULL},
		     {"--d2h", NULL, &o->d2h, NULL},	   {"--spin", NULL, &o->spin, NULL},
		     {"--sleep", NULL, &o->sleep, NULL},   {"--seconds", NULL, &o->seconds, NULL},
		     {"--mem", NULL, NULL, &o->mem},	   {"--sync", NULL, NULL, &o->sync},
		     {"--stream", NULL, NULL, &o->stream}, {"--copy", NULL, NULL, &o->copy},
		     {"--until", NULL, NULL, &o->until}};
	for (int i = 1; i < argc; i += 2) {
		size_t k = 0;
		while (k < sizeof(table) / sizeof(table[0]) && strcmp(table[k].name, argv[i]))
			k++;
		if (k == sizeof(table) / sizeof(table[0]) || i + 1 == argc) {
			fprintf(stderr, "client_loop: what is %s?\n", argv[i]);
			exit(2);
		}
		if (table[k].l)
			*table[k].l = atol(argv[i + 1]);
		else if (table[k].d)
			*table[k].d = atof(argv[i + 1]);
		else
			*table[k].s = argv[i + 1];
	}
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

struct job {
	void *stream, *event, *kernel, *host, *back;
	unsigned long long dev;
};

static void set_up(const struct options *o, struct job *j)
{
	void *ctx, *mod;
	size_t n = (size_t)(o->h2d > o->d2h ? o->h2d : o->d2h) + 64;
	cuda = dlopen("libcuda.so.1", RTLD_NOW);
	if (!cuda) {
		fprintf(stderr, "client_loop: %s\n", dlerror());
		exit(1);
	}
	CALL(cuInit, (unsigned), 0);
	CALL(cuDevicePrimaryCtxRetain, (void **, int), &ctx, 0);
	CALL(cuCtxSetCurrent, (void *), ctx);
	CALL(cuModuleLoadData, (void **, const void *), &mod, ptx);
	CALL(cuModuleGetFunction, (void **, void *, const char *), &j->kernel, mod, "spin");
	CALL(cuMemAlloc_v2, (unsigned long long *, size_t), &j->dev, n);
	CALL(cuEventCreate, (void **, unsigned), &j->event, 2);
	if (strcmp(o->stream, "legacy"))
		CALL(cuStreamCreate, (void **, unsigned), &j->stream,
		     !strcmp(o->stream, "nonblocking"));
	if (!strcmp(o->mem, "pinned")) {
		CALL(cuMemHostAlloc, (void **, size_t, unsigned), &j->host, n, 0);
		CALL(cuMemHostAlloc, (void **, size_t, unsigned), &j->back, n, 0);
	} else {
		j->host = malloc(n);
		j->back = malloc(n);
	}
	memset(j->host, 1, n);
	memset(j->back, 2, n);
}

static void wait_for(const struct options *o, struct job *j)
{
	if (!strcmp(o->sync, "ctx"))
		CALL(cuCtxSynchronize, (void), );
	else if (!strcmp(o->sync, "stream"))
		CALL(cuStreamSynchronize, (void *), j->stream);
	else if (!strcmp(o->sync, "event")) {
		CALL(cuEventRecord, (void *, void *), j->event, j->stream);
		CALL(cuEventSynchronize, (void *), j->event);
	} else if (!strcmp(o->sync, "dtoh")) {
		CALL(cuMemcpyDtoH_v2, (void *, unsigned long long, size_t), j->back, j->dev, 4);
	}
}

static void step(const struct options *o, struct job *j)
{
	uint64_t ns = (uint64_t)(o->spin * 1e3);
	void *params[] = {&ns};
	if (o->sleep > 0) {
		struct timespec t = {(time_t)(o->sleep / 1e3), (long)(o->sleep * 1e6) % 1000000000};
		nanosleep(&t, NULL);
	}
	if (o->h2d > 0 && !strcmp(o->copy, "sync"))
		CALL(cuMemcpyHtoD_v2, (unsigned long long, const void *, size_t), j->dev, j->host,
		     (size_t)o->h2d);
	else if (o->h2d > 0)
		CALL(cuMemcpyHtoDAsync_v2, (unsigned long long, const void *, size_t, void *),
		     j->dev, j->host, (size_t)o->h2d, j->stream);
	for (long i = 0; i < o->launches; i++)
		CALL(cuLaunchKernel,
		     (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
		      void *, void **, void **),
		     j->kernel, 1, 1, 1, 1, 1, 1, 0, j->stream, params, NULL);
	if (o->d2h > 0 && !strcmp(o->copy, "sync"))
		CALL(cuMemcpyDtoH_v2, (void *, unsigned long long, size_t), j->back, j->dev,
		     (size_t)o->d2h);
	else if (o->d2h > 0)
		CALL(cuMemcpyDtoHAsync_v2, (void *, unsigned long long, size_t, void *), j->back,
		     j->dev, (size_t)o->d2h, j->stream);
	wait_for(o, j);
}

int main(int argc, char **argv)
{
	struct options o = {.steps = 30,
			    .launches = 1,
			    .spin = 1000,
			    .h2d = 1 << 20,
			    .seconds = 1e9,
			    .mem = "pageable",
			    .sync = "ctx",
			    .stream = "legacy",
			    .copy = "async"};
	struct job j = {0};
	parse(&o, argc, argv);
	set_up(&o, &j);
	double t = now();
	long made = 0;
	for (; made < o.steps && now() - t < o.seconds &&
	       !(o.until && made >= JUDGED && !access(o.until, F_OK));
	     made++) {
		if (o.mark)
			tfhook_step_begin("step");
		step(&o, &j);
		if (o.mark)
			tfhook_step_end();
	}
	CALL(cuCtxSynchronize, (void), );
	if (o.h2d > 0 && o.d2h > 0 && *(char *)j.back != 1) {
		fprintf(stderr, "client_loop: the bytes did not come back\n");
		return 1;
	}
	printf("steps %ld s/step %.6f\n", made, (now() - t) / (double)(made ? made : 1));
	return 0;
}
