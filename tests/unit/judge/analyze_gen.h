/*
 * Synthetic traces with known answers: a test appends events in any order on a time line of
 * milliseconds; they are sorted by end time and given to the analysis like a run.
 */
#ifndef TFH_TEST_ANALYZE_GEN_H
#define TFH_TEST_ANALYZE_GEN_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "judge/feed.h"
#include "report/words/words.h"

#define GEN_PID 100
#define GEN_THREADS 8
#define GEN_NAMES 64
#define GEN_AT_HAND 5

struct gen {
	struct tfh_event *ev;
	size_t n, cap, at;
	struct tfh_entry at_hand[GEN_AT_HAND];
	struct tfh_launch_row row;
	const char *name[16][GEN_NAMES];
	uint64_t consumer[GEN_NAMES]; /* of a stage: the one it delivers to, as the recorder was
					 told */
	struct tfh_process process;
	struct tfh_thread_info thread[GEN_THREADS];
	struct tfh_hole hole[4];
	uint32_t n_hole;
	struct tfh_feed feed;
};

static inline int64_t gen_ns(double ms)
{
	return (int64_t)llround(ms * 1e6);
}

/* How often the events of the trace made last were read. */
static unsigned gen_passes;

static inline int gen_rewind(void *arg, uint32_t process, struct tfh_err *err)
{
	(void)process;
	(void)err;
	((struct gen *)arg)->at = 0;
	gen_passes++;
	return 0;
}

static inline bool gen_next(void *arg, struct tfh_event *ev)
{
	struct gen *g = arg;

	if (g->at == g->n)
		return false;
	*ev = g->ev[g->at++];
	return true;
}

/* Up to a few of the events that follow, as a run has them at hand. */
static inline const struct tfh_entry *gen_peek(void *arg, uint32_t *n)
{
	struct gen *g = arg;

	for (*n = 0; *n < GEN_AT_HAND && g->at + *n < g->n; ++*n) {
		struct tfh_event *ev = &g->ev[g->at + *n];
		g->at_hand[*n] = (struct tfh_entry){.t0 = ev->t0,
						    .t1 = ev->t1,
						    .number = ev->number,
						    .ev = ev,
						    .thread = ev->thread,
						    .launch = tfh_is_plain_launch(ev)};
	}
	return g->at_hand;
}

static inline void gen_advance(void *arg, uint32_t n)
{
	((struct gen *)arg)->at += n;
}

/* Up to a few launches that follow, as a run has them in short. */
static inline const struct tfh_launch_row *gen_row(void *arg)
{
	struct gen *g = arg;
	const struct tfh_event *ev = &g->ev[g->at];
	struct tfh_launch_row *r = &g->row;

	*r = (struct tfh_launch_row){0};
	while (r->n < GEN_AT_HAND && g->at + r->n < g->n && tfh_is_plain_launch(&ev[r->n]) &&
	       ev[r->n].thread == ev->thread && ev[r->n].stream == ev->stream &&
	       ev[r->n].t1 > ev[r->n].t0 && (!r->n || ev[r->n].t0 >= ev[r->n - 1].t1)) {
		int64_t ns = ev[r->n].t1 - ev[r->n].t0;
		r->ns += ns;
		r->longest = ns > r->longest ? ns : r->longest;
		if (r->n && ev[r->n].t1 - r->t1 > r->apart)
			r->apart = ev[r->n].t1 - r->t1;
		r->t1 = ev[r->n].t1;
		r->part[r->n].ev = &ev[r->n];
		r->part[r->n++].n = 1;
	}
	r->parts = r->n;
	r->t0 = r->n ? ev->t0 : 0;
	r->first = r->n ? ev->t1 : 0;
	r->thread = r->n ? ev->thread : 0;
	return r->n ? r : NULL;
}

static inline void gen_row_times(void *arg, int64_t t0[TFH_LAUNCH_ROW], int64_t t1[TFH_LAUNCH_ROW])
{
	const struct gen *g = arg;

	for (uint32_t i = 0; i < g->row.n; i++) {
		t0[i] = g->ev[g->at + i].t0;
		t1[i] = g->ev[g->at + i].t1;
	}
}

static inline void gen_take_row(void *arg)
{
	struct gen *g = arg;

	g->at += g->row.n;
}

static inline int gen_error(void *arg, struct tfh_err *err)
{
	(void)arg;
	(void)err;
	return 0;
}

static inline const char *gen_name(void *arg, uint32_t process, enum tft_name kind, uint32_t id,
				   uint64_t *handle, uint64_t *extra)
{
	struct gen *g = arg;

	(void)process;
	if (handle)
		*handle = id;
	if (extra)
		*extra = kind == TFT_NAME_STAGE && id < GEN_NAMES ? g->consumer[id] : 0;
	return kind < 16 && id < GEN_NAMES && g->name[kind][id] ? g->name[kind][id] : "";
}

static inline struct gen *gen_new(void)
{
	struct gen *g = calloc(1, sizeof(*g));

	gen_passes = 0;
	g->process.host = "h";
	g->process.exe = "python3";
	g->process.pid = GEN_PID;
	g->process.rank = -1;
	for (uint32_t i = 0; i < GEN_THREADS; i++)
		g->thread[i] = (struct tfh_thread_info){.tid = GEN_PID + i, .index = i};
	g->feed = (struct tfh_feed){.arg = g,
				    .rewind = gen_rewind,
				    .next = gen_next,
				    .peek = gen_peek,
				    .advance = gen_advance,
				    .row = gen_row,
				    .row_times = gen_row_times,
				    .take_row = gen_take_row,
				    .error = gen_error,
				    .name = gen_name,
				    .processes = &g->process,
				    .n_processes = 1,
				    .threads = g->thread,
				    .n_threads = GEN_THREADS};
	return g;
}

static inline void gen_free(struct gen *g)
{
	free(g->ev);
	free(g);
}

/* A call of function `fn` on a thread, from t0 to t1 ms; the caller fills in the rest of the
 * returned event before the next one is added. */
static inline struct tfh_event *gen_call(struct gen *g, uint32_t thread, enum tfh_fn fn, double t0,
					 double t1)
{
	if (g->n == g->cap) {
		g->cap = g->cap ? 2 * g->cap : 1024;
		g->ev = realloc(g->ev, g->cap * sizeof(*g->ev));
		assert_non_null(g->ev);
	}
	struct tfh_event *ev = &g->ev[g->n++];
	memset(ev, 0, sizeof(*ev));
	ev->fn = &tfh_fn_table[fn];
	ev->thread = thread;
	ev->kind = TFT_CALL;
	ev->t0 = gen_ns(t0);
	ev->t1 = gen_ns(t1);
	ev->number = g->n;
	ev->dir = ev->fn->dir;
	if (ev->fn->family < TFH_FAM_CONSUMER)
		g->process.has_gpu = true;
	else
		g->process.has_tf = true;
	g->process.events++;
	return ev;
}

/* A sample at t ms of what a thread does, for `ms` of its time; `place`: of Python's frames. */
static inline struct tfh_event *gen_sample(struct gen *g, uint32_t thread, double t,
					   enum tft_state state, uint32_t place, double ms)
{
	struct tfh_event *ev = gen_call(g, thread, TFH_FN_NONE, t, t);

	ev->kind = TFT_STATE;
	ev->result = (uint16_t)state;
	ev->stack = place;
	ev->w[1] = (uint64_t)UINT32_MAX << 32; /* on no descriptor */
	ev->w[2] = (uint64_t)gen_ns(ms);
	return ev;
}

/* A reading at t ms of a thread's CPU clock: `cpu` ms. */
static inline struct tfh_event *gen_cpu(struct gen *g, uint32_t thread, double t, double cpu,
					uint32_t stack)
{
	struct tfh_event *ev = gen_call(g, thread, TFH_FN_NONE, t, t);

	ev->kind = TFT_CPUTIME;
	ev->stack = stack;
	ev->w[0] = (uint64_t)gen_ns(cpu);
	return ev;
}

static inline void gen_exec(struct gen *g, uint32_t name, double t0, double t1)
{
	gen_call(g, 0, TFH_FN_TFE_Execute, t0, t1)->w[0] = name;
}

/* A batch taken from an iterator whose root stage is `stage`. */
static inline struct tfh_event *gen_get(struct gen *g, uint32_t thread, uint32_t iterator,
					uint32_t stage, double t0, double t1)
{
	struct tfh_event *ev = gen_call(g, thread, TFH_FN_tf_getnext_op, t0, t1);

	ev->w[0] = iterator;
	ev->w[1] = stage;
	ev->depth = 1;
	return ev;
}

static inline void gen_stage(struct gen *g, uint32_t thread, uint32_t stage, double t0, double t1,
			     double self)
{
	struct tfh_event *ev = gen_call(g, thread, TFH_FN_tf_stage_getnext, t0, t1);

	ev->w[1] = stage;
	ev->w[2] = (uint64_t)gen_ns(self);
	ev->depth = 2;
}

static inline void gen_copy(struct gen *g, enum tfh_fn fn, double t0, double t1, uint64_t bytes,
			    bool pageable)
{
	struct tfh_event *ev = gen_call(g, 0, fn, t0, t1);

	ev->w[0] = bytes;
	ev->pageable = pageable;
}

static inline int gen_order(const void *a, const void *b)
{
	const struct tfh_event *x = a, *y = b;

	if (x->t1 != y->t1)
		return x->t1 < y->t1 ? -1 : 1;
	/* What encloses ends after what it encloses. */
	if (x->t0 != y->t0)
		return x->t0 > y->t0 ? -1 : 1;
	return x->number < y->number ? -1 : 1;
}

/* Frames of Python, innermost first. A place or backtrace is a row of the table that the test gives last. */
#define GEN_FRAMES 6
typedef struct tfh_model_line gen_stack[GEN_FRAMES];
static const gen_stack *gen_stacks;
static size_t gen_n_stacks;

static inline uint32_t gen_frames(void *arg, uint32_t process, uint32_t place,
				  struct tfh_model_line *frame, uint32_t most)
{
	uint32_t n = 0;

	(void)arg;
	(void)process;
	for (; place < gen_n_stacks && n < most && n < GEN_FRAMES && gen_stacks[place][n].file; n++)
		frame[n] = gen_stacks[place][n];
	return n;
}

static inline void gen_show(struct tfh_feed *feed, const gen_stack *stacks, size_t n)
{
	gen_stacks = stacks;
	gen_n_stacks = n;
	feed->place = feed->lines = gen_frames;
}

#define GEN_STACKS(feed, stacks) gen_show((feed), (stacks), sizeof(stacks) / sizeof(*(stacks)))

/* Judges what was made; frees it. */
static inline struct tfh_result *gen_judge(struct gen *g)
{
	struct tfh_result *r = NULL;
	struct tfh_err err = {0};

	if (g->n)
		qsort(g->ev, g->n, sizeof(*g->ev), gen_order);
	g->feed.n_holes = g->n_hole;
	g->feed.holes = g->hole;
	g->feed.wall_ns = g->n ? g->ev[g->n - 1].t1 : 0;
	if (tfh_analyze_feed(&g->feed, &r, &err))
		print_error("%s\n", err.text);
	gen_free(g);
	assert_non_null(r);
	return r;
}

/* Of these lines the first that says `text`, or NULL; good until the next one is asked for. */
static inline const char *gen_line(const char *const *line, uint32_t n, const char *text)
{
	static char found[1024];

	for (uint32_t i = 0; i < n; i++) {
		if (!line[i] || !strstr(line[i], text))
			continue;
		snprintf(found, sizeof(found), "%s", line[i]);
		return found;
	}
	return NULL;
}

/* The note of the report that says `text`, or NULL. */
static inline const char *gen_remark(const struct tfh_result *r, const char *text)
{
	struct tfh_wording w;

	tfh_wording_make(&w, r);
	const char *line = gen_line(w.remark, w.n_remark, text);
	tfh_wording_free(&w);
	return line;
}

/* The sentence, or the line of evidence, or what is missing, that says `text`, or NULL. */
static inline const char *gen_says(const struct tfh_result *r, const char *text)
{
	struct tfh_wording w;

	tfh_wording_make(&w, r);
	const char *all[] = {w.text,	    w.missing,	   w.evidence[0], w.evidence[1],
			     w.evidence[2], w.evidence[3], w.evidence[4], w.evidence[5]};
	const char *line = gen_line(all, sizeof(all) / sizeof(all[0]), text);
	tfh_wording_free(&w);
	return line;
}

static inline void gen_expect(const struct tfh_result *r, enum tfh_class cls, enum tfh_cause cause)
{
	if (r->verdict.cls != cls || r->verdict.cause != cause)
		for (int p = 0; p < TFH_PART_COUNT; p++)
			print_message("%s %.4f\n", tfh_part_name(p), r->breakdown[p].share);
	assert_string_equal(tfh_class_name(r->verdict.cls), tfh_class_name(cls));
	assert_int_equal(r->verdict.cause, cause);
}

/* Input-bound by that stage. Frees the result. */
static inline void gen_expect_stage(struct tfh_result *r, enum tfh_cause cause, const char *name)
{
	gen_expect(r, TFH_CLASS_INPUT_BOUND, cause);
	assert_true(r->n_input > 0 && r->input[0].guilty);
	assert_string_equal(r->input[0].name, name);
	tfh_result_free(r);
}

/* Seconds per step of a part, exact to 1 % of the step. */
static inline void gen_part(const struct tfh_result *r, enum tfh_part part, double ms)
{
	double step = 0;

	for (int p = 0; p < TFH_PART_COUNT; p++)
		step += r->breakdown[p].s_per_step * 1e3;
	double got = r->breakdown[part].s_per_step * 1e3;
	if (fabs(got - ms) > 0.01 * step)
		print_message("%s: %.4f ms, expected %.4f of %.4f\n", tfh_part_name(part), got, ms,
			      step);
	assert_true(fabs(got - ms) <= 0.01 * step);
}

/* Every step's parts sum to its time, and its cause is one of its class. */
static inline void gen_closed(const struct tfh_result *r)
{
	for (uint64_t i = 0; i < r->n_step; i++) {
		double sum = 0;
		for (int p = 0; p < TFH_PART_COUNT; p++)
			sum += (double)r->step[i].breakdown[p];
		assert_true(fabs(sum - r->step[i].dur_s) < 1e-6 + 1e-5 * r->step[i].dur_s);
		if (r->step[i].cause != TFH_CAUSE_NONE)
			assert_int_equal(tfh_cause_class(r->step[i].cause), r->step[i].cls);
	}
}

#endif
