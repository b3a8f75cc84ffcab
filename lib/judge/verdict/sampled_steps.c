/*
 * Which of the sampled loops is the one over steps: the outermost loop of the program that takes
 * most of the time, or the one inside of it, if that makes up nearly all of it and its iterations
 * are what a user would call steps. A loop in a function that a library calls is part of a step
 * (layers of a model), and so are loops of very short iterations, and a few passes of each
 * iteration (micro-batches).
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/sort.h"
#include "judge/verdict/sampled_loops.h"

struct candidate {
	uint32_t path, parent; /* parent: index of the loop around it, plus 1; 0: none */
	uint32_t lo, hi, first, last;
	uint32_t entries, samples;
	double ns, waits, caused; /* caused: by its iterations, also outside of it */
	double usual, fast; /* ns of an iteration: usually (NAN: unknown), of the fastest tenth */
	double pace;	    /* usual, or the mean of all; 0: unknown */
	double awaited;	    /* while it waited for what it had queued; 0: unknown */
	uint64_t most;	    /* most iterations of an entry that were seen */
	double seen, per_entry, iterations;
	bool exact;
	bool counter; /* of the program */
	bool goes_on; /* it counts all entries */
};

struct loop_choice {
	const struct tfh_start *s;
	struct tfh_loop_samples of;
	TFH_VEC(struct candidate) loop;
	double end_ns; /* of the process, run time */
};

/* ---- loops of a path ---- */

static int by_lines(const void *a, const void *b)
{
	const struct tfh_loop_entry *x = *(struct tfh_loop_entry *const *)a,
				    *y = *(struct tfh_loop_entry *const *)b;

	return x->path != y->path ? (x->path < y->path ? -1 : 1)
	       : x->lo != y->lo	  ? (x->lo < y->lo ? -1 : 1)
				  : 0;
}

static int64_t total_of(const struct tfh_loop_entry *e)
{
	return e->left < 0 ? -1 : (int64_t)e->done + e->left;
}

/* Whether two loops of one path, whose lines do not overlap, may be one of which each entry shows
 * only some lines: they have equally many iterations, and never follow each other within one
 * iteration of the loop around them. */
static bool may_be_one(const struct loop_choice *c, uint32_t a, uint32_t b)
{
	const struct tfh_loop_entry *e = c->of.entry.v;
	int64_t total = -1;

	for (size_t i = 0; i < c->of.entry.n; i++) {
		if (e[i].loop != a && e[i].loop != b)
			continue;
		if (total_of(&e[i]) < 0 || (total >= 0 && total_of(&e[i]) != total))
			return false;
		total = total_of(&e[i]);
		for (size_t k = i > TFH_VERDICT_ENTRIES ? i - TFH_VERDICT_ENTRIES : 0; k < i; k++)
			if (e[k].loop != e[i].loop && (e[k].loop == a || e[k].loop == b) &&
			    e[k].parent == e[i].parent && e[k].parent_done == e[i].parent_done)
				return false;
	}
	return true;
}

/* Tells loops of one path apart: lines of their bodies do not overlap. */
static int split(struct loop_choice *c)
{
	size_t n = c->of.entry.n;
	struct tfh_loop_entry **e = calloc(n ? n : 1, sizeof(*e));
	int rc = e ? 0 : -ENOMEM;

	for (size_t i = 0; e && i < n; i++)
		e[i] = &c->of.entry.v[i];
	if (e)
		qsort(e, n, sizeof(*e), by_lines);
	for (size_t i = 0; i < n && !rc; i++) {
		struct candidate *l = c->loop.n ? &c->loop.v[c->loop.n - 1] : NULL;
		if (!l || l->path != e[i]->path || e[i]->lo > l->hi)
			rc = TFH_PUSH(c->loop,
				      ((struct candidate){.path = e[i]->path, .lo = e[i]->lo}));
		if (rc)
			break;
		l = &c->loop.v[c->loop.n - 1];
		l->hi = e[i]->hi > l->hi ? e[i]->hi : l->hi;
		e[i]->loop = (uint32_t)c->loop.n - 1;
	}
	free(e);
	return rc;
}

static void join(struct loop_choice *c)
{
	for (uint32_t a = 0; a + 1 < c->loop.n; a++) {
		uint32_t b = a + 1;
		if (c->loop.v[a].path != c->loop.v[b].path || !may_be_one(c, a, b))
			continue;
		for (size_t i = 0; i < c->of.entry.n; i++)
			if (c->of.entry.v[i].loop == a)
				c->of.entry.v[i].loop = b;
		c->loop.v[b].lo = c->loop.v[a].lo;
	}
}

/* ---- counting ---- */

static int by_pace(const void *a, const void *b)
{
	const struct tfh_loop_span *x = a, *y = b;
	double p = x->ns / x->iterations, q = y->ns / y->iterations;

	return p < q ? -1 : p > q;
}

/* The mean of a loop's iterations, ns, without those that took much longer than most, such as the
 * first one; NAN: not known. The spans are sorted by pace. */
static double usual_ns(const struct loop_choice *c, uint32_t loop)
{
	double all = 0, half = 0, most = 0, ns = 0, iterations = 0;
	const struct tfh_loop_span *v = c->of.span.v;

	for (size_t i = 0; i < c->of.span.n; i++)
		all += c->of.entry.v[v[i].entry].loop == loop ? v[i].iterations : 0;
	for (size_t i = 0; i < c->of.span.n; i++) {
		double pace = v[i].ns / v[i].iterations;
		if (c->of.entry.v[v[i].entry].loop != loop)
			continue;
		if (half <= all / 2)
			most = TFH_VERDICT_SAMPLED_SLOW * pace;
		half += v[i].iterations;
		if (pace > most)
			break;
		ns += v[i].ns;
		iterations += v[i].iterations;
	}
	return iterations >= TFH_LOOPS_FEWEST_STEPS ? ns / iterations : NAN;
}

/* The tenth of a loop's iterations that are fastest take at most this long, ns. */
static double fast_of(const struct loop_choice *c, uint32_t loop)
{
	const struct tfh_loop_span *v = c->of.span.v;
	double all = 0, sum = 0;

	for (size_t i = 0; i < c->of.span.n; i++)
		all += c->of.entry.v[v[i].entry].loop == loop ? v[i].iterations : 0;
	for (size_t i = 0; i < c->of.span.n; i++) {
		sum += c->of.entry.v[v[i].entry].loop == loop ? v[i].iterations : 0;
		if (sum > 0 && sum >= all / 10)
			return v[i].ns / v[i].iterations;
	}
	return c->loop.v[loop].pace;
}

/* How long an iteration takes while the loop waits for what it has queued: it goes on as fast as
 * that is computed. 0: it was not seen to. */
static double awaited_ns(const struct loop_choice *c, uint32_t loop)
{
	double ns = 0, iterations = 0;

	for (size_t i = 0; i < c->of.span.n; i++) {
		const struct tfh_loop_span *s = &c->of.span.v[i];
		if (!s->waits || c->of.entry.v[s->entry].loop != loop)
			continue;
		ns += s->ns;
		iterations += s->iterations;
	}
	return iterations >= TFH_LOOPS_FEWEST_STEPS ? ns / iterations : 0;
}

static int by_sample(const void *key, const void *element)
{
	uint32_t sample = *(const uint32_t *)key;
	const struct tfh_loop_sample *at = element;

	return sample < at->sample ? -1 : sample > at->sample;
}

/* Whether a sample is at these lines of a loop's frame. */
static bool at_lines(const struct loop_choice *c, uint32_t of, uint32_t lo, uint32_t hi,
		     uint32_t sample)
{
	struct tfh_model_line frame[TFH_VERDICT_FRAMES];
	const struct tfh_loop_path *path = &c->of.path.v[of];
	uint32_t n = tfh_start_frames(c->s, c->s->sample[sample].place, frame, TFH_VERDICT_FRAMES);
	const struct tfh_model_line *f = &frame[n >= path->depth ? n - path->depth : 0];

	return n >= path->depth && tfh_same_function(f, &path->line) && f->line >= lo &&
	       f->line <= hi;
}

/* Whether a sample without any loop is nevertheless at the lines of this one: a loop that goes on
 * while it is read is not in the sample. */
static bool may_be_in(const struct loop_choice *c, const struct tfh_loop_entry *e, uint32_t sample)
{
	return at_lines(c, e->path, e->lo, e->hi, sample) &&
	       !bsearch(&sample, c->of.at.v, c->of.at.n, sizeof(*c->of.at.v), by_sample);
}

/* The time of the first sample that shows that it was left. */
static double seen_left(const struct loop_choice *c, const struct tfh_loop_entry *e)
{
	uint32_t next = e->last + 1;

	while (next < c->s->n && may_be_in(c, e, next))
		next++;
	return next < c->s->n ? (double)c->s->sample[next].t : c->end_ns;
}

/* How many iterations an entry had when it was left, some time after its last sample. */
static double iterations_of(const struct loop_choice *c, const struct tfh_loop_entry *e,
			    bool *exact)
{
	const struct candidate *l = &c->loop.v[e->loop];
	double more, done = (double)e->done;
	double gap = seen_left(c, e) - (double)c->s->sample[e->last].t;

	*exact &= !e->base_guessed;
	if (e->left == 0 || e->followed)
		return done;
	/* It may have gone to its end since. If there was no time for that, even at twice the pace
	 * of the fastest iterations, it was left early. */
	if (e->left > 0 && (double)e->left * l->fast <= 2 * gap + l->pace)
		return done + (double)e->left;
	more = l->pace > 0 ? gap / l->pace : 0;
	/* Where the end is not known, most entries come as far as others did. */
	if (e->left < 0 && l->entries > 1 && !l->goes_on && done + more + 1 >= (double)l->most) {
		*exact = false;
		return (double)l->most;
	}
	*exact &= e->left >= 0 && gap < l->fast / 2;
	return done + floor(more / 2);
}

/* The longest time that an entry can have taken. */
static double most_ns(const struct loop_choice *c, const struct tfh_loop_entry *e)
{
	return seen_left(c, e) - (e->first ? (double)c->s->sample[e->first - 1].t : 0);
}

/* Sums up what samples showed of a loop's entries. Returns the iterations that they were seen to
 * end. */
static double sum_entries(struct loop_choice *c, uint32_t loop)
{
	struct candidate *l = &c->loop.v[loop];
	double done = 0;

	l->exact = l->goes_on = true;
	l->first = UINT32_MAX;
	for (size_t i = 0; i < c->of.entry.n; i++) {
		const struct tfh_loop_entry *e = &c->of.entry.v[i];
		if (e->loop != loop)
			continue;
		l->entries++;
		l->counter |= e->counter;
		l->goes_on &= e->goes_on;
		l->ns += e->ns;
		l->waits += e->waits;
		l->most = e->done > l->most ? e->done : l->most;
		done += (double)e->done;
		l->first = e->first < l->first ? e->first : l->first;
		l->last = e->last > l->last ? e->last : l->last;
		l->parent = e->parent ? c->of.entry.v[e->parent - 1].loop + 1 : 0;
	}
	for (size_t i = 0; i < c->of.at.n; i++)
		l->samples += c->of.entry.v[c->of.at.v[i].entry].loop == loop;
	l->caused = l->ns;
	return done;
}

/* Finds how many iterations a loop had, and how long they took. */
static int count_iterations(struct loop_choice *c, uint32_t loop)
{
	struct candidate *l = &c->loop.v[loop];
	double *each = calloc(c->of.entry.n, sizeof(*each)), most = 0;
	double done = sum_entries(c, loop);
	uint32_t n = 0;

	if (!each)
		return -ENOMEM;
	l->usual = usual_ns(c, loop);
	l->pace = l->usual > 0 ? l->usual : done > 0 ? l->ns / done : 0;
	l->fast = fast_of(c, loop);
	l->awaited = awaited_ns(c, loop);
	for (size_t i = 0; i < c->of.entry.n; i++) {
		struct tfh_loop_entry *e = &c->of.entry.v[i];
		if (e->loop != loop)
			continue;
		e->iterations = iterations_of(c, e, &l->exact);
		each[n++] = e->iterations;
		l->seen += e->iterations;
		most += most_ns(c, e);
	}
	/* Where few samples show their pace, all iterations together may show that it is less. */
	if (l->seen > 0)
		l->usual = l->usual > most / l->seen ? most / l->seen : l->usual;
	qsort(each, n, sizeof(*each), tfh_by_value);
	l->per_entry = n ? each[n / 2] : 0;
	l->exact &= n && (l->goes_on || each[0] >= each[n - 1]);
	l->iterations = l->seen;
	free(each);
	return 0;
}

/* The time that the iterations of a loop cause: its own, and what the loop around it waits for,
 * which this one has queued (JAX executes while the program goes on). */
static double caused_ns(const struct candidate *l, const struct candidate *around)
{
	return TFH_DETECT_ASYNC ? l->ns + around->waits - l->waits : l->ns;
}

/* Short entries may fall between two samples. A loop that fills the one around it is entered in
 * each of its iterations. */
static void add_unseen(struct candidate *l, const struct candidate *around)
{
	double missing = round(around->iterations) - l->entries;

	if (caused_ns(l, around) < TFH_VERDICT_LOOP_SHARE * around->ns)
		return;
	if (l->goes_on)
		return;
	l->exact &= around->exact;
	if (missing > 0)
		l->iterations = l->seen + missing * l->per_entry;
}

/* ---- choosing ---- */

static uint32_t largest_in(const struct loop_choice *c, uint32_t parent)
{
	uint32_t best = UINT32_MAX;

	for (uint32_t i = 0; i < c->loop.n; i++)
		if (c->loop.v[i].entries && c->loop.v[i].parent == parent &&
		    (best == UINT32_MAX || c->loop.v[i].ns > c->loop.v[best].ns))
			best = i;
	return best;
}

/* Whether the iterations of the loop inside, rather than those of the loop around it, are steps.
 * The program may count them over all passes. */
static bool has_steps(const struct loop_choice *c, struct candidate *in,
		      const struct candidate *around)
{
	double caused = caused_ns(in, around);

	in->caused = caused;
	if (caused < TFH_VERDICT_LOOP_SHARE * around->ns || c->of.path.v[in->path].called_back ||
	    fmax(in->pace, caused / in->iterations) < TFH_VERDICT_SAMPLED_STEP_S * 1e9)
		return false;
	return in->per_entry >= around->iterations ||
	       (in->per_entry > TFH_VERDICT_SAMPLED_MICRO &&
		(in->goes_on || around->pace >= TFH_VERDICT_SAMPLED_EPOCH_S * 1e9));
}

/* Whether an outermost loop may be the one over steps, or over epochs. One that is entered again
 * and again is in a loop that no iterator shows (`while`), whose iterations may be the steps, or
 * which may enter it between two samples. */
static bool is_whole(const struct loop_choice *c, const struct candidate *l)
{
	return l->entries == 1 ||
	       (!c->of.path.v[l->path].called_back &&
		l->samples >= TFH_VERDICT_SAMPLED_SEEN * l->entries &&
		(l->per_entry > TFH_VERDICT_SAMPLED_MICRO || l->per_entry >= l->entries));
}

/* The loop over steps; UINT32_MAX: there is none. */
static uint32_t choose(struct loop_choice *c, double all_ns)
{
	uint32_t at = largest_in(c, 0), in;

	if (at == UINT32_MAX || !is_whole(c, &c->loop.v[at]) ||
	    c->loop.v[at].ns < TFH_VERDICT_SAMPLED_LOOP_SHARE * all_ns)
		return UINT32_MAX;
	for (; (in = largest_in(c, at + 1)) != UINT32_MAX; at = in) {
		add_unseen(&c->loop.v[in], &c->loop.v[at]);
		if (!has_steps(c, &c->loop.v[in], &c->loop.v[at]))
			break;
	}
	double ns = c->loop.v[at].ns / c->loop.v[at].iterations;
	return fmax(c->loop.v[at].pace, ns) < TFH_VERDICT_SAMPLED_STEP_S * 1e9 ? UINT32_MAX : at;
}

/* The iteration of the whole run that each sample is in. */
static int number(const struct loop_choice *c, uint32_t loop, struct tfh_sampled_steps *out)
{
	double *before = calloc(c->of.entry.n, sizeof(*before)), sum = 0;

	out->step = calloc(c->s->n, sizeof(*out->step));
	for (size_t i = 0; before && i < c->of.entry.n; i++)
		if (c->of.entry.v[i].loop == loop) {
			before[i] = sum;
			sum += c->of.entry.v[i].iterations;
		}
	for (size_t i = 0; before && out->step && i < c->of.at.n; i++) {
		const struct tfh_loop_sample *at = &c->of.at.v[i];
		if (c->of.entry.v[at->entry].loop == loop)
			out->step[at->sample] =
				(uint32_t)fmin(before[at->entry] + (double)at->done, UINT32_MAX);
	}
	free(before);
	return before && out->step ? 0 : -ENOMEM;
}

/* The time that the iterations of the loop around this one take besides its own: an evaluation at
 * each epoch's end. What they wait for because this one has queued it, `queued`, is none of it. */
static void find_between(const struct loop_choice *c, uint32_t loop, double queued,
			 struct tfh_sampled_steps *out)
{
	const struct candidate *l = &c->loop.v[loop];
	const struct tfh_loop_sample *at = c->of.at.v;
	size_t n = c->of.at.n;
	double ns = 0;

	out->until = l->last;
	for (size_t i = 0, k; i < n && l->parent; i = k) {
		bool around = false, in = false;
		uint32_t s = at[i].sample;

		for (k = i; k < n && at[k].sample == s; k++) {
			around |= c->of.entry.v[at[k].entry].loop + 1 == l->parent;
			in |= c->of.entry.v[at[k].entry].loop == loop;
		}
		if (s <= l->first || !around || in || at_lines(c, l->path, l->lo, l->hi, s))
			continue;
		ns += (double)(c->s->sample[s].t - c->s->sample[s - 1].t);
		out->until = s > out->until ? s : out->until;
	}
	out->between_ns = fmax(ns - queued, 0);
}

static int describe(struct loop_choice *c, uint32_t loop, struct tfh_sampled_steps *out)
{
	const struct candidate *l = &c->loop.v[loop];
	double caused = l->awaited > 0 ? fmin(l->caused, fmax(l->awaited * l->iterations, l->ns))
				       : l->caused;

	out->line = c->of.path.v[l->path].line;
	out->line.line = l->lo;
	out->last_line = l->hi;
	/* A damaged file may hold any number. */
	out->steps = (uint64_t)fmin(fmax(round(l->iterations), 1), UINT32_MAX);
	out->exact = l->exact;
	out->counter = l->counter;
	out->times = l->entries;
	out->first = l->first;
	out->last = l->last;
	/* Work that is only queued takes its time later. */
	out->step_s = caused > (1 + TFH_BLOCKING_SHARE) * l->ns ? caused / l->iterations / 1e9
								: l->usual / 1e9;
	find_between(c, loop, caused - l->ns, out);
	return number(c, loop, out);
}

static uint32_t frames_at(const void *arg, uint32_t place,
			  struct tfh_model_line frame[TFH_VERDICT_FRAMES])
{
	return tfh_start_frames(arg, place, frame, TFH_VERDICT_FRAMES);
}

/* A loop of a library (boosting rounds, epochs of fit()): entered once, it takes nearly all of the
 * time. The function may have the loop over the batches of an epoch, too. */
static uint32_t choose_library(struct loop_choice *c, double all_ns)
{
	uint32_t at = largest_in(c, 0), in;
	const struct candidate *l;

	if (at == UINT32_MAX || c->loop.v[at].entries != 1 ||
	    c->loop.v[at].ns < TFH_VERDICT_LOOP_SHARE * all_ns)
		return UINT32_MAX;
	for (; (in = largest_in(c, at + 1)) != UINT32_MAX; at = in) {
		add_unseen(&c->loop.v[in], &c->loop.v[at]);
		if (!has_steps(c, &c->loop.v[in], &c->loop.v[at]))
			break;
	}
	l = &c->loop.v[at];
	if (l->iterations <= TFH_VERDICT_SAMPLED_MICRO ||
	    fmax(l->pace, l->ns / l->iterations) < TFH_VERDICT_SAMPLED_STEP_S * 1e9)
		return UINT32_MAX;
	return at;
}

/* Of the program's loops, or those of libraries. Leaves out->steps 0 if there is none. */
static int find(const struct tfh_start *s, const struct tfh_loop_weight *weight, double end_ns,
		bool libraries, struct tfh_sampled_steps *out)
{
	double all_ns = 0;
	struct loop_choice c = {.s = s, .end_ns = end_ns};
	const struct tfh_loop_source from = {.sample = s->sample,
					     .loop = s->loop,
					     .n_loop = s->n_loop,
					     .weight = weight,
					     .libraries = libraries,
					     .arg = s,
					     .frames = frames_at};
	int rc = tfh_loop_entries(&from, &c.of);
	uint32_t at = UINT32_MAX;

	if (!rc)
		rc = split(&c);
	if (!rc)
		join(&c);
	if (c.of.span.n)
		qsort(c.of.span.v, c.of.span.n, sizeof(*c.of.span.v), by_pace);
	for (uint32_t i = 0; i < c.loop.n && !rc; i++)
		rc = count_iterations(&c, i);
	for (uint32_t i = 0; i < s->n; i++)
		all_ns += weight[i].ns;
	if (!rc)
		at = libraries ? choose_library(&c, all_ns) : choose(&c, all_ns);
	if (at != UINT32_MAX)
		rc = describe(&c, at, out);
	free(c.loop.v);
	tfh_loop_samples_free(&c.of);
	return rc;
}

int tfh_sampled_steps(const struct tfh_start *s, const struct tfh_loop_weight *weight,
		      double end_ns, struct tfh_sampled_steps *out)
{
	*out = (struct tfh_sampled_steps){.step_s = NAN};
	int rc = find(s, weight, end_ns, false, out);

	if (!rc && !out->steps && TFH_DETECT_FIT)
		rc = find(s, weight, end_ns, true, out);
	return rc;
}
