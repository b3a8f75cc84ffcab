/*
 * Which changes of CUPTI's activity kinds does a process survive that launches all the while? Without tfhook: what
 * tfhook does to CUPTI while a job runs rests on the answers.
 *
 *     kinds LIBCUPTI graph|kernel SECONDS WORD...
 *
 * before   graphs are instantiated before CUPTI is turned on
 * whole    GRAPH_TRACE is on from the start
 * thread, launcher  which thread makes the changes, ten a second from the first second on
 * kernels  turns records of kernels off and on
 * all      all kinds, and the records of calls
 * flush    flushes
 * graphs   turns GRAPH_TRACE on, or off and on if it was on from the start
 *
 * Prints "launches N changes N kernels N graphs N" and exits with 0; a crash inside CUPTI is a signal.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MEMCPY = 1, MEMSET = 2, KERNEL = 10, OVERHEAD = 17, GRAPH = 51, KINDS = 64 };
enum { NODES = 1000, BUFFER = 1 << 20, LAUNCH_GRAPH = 514, LAUNCH_KERNEL = 307 };

static const char ptx[] =
	".version 7.0\n.target sm_50\n.address_size 64\n"
	".visible .entry add(.param .u64 p)\n{\n.reg .u64 %a;\n.reg .u32 %v;\n"
	"ld.param.u64 %a,[p];\ncvta.to.global.u64 %a,%a;\nld.global.u32 %v,[%a];\n"
	"add.u32 %v,%v,1;\nst.global.u32 [%a],%v;\nret;\n}\n";

static struct {
	int (*enable)(int), (*disable)(int), (*flush)(uint32_t);
	int (*call)(uint32_t, uint8_t);
	int (*next)(uint8_t *, size_t, uint8_t **);
	int (*register_callbacks)(void *, void *);
} cupti;

static struct {
	int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
		      void *, void **, void **);
	int (*launch_graph)(void *, void *);
	int (*synchronize)(void *);
} cuda;

static uint64_t records[KINDS], changes;
static int words;
static char **word;
static volatile int stop;

static int said(const char *text)
{
	for (int i = 0; i < words; i++)
		if (!strcmp(word[i], text))
			return 1;
	return 0;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void requested(uint8_t **buffer, size_t *size, size_t *most)
{
	*buffer = calloc(1, BUFFER);
	*size = BUFFER;
	*most = 0;
}

static void completed(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
	uint8_t *record = NULL;
	uint32_t kind;

	(void)context;
	(void)stream;
	(void)size;
	while (!cupti.next(buffer, valid, &record)) {
		memcpy(&kind, record, sizeof(kind));
		if (kind < KINDS)
			records[kind]++;
	}
	free(buffer);
}

static void set_kinds(int on)
{
	static const int kinds[] = {KERNEL, MEMCPY, MEMSET, OVERHEAD};

	for (int i = 0; i < 4; i++)
		(on ? cupti.enable : cupti.disable)(kinds[i]);
	cupti.call(LAUNCH_KERNEL, (uint8_t)on);
	cupti.call(LAUNCH_GRAPH, (uint8_t)on);
}

static void change(void)
{
	int on = changes++ % 2 != 0;

	if (said("kernels"))
		(on ? cupti.enable : cupti.disable)(KERNEL);
	if (said("all"))
		set_kinds(on);
	if (said("flush"))
		cupti.flush(0);
	if (said("graphs"))
		(on || !said("whole") ? cupti.enable : cupti.disable)(GRAPH);
}

static void *changer(void *arg)
{
	sleep(1);
	while (!stop) {
		change();
		usleep(100000);
	}
	return arg;
}

static void turn_on(void)
{
	cupti.register_callbacks((void *)requested, (void *)completed);
	set_kinds(1);
	if (said("whole"))
		cupti.enable(GRAPH);
}

#define FIND(library, name, types) ((int(*) types)dlsym(library, #name))

/* Fills *executable with a graph of NODES kernels. */
static int make_graph(void *driver, void *function, void *stream, void **args, void **executable)
{
	void *graph;

	if (FIND(driver, cuStreamBeginCapture_v2, (void *, int))(stream, 2))
		return 1;
	for (int i = 0; i < NODES; i++)
		cuda.launch(function, 1, 1, 1, 1, 1, 1, 0, stream, args, NULL);
	return FIND(driver, cuStreamEndCapture, (void *, void **))(stream, &graph) ||
	       FIND(driver, cuGraphInstantiateWithFlags,
		    (void **, void *, unsigned long long))(executable, graph, 0);
}

static int launches(void *function, void *stream, void **args, void *executable, double seconds,
		    uint64_t *n)
{
	double begin = now(), next = begin + 1;
	int bad = 0;

	for (*n = 0; !bad && now() < begin + seconds; *n += executable ? 20 : 1000) {
		for (int i = 0; executable && i < 20; i++)
			bad |= cuda.launch_graph(executable, stream);
		for (int i = 0; !executable && i < 1000; i++)
			bad |= cuda.launch(function, 1, 1, 1, 1, 1, 1, 0, stream, args, NULL);
		if (said("launcher") && now() > next) {
			change();
			next += 0.1;
		}
		bad |= cuda.synchronize(stream);
	}
	return bad;
}

int main(int argc, char **argv)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW), *library;
	void *context, *module, *function, *stream, *executable = NULL, *args[1];
	unsigned long long memory;
	uint64_t n;
	pthread_t thread;

	if (argc < 4 || !driver || !(library = dlopen(argv[1], RTLD_NOW)))
		return 2;
	word = argv + 4;
	words = argc - 4;
	cupti.enable = FIND(library, cuptiActivityEnable, (int));
	cupti.disable = FIND(library, cuptiActivityDisable, (int));
	cupti.flush = FIND(library, cuptiActivityFlushAll, (uint32_t));
	cupti.call = FIND(library, cuptiActivityEnableDriverApi, (uint32_t, uint8_t));
	cupti.next = FIND(library, cuptiActivityGetNextRecord, (uint8_t *, size_t, uint8_t **));
	cupti.register_callbacks = FIND(library, cuptiActivityRegisterCallbacks, (void *, void *));
	cuda.launch = FIND(driver, cuLaunchKernel,
			   (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
			    unsigned, void *, void **, void **));
	cuda.launch_graph = FIND(driver, cuGraphLaunch, (void *, void *));
	cuda.synchronize = FIND(driver, cuStreamSynchronize, (void *));
	args[0] = &memory;
	if (!cupti.call || FIND(driver, cuInit, (unsigned))(0) ||
	    FIND(driver, cuDevicePrimaryCtxRetain, (void **, int))(&context, 0) ||
	    FIND(driver, cuCtxSetCurrent, (void *))(context) ||
	    FIND(driver, cuModuleLoadData, (void **, const void *))(&module, ptx) ||
	    FIND(driver, cuModuleGetFunction, (void **, void *, const char *))(&function, module,
									       "add") ||
	    FIND(driver, cuMemAlloc_v2, (unsigned long long *, size_t))(&memory, 4096) ||
	    FIND(driver, cuStreamCreate, (void **, unsigned))(&stream, 1))
		return 3;
	if (!said("before"))
		turn_on();
	if (!strcmp(argv[2], "graph") && make_graph(driver, function, stream, args, &executable))
		return 4;
	if (said("before"))
		turn_on();
	if (said("thread") && pthread_create(&thread, NULL, changer, NULL))
		return 5;
	if (launches(function, stream, args, executable, atof(argv[3]), &n))
		return 6;
	stop = 1;
	if (said("thread"))
		pthread_join(thread, NULL);
	cupti.flush(1);
	printf("launches %llu changes %llu kernels %llu graphs %llu\n", (unsigned long long)n,
	       (unsigned long long)changes, (unsigned long long)records[KERNEL],
	       (unsigned long long)records[GRAPH]);
	return 0;
}
