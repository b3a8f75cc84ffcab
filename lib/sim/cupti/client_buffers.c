/*
 * Delivers records to the client's buffers. Device records wait in a queue to which engines may add
 * at any time. The next thread that holds no lock moves them into a client's buffer (at the end of
 * a call, in a flush, or in a thread of this library). Records of calls go directly into their
 * thread's buffer. Full buffers are returned to the client at once, the others with a flush. Every
 * record is delivered once or counted as dropped.
 */
#include "sim/cupti/sim_cupti.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

struct client_buffer {
	unsigned char *p;
	size_t size, used, max, n;
	bool orphan; /* its thread has ended */
	struct client_buffer *next;
};

struct full_buffer {
	unsigned char *p;
	size_t size, used, n;
	struct full_buffer *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Held while moving records out of the queue, including the request to the client for a buffer.
 * Locked before `lock`. */
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static sim_requested_fn requested;
static sim_completed_fn completed;
static struct sim_record *queue;
static size_t queue_at, queue_n, queue_size;
static struct client_buffer common;
static struct client_buffer *sinks = &common;
static struct full_buffer *parcels, **parcels_end = &parcels;
static size_t held, dropped;
static unsigned delivering; /* threads inside the client's `completed` */
static pthread_key_t key;
static __thread struct client_buffer *mine;
static __thread bool in_client;

/* ---- the worker ---- */
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER, answered = PTHREAD_COND_INITIALIZER;
static uint64_t asked, done;
static bool ask_empty, working;
static uint32_t period_ms;

/* Attributes by number: CUpti_ActivityAttribute. */
static struct {
	size_t bytes, value;
} attributes[] = {
	{8, 3200000},	      /* device buffer size */
	{8, 8388608},	      /* the same for launches of the device */
	{8, 250},	      /* number of device buffers */
	{8, 25000},	      /* semaphore pool */
	{8, 250},     {1, 0}, /* buffers of the client are zeroed */
	{8, 3},		      /* device buffers made in advance */
	{8, 3},	      {1, 0}, /* device buffers in pinned memory */
	{1, 1},		      /* a buffer for each thread */
	{8, 8388608},
};
enum { ATTR_ZEROED = 5, ATTR_PER_THREAD = 9 };

CUptiResult sim_attribute(int a, size_t *size, void *value, bool set)
{
	if (!size || !value || a < 0 || a >= (int)(sizeof(attributes) / sizeof(attributes[0])))
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (*size < attributes[a].bytes)
		return CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT;
	*size = attributes[a].bytes;
	/* Little endian: the low bytes come first. */
	pthread_mutex_lock(&lock);
	if (set)
		memcpy(&attributes[a].value, value, *size);
	else
		memcpy(value, &attributes[a].value, *size);
	pthread_mutex_unlock(&lock);
	return CUPTI_SUCCESS;
}

static void orphan(void *sink)
{
	pthread_mutex_lock(&lock);
	((struct client_buffer *)sink)->orphan = true;
	pthread_mutex_unlock(&lock);
}

static void make_key(void)
{
	pthread_key_create(&key, orphan);
}

CUptiResult sim_buffers_register(sim_requested_fn r, sim_completed_fn c)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	CUptiResult result = CUPTI_SUCCESS;
	pthread_once(&once, make_key);
	if (!r || !c)
		return CUPTI_ERROR_INVALID_PARAMETER;
	pthread_mutex_lock(&lock);
	if (requested && !sim_cupti_config()->last_wins) {
		result = CUPTI_ERROR_INVALID_OPERATION;
	} else {
		requested = r;
		completed = c;
	}
	pthread_mutex_unlock(&lock);
	return result;
}

/* With lock: whether another record may be stored. */
static bool admit(void)
{
	int limit = sim_cupti_config()->drop_after;
	if (limit && held >= (size_t)limit) {
		dropped++;
		return false;
	}
	held++;
	return true;
}

/* With lock: a record could not be stored. */
static void lose(void)
{
	held--;
	dropped++;
}

static void grow(void)
{
	size_t size = queue_size ? queue_size * 2 : 1024;
	struct sim_record *q = malloc(size * sizeof(*q));
	for (size_t i = 0; i < queue_n; i++)
		q[i] = queue[(queue_at + i) % queue_size];
	free(queue);
	queue = q;
	queue_at = 0;
	queue_size = size;
}

void sim_buffers_add(const struct sim_record *r)
{
	pthread_mutex_lock(&lock);
	if (admit()) {
		if (queue_n == queue_size)
			grow();
		queue[(queue_at + queue_n++) % queue_size] = *r;
	}
	pthread_mutex_unlock(&lock);
}

/* With lock and records in the queue: the next one, in or out of order. */
static struct sim_record take(void)
{
	static unsigned seed = 1;
	size_t window = (size_t)sim_cupti_config()->shuffle;
	if (window > queue_n)
		window = queue_n;
	struct sim_record *first = &queue[queue_at], out;
	if (window > 1) {
		struct sim_record *other =
			&queue[(queue_at + (size_t)rand_r(&seed) % window) % queue_size];
		struct sim_record tmp = *first;
		*first = *other;
		*other = tmp;
	}
	out = *first;
	queue_at = (queue_at + 1) % queue_size;
	queue_n--;
	return out;
}

/* With lock: sends the contents of s to the client. */
static void pack(struct client_buffer *s)
{
	struct full_buffer *p = malloc(sizeof(*p));
	*p = (struct full_buffer){s->p, s->size, s->used, s->n, NULL};
	*parcels_end = p;
	parcels_end = &p->next;
	s->p = NULL;
	s->size = s->used = s->n = s->max = 0;
}

static void overhead(uint32_t what, uint64_t start, void (*add)(const struct sim_record *))
{
	struct sim_record r = {.kind = KIND_OVERHEAD};
	if (!sim_kind_on(KIND_OVERHEAD))
		return;
	r.host.id = what;
	r.host.start = start;
	r.host.end = sim_cupti_now();
	r.host.thread = sim_thread_id();
	add(&r);
}

/* Requests a buffer from the client. Called with `lock`, which is released while the client runs.
 * False if the client returned none. `told`: the request itself leaves a record. A request on
 * behalf of such a record must not leave another, or a client without usable buffers would be asked
 * forever. */
static bool request(struct client_buffer *s, bool told)
{
	enum { BUFFER_REQUEST = 7 << 16 };
	unsigned char *p = NULL;
	size_t size = 0, max = 0;
	sim_requested_fn f = requested;
	bool zero = !attributes[ATTR_ZEROED].value;
	if (!f)
		return false;
	pthread_mutex_unlock(&lock);
	uint64_t start = sim_cupti_now();
	in_client = true;
	f(&p, &size, &max);
	in_client = false;
	if (p && zero)
		memset(p, 0, size);
	if (told && sim_cupti_version() >= 26)
		overhead(BUFFER_REQUEST, start, sim_buffers_add);
	pthread_mutex_lock(&lock);
	if (!p)
		return false;
	s->p = p;
	s->size = size;
	s->max = max;
	s->used = s->n = 0;
	return true;
}

static bool fits(const struct client_buffer *s, size_t size)
{
	size_t limit = sim_cupti_config()->buffer_bytes;
	if (!limit || limit > s->size)
		limit = s->size;
	return s->used + size <= limit && (!s->max || s->n < s->max);
}

/* Stores a record. Called with `lock`, which may be released meanwhile; only this thread uses s. */
static void put(struct client_buffer *s, const struct sim_record *r)
{
	size_t size = sim_record_size(r->kind);
	if (s->p && !fits(s, size))
		pack(s);
	if (!s->p && !request(s, r->kind != KIND_OVERHEAD)) {
		lose();
		return;
	}
	if (!fits(s, size)) { /* smaller than one record */
		pack(s);
		lose();
		return;
	}
	sim_record_encode(r, s->p + s->used);
	s->used += size;
	s->n++;
}

static void hand_over(void)
{
	pthread_mutex_lock(&lock);
	for (;;) {
		struct full_buffer *p = parcels;
		sim_completed_fn f = completed;
		if (!p)
			break;
		parcels = p->next;
		if (!parcels)
			parcels_end = &parcels;
		held -= p->n;
		delivering++;
		pthread_mutex_unlock(&lock);
		in_client = true;
		f(NULL, 0, p->p, p->size, p->used);
		in_client = false;
		free(p);
		pthread_mutex_lock(&lock);
		if (!--delivering)
			pthread_cond_broadcast(&answered);
	}
	pthread_mutex_unlock(&lock);
}

/* Empties the queue. Called with `turn`. */
static void drain_queue(void)
{
	sim_cupti_clock_sample();
	pthread_mutex_lock(&lock);
	while (queue_n && requested) {
		struct sim_record r = take();
		put(&common, &r);
	}
	pthread_mutex_unlock(&lock);
}

static bool by_worker(void)
{
	return sim_cupti_config()->worker;
}

static bool start_worker(void);

void sim_buffers_pump(void)
{
	if (in_client)
		return;
	if (by_worker()) {
		pthread_mutex_lock(&lock);
		if (start_worker() && (queue_n || parcels))
			pthread_cond_signal(&wake);
		pthread_mutex_unlock(&lock);
		return;
	}
	if (pthread_mutex_trylock(&turn))
		return;
	drain_queue();
	pthread_mutex_unlock(&turn);
	hand_over();
}

void sim_buffers_add_mine(const struct sim_record *r)
{
	pthread_mutex_lock(&lock);
	bool own = attributes[ATTR_PER_THREAD].value & 1;
	if (!own || !requested || in_client) {
		pthread_mutex_unlock(&lock);
		sim_buffers_add(r);
		return;
	}
	if (!mine) {
		mine = calloc(1, sizeof(*mine));
		mine->next = sinks;
		sinks = mine;
		pthread_setspecific(key, mine);
	}
	if (admit())
		put(mine, r);
	pthread_mutex_unlock(&lock);
}

static void flush_here(bool also_empty)
{
	pthread_mutex_lock(&turn);
	drain_queue();
	pthread_mutex_lock(&lock);
	for (struct client_buffer **at = &sinks; *at;) {
		struct client_buffer *s = *at;
		if (s->p && (s->used || also_empty))
			pack(s);
		if (s->orphan && !s->p) {
			*at = s->next;
			free(s);
			continue;
		}
		at = &s->next;
	}
	pthread_mutex_unlock(&lock);
	pthread_mutex_unlock(&turn);
	hand_over();
}

static void *work(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&lock);
	for (;;) {
		if (asked > done) {
			uint64_t up_to = asked;
			bool also_empty = ask_empty;
			pthread_mutex_unlock(&lock);
			flush_here(also_empty);
			pthread_mutex_lock(&lock);
			done = up_to;
			pthread_cond_broadcast(&answered);
			continue;
		}
		struct timespec t;
		clock_gettime(CLOCK_REALTIME, &t);
		uint64_t ns = (uint64_t)t.tv_nsec + (uint64_t)period_ms * 1000000u;
		t.tv_sec += (time_t)(ns / 1000000000u);
		t.tv_nsec = (long)(ns % 1000000000u);
		if (period_ms)
			pthread_cond_timedwait(&wake, &lock, &t);
		else
			pthread_cond_wait(&wake, &lock);
		pthread_mutex_unlock(&lock);
		pthread_mutex_lock(&turn);
		drain_queue();
		pthread_mutex_unlock(&turn);
		hand_over();
		pthread_mutex_lock(&lock);
	}
	return NULL;
}

/* Called with `lock`. */
static bool start_worker(void)
{
	pthread_t t;
	sigset_t all, old;
	if (working)
		return true;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	working = !pthread_create(&t, NULL, work, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (working)
		pthread_detach(t);
	return working;
}

void sim_buffers_flush(bool also_empty)
{
	enum { BUFFER_FLUSH = 1 << 16 };
	if (in_client)
		return;
	uint64_t start = sim_cupti_now();
	also_empty |= sim_cupti_config()->empty_buffers;
	pthread_mutex_lock(&lock);
	bool there = by_worker() && start_worker();
	if (there) {
		uint64_t ticket = ++asked;
		ask_empty = also_empty;
		pthread_cond_signal(&wake);
		while (done < ticket)
			pthread_cond_wait(&answered, &lock);
	}
	pthread_mutex_unlock(&lock);
	if (!there)
		flush_here(also_empty);
	/* A flush waits for deliveries that other threads have started. */
	pthread_mutex_lock(&lock);
	while (delivering)
		pthread_cond_wait(&answered, &lock);
	pthread_mutex_unlock(&lock);
	overhead(BUFFER_FLUSH, start, sim_buffers_add);
}

CUptiResult sim_buffers_period(uint32_t ms)
{
	pthread_mutex_lock(&lock);
	period_ms = ms;
	bool there = !ms || start_worker();
	pthread_cond_signal(&wake);
	pthread_mutex_unlock(&lock);
	return there ? CUPTI_SUCCESS : CUPTI_ERROR_UNKNOWN;
}

size_t sim_buffers_dropped(void)
{
	pthread_mutex_lock(&lock);
	size_t n = dropped;
	dropped = 0;
	pthread_mutex_unlock(&lock);
	return n;
}
