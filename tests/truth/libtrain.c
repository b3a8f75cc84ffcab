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
 * - get:MS[:DEPTH[:BYTES]]: a batch from a loader that takes so long; DEPTH: prepared by a thread,
 *   up to so many ahead; BYTES: which copies it to the device, in stream 3
 * - load:MS[:DEPTH]: the same from a loader behind no known symbol
 * - feed:MS[:DEPTH]: as get, but by a thread that puts the batches into a queue
 * - sleep:MS busy:MS: the host does something else
 * - fn:MS: the stream waits for a function of the host that takes so long
 * - value:MS: the stream waits for a value that a thread of the host writes so much later
 * - mark: the job's own mark of a step
 * - hand back: from here on, another thread goes through the plan; this one waits for it
 * - k:MS[:N[:NAME]]: N kernels of so long; names begin with spin (spin_gemm, spin_conv, ...)
 * - graph:MS:N: one launch of a graph with N of them
 * - coll:MS: a kernel that waits for the other ranks (simulated GPU only)
 * - h2d d2h:BYTES[:pinned|pageable[:async|sync[:N]]]: N copies of so much
 * - batch:BYTES:N: N copies of pinned memory to the device in one call
 * - d2d p2p:BYTES: a copy inside a device, or from device 0 to device 1
 * - managed:BYTES: pages move to the device and back
 * - on:S: from here on stream S (0 is the legacy one; 1 to 3) of this device
 * - dev:D: from here on device D, stream 0
 * - note:E after:E: records event E (0 to 7) in this stream; this stream waits for it
 * - sync poll[:MS]: waits for the stream, once or by asking again and again (every MS)
 * - ctx: waits for the device
 * - lag:N: waits for what the step N steps before had issued
 * - alloc:BYTES:N: N allocations and frees
 * - retry:BYTES: an allocation that fails, one that is freed, and again
 * - module: loads and unloads a module
 * - write:BYTES: writes a file and waits for the disk
 *
 * TRAIN_JITTER=0.3: what takes time takes up to 30 % more or less, all of a step alike.
 * TRAIN_WORDS=1: prints when each word ran, too.
 */
#include "libtrain.h"

#include "tfhook/tfhook.h"

enum { WORDS = 160, STREAMS = 4, EVENTS = 8, DEVICES = 2, DEPTH = 64, LAGS = 64, PARTS = 6 };

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
static double *begin, *end, jitter, scale = 1; /* of this step's times */
static long n_begin, n_end;
static struct list {
	double *v;
	long n, cap;
} defect, ran;
static bool tell_words;

#include "loader.h"

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
	uint64_t ns = (uint64_t)(w->arg[0] * scale * 1e6), group = 1;
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

/* What a loader's own thread does with a batch. */
static void upload(size_t bytes)
{
	CALL(cuCtxSetCurrent, (void *), device[0].ctx);
	CALL(cuMemcpyHtoDAsync_v2, (uint64_t, const void *, size_t, void *), device[0].more, pinned,
	     bytes, device[0].stream[3]);
	CALL(cuStreamSynchronize, (void *), device[0].stream[3]);
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

static void do_poll(struct word *w)
{
	int (*ask)(void *) = (int (*)(void *))train_find("cuStreamQuery");
	while (ask(current()))
		usleep(w->arg[0] > 0 ? (useconds_t)(w->arg[0] * 1e3) : 20);
}

static void host_function(void *arg)
{
	nap(*(double *)arg);
}

static void do_fn(struct word *w)
{
	CALL(cuLaunchHostFunc, (void *, void (*)(void *), void *), current(), host_function,
	     &w->arg[0]);
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

static struct loader *loader_of(struct word *w)
{
	if (!w->loader)
		w->loader = new_loader(w->arg[0], (int)w->arg[1], (size_t)w->arg[2]);
	return w->loader;
}

static void do_get(struct word *w)
{
	fetch(loader_of(w));
}

static void do_load(struct word *w)
{
	take(loader_of(w));
}

#include "orders.h"

static void do_mark(struct word *w)
{
	(void)w;
	tfhook_step();
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
	{"write", do_write}, {"managed", do_managed}, {"load", do_load},   {"mark", do_mark},
	{"poll", do_poll},   {"fn", do_fn},	      {"feed", do_feed},   {"value", do_value},
	{"batch", do_batch},
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

static void keep(struct list *l, double v)
{
	if (l->n == l->cap) {
		l->cap = l->cap ? 2 * l->cap : 2048;
		l->v = realloc(l->v, sizeof(*l->v) * (size_t)l->cap);
	}
	l->v[l->n++] = v;
}

void train_defect(double t0, double t1)
{
	keep(&defect, t0);
	keep(&defect, t1);
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
		double bytes = w->arg[strcmp(w->name, "get") ? 0 : 2];
		if (strstr("h2d d2h d2d p2p write get", w->name) && bytes + 64 > (double)most)
			most = (size_t)bytes + 64;
	}
	if (strtok_r(NULL, " ", &save)) {
		fprintf(stderr, "train: more than %d words\n", WORDS);
		exit(2);
	}
	free(copy_of);
	tell_words = getenv("TRAIN_WORDS") != NULL;
	jitter = getenv("TRAIN_JITTER") ? atof(getenv("TRAIN_JITTER")) : 0;
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

static int run_words(int i);

/* The other thread: goes through the plan from the word it is handed to the one that hands back. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	int from, next;
	bool started;
} other = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void *help(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&other.lock);
	for (;;) {
		while (!other.from)
			pthread_cond_wait(&other.changed, &other.lock);
		enter(dev);
		other.next = run_words(other.from);
		other.from = 0;
		pthread_cond_broadcast(&other.changed);
	}
	return NULL;
}

static int hand(int from)
{
	pthread_t thread;
	pthread_mutex_lock(&other.lock);
	if (!other.started)
		other.started = !pthread_create(&thread, NULL, help, NULL);
	other.from = from;
	pthread_cond_broadcast(&other.changed);
	while (other.from)
		pthread_cond_wait(&other.changed, &other.lock);
	pthread_mutex_unlock(&other.lock);
	return other.next;
}

/* Does the words from there to the end, or to the one that hands back; returns the next one. */
static int run_words(int i)
{
	while (i < plan.n) {
		struct word *w = &plan.word[i++];
		if (!strcmp(w->name, "back"))
			return i;
		if (!strcmp(w->name, "hand")) {
			i = hand(i);
			continue;
		}
		if (n_begin % w->every)
			continue;
		double t0 = train_now();
		run_word(w);
		if (w->defect)
			train_defect(t0, train_now());
		if (tell_words) {
			keep(&ran, (double)(w - plan.word));
			keep(&ran, t0);
			keep(&ran, train_now());
		}
	}
	return i;
}

/* One step of the plan; `from`: when it began, if that was before. */
void train_step(double from)
{
	static __thread bool here; /* this thread has the context */
	bool moved = dev || stream || !here;
	here = true;
	begin[n_begin++] = from > 0 ? from : train_now();
	scale = 1 + jitter * ((double)(n_begin * 2654435761u >> 8 & 0xffff) / 32768 - 1);
	if (moved)
		enter(0);
	run_words(0);
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
	print_list("defect", defect.v, defect.n);
	if (tell_words)
		print_list("words", ran.v, ran.n);
	printf("\"done\": %.9f}\n", train_now());
	fflush(stdout);
}
