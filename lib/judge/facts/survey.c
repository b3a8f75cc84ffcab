/*
 * Pass 1: looks at every call once to learn who drives the job, what could be its step clock, how
 * fast copies can be, and which calls are so long that the second pass must know of them before
 * they end.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

#include "judge/device.h"

#define MANY_LONGS (1u << 15)
#define MAX_TOKENS (1u << 20)
#define MAX_NAMES (1u << 20)

int tfh_vec_grow(void **v, size_t *cap, size_t n, size_t size)
{
	size_t want = *cap ? *cap * 2 : 64;
	void *p;

	if (want <= n)
		want = n + 1;
	p = realloc(*v, want * size);
	if (!p)
		return -ENOMEM;
	*v = p;
	*cap = want;
	return 0;
}

static const uint8_t label_of_family[64] = {
	[TFH_FAM_MEMSET] = TFH_L_LAUNCH,       [TFH_FAM_LAUNCH] = TFH_L_LAUNCH,
	[TFH_FAM_GRAPH_LAUNCH] = TFH_L_LAUNCH, [TFH_FAM_GRAPH] = TFH_L_OTHER,
	[TFH_FAM_CAPTURE] = TFH_L_OTHER,       [TFH_FAM_SYNC] = TFH_L_SYNC,
	[TFH_FAM_QUERY] = TFH_L_SYNC,	       [TFH_FAM_EVENT] = TFH_L_OTHER,
	[TFH_FAM_STREAM_WAIT] = TFH_L_OTHER,   [TFH_FAM_STREAM] = TFH_L_OTHER,
	[TFH_FAM_HOST_FUNC] = TFH_L_OTHER,     [TFH_FAM_ALLOC] = TFH_L_ALLOC,
	[TFH_FAM_FREE] = TFH_L_ALLOC,	       [TFH_FAM_MANAGED] = TFH_L_OTHER,
	[TFH_FAM_MODULE] = TFH_L_MODULE,       [TFH_FAM_LOOKUP] = TFH_L_OTHER,
	[TFH_FAM_CONTEXT] = TFH_L_OTHER,       [TFH_FAM_PROFILER] = TFH_L_OTHER,
	[TFH_FAM_COMMUNICATION] = TFH_L_OTHER, [TFH_FAM_CONSUMER] = TFH_L_INPUT,
	[TFH_FAM_EXECUTE] = TFH_L_EXEC,	       [TFH_FAM_SESSION] = TFH_L_EXEC,
};

/* A copy holds the caller up unless it is of the asynchronous form with only pinned host memory; a
 * device-to-device copy never does (CUDA driver API, synchronisation behaviour). */
static uint8_t copy_label(const struct tfh_event *ev)
{
	if (ev->dir == TFH_DIR_D2D || ev->dir == TFH_DIR_P2P)
		return TFH_L_LAUNCH;
	return (ev->fn->props & TFH_FN_SYNC_COPY) || ev->pageable ? TFH_L_COPY : TFH_L_LAUNCH;
}

bool tfh_event_label(const struct tfh_event *ev, struct tfh_piece *p)
{
	uint8_t family = ev->fn->family;

	if (ev->kind != TFT_CALL && ev->kind != TFT_ALLOC && ev->kind != TFT_AGG)
		return false;
	*p = (struct tfh_piece){
		.t0 = ev->t0, .t1 = ev->t1, .thread = ev->thread, .family = family, .density = 1};
	if (family == TFH_FAM_STAGE) {
		p->passive = true;
		p->stage = ev->kind == TFT_AGG ? ev->stream : (uint32_t)ev->w[1];
		if (!p->stage)
			p->stage = ev->stream;
		if (ev->kind == TFT_AGG && ev->t1 > ev->t0)
			p->density = (float)((double)ev->w[0] / (double)(ev->t1 - ev->t0));
		return true;
	}
	if (ev->kind == TFT_AGG || family >= 64 || (ev->flags & TFT_F_CAPTURED))
		return false;
	p->label = family == TFH_FAM_COPY ? copy_label(ev) : label_of_family[family];
	p->stream = ev->stream;
	p->dir = ev->dir;
	p->pageable = ev->pageable;
	p->failed = ev->result != 0;
	p->bytes = family == TFH_FAM_COPY || family == TFH_FAM_MEMSET ? ev->w[0] : 0;
	/* Of calls for events only records count: to ask how long one took records nothing. */
	bool names = family != TFH_FAM_EVENT || strstr(ev->fn->name, "Record");
	p->handle = names && ev->fn->args == TFH_ARGS_HANDLE ? ev->w[0] : 0;
	return p->label != TFH_L_GAP;
}

static bool starts(const char *s, const char *with)
{
	return !strncmp(s, with, strlen(with));
}

/* NULL: out of memory */
static struct tfh_tag *tag_of(struct tfh_job *job, uint32_t name)
{
	struct tfh_tag t = {.name = name};
	const char *s;

	if (name >= MAX_NAMES)
		name = 0;
	while (job->tag_of.n <= name)
		if (TFH_PUSH(job->tag_of, -1))
			return NULL;
	if (job->tag_of.v[name] >= 0)
		return &job->tag.v[job->tag_of.v[name]];
	s = name ? job->feed->name(job->feed->arg, job->process, TFT_NAME_OP, name, NULL, NULL)
		 : "";
	t.function =
		starts(s, "__inference_") || starts(s, "__forward_") || starts(s, "__backward_");
	t.getnext = starts(s, "IteratorGetNext");
	t.save = starts(s, "SaveV2") || starts(s, "MergeV2Checkpoints");
	if (TFH_PUSH(job->tag, t))
		return NULL;
	job->tag_of.v[name] = (int32_t)job->tag.n - 1;
	return &job->tag.v[job->tag.n - 1];
}

static uint32_t series_of(struct tfh_job *job, uint32_t iterator, uint32_t stage, bool loop)
{
	struct tfh_series s = {.iterator = iterator, .stage = stage, .loop = loop};
	uint32_t *at = &job->series_at[iterator % TFH_SERIES_BUCKETS];

	for (uint32_t i = *at; i--; i = job->series.v[i].before) {
		struct tfh_series *old = &job->series.v[i];
		if (old->iterator == iterator && old->loop == loop &&
		    (old->stage == stage || !old->stage || !stage)) {
			if (!old->stage)
				old->stage = stage;
			return i;
		}
	}
	s.before = *at;
	if (TFH_PUSH_BIG(job->series, s))
		return 0;
	*at = (uint32_t)job->series.n;
	return *at - 1;
}

/* One get-next of a consumer. The wrappers nest (kernel around iterator resource): the outermost
 * call counts, and its inner twin, which ended just before, gives way. */
static int add_tick(struct tfh_job *job, const struct tfh_event *ev, bool loop)
{
	struct tfh_tick t = {.t0 = ev->t0, .t1 = ev->t1, .thread = ev->thread};
	uint32_t iterator = loop ? 0 : (uint32_t)ev->w[0], stage = (uint32_t)ev->w[1];

	t.end = ev->flags & TFT_F_OPTIONAL;
	if (loop && !stage)
		stage = ev->stream;
	for (size_t i = job->tick.n; i-- > 0 && i + 16 > job->tick.n && !loop;) {
		struct tfh_tick *old = &job->tick.v[i];
		if (old->thread != t.thread)
			continue;
		if (old->t0 < t.t0)
			break;
		if (!iterator)
			iterator = job->series.v[old->series].iterator;
		if (!stage)
			stage = job->series.v[old->series].stage;
		t.end |= old->end;
		job->series.v[old->series].count--;
		memmove(old, old + 1, (job->tick.n - i - 1) * sizeof(*old));
		job->tick.n--;
	}
	t.series = series_of(job, iterator, stage, loop);
	if (TFH_PUSH_BIG(job->tick, t) || !job->series.n)
		return -ENOMEM;
	job->series.v[t.series].count++;
	return 0;
}

static void tag_series(struct tfh_series *s, uint32_t name, int64_t ns)
{
	size_t least = 0;

	for (size_t i = 0; i < 6; i++) {
		if (s->tag[i].name == name && s->tag[i].ns) {
			s->tag[i].ns += ns;
			return;
		}
		if (s->tag[i].ns < s->tag[least].ns)
			least = i;
	}
	if (s->tag[least].ns < ns) {
		s->tag[least].name = name;
		s->tag[least].ns = ns;
	}
}

/* A call that executed an op or a graph: what follows a batch tells what the batch was for. */
static int add_exec(struct tfh_job *job, const struct tfh_event *ev)
{
	struct tfh_tag *tag = tag_of(job, (uint32_t)ev->w[0]);

	if (!tag)
		return -ENOMEM;
	if (ev->fn->family == TFH_FAM_SESSION)
		tag->function = true;
	tag->count++;
	tag->ns += ev->t1 - ev->t0;
	tag->thread = ev->thread;
	job->execs++;
	if (!job->tick.n)
		return 0;
	for (size_t i = job->tick.n; i-- > 0 && job->tick.v[i].t1 >= ev->t0;) {
		struct tfh_tick *t = &job->tick.v[i];
		if (t->t0 < ev->t0 || tag->getnext)
			continue;
		t->x0 = ev->t0;
		t->x1 = ev->t1;
		if (t->end)
			continue;
		struct tfh_series *in = &job->series.v[t->series];
		in->execs += in->exec_at != ev->t0 || !in->execs;
		in->exec_at = ev->t0;
		in->contained++;
	}
	struct tfh_series *s = &job->series.v[job->tick.v[job->tick.n - 1].series];
	if (!tag->getnext && tag->function)
		tag_series(s, tag->name, ev->t1 - ev->t0);
	return 0;
}

/* Device work handed over since the last wait, for bandwidths of copies that were waited for alone.
 */
struct pending {
	uint64_t launches, bytes[8];
	int64_t since;
};

static void bandwidth(struct tfh_job *job, uint8_t dir, bool pageable, uint64_t bytes, int64_t ns)
{
	int bin = bytes ? 63 - __builtin_clzll(bytes) : 0;
	double *best = &job->best_bw[dir & 7][pageable][bin < TFH_BINS ? bin : TFH_BINS - 1];

	if (ns > 0 && (double)bytes / (double)ns > *best)
		*best = (double)bytes / (double)ns;
}

bool tfh_token_of(const struct tfh_event *ev, const struct tfh_piece *p, struct tfh_token *t)
{
	bool launch = p->family == TFH_FAM_LAUNCH || p->family == TFH_FAM_GRAPH_LAUNCH;

	if (!launch && p->family != TFH_FAM_SYNC && p->family != TFH_FAM_COPY)
		return false;
	*t = (struct tfh_token){.t0 = p->t0,
				.t1 = p->t1,
				.dir = p->dir,
				.family = p->family,
				.what = (uint32_t)p->bytes};
	t->thread = p->thread < TFH_TOKEN_THREADS ? (uint8_t)p->thread : TFH_TOKEN_THREADS;
	if (launch)
		t->what = (uint32_t)ev->w[0];
	else if (p->bytes > UINT32_MAX)
		t->what = UINT32_MAX;
	t->hash = tfh_hash_add(p->family, launch ? tfh_hash_add(ev->w[0] & 0xffffffffu, ev->w[1])
						 : tfh_hash_str(ev->fn->name));
	if (p->family == TFH_FAM_COPY)
		t->hash = tfh_hash_add(t->hash, ev->w[0]);
	return true;
}

/* The first million tokens are kept, and after them a million of those that are not plain launches:
 * mostly one of them begins or ends every step, and is then known without another pass. */
static int keep_token(struct tfh_job *job, const struct tfh_event *ev, const struct tfh_piece *p)
{
	struct tfh_token t;

	if (job->token.n >= MAX_TOKENS) {
		job->late_launch |= p->family == TFH_FAM_LAUNCH;
		if (p->family == TFH_FAM_LAUNCH || !tfh_token_of(ev, p, &t))
			return 0;
		/* Where something else will tell the steps, nobody will ask for them. */
		job->late_lost |= job->late.n >= MAX_TOKENS || job->marks > 1 || job->tick.n;
		return job->late_lost ? 0 : TFH_PUSH_BIG(job->late, t);
	}
	if (!tfh_token_of(ev, p, &t))
		return 0;
	return TFH_PUSH(job->token, t);
}

static int add_driver(struct tfh_job *job, const struct tfh_event *ev, const struct tfh_piece *p,
		      struct pending *q)
{
	bool launch = p->family == TFH_FAM_LAUNCH || p->family == TFH_FAM_GRAPH_LAUNCH;

	job->launches += launch;
	job->syncs += p->family == TFH_FAM_SYNC;
	job->copies += p->family == TFH_FAM_COPY;
	if (p->family == TFH_FAM_LAUNCH)
		job->last_launch[p->stream % TFH_LAST_LAUNCHES] =
			(struct tfh_last_call){p->stream, (uint32_t)ev->w[0], ev->t1};
	if (launch)
		q->launches++;
	else if (p->label == TFH_L_COPY && !q->launches && !q->since)
		bandwidth(job, p->dir, p->pageable, p->bytes, p->t1 - p->t0);
	else if (p->family == TFH_FAM_COPY && !q->bytes[p->dir & 7])
		q->since = q->since ? q->since : p->t0;
	if (p->label == TFH_L_LAUNCH && p->family == TFH_FAM_COPY)
		q->bytes[p->dir & 7] += p->bytes;
	/* A blocking copy waits for what was queued before it, as a sync does. */
	if (p->label == TFH_L_COPY)
		memset(q, 0, sizeof(*q));
	if (p->family == TFH_FAM_SYNC) {
		for (uint8_t d = 1; d < 6 && !q->launches; d++)
			if (q->bytes[d])
				bandwidth(job, d, false, q->bytes[d], p->t1 - q->since);
		memset(q, 0, sizeof(*q));
	}
	return keep_token(job, ev, p);
}

bool tfh_exec_piece(struct tfh_job *job, const struct tfh_event *ev, struct tfh_piece *p)
{
	const struct tfh_tag *tag;

	if (p->label != TFH_L_EXEC || p->passive)
		return true;
	tag = tag_of(job, (uint32_t)ev->w[0]);
	if (ev->depth || !tag)
		return false;
	p->label = tag->getnext ? TFH_L_INPUT : TFH_L_EXEC;
	p->saves = tag->save;
	return true;
}

/*
 * The CPU clock of a thread is read at the end of long pauses and of long calls. Two readings
 * around a pause tell whether the thread computed or slept. A reading at the end of a call carries
 * that call's end time, and the call's record comes next: then it tells about the call, not about a
 * pause.
 */
static void cpu_clock(struct tfh_thread_use *u, const struct tfh_event *ev)
{
	if (ev->kind == TFT_CPUTIME) {
		u->cpu_open = u->last_cpu_t != 0;
		u->open_wall = ev->t1 - u->last_cpu_t;
		u->open_run = (int64_t)ev->w[0] - u->last_cpu;
		u->last_cpu_t = ev->t1;
		u->last_cpu = (int64_t)ev->w[0];
	} else if (u->cpu_open && ev->kind == TFT_CALL) {
		u->cpu_open = false;
		if (ev->t1 != u->last_cpu_t) {
			u->cpu_wall += u->open_wall;
			u->cpu_running += u->open_run;
		}
	}
}

/* When they become many, the shorter ones are given back: the second pass meets them again. */
static int keep_long(struct tfh_job *job, const struct tfh_event *ev, struct tfh_piece *p)
{
	size_t n = 0;

	if (job->longs.n >= MANY_LONGS && job->long_ns < TFH_LONG_NS) {
		job->long_ns = job->long_ns * 2 < TFH_LONG_NS ? job->long_ns * 2 : TFH_LONG_NS;
		for (size_t i = 0; i < job->longs.n; i++)
			if (job->longs.v[i].t1 - job->longs.v[i].t0 >= job->long_ns)
				job->longs.v[n++] = job->longs.v[i];
		job->longs.n = n;
	}
	if (p->t1 - p->t0 < job->long_ns || !tfh_exec_piece(job, ev, p))
		return 0;
	return TFH_PUSH_BIG(job->longs, *p);
}

/* By far the most frequent call, once its kind is known well enough. */
static inline bool short_launch(struct tfh_job *job, const struct tfh_event *ev, struct pending *q)
{
	struct tfh_thread_use *use = &job->thread[ev->thread];
	int64_t ns = ev->t1 - ev->t0;

	if (ev->fn->family != TFH_FAM_LAUNCH || ev->kind != TFT_CALL || ns >= job->long_ns ||
	    (ev->flags & TFT_F_CAPTURED) || job->token.n < MAX_TOKENS || use->cpu_open)
		return false;
	use->driver++;
	use->driver_ns += ns;
	use->launches++;
	use->last = ev->t1;
	job->launches++;
	job->late_launch = true;
	job->last_launch[ev->stream % TFH_LAST_LAUNCHES] =
		(struct tfh_last_call){ev->stream, (uint32_t)ev->w[0], ev->t1};
	q->launches++;
	return true;
}

static int add_call(struct tfh_job *job, const struct tfh_event *ev, struct pending *q)
{
	struct tfh_thread_use *use = &job->thread[ev->thread];
	struct tfh_piece p;
	int64_t ns = ev->t1 - ev->t0;
	int rc = 0;

	cpu_clock(use, ev);
	if (!tfh_event_label(ev, &p))
		return 0;
	if (p.family == TFH_FAM_CONTEXT || p.family == TFH_FAM_MODULE)
		tfh_startup_event(job, ev);
	if (p.passive) {
		int32_t stage = tfh_stage_index(job, p.stage);
		if (stage >= 0 && ev->kind == TFT_CALL && tfh_stage_is_loop_child(job, p.stage))
			rc = add_tick(job, ev, true);
	} else if (p.label == TFH_L_INPUT) {
		job->consumers++;
		use->gets++;
		if (ev->fn->name != job->loader && strstr(ev->fn->name, "DataLoader"))
			job->loader = ev->fn->name;
		rc = add_tick(job, ev, false);
	} else if (p.label == TFH_L_EXEC) {
		if (ev->depth == 0) {
			use->execs++;
			use->exec_ns += ns;
			use->last = ev->t1;
			rc = add_exec(job, ev);
		}
	} else {
		use->driver++;
		use->driver_ns += ns;
		use->launches += p.family == TFH_FAM_LAUNCH || p.family == TFH_FAM_GRAPH_LAUNCH;
		use->last = ev->t1;
		rc = add_driver(job, ev, &p, q);
	}
	return !rc && ns >= job->long_ns ? keep_long(job, ev, &p) : rc;
}

/* Whether a thread's calls that nothing encloses follow each other: other tools' traces tell no
 * depth. */
static inline void note_outermost(struct tfh_thread_use *u, const struct tfh_event *ev)
{
	if (ev->depth || (ev->kind != TFT_CALL && ev->kind != TFT_ALLOC))
		return;
	u->overlap |= ev->t0 < u->outermost;
	u->outermost = ev->t1;
}

/* A call of that thread that nothing encloses then tells that all before its end is known: no other
 * thread says anything that counts. */
static bool one_line(const struct tfh_job *job)
{
	uint32_t drive = 0;

	for (uint32_t i = 0; i < job->feed->n_threads; i++) {
		const struct tfh_thread_use *u = &job->thread[i];
		if ((u->drives && u->overlap) || (!u->drives && (u->gets || u->execs)))
			return false;
		drive += u->drives;
	}
	return drive == 1 && !job->stage.n;
}

/* Whose calls are the step's time line: threads that launch; without a device the thread that
 * executes most, the main thread first (tf.data's own threads execute ops, too). */
static void choose_threads(struct tfh_job *job)
{
	const struct tfh_feed *f = job->feed;
	double best = 0;
	uint32_t exec = 0;
	bool any = false;

	for (uint32_t i = 0; i < f->n_threads; i++) {
		struct tfh_thread_use *u = &job->thread[i];
		bool main = f->threads[i].process == job->process &&
			    f->threads[i].tid == f->processes[job->process].pid;
		double score = (double)u->exec_ns * (main ? 2 : 1);
		if (job->launches ? u->launches * 20 >= job->launches : u->driver > 0)
			any = u->drives = true;
		if (u->execs && score > best) {
			best = score;
			exec = i;
		}
	}
	if (best > 0)
		any = job->thread[exec].drives = true;
	for (uint32_t i = 0; i < f->n_threads; i++) {
		struct tfh_thread_use *u = &job->thread[i];
		if (!any && u->gets)
			u->drives = true;
		if (!u->drives)
			continue;
		if (u->last > job->last_work)
			job->last_work = u->last;
		job->cpu_wall += u->cpu_wall;
		job->cpu_running += u->cpu_running;
	}
}

static int by_begin(const void *a, const void *b, void *arg)
{
	const struct tfh_piece *x = a, *y = b;

	(void)arg;
	return x->t0 < y->t0 ? -1 : x->t0 > y->t0;
}

int tfh_survey(struct tfh_job *job, struct tfh_err *err)
{
	const struct tfh_feed *f = job->feed;
	const struct tfh_event *ev;
	struct tfh_event room;
	struct pending q = {0};
	int rc = f->rewind(f->arg, job->process, err);

	job->thread = calloc(f->n_threads + 1, sizeof(*job->thread));
	job->heap = tfh_heap_new();
	job->long_ns = TFH_LONG_FIRST_NS;
	if (!job->thread || !job->heap)
		return tfh_err_set(err, -ENOMEM, "out of memory");
	while (!rc && (ev = tfh_feed_look(f, &room))) {
		if (ev->thread >= f->n_threads)
			continue;
		if (!job->events++)
			job->first = ev->t0;
		if (ev->t0 < job->first)
			job->first = ev->t0;
		if (ev->t1 > job->last)
			job->last = ev->t1;
		note_outermost(&job->thread[ev->thread], ev);
		if (short_launch(job, ev, &q))
			continue;
		job->ranges += ev->kind == TFT_RANGE;
		if (ev->kind == TFT_MARK) {
			struct tfh_tick t = {.t0 = ev->t0, .t1 = ev->t1, .thread = ev->thread};
			job->mark_name = job->marks++ ? job->mark_name : (uint32_t)ev->w[1];
			rc = TFH_PUSH_BIG(job->mark, t);
		} else {
			rc = add_call(job, ev, &q);
			if (!rc && ev->kind == TFT_ALLOC)
				rc = tfh_heap_event(job->heap, ev, f->wall_ns);
		}
	}
	if (rc)
		return tfh_err_set(err, rc, "out of memory in the first pass");
	rc = f->error(f->arg, err);
	if (rc)
		return rc;
	job->cpu_only = job->launches == 0;
	if (job->longs.n)
		tfh_sort(job->longs.v, job->longs.n, sizeof(*job->longs.v), by_begin, NULL);
	choose_threads(job);
	job->one_line = one_line(job);
	return 0;
}
