/*
 * Judges slices of the run in parallel. One thread, the reader, loads slices in order of time
 * (window_chunk.c). Workers judge them, and so does the reader when there is no room for another
 * slice. The begin of a slice depends only on the windows and their ops, and slices pass on in
 * order what each has to know of those before it: the names of streams, and how long threads take
 * to wake up. The reader closes the accounts, also in order, so results do not depend on the number
 * of workers. A slice also contains the time before its first window in which ops and calls may
 * have delayed it (span.c).
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "judge/account/device.h"
#include "judge/chain.h"

/* What slices pass on, each in its turn. */
enum turn { STREAMS, WAKES, TURNS };

struct tfh_slices {
	struct tfh_device *device;
	const struct tfh_sampler *sampler;
	pthread_t worker[TFH_ACCOUNT_SLICES];
	uint32_t workers, slots;
	struct tfh_slice slot[TFH_ACCOUNT_SLICES];
	/* Memory to judge in: of the reader, of workers. */
	struct tfh_slice room[TFH_ACCOUNT_SLICES];
	uint64_t held; /* by the reader: ops and calls of all slices that are not closed */
	uint64_t closed;
	int rc;
	/* what was passed on, owned by the slice whose turn it is */
	TFH_VEC(struct tfh_stream_name) stream;
	struct tfh_hist wake, after, prompt;
	pthread_mutex_t lock; /* of all below, and of tfh_slice.judged */
	pthread_cond_t changed;
	uint64_t given, taken; /* slices so far */
	uint64_t turn[TURNS];  /* number of the slice whose turn it is */
	bool stop;
};

/* Known streams keep their names. */
static int pass_streams(struct tfh_slices *q, struct tfh_slice *sl)
{
	int rc = 0;

	for (size_t i = 0; i < sl->stream.n && !rc; i++)
		if (!tfh_stream_known(q->stream.v, q->stream.n, &sl->stream.v[i]))
			rc = TFH_PUSH(q->stream, sl->stream.v[i]);
	sl->stream.n = 0;
	for (size_t i = 0; i < q->stream.n && !rc; i++)
		rc = TFH_PUSH(sl->stream, q->stream.v[i]);
	return rc;
}

static void pass_times(struct tfh_hist *all, struct tfh_hist *mine)
{
	all->n += mine->n;
	for (int i = 0; i < TFH_HIST_BINS; i++)
		all->bin[i] += mine->bin[i];
	*mine = *all;
}

static int pass_wakes(struct tfh_slices *q, struct tfh_slice *sl)
{
	pass_times(&q->wake, &sl->wake);
	pass_times(&q->after, &sl->after);
	pass_times(&q->prompt, &sl->prompt);
	return 0;
}

/* Waits for the slice's turn, also after an error, since later slices wait for this one. Slices are
 * taken in order, so those before it are judged or being judged. */
static int in_turn(struct tfh_slices *q, struct tfh_slice *sl, enum turn kind, int rc,
		   int (*pass)(struct tfh_slices *q, struct tfh_slice *sl))
{
	pthread_mutex_lock(&q->lock);
	while (q->turn[kind] != sl->number)
		pthread_cond_wait(&q->changed, &q->lock);
	pthread_mutex_unlock(&q->lock);
	rc = rc ? rc : pass(q, sl);
	pthread_mutex_lock(&q->lock);
	q->turn[kind]++;
	pthread_cond_broadcast(&q->changed);
	pthread_mutex_unlock(&q->lock);
	return rc;
}

/* Charges the windows, and finds which of them count: no stalls. */
static int charge(struct tfh_slice *sl)
{
	const struct tfh_accounts *accounts = sl->accounts;
	int rc = tfh_blame_start(sl);

	for (size_t w = sl->w0; w < sl->w1 && !rc; w++) {
		struct tfh_slice_window *x = &sl->window.v[w - sl->w0];
		const struct tfh_device_window *win = &sl->device->win.v[w];
		tfh_blame_window(sl, w, &x->account);
		x->counts = tfh_window_counts(accounts, w) &&
			    !tfh_is_stall(accounts, w, win->to - win->from, x->account.compute);
		tfh_pauses_settle(sl->pauses, x->counts);
	}
	return rc;
}

/* Lends a slice the memory for the data made while it is judged, and takes it back. */
static void swap_room(struct tfh_slice *sl, struct tfh_slice *room)
{
	uint32_t *thread_span = sl->thread_span;

	TFH_SWAP(sl->span, room->span);
	TFH_SWAP(sl->ends, room->ends);
	TFH_SWAP(sl->others, room->others);
	TFH_SWAP(sl->op_ends, room->op_ends);
	TFH_SWAP(sl->issued, room->issued);
	TFH_SWAP(sl->near, room->near);
	sl->thread_span = room->thread_span;
	room->thread_span = thread_span;
}

static void judge(struct tfh_slices *q, struct tfh_slice *sl)
{
	int rc = tfh_host_time(sl);

	if (!rc && TFH_DETECT_STAGING && sl->families & 1ull << TFH_FAM_COPY)
		tfh_mark_staging(sl);
	if (!rc)
		rc = tfh_find_issuers(sl);
	rc = in_turn(q, sl, STREAMS, rc, pass_streams);
	memset(&sl->wake, 0, sizeof(sl->wake));
	memset(&sl->after, 0, sizeof(sl->after));
	memset(&sl->prompt, 0, sizeof(sl->prompt));
	if (!rc)
		rc = tfh_depend(sl);
	rc = in_turn(q, sl, WAKES, rc, pass_wakes);
	if (!rc)
		rc = charge(sl);
	if (!rc && sl->sampled && !(sl->sample = q->sampler->take(q->sampler->arg, sl)))
		rc = -ENOMEM;
	sl->rc = rc;
}

/* Judges the next slice that no thread has taken. The caller holds the lock. */
static void judge_next(struct tfh_slices *q, struct tfh_slice *room)
{
	struct tfh_slice *sl = &q->slot[q->taken++ % q->slots];

	pthread_mutex_unlock(&q->lock);
	swap_room(sl, room);
	judge(q, sl);
	swap_room(sl, room);
	pthread_mutex_lock(&q->lock);
	sl->judged = true;
	pthread_cond_broadcast(&q->changed);
}

static void *work(void *arg)
{
	struct tfh_slice *room = arg;
	struct tfh_slices *q = room->of;

	pthread_mutex_lock(&q->lock);
	while (!q->stop || q->taken < q->given)
		if (q->taken < q->given)
			judge_next(q, room);
		else
			pthread_cond_wait(&q->changed, &q->lock);
	pthread_mutex_unlock(&q->lock);
	return NULL;
}

static void close_window(struct tfh_device *d, size_t i, const struct tfh_account *a)
{
	const struct tfh_device_window *w = &d->win.v[i];

	tfh_account_close(d->accounts, i, a, w->from, w->to);
	if (d->accounts->loops->window.v[i].steps) {
		d->windows_a += d->accounts->use[i].tier == 'A';
		d->windows_b += d->accounts->use[i].tier == 'B';
	}
	if (tfh_window_counts(d->accounts, i))
		d->lead += w->to - d->accounts->loops->window.v[i].t1;
}

/* Waits for the oldest slice, or judges others meanwhile, and closes its accounts. */
static void close_oldest(struct tfh_slices *q)
{
	struct tfh_slice *sl = &q->slot[q->closed++ % q->slots];

	pthread_mutex_lock(&q->lock);
	while (!sl->judged)
		if (q->taken < q->given)
			judge_next(q, &q->room[0]);
		else
			pthread_cond_wait(&q->changed, &q->lock);
	pthread_mutex_unlock(&q->lock);
	q->rc = q->rc ? q->rc : sl->rc;
	q->held -= sl->op.n + sl->call.n;
	if (sl->sample) {
		int rc = q->sampler->add(q->sampler->arg, sl->sample, q->rc);
		q->rc = q->rc ? q->rc : rc;
	}
	if (q->rc)
		return;
	q->device->called += sl->called;
	q->device->turns += sl->turns;
	q->device->held += sl->held;
	for (size_t w = sl->w0; w < sl->w1; w++)
		close_window(q->device, w, &sl->window.v[w - sl->w0].account);
}

static bool has_room(const struct tfh_slices *q, size_t w0, size_t w1)
{
	const struct tfh_device *d = q->device;
	uint64_t more = tfh_calls_at_most(d->accounts->facts, tfh_needed_from(d, w0),
					  tfh_needed_until(d, w1));

	for (size_t w = w0; w < w1; w++)
		more += d->win.v[w].ops;
	return q->given == q->closed ||
	       (q->given - q->closed < q->slots && q->held + more <= TFH_ACCOUNT_TOGETHER);
}

struct tfh_slice *tfh_slices_room(struct tfh_slices *q, size_t w0, size_t w1)
{
	while (!q->rc && !has_room(q, w0, w1))
		close_oldest(q);
	struct tfh_slice *sl = &q->slot[q->given % q->slots];
	sl->number = q->given;
	sl->called = sl->turns = sl->held = 0;
	sl->sample = NULL;
	sl->judged = false;
	return q->rc ? NULL : sl;
}

void tfh_slices_give(struct tfh_slices *q, bool sample)
{
	struct tfh_slice *sl = &q->slot[q->given % q->slots];

	sl->sampled = sample && q->sampler;
	q->held += sl->op.n + sl->call.n;
	pthread_mutex_lock(&q->lock);
	q->given++;
	pthread_cond_broadcast(&q->changed);
	pthread_mutex_unlock(&q->lock);
}

int tfh_slices_end(struct tfh_slices *q)
{
	while (q->closed < q->given)
		close_oldest(q);
	for (uint32_t i = 0; i < q->slots; i++)
		tfh_pauses_add(q->device->accounts->pauses, q->slot[i].pauses);
	return q->rc;
}

/* How many threads may judge. Only one if the charges of a step are recorded in the order in which
 * they are made. */
static uint32_t threads(const struct tfh_feed *f)
{
	cpu_set_t cpus;
	uint32_t n = f->judging;

	if (!n)
		n = sched_getaffinity(0, sizeof(cpus), &cpus) ? 1 : (uint32_t)CPU_COUNT(&cpus);
	return f->chain ? 1 : n;
}

/* If no thread can be started, the reader judges all slices. */
static void start_workers(struct tfh_slices *q, uint32_t n)
{
	sigset_t all, old;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	while (q->workers < n &&
	       !pthread_create(&q->worker[q->workers], NULL, work, &q->room[q->workers + 1]))
		q->workers++;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

struct tfh_slices *tfh_slices_new(struct tfh_device *d, const struct tfh_sampler *sampler)
{
	struct tfh_accounts *accounts = d->accounts;
	const struct tfh_feed *f = accounts->facts->feed;
	uint32_t n = threads(f);
	struct tfh_slices *q = calloc(1, sizeof(*q));
	bool room = true;

	if (!q)
		return NULL;
	q->device = d;
	q->sampler = sampler;
	pthread_mutex_init(&q->lock, NULL);
	pthread_cond_init(&q->changed, NULL);
	/* One slice per judging thread, and one that is being loaded. */
	n = n < TFH_ACCOUNT_SLICES - 1 ? n : TFH_ACCOUNT_SLICES - 1;
	q->slots = n == 1 ? 1 : n + 1;
	for (uint32_t i = 0; i < q->slots; i++) {
		struct tfh_slice *sl = &q->slot[i];
		sl->device = d;
		sl->accounts = accounts;
		sl->pauses = tfh_pauses_new(accounts->cover);
		room &= sl->pauses || !accounts->pauses;
	}
	for (uint32_t i = 0; i < n; i++) {
		q->room[i].of = q;
		q->room[i].thread_span = calloc(f->n_threads + 2, sizeof(*q->room->thread_span));
		room &= q->room[i].thread_span != NULL;
	}
	if (room)
		start_workers(q, n - 1);
	if (room)
		return q;
	tfh_slices_free(q);
	return NULL;
}

static void free_slice(struct tfh_slice *sl)
{
	free(sl->window.v);
	free(sl->op.v);
	free(sl->call.v);
	free(sl->function.v);
	free(sl->lane.v);
	free(sl->span.v);
	free(sl->ends.v);
	free(sl->others.v);
	free(sl->op_ends.v);
	free(sl->issued.v);
	free(sl->thread_span);
	free(sl->near.v);
	free(sl->stream.v);
	tfh_pauses_free(sl->pauses);
}

void tfh_slices_free(struct tfh_slices *q)
{
	if (!q)
		return;
	pthread_mutex_lock(&q->lock);
	q->stop = true;
	pthread_cond_broadcast(&q->changed);
	pthread_mutex_unlock(&q->lock);
	for (uint32_t i = 0; i < q->workers; i++)
		pthread_join(q->worker[i], NULL);
	for (uint32_t i = 0; i < q->slots; i++) {
		free_slice(&q->slot[i]);
		free_slice(&q->room[i]);
	}
	free(q->stream.v);
	pthread_cond_destroy(&q->changed);
	pthread_mutex_destroy(&q->lock);
	free(q);
}
