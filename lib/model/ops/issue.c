/*
 * Matches each op with the host call that issued it. CUPTI's own record of the driver call has the
 * op's correlation number, and is contained in our record of the same call on the same thread.
 * Without such records, the order of calls decides (issue_by_order.c).
 *
 * Memory is bounded: numbers only grow, so a table of the newest 2^18 drops the oldest, and queues
 * have a maximum length.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"

#include "model/ops/issue.h"

#define ISSUES (1u << 18)
#define QUEUE 8192u
#define LANES 4096u /* hash buckets for threads with calls; more threads share buckets */
/* bound on the difference between CUPTI's clock and ours */
#define TOLERANCE_NS 5000

struct call {
	int64_t t0, t1;
	uint32_t thread; /* of a driver record: its correlation id */
	uint32_t stream;
	uint64_t number;
};

/* First in, first out. When it is full, the oldest entry is dropped. */
struct queue {
	struct call *v;
	uint32_t first, n, cap;
};

/* Calls and driver records of one thread. CUPTI identifies a thread by the low half of its
 * pthread_self(), or by its tid if the job has asked for that. A later thread with the same id
 * shares the lane. */
struct lane {
	uint32_t id, thread;
	struct queue calls, records;
};

enum state { EMPTY, WAITING, KNOWN };
struct slot {
	uint32_t correlation;
	uint32_t state;
	uint32_t lane; /* valid while WAITING */
	struct tfh_issue issue;
};

/* Room for one more entry, which the caller fills in; NULL when out of memory. The entry is filled
 * in place because copying a value that was just written would stall on the store. */
static struct call *push(struct queue *q)
{
	if (q->n == q->cap && q->cap < QUEUE) {
		uint32_t cap = q->cap ? q->cap * 4 : 32;
		struct call *v = malloc(cap * sizeof(*v));
		if (!v)
			return NULL;
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
	return &q->v[(q->first + q->n++) & (q->cap - 1)];
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

/* Whether a call can have issued an op. With driver records, failed and captured calls count too,
 * since they have driver records as well. */
static bool issues(const struct tfh_event *ev)
{
	uint8_t family = ev->fn->family;

	return ev->kind == TFT_CALL && (tfh_family_issues(family) || family == TFH_FAM_MANAGED);
}

/* Hash of what an op and its call have in common. */
uint32_t tfh_join_key(uint8_t family, const char *name, uint64_t bytes)
{
	uint64_t h = family;

	if (family == TFH_FAM_LAUNCH)
		h = tfh_hash_add(h, tfh_hash_str(name));
	else if (family != TFH_FAM_GRAPH_LAUNCH)
		h = tfh_hash_add(h, bytes);
	return (uint32_t)tfh_hash_u64(h);
}

static const char *function_name(const struct tfh_join *j, uint64_t id)
{
	const struct tfh_name *v = j->names.v[TFT_NAME_FUNCTION];

	return id < j->names.n[TFT_NAME_FUNCTION] && v[id].text ? v[id].text : "";
}

/* Begin of the first span with device times. */
int64_t tfh_join_begin(const struct tfh_join *j)
{
	const struct tfh_gpu *g = j->run->proc[j->process].gpu;

	return g && g->n_span ? g->span[0].t0 : INT64_MIN;
}

static struct lane *lane_of_thread(struct tfh_join *j, uint32_t thread)
{
	const struct tfh_thread_info *t = &j->run->thread[thread];
	struct lane **l = &j->lane_by_thread[t->index];

	if (!*l)
		*l = lane_of(j, j->thread_id[t->index] ? j->thread_id[t->index] : t->tid);
	return *l;
}

/* Takes a call. `ev` holds the fields shared by all calls of its shape. */
static int take_event(struct tfh_join *j, const struct tfh_entry *e, const struct tfh_event *ev)
{
	j->now = e->t1;
	if (j->wait && ev->fn->family == TFH_FAM_SYNC && !(ev->flags & TFT_F_FAILED))
		j->wait[j->n_wait++ % TFH_JOIN_WAITS] = e->t1;
	if (!issues(ev))
		return 0;
	if (j->drvr) {
		struct lane *l = lane_of_thread(j, e->thread);
		struct call *c = push(&l->calls);
		l->thread = e->thread;
		if (!c)
			return -ENOMEM;
		c->t0 = e->t0;
		c->t1 = e->t1;
		c->thread = e->thread;
		c->stream = ev->stream;
		c->number = e->number;
		return 0;
	}
	if (ev->flags & (TFT_F_FAILED | TFT_F_CAPTURED) || ev->fn->family == TFH_FAM_MANAGED)
		return 0;
	struct tfh_issue issue = {e->t0, e->t1, e->thread, e->number};
	j->early |= e->t0 < tfh_join_begin(j);
	return tfh_by_order_call(
		j->rank,
		tfh_join_key(ev->fn->family, function_name(j, (uint32_t)ev->w[0]), ev->w[0]),
		&issue, ev->stream);
}

/* Merges two lanes of one thread. A thread's name may come after its first calls and after CUPTI's
 * records of them. */
static int move_lane(struct tfh_join *j, struct lane *from, struct lane *to)
{
	if (from == to)
		return 0;
	for (struct call *c; from->calls.n; pop(&from->calls)) {
		to->thread = from->thread;
		if (!(c = push(&to->calls)))
			return -ENOMEM;
		*c = *queue_at(&from->calls, 0);
	}
	for (struct call *c; from->records.n; pop(&from->records)) {
		const struct call *r = queue_at(&from->records, 0);
		struct slot *s = slot_of(j, r->thread);
		if (s->correlation == r->thread && s->state == WAITING)
			s->lane = (uint32_t)(to - j->lane);
		if (!(c = push(&to->records)))
			return -ENOMEM;
		*c = *r;
	}
	return 0;
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
		j->lane_by_thread[rec->stream] = NULL;
		j->record_lane = NULL;
		j->alias[tid % LANES].tid = tid;
		j->alias[tid % LANES].id = id;
		if (id && move_lane(j, lane_of(j, tid), lane_of(j, id)))
			return -ENOMEM;
	}
	return tfh_names_add(&j->arena, &j->names, rec, part);
}

static void take_block(struct tfh_join *j, const struct tfh_block *b)
{
	uint32_t note = 0;

	for (uint32_t i = 0; i < b->n && !j->err; i++) {
		const struct tfh_entry *e = &b->entry[i];
		j->err =
			e->ev ? take_event(j, e, e->ev) : take_name(j, e->thread, &b->note[note++]);
	}
}

void tfh_join_feed(struct tfh_join *j, const struct tfh_block *b)
{
	j->waits = false;
	j->last_block = !b;
	if (b)
		take_block(j, b);
}

/* Reads host records to the end of the block; false if none are left, or none are available yet. */
bool tfh_join_read_on(struct tfh_join *j)
{
	j->waits = j->fed && !j->last_block && !j->err;
	if (j->waits)
		return false;
	if (j->last_block || !j->interleave || j->err) {
		j->now = INT64_MAX;
		return false;
	}
	j->last_block = !tfh_interleave_fill(j->interleave, j->block, false);
	take_block(j, j->block);
	if (j->last_block) {
		j->now = INT64_MAX;
		if (!j->err)
			j->err = tfh_interleave_error(j->interleave)->code;
	}
	return true;
}

/* ---- with driver records ---- */

/* By how much a driver record extends beyond a call, ns. If two calls contain the record, the
 * earlier one is used, since each call is used once. */
static int64_t sticks_out(const struct call *r, const struct call *c)
{
	int64_t before = c->t0 - r->t0, behind = r->t1 - c->t1;

	return (before > 0 ? before : 0) + (behind > 0 ? behind : 0);
}

/* Finds the call of the oldest driver record of a lane, or that there is none. */
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
	j->late |= l->thread == UINT32_MAX;
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

/* Resolves driver records until that of `correlation` has its call. On the way the lane may change,
 * when its thread's name comes. */
static void settle(struct tfh_join *j, uint32_t correlation)
{
	const struct slot *s = slot_of(j, correlation);

	while (s->state == WAITING && s->correlation == correlation) {
		struct lane *l = &j->lane[s->lane];
		if (!l->records.n)
			return;
		int64_t end = queue_at(&l->records, 0)->t1;
		/* Wait until the following call can be compared, too. The record's own call may end
		 * late, if the thread was descheduled between the driver's end and ours. */
		if ((j->now <= end + 2 * TOLERANCE_NS ||
		     (j->now <= end + TFH_JOIN_WAIT_NS &&
		      last_end(&l->calls) < end - TOLERANCE_NS)) &&
		    tfh_join_read_on(j))
			continue;
		if (j->waits)
			return;
		settle_one(j, l);
	}
}

static struct lane *lane_of_record(struct tfh_join *j, uint32_t tid)
{
	uint32_t at = tid % LANES;

	if (!j->record_lane || j->record_tid != tid) {
		j->record_tid = tid;
		j->record_lane = lane_of(
			j, j->alias[at].tid == tid && j->alias[at].id ? j->alias[at].id : tid);
	}
	return j->record_lane;
}

/* Reads driver records that began before t. */
static void read_records(struct tfh_join *j, int64_t t)
{
	const struct tfh_row *row;

	while (!j->err && (row = tfh_rows_peek(j->drvr)) && row->t0 <= t) {
		uint32_t correlation = (uint32_t)tfh_cell(row, TFH_CELL_CORRELATION);
		uint32_t tid = (uint32_t)tfh_cell(row, TFH_CELL_TID);
		struct lane *l = lane_of_record(j, tid);
		struct slot *s = slot_of(j, correlation);
		if (l->records.n == QUEUE) {
			settle(j, queue_at(&l->records, 0)->thread);
			if (j->waits)
				return;
			l = lane_of_record(j, tid);
		}
		s->correlation = correlation;
		s->state = WAITING;
		s->lane = (uint32_t)(l - j->lane);
		struct call *c = push(&l->records);
		if (c)
			*c = (struct call){.t0 = row->t0, .t1 = row->t1, .thread = correlation};
		else
			j->err = -ENOMEM;
		tfh_rows_take(j->drvr);
	}
	if (!j->err)
		j->err = tfh_rows_error(j->drvr);
}

static bool find_record(struct tfh_join *j, const struct tfh_op *op, struct tfh_issue *out)
{
	struct slot *s = slot_of(j, op->correlation);

	read_records(j, op->t0 + TOLERANCE_NS);
	if (j->waits)
		return false;
	if (s->correlation != op->correlation || s->state == EMPTY)
		return false;
	if (s->state == WAITING)
		settle(j, op->correlation);
	*out = s->issue;
	return s->state == KNOWN;
}

/* ---- both: with and without driver records ---- */

bool tfh_join_find(struct tfh_join *j, const struct tfh_op *op, struct tfh_issue *out)
{
	return !j->err && find_record(j, op, out);
}

bool tfh_join_late(const struct tfh_join *j)
{
	return j->late;
}

bool tfh_join_waits(const struct tfh_join *j)
{
	return j->waits;
}

int tfh_join_error(const struct tfh_join *j)
{
	return j->err;
}

/* Takes the thread names that an earlier pass has found: in the first pass a thread's name comes
 * with its first flush, up to a second after its first calls. */
static void known_threads(struct tfh_join *j)
{
	const struct tfh_names *names = &j->run->proc[j->process].names;

	for (uint32_t i = 0; i < names->n[TFT_NAME_THREAD]; i++) {
		const struct tfh_name *n = &names->v[TFT_NAME_THREAD][i];
		uint32_t tid = (uint32_t)n->handle, id = (uint32_t)n->extra;
		if (!n->text || !id || i >= j->run->proc[j->process].n_thread)
			continue;
		j->thread_id[i] = id;
		j->alias[tid % LANES].tid = tid;
		j->alias[tid % LANES].id = id;
	}
}

static bool one_thread(const struct tfh_model_proc *p)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < p->n_thread && n < 2; i++)
		n += tfh_thread_at(p, i) != UINT32_MAX;
	return n < 2;
}

int tfh_join_open(struct tfh_run *shadow, uint32_t process, struct tfh_rows *drvr, bool fed,
		  struct tfh_join **out)
{
	struct tfh_join *j = calloc(1, sizeof(*j));
	bool host = shadow->proc[process].pub.has_gpu && !fed;
	int rc = j ? 0 : -ENOMEM;

	*out = NULL;
	if (rc)
		return rc;
	j->run = shadow;
	j->process = process;
	j->drvr = drvr;
	j->fed = fed;
	j->now = j->last = j->resync = INT64_MIN;
	tfh_arena_init(&j->arena, 0);
	j->slot = calloc(ISSUES, sizeof(*j->slot));
	j->lane = calloc(LANES, sizeof(*j->lane));
	j->alias = calloc(LANES, sizeof(*j->alias));
	j->thread_id = calloc(shadow->proc[process].n_thread + 1, sizeof(*j->thread_id));
	j->lane_by_thread = calloc(shadow->proc[process].n_thread + 1, sizeof(*j->lane_by_thread));
	j->part = calloc(shadow->proc[process].n_thread + 1, sizeof(*j->part));
	j->block = host ? malloc(sizeof(*j->block)) : NULL;
	if (!j->slot || !j->lane || !j->alias || !j->thread_id || !j->lane_by_thread || !j->part ||
	    (host && !j->block))
		rc = -ENOMEM;
	j->wait = drvr ? NULL : calloc(TFH_JOIN_WAITS, sizeof(*j->wait));
	if (!rc && !drvr)
		rc = j->wait ? tfh_by_order_open(one_thread(&shadow->proc[process]), &j->rank)
			     : -ENOMEM;
	if (!rc && host)
		rc = tfh_interleave_open(shadow, process, false, &j->interleave);
	if (rc) {
		tfh_join_close(j);
		return rc;
	}
	for (uint32_t i = 0; i < LANES; i++)
		j->lane[i].thread = UINT32_MAX;
	known_threads(j);
	if (!fed)
		tfh_join_read_on(j); /* reads the names of the first threads */
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
	tfh_by_order_close(j->rank);
	free(j->wait);
	tfh_interleave_close(j->interleave);
	tfh_names_free(&j->names);
	tfh_arena_free(&j->arena);
	free(j->slot);
	free(j->lane);
	free(j->alias);
	free(j->thread_id);
	free(j->lane_by_thread);
	free(j->part);
	free(j->block);
	free(j);
}
