/* libtrain.c's loader: what tf.data would be, behind the symbol for loaders of one's own. */
struct loader {
	double ms;
	int depth, have;
	size_t bytes;
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
	ms *= scale;
	struct timespec t = {(time_t)(ms / 1e3), (long)(ms * 1e6) % 1000000000};
	if (ms > 0)
		nanosleep(&t, NULL);
}

static void spin(double ms)
{
	for (double until = train_now() + ms * scale / 1e3; train_now() < until;)
		;
}

static void upload(size_t bytes);

static void *produce(void *arg)
{
	struct loader *l = arg;
	for (;;) {
		nap(l->ms);
		if (l->bytes)
			upload(l->bytes);
		pthread_mutex_lock(&l->lock);
		while (l->have >= l->depth)
			pthread_cond_wait(&l->changed, &l->lock);
		l->have++;
		pthread_cond_broadcast(&l->changed);
		pthread_mutex_unlock(&l->lock);
	}
	return NULL;
}

static void take(struct loader *l)
{
	if (!l->depth) {
		nap(l->ms);
		return;
	}
	if (!l->started)
		l->started = !pthread_create(&l->thread, NULL, produce, l);
	pthread_mutex_lock(&l->lock);
	while (!l->have)
		pthread_cond_wait(&l->changed, &l->lock);
	l->have--;
	pthread_cond_broadcast(&l->changed);
	pthread_mutex_unlock(&l->lock);
}

long tf_data_iterator_get_next(long self, long b, long c, long d, long e, long f)
{
	(void)b, (void)c, (void)d, (void)e, (void)f;
	take((struct loader *)self);
	return 1;
}

static void fetch(struct loader *l)
{
	static long (*get)(long, long, long, long, long, long);
	if (!get) /* the first definition in the process, which may be a recorder's */
		*(void **)&get = dlsym(RTLD_DEFAULT, "tf_data_iterator_get_next");
	(get ? get : tf_data_iterator_get_next)((long)l, 0, 0, 0, 0, 0);
}

static struct loader *new_loader(double ms, int depth, size_t bytes)
{
	struct loader *l = calloc(1, sizeof(*l));
	*l = (struct loader){.ms = ms, .depth = depth, .bytes = bytes};
	pthread_mutex_init(&l->lock, NULL);
	pthread_cond_init(&l->changed, NULL);
	return l;
}
