/* libtrain.c's words in which others than the training thread's own calls say what comes when. */

/* A thread that takes batches itself and puts them into a queue: the training thread calls no
 * loader. */
struct feeder {
	struct loader *from;
	int have;
	pthread_mutex_t lock;
	pthread_cond_t changed;
};

enum { FED = 2 }; /* batches in the queue */

static void *feed(void *arg)
{
	struct feeder *f = arg;
	for (;;) {
		fetch(f->from);
		pthread_mutex_lock(&f->lock);
		while (f->have >= FED)
			pthread_cond_wait(&f->changed, &f->lock);
		f->have++;
		pthread_cond_broadcast(&f->changed);
		pthread_mutex_unlock(&f->lock);
	}
	return NULL;
}

static void do_feed(struct word *w)
{
	static struct feeder f = {.lock = PTHREAD_MUTEX_INITIALIZER,
				  .changed = PTHREAD_COND_INITIALIZER};
	pthread_t thread;
	if (!f.from) {
		f.from = new_loader(w->arg[0], (int)w->arg[1], 0);
		pthread_create(&thread, NULL, feed, &f);
	}
	pthread_mutex_lock(&f.lock);
	while (!f.have)
		pthread_cond_wait(&f.changed, &f.lock);
	f.have--;
	pthread_cond_broadcast(&f.changed);
	pthread_mutex_unlock(&f.lock);
}

/* A thread that writes a value some time after it was told to; the stream waits for it. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	volatile uint32_t *value;
	uint32_t wanted;
	double ms;
} signal_of = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void *write_values(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&signal_of.lock);
	for (;;) {
		while (*signal_of.value == signal_of.wanted)
			pthread_cond_wait(&signal_of.changed, &signal_of.lock);
		uint32_t next = signal_of.wanted;
		pthread_mutex_unlock(&signal_of.lock);
		nap(signal_of.ms);
		pthread_mutex_lock(&signal_of.lock);
		*signal_of.value = next;
	}
	return NULL;
}

static void do_value(struct word *w)
{
	static uint64_t at;
	pthread_t thread;
	if (!signal_of.value) {
		CALL(cuMemHostAlloc, (void **, size_t, unsigned), (void **)&signal_of.value, 64, 0);
		CALL(cuMemHostGetDevicePointer_v2, (uint64_t *, void *, unsigned), &at,
		     (void *)signal_of.value, 0);
		*signal_of.value = 0;
		pthread_create(&thread, NULL, write_values, NULL);
	}
	pthread_mutex_lock(&signal_of.lock);
	signal_of.ms = w->arg[0];
	signal_of.wanted++;
	pthread_cond_broadcast(&signal_of.changed);
	pthread_mutex_unlock(&signal_of.lock);
	CALL(cuStreamWaitValue32_v2, (void *, uint64_t, uint32_t, unsigned), current(), at,
	     signal_of.wanted, 0);
}

/* One call for N copies to the device. */
static void do_batch(struct word *w)
{
	struct {
		int order, from[2], to[2];
		unsigned flags;
	} how = {.order = 1};
	size_t n = (size_t)w->arg[1], bytes = (size_t)w->arg[0], first = 0, failed;
	uint64_t *to = malloc(3 * n * sizeof(*to)), *from = to + n;
	size_t *size = (size_t *)(from + n);
	for (size_t i = 0; i < n; i++) {
		to[i] = device[dev].memory + i * bytes % (most - bytes);
		from[i] = (uint64_t)pinned + i * bytes % (most - bytes);
		size[i] = bytes;
	}
	CALL(cuMemcpyBatchAsync,
	     (uint64_t *, uint64_t *, size_t *, size_t, void *, size_t *, size_t, size_t *, void *),
	     to, from, size, n, &how, &first, 1, &failed, current());
	free(to);
}
