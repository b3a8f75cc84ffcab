/* Collects the samples of a run, and assigns them to the pauses that they are in. */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "judge/facts/event_loop.h"
#include "judge/facts/pause_role.h"
#include "judge/facts/sample_groups.h"

struct tfh_stack_samples *tfh_stack_samples_new(const struct tfh_feed *feed, uint32_t process)
{
	struct tfh_stack_samples *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->feed = feed;
	l->process = process;
	l->jax = tfh_find_software(&feed->processes[process], "JAX");
	l->torch = tfh_find_software(&feed->processes[process], "PyTorch");
	l->line = calloc(feed->n_threads + 1, sizeof(*l->line));
	if (l->line)
		return l;
	free(l);
	return NULL;
}

void tfh_stack_samples_free(struct tfh_stack_samples *l)
{
	if (!l)
		return;
	for (uint32_t i = 0; i < l->feed->n_threads; i++)
		tfh_big_free(l->line[i].pause.v);
	tfh_big_free(l->sample.v);
	tfh_big_free(l->within.v);
	free(l->role.v);
	free(l->line);
	free(l);
}

/* ---- pauses ---- */

static int close_pause(struct tfh_stack_samples *l, uint32_t thread, enum tfh_feeds feeds)
{
	struct tfh_sample_line *s = &l->line[thread];

	if (!s->open.t1)
		return 0;
	s->open.group = tfh_group_of_pause(l, thread, s->open.group, s->after,
					   s->open.t1 - s->open.t0, feeds);
	tfh_group_add(l, s->open.group, s->open_seen, s->open_samples, s->open_wall,
		      s->open_asleep);
	for (size_t i = l->sample.n; i-- > 0 && l->sample.v[i].t >= s->open.t0;)
		if (l->sample.v[i].thread == thread && l->sample.v[i].t < s->open.t1)
			l->sample.v[i].group = s->open.group;
	int rc = TFH_PUSH_BIG(s->pause, s->open);
	s->open = (struct tfh_sample_pause){0};
	return rc;
}

static uint32_t lines_of(const struct tfh_stack_samples *l, uint32_t stack,
			 struct tfh_model_line frame[TFH_VERDICT_FRAMES])
{
	const struct tfh_feed *f = l->feed;

	return stack && f->lines ? f->lines(f->arg, l->process, stack, frame, TFH_VERDICT_FRAMES)
				 : 0;
}

/* Records which library launches: that of the innermost frame of the first launch with a stack. */
static void note_launcher(struct tfh_stack_samples *l, uint16_t after, uint32_t stack)
{
	struct tfh_model_line frame[TFH_VERDICT_FRAMES];

	if (!*l->launcher && tfh_kind_launches(after) && lines_of(l, stack, frame))
		tfh_package_of(&frame[0], l->launcher);
}

/* Records a function of the program that a library calls, and that is a step of its own. */
static void note_stepper(struct tfh_stack_samples *l, uint16_t after, uint32_t stack)
{
	struct tfh_model_line frame[TFH_VERDICT_FRAMES];
	const struct tfh_model_line *called;
	uint32_t n = tfh_kind_is_graph(after) ? lines_of(l, stack, frame) : 0;

	l->graphs |= n != 0;
	if (l->n_stepper == TFH_FACTS_STEPPERS || !(called = tfh_place_called(frame, n)))
		return;
	for (uint32_t i = 0; i < l->n_stepper; i++)
		if (tfh_same_function(called, &l->stepper[i]))
			return;
	l->stepper[l->n_stepper++] = *called;
}

/* Opens the pause [s->end, t1) of a thread. It is closed when the following work is known. */
static int open_pause(struct tfh_stack_samples *l, uint32_t thread, const struct tfh_event *ev,
		      uint16_t after)
{
	struct tfh_sample_line *s = &l->line[thread];
	int64_t ns = ev->t0 - s->end;
	int rc = close_pause(l, thread, TFH_FEEDS_NOT);
	/* A CPU clock reading just before the following call belongs to the pause. */
	const struct tfh_cpu_reading *r = s->last.t <= ev->t0 ? &s->last : &s->before_last;
	bool read = r->t && r->t <= ev->t0 && ev->t0 - r->t < TFH_GAP_NS;
	bool known = read && s->base.t && r->t > s->base.t;
	int64_t wall = r->t - s->base.t, asleep = wall - (r->cpu - s->base.cpu);

	s->open = (struct tfh_sample_pause){s->end, ev->t0, s->before};
	s->after = after;
	s->open_samples = s->samples;
	note_launcher(l, after, read ? r->stack : 0);
	note_stepper(l, after, read ? r->stack : 0);
	memset(s->open_seen, 0, sizeof(s->open_seen));
	/* Without a device, the begin of a range (an optimizer's) inside of the pause tells as much
	 * of what came before. */
	bool inside = !read && !l->driver && r->stack && r->t > s->end && r->t <= ev->t0;
	int64_t until = inside ? r->t : ev->t0;
	if (s->samples) {
		struct tfh_pause_end to = {
			.before = s->before, .after = after, .t0 = s->end, .t1 = ev->t0};
		if (!l->driver)
			to.n_last = lines_of(l, s->stack, to.last);
		tfh_place_samples(l, thread, until, ev->t0, &to, s->open_seen);
		to.inside = inside;
		to.stack = read || inside ? r->stack : 0;
		to.n = lines_of(l, to.stack, to.frame);
		tfh_place_samples(l, thread, s->end, until, &to, s->open_seen);
	}
	s->stack = read && r->stack ? r->stack : s->stack;
	s->open_wall = known ? ns : 0;
	s->open_asleep = !known || asleep < 0 ? 0 : asleep < ns ? asleep : ns;
	return rc;
}

/* Whether TensorFlow executes a single op, or a function of many; 0: neither. */
static uint16_t executed(const struct tfh_stack_samples *l, const struct tfh_event *ev)
{
	const char *op = l->feed->name(l->feed->arg, l->process, TFT_NAME_OP, (uint32_t)ev->w[0],
				       NULL, NULL);

	if (!op || !*op || tfh_starts_with(op, "Iterator") ||
	    !strcmp(op, "Engine::execute")) /* PyTorch's backward pass */
		return 0;
	return tfh_starts_with(op, "__") ? TFH_GRAPH_OF_OPS : TFH_EAGER_OP;
}

static uint16_t kind_of(const struct tfh_stack_samples *l, const struct tfh_event *ev)
{
	/* What follows the end of an iterator is not what follows a batch. */
	bool end = ev->fn->family == TFH_FAM_CONSUMER && ev->flags & TFT_F_OPTIONAL;
	uint16_t more = ev->fn->family == TFH_FAM_EXECUTE ? executed(l, ev) : end ? 1 : ev->dir & 7;

	return (uint16_t)(ev->fn->family << 3 | more);
}

static bool is_work(uint8_t family)
{
	return tfh_family_issues(family) || family == TFH_FAM_SYNC || family == TFH_FAM_CONSUMER;
}

static void add_short(struct tfh_stack_samples *l, uint32_t thread, int64_t t1, uint16_t after)
{
	struct tfh_sample_line *s = &l->line[thread];
	const struct tfh_pause_end to = {.before = s->before, .after = after, .soon = true};
	double seen[TFH_AT_COUNT] = {0};

	tfh_place_samples(l, thread, s->end, t1, &to, seen);
	tfh_group_add(l, tfh_make_group_of_brief(l, thread), seen, s->samples, 0, 0);
}

static enum tfh_feeds feeds_of(const struct tfh_sample_line *s, const struct tfh_event *ev)
{
	if (ev->fn->family != TFH_FAM_COPY || ev->dir != TFH_DIR_H2D)
		return TFH_FEEDS_NOT;
	return s->fetched ? TFH_FEEDS_BACK : TFH_FEEDS;
}

static void note_fetch(struct tfh_sample_line *s, const struct tfh_event *ev)
{
	if (ev->fn->family != TFH_FAM_COPY)
		return;
	if (ev->dir == TFH_DIR_H2D)
		s->fetched = false;
	else if (ev->dir == TFH_DIR_D2H && ev->w[0] >= TFH_VALUE_BYTES)
		s->fetched = true;
}

static int add_call(struct tfh_stack_samples *l, const struct tfh_event *ev)
{
	struct tfh_sample_line *s = &l->line[ev->thread];
	uint16_t kind = kind_of(l, ev);
	int64_t ns = ev->t0 - s->end;
	int rc = 0;

	l->device |= tfh_kind_launches(kind);
	l->driver |= tfh_family_launches(ev->fn->family) || ev->fn->family == TFH_FAM_COPY;
	if (s->samples && ev->fn->family == TFH_FAM_CONSUMER && strstr(ev->fn->name, "DataLoader"))
		s->samples -= tfh_place_samples_inside(l, ev);
	if (s->end && ns >= TFH_FACTS_SAMPLE_PAUSE_NS)
		rc = open_pause(l, ev->thread, ev, kind);
	else if (s->samples)
		add_short(l, ev->thread, ev->t0, kind);
	if (!rc && s->open.t1 && (is_work(ev->fn->family) || ev->kind == TFT_MARK))
		rc = close_pause(l, ev->thread, feeds_of(s, ev));
	note_fetch(s, ev);
	s->samples = 0;
	s->end = ev->t1 > s->end ? ev->t1 : s->end;
	s->before = kind;
	s->base = s->last;
	return rc;
}

static void add_cpu(struct tfh_sample_line *s, const struct tfh_event *ev)
{
	s->before_last = s->last;
	s->last =
		(struct tfh_cpu_reading){.t = ev->t1, .cpu = (int64_t)ev->w[0], .stack = ev->stack};
}

/* ---- samples ---- */

/* Whether a thread marks a range of PyTorch's, where the recorder works. Linux takes the CPU from a
 * thread preferably at a system call, and the recorder makes one there: on a crowded machine a
 * third of the samples showed a thread that waits for a CPU there. */
static bool marks_range(const struct tfh_stack_samples *l, uint32_t place)
{
	enum { INNERMOST = 3 };
	static const char scope[] = "record_function.__"; /* enter__, exit__ */
	struct tfh_model_line frame[INNERMOST];
	const struct tfh_feed *f = l->feed;
	uint32_t n = f->place && place ? f->place(f->arg, l->process, place, frame, INNERMOST) : 0;

	for (uint32_t i = 0; i < n && frame[i].library; i++)
		if (tfh_starts_with(frame[i].function, scope))
			return true;
	return false;
}

static int add_sample(struct tfh_stack_samples *l, const struct tfh_event *ev)
{
	struct tfh_sample_line *s = &l->line[ev->thread];
	uint8_t state = tfh_sample_state(l, ev);
	struct tfh_stack_sample sample = {
		.t = ev->t1,
		.timeout = state == TFT_STATE_POLL ? tfh_poll_timeout(ev->w[0]) : 0,
		.ns = (float)ev->w[2],
		.group = TFH_NO_GROUP,
		.place = ev->stack,
		.thread = (uint16_t)ev->thread,
		.state = state,
		.at = state,
		.through = tfh_writes_through((uint16_t)ev->w[1]),
		.released = state == TFT_STATE_RUNNING && ev->w[0] == TFT_GIL_RELEASED};

	l->any = true;
	l->python |= sample.state == TFT_STATE_GIL;
	if (ev->w[1] >> 16 & 0xffff) /* taken inside a call */
		return ev->stack ? TFH_PUSH_BIG(l->within, sample) : 0;
	if (marks_range(l, ev->stack))
		return 0;
	s->samples++;
	return TFH_PUSH_BIG(l->sample, sample);
}

int tfh_stack_samples_add(struct tfh_stack_samples *l, const struct tfh_event *ev)
{
	if (ev->thread >= l->feed->n_threads)
		return 0;
	if (ev->kind == TFT_STATE)
		return add_sample(l, ev);
	if (ev->kind == TFT_CPUTIME)
		add_cpu(&l->line[ev->thread], ev);
	bool call = ev->kind == TFT_CALL || ev->kind == TFT_ALLOC;
	l->called |= call;
	if (ev->depth)
		return 0;
	if (call)
		return add_call(l, ev);
	/* Where only the steps' marks are recorded, these end the pauses: one may be a step. */
	if (ev->kind == TFT_MARK && !l->called) {
		struct tfh_event end = *ev;
		end.t0 = ev->t1;
		return add_call(l, &end);
	}
	return 0;
}

void tfh_stack_samples_went_on(struct tfh_stack_samples *l, uint32_t thread, int64_t t1)
{
	struct tfh_sample_line *s = &l->line[thread];

	s->end = t1 > s->end ? t1 : s->end;
}

void tfh_stack_samples_end(struct tfh_stack_samples *l, double delay_per_run)
{
	const char *exe = l->feed->processes[l->process].exe;

	l->delay_per_run = delay_per_run;
	for (uint32_t i = 0; i < l->feed->n_threads; i++) {
		close_pause(l, i, TFH_FEEDS_NOT);
		if (tfh_has_groups(l, i))
			tfh_make_group_of_brief(l, i);
	}
	if (TFH_DETECT_THROUGH)
		tfh_stack_samples_write_through(l);
	l->python |= tfh_starts_with(tfh_file_of(exe), "python");
}

bool tfh_stack_samples_python(const struct tfh_stack_samples *l)
{
	return l->python;
}
