#include <stdlib.h>

#include "base/text.h"
#include "judge/facts/loop_entries.h"
#include "judge/facts/place_role.h"

/* What the last sample showed of an entry. */
struct progress {
	/* Between the sample that first showed another iteration and the one before; negative: not
	 * seen. */
	double changed_ns;
	uint64_t done;
	bool waits; /* the sample */
};

struct entry_walk {
	const struct tfh_loop_source *s;
	struct tfh_loop_samples *out;
	TFH_VEC(struct progress) progress; /* of each entry */
	struct tfh_model_line frame[TFH_VERDICT_FRAMES];
	uint32_t sample, n; /* frames */
};

/* A context manager that decorates a function only passes its call on. */
static bool passes_on(const struct tfh_model_line *f)
{
	return tfh_ends_with(f->file, "contextlib.py");
}

/* Whether a library has called the frame at depth `to` from within a frame of the program, at depth
 * `from` or deeper. */
static bool called_back(const struct entry_walk *w, uint32_t from, uint32_t to)
{
	bool own = from, back = false;

	for (uint32_t d = from + 1; d < to; d++) {
		const struct tfh_model_line *f = &w->frame[w->n - d];
		back |= own && f->library && !passes_on(f);
		own |= !f->library;
	}
	return back;
}

/* The number of a path; 0: there are too many, or out of memory. */
static uint32_t path_of(struct entry_walk *w, const struct tfh_loop_path *want)
{
	struct tfh_loop_samples *l = w->out;

	for (size_t i = 0; i < l->path.n; i++)
		if (l->path.v[i].parent == want->parent && l->path.v[i].ordinal == want->ordinal &&
		    tfh_same_function(&l->path.v[i].line, &want->line))
			return (uint32_t)i + 1;
	return l->path.n == TFH_VERDICT_LINES || TFH_PUSH(l->path, *want) ? 0 : (uint32_t)l->path.n;
}

/* Halfway between a sample and the one before, where what changed did so. */
static double between(const struct tfh_loop_source *s, uint32_t sample)
{
	double t = (double)s->sample[sample].t;

	return sample ? t / 2 + (double)s->sample[sample - 1].t / 2 : t;
}

/* Whether the entry goes on: the loop around it is in the same iteration, and it did not go back,
 * or to another end. */
static bool goes_on(const struct tfh_loop_entry *e, const struct tfh_start_loop *l, uint32_t parent,
		    uint64_t parent_done)
{
	bool known = e->left >= 0 && l->left >= 0;
	uint64_t done = e->base + e->done;

	return e->parent == parent && e->parent_done == parent_done && l->done >= done &&
	       (!known || l->done + (uint64_t)l->left == done + (uint64_t)e->left);
}

/* Finds the counter's value before this entry. A counter that is never reset starts at its last
 * value seen in the previous entry; iterations that entry made after its last sample are then
 * counted here. A counter with an unknown start is taken to start at 0 if the time since the last
 * sample with a place is long enough for so many iterations, else at its present value. */
static void find_base(struct entry_walk *w, struct tfh_loop_entry *before,
		      const struct tfh_start_loop *l, struct tfh_loop_entry *e)
{
	uint32_t last = w->sample;
	double since;

	while (last && (last == w->sample || !w->s->sample[last].place))
		last--;
	since = (double)(w->s->sample[w->sample].t - w->s->sample[last].t);
	e->counter = l->count != TFH_START_ITERATOR;
	e->goes_on = l->count == TFH_START_COUNTER_ON || l->count == TFH_START_COUNTER_ON_FROM;
	if (e->goes_on && before && l->done >= before->base + before->done) {
		e->base = before->base + before->done;
		before->followed = true;
		return;
	}
	/* In the first iteration the start is certain. */
	e->base_guessed = l->done > 1 && (l->count == TFH_START_COUNTER_FROM ||
					  l->count == TFH_START_COUNTER_ON_FROM);
	if (e->base_guessed && (double)l->done > 1 + since / (TFH_VERDICT_SAMPLED_STEP_S * 1e9))
		e->base = l->done - 1;
}

/* Whether the sample waits for what is computed elsewhere. */
static bool waits(const struct entry_walk *w)
{
	return w->s->weight && w->s->weight[w->sample].waits;
}

static int new_entry(struct entry_walk *w, uint32_t path, const struct tfh_start_loop *l,
		     uint32_t parent, uint64_t parent_done)
{
	uint32_t line = w->frame[w->n - l->depth].line, open = w->out->path.v[path - 1].open;
	struct tfh_loop_entry e = {.path = path - 1,
				   .parent = parent,
				   .parent_done = parent_done,
				   .first = w->sample,
				   .lo = line,
				   .hi = line};
	struct progress p;
	int rc;

	find_base(w, open ? &w->out->entry.v[open - 1] : NULL, l, &e);
	e.done = l->done - e.base;
	/* In its first iteration it has just begun; otherwise it is not known when. */
	p = (struct progress){.changed_ns = e.done == 1 ? between(w->s, w->sample) : -1,
			      .done = e.done,
			      .waits = waits(w)};
	rc = TFH_PUSH(w->out->entry, e);
	if (!rc)
		rc = TFH_PUSH(w->progress, p);
	w->out->path.v[path - 1].open = (uint32_t)w->out->entry.n;
	return rc;
}

/* Keeps how long the iterations took since their number last changed. `before`: the last sample
 * with the previous number. The change is assumed halfway between the two samples; if the number
 * rose by n, its last change is assumed 1/(n + 1) of that interval before now. */
static int add_progress(struct entry_walk *w, uint32_t entry, uint64_t done, uint32_t before)
{
	struct progress *p = &w->progress.v[entry - 1];
	double now = (double)w->s->sample[w->sample].t, last = (double)w->s->sample[before].t;
	int rc = 0;

	if (done == p->done)
		return 0;
	now -= (now - last) / (double)(done - p->done + 1);
	if (p->changed_ns >= 0)
		rc = TFH_PUSH(w->out->span,
			      ((struct tfh_loop_span){.entry = entry - 1,
						      .iterations = (double)(done - p->done),
						      .ns = now - p->changed_ns,
						      .waits = p->waits && waits(w)}));
	p->waits = waits(w);
	p->changed_ns = now;
	p->done = done;
	return rc;
}

/* Adds one loop of the sample. *parent: the entry of the loop around it; then its own. */
static int add_loop(struct entry_walk *w, const struct tfh_start_loop *l, uint32_t ordinal,
		    uint32_t *parent, uint32_t *depth)
{
	const struct tfh_model_line *frame = &w->frame[w->n - l->depth];
	struct tfh_loop_entry *of = *parent ? &w->out->entry.v[*parent - 1] : NULL;
	struct tfh_loop_path want = {.parent = of ? of->path + 1 : 0,
				     .line = *frame,
				     .depth = l->depth,
				     .ordinal = ordinal,
				     .called_back = called_back(w, of ? *depth : 0, l->depth)};
	uint64_t parent_done = of ? of->done : 0;
	uint32_t path = path_of(w, &want), open = path ? w->out->path.v[path - 1].open : 0;
	struct tfh_loop_entry *e = open ? &w->out->entry.v[open - 1] : NULL;
	uint32_t before = e ? e->last : w->sample;
	int rc = 0;

	if (!path)
		return w->out->path.n == TFH_VERDICT_LINES ? 0 : -ENOMEM;
	if (!e || !goes_on(e, l, *parent, parent_done))
		rc = new_entry(w, path, l, *parent, parent_done);
	else if (e->last + 1 < w->sample)
		tfh_note_resumed(w->out, path);
	if (rc)
		return rc;
	open = w->out->path.v[path - 1].open;
	e = &w->out->entry.v[open - 1];
	e->done = l->done - e->base;
	e->left = l->left;
	e->sure |= l->sure || l->done == 1;
	e->last = w->sample;
	e->lo = frame->line < e->lo ? frame->line : e->lo;
	e->hi = frame->line > e->hi ? frame->line : e->hi;
	if (w->s->weight) {
		const struct tfh_loop_weight *k = &w->s->weight[w->sample];
		e->ns += k->ns;
		e->waits += k->waits ? k->ns : 0;
	}
	*parent = open;
	*depth = l->depth;
	rc = TFH_PUSH(w->out->at, ((struct tfh_loop_sample){w->sample, open - 1, e->done}));
	return rc ? rc : add_progress(w, open, w->out->entry.v[open - 1].done, before);
}

/* Either the program's loops or a library's outermost one, with those in the same frame. */
static int add_sample(struct entry_walk *w, const struct tfh_start_loop *l, uint32_t n)
{
	uint32_t parent = 0, depth = 0, ordinal = 0;
	int rc = 0;

	w->n = w->s->frames(w->s->arg, w->s->sample[w->sample].place, w->frame);
	for (uint32_t i = 0; i < n && !rc; i++) {
		ordinal = i && l[i].depth == l[i - 1].depth ? ordinal + 1 : 0;
		if (l[i].depth > w->n || w->frame[w->n - l[i].depth].library != w->s->libraries)
			continue;
		rc = add_loop(w, &l[i], ordinal, &parent, &depth);
		if (w->s->libraries && (i + 1 == n || l[i + 1].depth != l[i].depth))
			break;
	}
	return rc;
}

int tfh_loop_entries(const struct tfh_loop_source *s, struct tfh_loop_samples *out)
{
	struct entry_walk w = {.s = s, .out = out};
	int rc = 0;

	*out = (struct tfh_loop_samples){.path = {.n = 0}};
	for (uint32_t i = 0, n; i < s->n_loop && !rc; i += n) {
		w.sample = s->loop[i].sample;
		for (n = 1; i + n < s->n_loop && s->loop[i + n].sample == w.sample; n++)
			;
		rc = add_sample(&w, &s->loop[i], n);
	}
	free(w.progress.v);
	return rc ? rc : tfh_join_generators(out);
}

void tfh_loop_samples_free(struct tfh_loop_samples *l)
{
	free(l->path.v);
	free(l->at.v);
	free(l->entry.v);
	free(l->span.v);
	*l = (struct tfh_loop_samples){.path = {.n = 0}};
}
