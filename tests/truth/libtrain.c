/*
 * A training job on the CUDA driver interface whose steps are written as a plan: what a step does,
 * in order, and how long it takes. Works on a real GPU as well as on the simulated one: kernels are
 * PTX that spins on the device's clock. train.c runs it by itself; jobs/feed.py runs its steps
 * between the batches of a tf.data pipeline. It tells by its own clock when steps begin and end and
 * when what is marked as the defect ran.
 *
 * A plan is words `NAME[:ARGUMENT]...[@N][!]`: done in every step, or every N-th; `!` marks the
 * defect. Times are milliseconds, sizes bytes.
 *
 *   get:MS[:DEPTH]     a batch from a loader that takes so long; DEPTH: prepared by a thread, up to
 *                      so many ahead
 *   sleep:MS busy:MS   the host does something else
 *   k:MS[:N[:NAME]]    N kernels of so long; names begin with spin (spin_gemm, spin_conv, ...)
 *   graph:MS:N         one launch of a graph with N of them
 *   coll:MS            a kernel that waits for the other ranks (simulated GPU only)
 *   h2d d2h:BYTES[:pinned|pageable[:async|sync[:N]]]      N copies of so much
 *   d2d p2p:BYTES      a copy inside a device, or from device 0 to device 1
 *   managed:BYTES      pages move to the device and back
 *   on:S               from here on stream S (0 is the legacy one; 1 to 3) of this device
 *   dev:D              from here on device D, stream 0
 *   note:E after:E     records event E (0 to 7) in this stream; this stream waits for it
 *   sync               waits for the stream
 *   ctx                waits for the device
 *   lag:N              waits for what the step N steps before had issued
 *   alloc:BYTES:N      N allocations and frees
 *   retry:BYTES        an allocation that fails, one that is freed, and again
 *   module             loads and unloads a module
 *   write:BYTES        writes a file and waits for the disk
 */
#include "libtrain.h"

enum { WORDS = 64, STREAMS = 4, EVENTS = 8, DEVICES = 2, DEPTH = 64, LAGS = 64, PARTS = 6 };

struct word {
	char name[16], text[PARTS][24];
	double arg[PARTS];
	int n, every;
	bool defect;
	struct loader *loader;
	void *graph;
};

static struct plan {
	struct word word[WORDS];
	int n;
} plan;

static struct device {
	void *ctx, *stream[STREAMS], *module, *past[LAGS];
	uint64_t memory, more;
	bool ready;
} device[DEVICES];

static void *event[EVENTS];
static char *pinned, *pageable;
static size_t most;
static int dev, stream;
static uint32_t rank, ranks = 1;
static double *begin, *end, *defect;
static long n_begin, n_end, n_defect, cap_defect;

/* ---- loader: what tf.data would be, behind the symbol for loaders of one's own ---- */

struct loader {
	double ms;
	int depth, have;
	bool started;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
};

double train_now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void nap(double ms)
{
	struct timespec t = {(time_t)(ms / 1e3), (long)(ms * 1e6) % 1000000000};
	if (ms > 0)
		nanosleep(&t, NULL);
}

static void spin(double ms)
{
	for (double until = train_now() + ms / 1e3; train_now() < until;)
		;
}

static void *produce(void *arg)
{
	struct loader *l = arg;
	for (;;) {
		nap(l->ms);
		pthread_mutex_lock(&l->lock);
		while (l->have >= l->depth)
			pthread_cond_wait(&l->changed, &l->lock);
		l->have++;
		pthread_cond_broadcast(&l->changed);
		pthread_mutex_unlock(&l->lock);
	}
	return NULL;
}

long tf_data_iterator_get_next(long self, long b, long c, long d, long e, long f)
{
	struct loader *l = (struct loader *)self;
	(void)b, (void)c, (void)d, (void)e, (void)f;
	if (!l->depth) {
		nap(l->ms);
		return 1;
	}
	if (!l->started)
		l->started = !pthread_create(&l->thread, NULL, produce, l);
	pthread_mutex_lock(&l->lock);
	while (!l->have)
		pthread_cond_wait(&l->changed, &l->lock);
	l->have--;
	pthread_cond_broadcast(&l->changed);
	pthread_mutex_unlock(&l->lock);
	return 1;
}

static void fetch(struct loader *l)
{
	static long (*get)(long, long, long, long, long, long);
	if (!get) /* the first definition in the process, which may be a recorder's */
		*(void **)&get = dlsym(RTLD_DEFAULT, "tf_data_iterator_get_next");
	(get ? get : tf_data_iterator_get_next)((long)l, 0, 0, 0, 0, 0);
}

static struct loader *new_loader(double ms, int depth)
{
	struct loader *l = calloc(1, sizeof(*l));
	*l = (struct loader){.ms = ms, .depth = depth};
	pthread_mutex_init(&l->lock, NULL);
	pthread_cond_init(&l->changed, NULL);
	return l;
}

/* ---- device ---- */

static void *find_kernel(const char *name)
{
	void *f;
	CALL(cuModuleGetFunction, (void **, void *, const char *), &f, device[dev].module, name);
	return f;
}

static void enter(int d)
{
	struct device *g = &device[d];
	dev = d;
	stream = 0;
	if (!g->ready) {
		CALL(cuDevicePrimaryCtxRetain, (void **, int), &g->ctx, d);
		CALL(cuCtxSetCurrent, (void *), g->ctx);
		CALL(cuModuleLoadData, (void **, const void *), &g->module, train_ptx);
		for (int i = 1; i < STREAMS; i++)
			CALL(cuStreamCreate, (void **, unsigned), &g->stream[i], 1);
		for (int i = 0; i < LAGS; i++)
			CALL(cuEventCreate, (void **, unsigned), &g->past[i], 2);
		CALL(cuMemAlloc_v2, (uint64_t *, size_t), &g->memory, most);
		CALL(cuMemAlloc_v2, (uint64_t *, size_t), &g->more, most);
		g->ready = true;
	}
	CALL(cuCtxSetCurrent, (void *), g->ctx);
}

static void *current(void)
{
	return device[dev].stream[stream];
}

static void launch(const struct word *w, const char *kernel, unsigned blocks)
{
	uint64_t ns = (uint64_t)(w->arg[0] * 1e6), group = 1;
	void *spin_args[] = {&ns}, *all[] = {&group, &rank, &ranks, &ns}, *f = find_kernel(kernel);
	for (int i = 0; i < (w->n > 1 ? (int)w->arg[1] : 1); i++)
		CALL(cuLaunchKernel,
		     (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
		      void *, void **, void **),
		     f, blocks, 1, 1, 256, 1, 1, 0, current(), *kernel == 'r' ? all : spin_args,
		     NULL);
}

static void do_k(struct word *w)
{
	launch(w, w->n > 2 ? w->text[2] : "spin", 1024);
}

static void do_coll(struct word *w)
{
	launch(w, "rendezvous_all_reduce", 64);
}

static void do_graph(struct word *w)
{
	if (!w->graph) {
		void *made;
		CALL(cuStreamBeginCapture_v2, (void *, int), device[dev].stream[1], 2);
		int before = stream;
		stream = 1;
		launch(w, "spin", 1024);
		stream = before;
		CALL(cuStreamEndCapture, (void *, void **), device[dev].stream[1], &made);
		CALL(cuGraphInstantiateWithFlags, (void **, void *, unsigned long long), &w->graph,
		     made, 0);
	}
	CALL(cuGraphLaunch, (void *, void *), w->graph, current());
}

static void copy(const struct word *w, bool up)
{
	char *host = w->n > 1 && !strcmp(w->text[1], "pinned") ? pinned : pageable;
	bool sync = w->n > 2 && !strcmp(w->text[2], "sync");
	size_t bytes = (size_t)w->arg[0], n = w->n > 3 ? (size_t)w->arg[3] : 1;
	for (size_t i = 0; i < n; i++) {
		size_t at = n > 1 ? i * bytes % (most - bytes) : 0;
		uint64_t there = device[dev].memory + at;
		if (up && sync)
			CALL(cuMemcpyHtoD_v2, (uint64_t, const void *, size_t), there, host + at,
			     bytes);
		else if (up)
			CALL(cuMemcpyHtoDAsync_v2, (uint64_t, const void *, size_t, void *), there,
			     host + at, bytes, current());
		else if (sync)
			CALL(cuMemcpyDtoH_v2, (void *, uint64_t, size_t), host + at, there, bytes);
		else
			CALL(cuMemcpyDtoHAsync_v2, (void *, uint64_t, size_t, void *), host + at,
			     there, bytes, current());
	}
}

static void do_h2d(struct word *w)
{
	copy(w, true);
}

static void do_d2h(struct word *w)
{
	copy(w, false);
}

static void do_d2d(struct word *w)
{
	CALL(cuMemcpyDtoDAsync_v2, (uint64_t, uint64_t, size_t, void *), device[dev].more,
	     device[dev].memory, (size_t)w->arg[0], current());
}

static void do_p2p(struct word *w)
{
	CALL(cuMemcpyPeerAsync, (uint64_t, void *, uint64_t, void *, size_t, void *),
	     device[1].memory, device[1].ctx, device[0].memory, device[0].ctx, (size_t)w->arg[0],
	     current());
}

static void do_managed(struct word *w)
{
	static uint64_t memory;
	if (!memory)
		CALL(cuMemAllocManaged, (uint64_t *, size_t, unsigned), &memory, (size_t)w->arg[0],
		     1);
	CALL(cuMemPrefetchAsync, (uint64_t, size_t, int, void *), memory, (size_t)w->arg[0], dev,
	     current());
	CALL(cuMemPrefetchAsync, (uint64_t, size_t, int, void *), memory, (size_t)w->arg[0], -1,
	     current());
}

static void do_note(struct word *w)
{
	void **e = &event[(int)w->arg[0]];
	if (!*e)
		CALL(cuEventCreate, (void **, unsigned), e, 2);
	CALL(cuEventRecord, (void *, void *), *e, current());
}

static void do_after(struct word *w)
{
	if (event[(int)w->arg[0]])
		CALL(cuStreamWaitEvent, (void *, void *, unsigned), current(),
		     event[(int)w->arg[0]], 0);
}

static void do_sync(struct word *w)
{
	(void)w;
	CALL(cuStreamSynchronize, (void *), current());
}

static void do_ctx(struct word *w)
{
	(void)w;
	CALL(cuCtxSynchronize, (void), );
}

static void do_lag(struct word *w)
{
	long n = (long)w->arg[0];
	CALL(cuEventRecord, (void *, void *), device[dev].past[n_begin % LAGS], current());
	if (n_begin > n)
		CALL(cuEventSynchronize, (void *), device[dev].past[(n_begin - n) % LAGS]);
}

static void do_alloc(struct word *w)
{
	for (int i = 0; i < (int)w->arg[1]; i++) {
		uint64_t p;
		CALL(cuMemAlloc_v2, (uint64_t *, size_t), &p, (size_t)w->arg[0]);
		CALL(cuMemFree_v2, (uint64_t), p);
	}
}

/* What a framework's pool does when the device is full: ask, give back what it keeps, ask again. */
static void do_retry(struct word *w)
{
	static uint64_t kept;
	uint64_t p = 0;
	int (*allocate)(uint64_t *, size_t) =
		(int (*)(uint64_t *, size_t))train_find("cuMemAlloc_v2");
	if (allocate(&p, (size_t)w->arg[0])) {
		CALL(cuMemFree_v2, (uint64_t), kept);
		CALL(cuMemAlloc_v2, (uint64_t *, size_t), &p, (size_t)w->arg[0]);
	}
	kept = p;
}

static void do_module(struct word *w)
{
	void *m;
	(void)w;
	CALL(cuModuleLoadData, (void **, const void *), &m, train_ptx);
	CALL(cuModuleUnload, (void *), m);
}

static void do_write(struct word *w)
{
	char path[] = "/tmp/train-XXXXXX";
	int fd = mkstemp(path);
	ssize_t n = fd < 0 ? -1 : write(fd, pageable, (size_t)w->arg[0]);
	if (n < 0 || fsync(fd))
		perror("train: write");
	close(fd);
	unlink(path);
}

static void do_get(struct word *w)
{
	if (!w->loader)
		w->loader = new_loader(w->arg[0], w->n > 1 ? (int)w->arg[1] : 0);
	fetch(w->loader);
}

/* A batch of an evaluation, which belongs to no step. */
void train_eval(double ms)
{
	struct word k = {.arg = {ms, 1}, .n = 2};
	launch(&k, "spin_eval", 1024);
	do_sync(&k);
}

static void do_sleep(struct word *w)
{
	nap(w->arg[0]);
}

static void do_busy(struct word *w)
{
	spin(w->arg[0]);
}

static void do_on(struct word *w)
{
	stream = (int)w->arg[0];
}

static void do_dev(struct word *w)
{
	enter((int)w->arg[0]);
}

static const struct {
	const char *name;
	void (*run)(struct word *);
} verbs[] = {
	{"get", do_get},     {"sleep", do_sleep},     {"busy", do_busy},   {"k", do_k},
	{"graph", do_graph}, {"coll", do_coll},	      {"h2d", do_h2d},	   {"d2h", do_d2h},
	{"d2d", do_d2d},     {"p2p", do_p2p},	      {"on", do_on},	   {"dev", do_dev},
	{"note", do_note},   {"after", do_after},     {"sync", do_sync},   {"ctx", do_ctx},
	{"lag", do_lag},     {"alloc", do_alloc},     {"retry", do_retry}, {"module", do_module},
	{"write", do_write}, {"managed", do_managed},
};

/* ---- plan ---- */

static void parse_word(struct word *w, char *text)
{
	char *mark = strchr(text, '!'), *at;
	*w = (struct word){.every = 1, .defect = mark};
	if (mark)
		*mark = 0;
	at = strchr(text, '@');
	if (at) {
		w->every = atoi(at + 1);
		*at = 0;
	}
	for (char *part = strchr(text, ':'), *next; part && w->n < PARTS; part = next) {
		*part++ = 0;
		next = strchr(part, ':');
		snprintf(w->text[w->n], sizeof(w->text[0]), "%.*s",
			 (int)(next ? next - part : (long)strlen(part)), part);
		w->arg[w->n++] = atof(part);
	}
	snprintf(w->name, sizeof(w->name), "%s", text);
}

static void run_word(struct word *w)
{
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
		if (!strcmp(verbs[i].name, w->name)) {
			verbs[i].run(w);
			return;
		}
	fprintf(stderr, "train: what is %s?\n", w->name);
	exit(2);
}

void train_defect(double t0, double t1)
{
	if (n_defect == cap_defect) {
		cap_defect = cap_defect ? 2 * cap_defect : 1024;
		defect = realloc(defect, 2 * sizeof(*defect) * (size_t)cap_defect);
	}
	defect[2 * n_defect] = t0;
	defect[2 * n_defect++ + 1] = t1;
}

/* Before the first step: the plan and the device. */
void train_open(const char *text, long steps)
{
	char *copy_of = strdup(text), *save = NULL;
	const char *r = getenv("TRAIN_RANK"), *n = getenv("TRAIN_RANKS");
	rank = r ? (uint32_t)atoi(r) : 0;
	ranks = n ? (uint32_t)atoi(n) : 1;
	most = 1 << 20;
	for (char *t = strtok_r(copy_of, " ", &save); t && plan.n < WORDS;
	     t = strtok_r(NULL, " ", &save)) {
		struct word *w = &plan.word[plan.n++];
		parse_word(w, t);
		if (strstr("h2d d2h d2d p2p write", w->name) && w->arg[0] + 64 > (double)most)
			most = (size_t)w->arg[0] + 64;
	}
	free(copy_of);
	begin = calloc((size_t)steps, sizeof(*begin));
	end = calloc((size_t)steps, sizeof(*end));
	CALL(cuInit, (unsigned), 0);
	enter(0);
	CALL(cuMemHostAlloc, (void **, size_t, unsigned), (void **)&pinned, most, 0);
	pageable = malloc(most);
	memset(pageable, 1, most);
	memset(pinned, 2, most);
	for (int i = 0; i < plan.n; i++)
		if (!strcmp(plan.word[i].name, "dev")) {
			enter((int)plan.word[i].arg[0]);
			enter(0);
		}
}

/* One step of the plan; `from`: when it began, if that was before. */
void train_step(double from)
{
	bool moved = dev || stream;
	begin[n_begin++] = from > 0 ? from : train_now();
	if (moved)
		enter(0);
	for (int i = 0; i < plan.n; i++) {
		struct word *w = &plan.word[i];
		if (n_begin % w->every)
			continue;
		double t0 = w->defect ? train_now() : 0;
		run_word(w);
		if (w->defect)
			train_defect(t0, train_now());
	}
	end[n_end++] = train_now();
}

static void print_list(const char *name, const double *v, long n)
{
	printf("\"%s\": [", name);
	for (long i = 0; i < n; i++)
		printf("%s%.9f", i ? ", " : "", v[i]);
	printf("], ");
}

/* Waits for the device and prints what the job knows of itself, as one JSON object. */
void train_close(void)
{
	for (int d = 0; d < DEVICES; d++)
		if (device[d].ready) {
			enter(d);
			CALL(cuCtxSynchronize, (void), );
		}
	printf("{\"steps\": %ld, ", n_end);
	print_list("begin", begin, n_begin);
	print_list("end", end, n_end);
	print_list("defect", defect, 2 * n_defect);
	printf("\"done\": %.9f}\n", train_now());
	fflush(stdout);
}
