/*
 * Which host call issued an op. With CUPTI's own records of driver calls: the record with the op's
 * correlation number lies within our record of the same call on the same thread. Without them:
 * calls of one kind (a kernel's name, a copy's bytes) and their ops come in the same order on each
 * stream, until ops are lost; then nothing is known of those under way. Which of the host's streams
 * is which of the device's shows when only one of them can be meant; where several can, and where
 * several threads make calls of a kind, nothing is said of them: no call is better than a wrong
 * one.
 *
 * Memory is bounded: numbers grow, so a table of the newest 2^18 of them forgets the oldest, and
 * queues have a longest length.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

#include "model/device.h"

#define ISSUES (1u << 18)
#define QUEUE 8192u
#define LANES 4096u /* threads with calls; more share */
#define KEYS 4096u  /* kinds of calls without driver records; more share */
/* The two clocks disagree by less. */
#define TOLERANCE_NS 5000
/* A call is on record this much after the op it waited for, mostly. */
#define WAIT_NS 100000000

struct call {
	int64_t t0, t1;
	uint32_t thread; /* of a driver record: its correlation */
	uint32_t stream;
	uint64_t number;
};

/* First in, first out; the oldest gives way. */
struct queue {
	struct call *v;
	uint32_t first, n, cap;
};

/* Of one thread. CUPTI names it by the low half of its pthread_self(), or by its tid when the job
 * has told it to. A later thread may have the same, and goes on in the lane. */
struct lane {
	uint32_t id, thread;
	struct queue calls, records;
};

enum state { EMPTY, WAITING, KNOWN };
struct slot {
	uint32_t correlation;
	uint32_t state;
	uint32_t lane; /* WAITING */
	struct tfh_issue issue;
};

struct tfh_join {
	struct tfh_run *run;
	uint32_t process;
	struct tfh_rows *drvr;
	struct tfh_weave *weave; /* NULL: there are no host records */
	struct tfh_block *block;
	uint32_t at;
	int64_t now; /* every call that ended before is in a queue; INT64_MAX at the end */
	bool last;
	struct slot *slot;   /* by correlation, modulo ISSUES */
	struct lane *lane;   /* open-addressed by id */
	uint32_t *thread_id; /* by index of the thread in the process: low half of pthread_self() */
	struct {
		uint32_t tid, id;
	} * alias; /* by tid, modulo LANES */
	/* by order */
	struct queue *key;
	bool *muddled;	 /* by key: its calls cannot be told apart */
	uint32_t *owner; /* by key: the thread that makes them, +1 */
	struct tfh_names names;
	struct tfh_arena arena;
	struct tfh_name_part *part;
	int64_t resync; /* ops and calls before are not known */
	uint32_t hole;	/* next one to come */
	struct {
		uint32_t from, to;
	} streams[256]; /* of a device stream the host's, as seen first */
	int err;
};

static int push(struct queue *q, const struct call *c)
{
	if (q->n == q->cap && q->cap < QUEUE) {
		uint32_t cap = q->cap ? q->cap * 4 : 32;
		struct call *v = malloc(cap * sizeof(*v));
		if (!v)
			return -ENOMEM;
		for (uint32_t i = 0; i < q->n; i++)
			v[i] = q->v[(q->first + i) & (q->cap - 1)];
		free(q->v);
		q->v = v;
		q->first = 0;
		q->cap = cap;
	} else if (q->n == q->cap) {
		q->first++;
		q->n--;
	}
	q->v[(q->first + q->n++) & (q->cap - 1)] = *c;
	return 0;
}

static struct call *queue_at(const struct queue *q, uint32_t i)
{
	return &q->v[(q->first + i) & (q->cap - 1)];
}

static void pop(struct queue *q)
{
	q->first++;
	q->n--;
}

static struct lane *lane_of(struct tfh_join *j, uint32_t id)
{
	uint32_t at = (uint32_t)tfh_hash_u64(id) % LANES;

	for (uint32_t i = 0; i < 64; i++, at = (at + 1) % LANES) {
		struct lane *l = &j->lane[at];
		if (l->id == id)
			return l;
		if (!l->id) {
			l->id = id;
			l->thread = UINT32_MAX;
			return l;
		}
	}
	return &j->lane[at];
}

static struct slot *slot_of(struct tfh_join *j, uint32_t correlation)
{
	return &j->slot[correlation % ISSUES];
}

/* ---- calls by our own records ---- */

/* With driver records failed and captured calls are among them: they have theirs, too. */
static bool issues(const struct tfh_event *ev)
{
	uint8_t family = ev->fn->family;

	return ev->kind == TFT_CALL &&
	       (family == TFH_FAM_COPY || family == TFH_FAM_MEMSET || family == TFH_FAM_LAUNCH ||
		family == TFH_FAM_GRAPH_LAUNCH || family == TFH_FAM_MANAGED);
}

/* What an op and its call have in common. */
static uint32_t key_of(uint8_t family, const char *name, uint64_t bytes)
{
	uint64_t h = family;

	if (family == TFH_FAM_LAUNCH)
		h = tfh_hash_add(h, tfh_hash_str(name));
	else if (family != TFH_FAM_GRAPH_LAUNCH)
		h = tfh_hash_add(h, bytes);
	return (uint32_t)tfh_hash_u64(h) % KEYS;
}

static const char *function_name(const struct tfh_join *j, uint64_t id)
{
	const struct tfh_name *v = j->names.v[TFT_NAME_FUNCTION];

	return id < j->names.n[TFT_NAME_FUNCTION] && v[id].text ? v[id].text : "";
}

static int take_event(struct tfh_join *j, const struct tfh_event *ev)
{
	struct call c = {.t0 = ev->t0,
			 .t1 = ev->t1,
			 .thread = ev->thread,
			 .stream = ev->stream,
			 .number = ev->number};

	j->now = ev->t1;
	if (!issues(ev))
		return 0;
	if (j->drvr) {
		const struct tfh_thread_info *t = &j->run->thread[ev->thread];
		uint32_t id = j->thread_id[t->index];
		struct lane *l = lane_of(j, id ? id : t->tid);
		l->thread = ev->thread;
		return push(&l->calls, &c);
	}
	if (ev->flags & (TFT_F_FAILED | TFT_F_CAPTURED) || ev->t0 < j->resync ||
	    ev->fn->family == TFH_FAM_MANAGED)
		return 0;
	uint32_t key = key_of(ev->fn->family, function_name(j, (uint32_t)ev->w[0]), ev->w[0]);
	/* Which of two threads' calls the driver took first is not on record. */
	j->muddled[key] |= j->owner[key] && j->owner[key] != ev->thread + 1;
	j->owner[key] = ev->thread + 1;
	return push(&j->key[key], &c);
}

/* A thread's name may come behind its first calls, and behind CUPTI's records of them. */
static int move_lane(struct tfh_join *j, struct lane *from, struct lane *to)
{
	int err = 0;

	if (from == to)
		return 0;
	for (; from->calls.n && !err; pop(&from->calls)) {
		to->thread = from->thread;
		err = push(&to->calls, queue_at(&from->calls, 0));
	}
	for (; from->records.n && !err; pop(&from->records)) {
		const struct call *r = queue_at(&from->records, 0);
		struct slot *s = slot_of(j, r->thread);
		if (s->correlation == r->thread && s->state == WAITING)
			s->lane = (uint32_t)(to - j->lane);
		err = push(&to->records, r);
	}
	return err;
}

static int take_name(struct tfh_join *j, uint32_t thread, const struct tfh_rec *rec)
{
	struct tfh_name_part *part = &j->part[thread];

	if (rec->kind == TFT_EXT) {
		tfh_names_part(part, rec);
		return 0;
	}
	if (rec->fn == TFT_NAME_THREAD && rec->stream < j->run->proc[j->process].n_thread) {
		uint32_t tid = (uint32_t)rec->w[0], id = (uint32_t)rec->w[1];
		j->thread_id[rec->stream] = id;
		j->alias[tid % LANES].tid = tid;
		j->alias[tid % LANES].id = id;
		if (id && move_lane(j, lane_of(j, tid), lane_of(j, id)))
			return -ENOMEM;
	}
	return tfh_names_add(&j->arena, &j->names, rec, part);
}

/* Reads host records on to the end of the block; false: there are none left. */
static bool read_on(struct tfh_join *j)
{
	uint32_t note = 0;

	if (j->last || !j->weave || j->err) {
		j->now = INT64_MAX;
		return false;
	}
	j->last = !tfh_weave_fill(j->weave, j->block);
	for (uint32_t i = 0; i < j->block->n && !j->err; i++) {
		const struct tfh_entry *e = &j->block->entry[i];
		struct tfh_event ev;
		if (e->ev) {
			tfh_entry_event(e, &ev);
			j->err = take_event(j, &ev);
		} else {
			j->err = take_name(j, e->thread, &j->block->note[note++]);
		}
	}
	if (j->last) {
		j->now = INT64_MAX;
		if (!j->err)
			j->err = tfh_weave_error(j->weave)->code;
	}
	return true;
}

/* ---- with driver records ---- */

/* How far a driver record reaches out of a call; between two that hold it the earlier one is taken,
 * since each is used once. */
static int64_t sticks_out(const struct call *r, const struct call *c)
{
	int64_t before = c->t0 - r->t0, behind = r->t1 - c->t1;

	return (before > 0 ? before : 0) + (behind > 0 ? behind : 0);
}

/* The oldest driver record of a lane finds its call, or finds that there is none. */
static void settle_one(struct tfh_join *j, struct lane *l)
{
	const struct call *r = queue_at(&l->records, 0);
	struct slot *s = slot_of(j, r->thread);
	struct tfh_issue issue = {
		.t0 = r->t0, .t1 = r->t1, .thread = l->thread, .call = UINT64_MAX};

	while (l->calls.n > 1 &&
	       sticks_out(r, queue_at(&l->calls, 1)) < sticks_out(r, queue_at(&l->calls, 0)))
		pop(&l->calls);
	if (l->calls.n) {
		const struct call *c = queue_at(&l->calls, 0);
		if (r->t0 >= c->t0 - TOLERANCE_NS && r->t1 <= c->t1 + TOLERANCE_NS)
			issue = (struct tfh_issue){c->t0, c->t1, c->thread, c->number};
		if (issue.call != UINT64_MAX)
			pop(&l->calls);
	}
	if (s->correlation == r->thread && s->state == WAITING) {
		s->issue = issue;
		s->state = KNOWN;
	}
	pop(&l->records);
}

static int64_t last_end(const struct queue *q)
{
	return q->n ? queue_at(q, q->n - 1)->t1 : INT64_MIN;
}

/* The lane may become another one on the way, when its thread's name comes. */
static void settle(struct tfh_join *j, uint32_t correlation)
{
	const struct slot *s = slot_of(j, correlation);

	while (s->state == WAITING && s->correlation == correlation) {
		struct lane *l = &j->lane[s->lane];
		if (!l->records.n)
			return;
		int64_t end = queue_at(&l->records, 0)->t1;
		/* The call after it must be there, too, to be compared with; and its own may end
		 * late, when the thread lost its processor between the two. */
		if ((j->now <= end + 2 * TOLERANCE_NS ||
		     (j->now <= end + WAIT_NS && last_end(&l->calls) < end - TOLERANCE_NS)) &&
		    read_on(j))
			continue;
		settle_one(j, l);
	}
}

static struct lane *lane_of_record(struct tfh_join *j, uint32_t tid)
{
	uint32_t at = tid % LANES;

	return lane_of(j, j->alias[at].tid == tid && j->alias[at].id ? j->alias[at].id : tid);
}

/* Driver calls that began before t. */
static void read_records(struct tfh_join *j, int64_t t)
{
	const struct tfh_row *row;

	while (!j->err && (row = tfh_rows_peek(j->drvr)) && row->t0 <= t) {
		const struct tft_drvr_row *d = row->row;
		struct lane *l = lane_of_record(j, d->tid);
		struct call c = {.t0 = row->t0, .t1 = row->t1, .thread = d->correlation};
		struct slot *s = slot_of(j, d->correlation);
		if (l->records.n == QUEUE) {
			settle(j, queue_at(&l->records, 0)->thread);
			l = lane_of_record(j, d->tid);
		}
		*s = (struct slot){.correlation = d->correlation,
				   .state = WAITING,
				   .lane = (uint32_t)(l - j->lane)};
		j->err = push(&l->records, &c);
		tfh_rows_take(j->drvr);
	}
	if (!j->err)
		j->err = tfh_rows_error(j->drvr);
}

static bool find_record(struct tfh_join *j, const struct tfh_op *op, struct tfh_issue *out)
{
	struct slot *s = slot_of(j, op->correlation);

	read_records(j, op->t0 + TOLERANCE_NS);
	if (s->correlation != op->correlation || s->state == EMPTY)
		return false;
	if (s->state == WAITING)
		settle(j, op->correlation);
	*out = s->issue;
	return s->state == KNOWN;
}

/* ---- by order ---- */

/* A loss: what is queued cannot be told from what was lost, until all of it has run. */
static void pass_holes(struct tfh_join *j, int64_t t)
{
	const struct tfh_run *run = j->run;

	for (; j->hole < run->n_hole; j->hole++) {
		const struct tfh_hole *h = &run->hole[j->hole];
		if (h->process != j->process || h->thread != UINT32_MAX)
			continue;
		if (h->t0 > t)
			return;
		for (uint32_t k = 0; k < KEYS; k++)
			j->key[k].n = 0;
		j->resync = h->t1;
	}
}

static uint32_t *host_stream(struct tfh_join *j, uint32_t stream)
{
	uint32_t at = (uint32_t)tfh_hash_u64(stream) % 256;

	if (j->streams[at].from != stream + 1) {
		j->streams[at].from = stream + 1;
		j->streams[at].to = UINT32_MAX;
	}
	return &j->streams[at].to;
}

static void drop(struct queue *q, uint32_t i)
{
	for (; i > 0; i--)
		*queue_at(q, i) = *queue_at(q, i - 1);
	pop(q);
}

static bool is_taken(const struct tfh_join *j, uint32_t host)
{
	for (unsigned i = 0; i < 256; i++)
		if (j->streams[i].from && j->streams[i].to == host)
			return true;
	return false;
}

/* The first call that a device stream of unknown origin may have come from; q->n: none, or one of
 * several. */
static uint32_t first_call(const struct tfh_join *j, const struct queue *q, int64_t t,
			   bool *several)
{
	uint32_t found = q->n;

	for (uint32_t i = 0; i < q->n && queue_at(q, i)->t0 <= t; i++) {
		uint32_t stream = queue_at(q, i)->stream;
		if (found < q->n && stream == queue_at(q, found)->stream)
			continue;
		if (is_taken(j, stream))
			continue;
		if (found < q->n) {
			*several = true;
			return q->n;
		}
		found = i;
	}
	return found;
}

static bool find_by_order(struct tfh_join *j, const struct tfh_op *op, struct tfh_issue *out)
{
	static const uint8_t family[] = {[TFH_OP_KERNEL] = TFH_FAM_LAUNCH,
					 [TFH_OP_COPY] = TFH_FAM_COPY,
					 [TFH_OP_MEMSET] = TFH_FAM_MEMSET,
					 [TFH_OP_SYNC] = 0,
					 [TFH_OP_GRAPH] = TFH_FAM_GRAPH_LAUNCH};
	struct slot *s = slot_of(j, op->correlation);
	uint8_t f = op->graph || op->node ? TFH_FAM_GRAPH_LAUNCH : family[op->kind];
	uint32_t key = key_of(f, op->name, op->bytes);
	struct queue *q = &j->key[key];
	uint32_t *stream = host_stream(j, op->stream), i = 0;

	if (s->correlation == op->correlation && s->state == KNOWN) {
		*out = s->issue; /* another node of the same launch */
		return true;
	}
	/* A synchronous copy's call ends after the copy. */
	while (j->now <= op->t1 + 1000000 && read_on(j))
		;
	while ((!q->n || queue_at(q, 0)->t0 > op->t0) && j->now <= op->t1 + WAIT_NS && read_on(j))
		;
	pass_holes(j, op->t0);
	if (op->t0 < j->resync)
		return false;
	if (j->muddled[key])
		return false;
	/* Another thread's earlier call may have waited for room in a queue: its record comes late.
	 */
	while (*stream == UINT32_MAX && j->now <= op->t1 + WAIT_NS && read_on(j))
		;
	if (*stream == UINT32_MAX)
		i = first_call(j, q, op->t0 + TOLERANCE_NS, &j->muddled[key]);
	while (*stream != UINT32_MAX && i < q->n && queue_at(q, i)->stream != *stream)
		i++;
	if (i >= q->n || queue_at(q, i)->t0 > op->t0 + TOLERANCE_NS)
		return false;
	const struct call *c = queue_at(q, i);
	*stream = c->stream;
	*out = (struct tfh_issue){c->t0, c->t1, c->thread, c->number};
	*s = (struct slot){.correlation = op->correlation, .state = KNOWN, .issue = *out};
	drop(q, i);
	return true;
}

/* ---- both ---- */

bool tfh_join_find(struct tfh_join *j, const struct tfh_op *op, struct tfh_issue *out)
{
	if (j->err)
		return false;
	return j->drvr ? find_record(j, op, out) : find_by_order(j, op, out);
}

int tfh_join_error(const struct tfh_join *j)
{
	return j->err;
}

int tfh_join_open(struct tfh_run *shadow, uint32_t process, struct tfh_rows *drvr,
		  struct tfh_join **out)
{
	struct tfh_join *j = calloc(1, sizeof(*j));
	bool host = shadow->proc[process].pub.has_gpu;
	int rc = j ? 0 : -ENOMEM;

	*out = NULL;
	if (rc)
		return rc;
	j->run = shadow;
	j->process = process;
	j->drvr = drvr;
	j->now = j->resync = INT64_MIN;
	tfh_arena_init(&j->arena, 0);
	j->slot = calloc(ISSUES, sizeof(*j->slot));
	j->lane = calloc(LANES, sizeof(*j->lane));
	j->alias = calloc(LANES, sizeof(*j->alias));
	j->thread_id = calloc(shadow->proc[process].n_thread + 1, sizeof(*j->thread_id));
	j->key = drvr ? NULL : calloc(KEYS, sizeof(*j->key));
	j->muddled = drvr ? NULL : calloc(KEYS, sizeof(*j->muddled));
	j->owner = drvr ? NULL : calloc(KEYS, sizeof(*j->owner));
	j->part = calloc(shadow->proc[process].n_thread + 1, sizeof(*j->part));
	j->block = host ? malloc(sizeof(*j->block)) : NULL;
	if (!j->slot || !j->lane || !j->alias || !j->thread_id ||
	    (!drvr && (!j->key || !j->muddled || !j->owner)) || !j->part || (host && !j->block))
		rc = -ENOMEM;
	if (!rc && host)
		rc = tfh_weave_open(shadow, process, &j->weave);
	if (rc) {
		tfh_join_close(j);
		return rc;
	}
	read_on(j); /* the first threads' names are there */
	*out = j;
	return 0;
}

void tfh_join_close(struct tfh_join *j)
{
	if (!j)
		return;
	for (uint32_t i = 0; j->lane && i < LANES; i++) {
		free(j->lane[i].calls.v);
		free(j->lane[i].records.v);
	}
	for (uint32_t i = 0; j->key && i < KEYS; i++)
		free(j->key[i].v);
	tfh_weave_close(j->weave);
	tfh_names_free(&j->names);
	tfh_arena_free(&j->arena);
	free(j->slot);
	free(j->lane);
	free(j->alias);
	free(j->thread_id);
	free(j->key);
	free(j->muddled);
	free(j->owner);
	free(j->part);
	free(j->block);
	free(j);
}
