/*
 * Makes the run's tree agree with the steps. The tree comes from what the main thread calls: a wait
 * for steps that it issued ahead, or the work of a step that no call repeats exactly, is "between
 * loops" there. The windows of the steps are charged with the same time. What is part of a step of
 * usual length, or is computing on the device, is no gap; nor are checkpoints, compiling and
 * stalls, which have parts of their own. The other way round, the tree's steps may contain what is
 * outside of all windows.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "judge/stats.h"
#include "judge/verdict/verdict.h"

/* What time of windows can be in the tree. */
enum run_owner {
	OWNER_STEPS,
	OWNER_CHECKPOINT,
	OWNER_FIRST,
	OWNER_STALL,
	OWNER_EVALUATION,
	OWNER_BETWEEN,
	OWNER_COUNT
};

/* The kind of part that each owner gets where it has none. */
static const enum tfh_branch owner_branch[OWNER_COUNT] = {
	TFH_BRANCH_STEP,  TFH_BRANCH_CHECKPOINT, TFH_BRANCH_FIRST,
	TFH_BRANCH_STALL, TFH_BRANCH_EVALUATE,	 TFH_BRANCH_BETWEEN};

struct parts {
	const struct tfh_part_of_run *tree;
	uint32_t n;
	double missing[OWNER_COUNT]; /* seconds: in windows, less in the tree */
	double known;		     /* all in windows, less all in the tree's loops */
	uint64_t steps;		     /* that the tree does not count */
	bool more_steps;	     /* the tree counts more steps than the windows */
	bool evaluates;		     /* the tree has evaluations */
	bool marked;		     /* a trace's marks show where steps end */
	double usual_s;		     /* of a step */
	double between;		     /* all time between loops */
	double metrics;		     /* all that follows an evaluation's last batch */
	double longer;		     /* the tree's steps, less the windows' */
	double in_steps;	     /* all time of the tree's steps */
	double excess;		     /* how much longer they are than usual ones */
	double moved[OWNER_COUNT];   /* what they give: seconds, then shares of their excess */
	uint64_t saves;		     /* checkpoints, if they recur */
	uint64_t firsts;	     /* windows that compile or warm up */
	uint64_t stalls;	     /* windows that stood still */
	double early;		     /* training steps before the tree's first loop, seconds */
	uint64_t early_steps;
	double end_s; /* where the run's end begins: after the last call */
	double late;  /* training steps there, which the device still works on, seconds */
};

static bool is_leaf(const struct tfh_part_of_run *tree, uint32_t n, uint32_t i)
{
	return i + 1 == n || tree[i + 1].parent != i;
}

/* The owner of a part; OWNER_COUNT: another one. */
static enum run_owner owner_of(const struct tfh_part_of_run *part)
{
	return part->kind == TFH_BRANCH_STEP || part->kind == TFH_BRANCH_TRAIN ? OWNER_STEPS
	       : part->kind == TFH_BRANCH_CHECKPOINT			       ? OWNER_CHECKPOINT
	       : part->kind == TFH_BRANCH_FIRST				       ? OWNER_FIRST
	       : part->kind == TFH_BRANCH_EVALUATE			       ? OWNER_EVALUATION
	       : part->kind == TFH_BRANCH_BETWEEN			       ? OWNER_BETWEEN
									       : OWNER_COUNT;
}

/* Where the first loop begins, in seconds. What windows contain of the time before it is start-up,
 * but for training steps. */
static double loops_begin(const struct parts *p)
{
	double begin = INFINITY;

	for (uint32_t i = 1; i < p->n; i++)
		if (p->tree[i].parent == 0 && p->tree[i].kind >= TFH_BRANCH_EPOCH)
			begin = fmin(begin, p->tree[i].begin_s);
	return begin;
}

/* The median duration of a step, in seconds: with device times, from completion to completion. */
static double usual_s(const struct tfh_accounts *accounts)
{
	double *v = tfh_big_array(accounts->step.n, sizeof(*v)), m = 0;
	size_t n = 0;

	TFH_EACH (i, v ? accounts->step.n : 0)
		if (accounts->step.v[i].segment == TFH_SEGMENT_TRAIN)
			v[n++] = accounts->step.v[i].dur_s /
				 fmax(accounts->loops->window.v[i].steps, 1);
	if (n)
		m = tfh_select(v, n, n / 2);
	tfh_big_free(v);
	return m;
}

static void take_window(struct parts *p, const struct tfh_accounts *accounts, size_t i,
			double begin_s)
{
	const struct tfh_step *s = &accounts->step.v[i];
	uint32_t steps = accounts->loops->window.v[i].steps;
	double usual = p->usual_s * steps;
	double compute = (double)s->breakdown[TFH_PART_COMPUTE];
	double from = fmax(s->start_s, begin_s), all = s->start_s + s->dur_s - from;

	if (s->segment == TFH_SEGMENT_TRAIN && s->start_s < begin_s) {
		p->early += fmin(begin_s - s->start_s, s->dur_s);
		p->early_steps += all > 0 ? 0 : steps;
	} else if (s->segment == TFH_SEGMENT_TRAIN && from + all > p->end_s) {
		double late = fmin(from + all - p->end_s, all);
		p->late += late;
		p->steps += late < all ? 0 : steps;
		all -= late;
	}
	if (!(all > 0) || s->segment == TFH_SEGMENT_BETWEEN)
		return;
	if (s->segment == TFH_SEGMENT_EVAL) {
		p->missing[OWNER_EVALUATION] += all;
		p->metrics += steps ? 0 : all;
		p->known += all;
		return;
	}
	double step = fmin(all, fmax(usual * (1 + 1.0 / TFH_LOOPS_USUAL_PART), compute));
	enum run_owner rest =
		s->segment == TFH_SEGMENT_CHECKPOINT ? OWNER_CHECKPOINT
		: s->segment == TFH_SEGMENT_COMPILE || s->segment == TFH_SEGMENT_WARMUP
			? OWNER_FIRST
		: s->segment == TFH_SEGMENT_STALL ? OWNER_STALL
						  : OWNER_COUNT;
	if (rest != OWNER_COUNT) {
		step = fmin(all, fmax(usual, compute));
		p->missing[rest] += all - step;
		p->known += all - step;
		p->firsts += rest == OWNER_FIRST;
		p->stalls += rest == OWNER_STALL;
	}
	p->missing[OWNER_STEPS] += step;
	p->longer -= rest == OWNER_COUNT ? all : step;
	p->known += step;
	p->steps += steps;
}

/* By how much a part of steps exceeds steps of usual length. */
static double excess_s(const struct parts *p, const struct tfh_part_of_run *part)
{
	return fmax(part->wall_s - p->usual_s * (double)part->count, 0);
}

static void take_part(struct parts *p, const struct tfh_part_of_run *part)
{
	enum run_owner owner = owner_of(part);

	if (part->kind >= TFH_BRANCH_EPOCH && part->kind <= TFH_BRANCH_CHECKPOINT)
		p->known -= part->wall_s;
	if (owner == OWNER_BETWEEN)
		p->between += part->wall_s;
	else if (owner != OWNER_COUNT)
		p->missing[owner] -= part->wall_s;
	p->evaluates |= owner == OWNER_EVALUATION;
	if (owner != OWNER_STEPS)
		return;
	p->more_steps |= part->count > p->steps + part->runs;
	p->steps -= part->count < p->steps ? part->count : p->steps;
	p->longer += part->wall_s;
	p->in_steps += part->wall_s;
	p->excess += excess_s(p, part);
}

/* Checkpoints take here what they take in the verdict, if they recur. */
static void take_saved(struct parts *p, const struct tfh_result *r)
{
	uint32_t i = tfh_recurring_of(r, TFH_SEGMENT_CHECKPOINT);

	if (!i)
		return;
	p->missing[OWNER_CHECKPOINT] = r->recurring[i - 1].total_s;
	p->saves = r->recurring[i - 1].count;
}

/* How much of the time between loops each owner gets, as a share of it. A stall is time of a loop's
 * steps: a window that lasts until the next loop begins contains a gap between the two, which is
 * none. */
static double shares(struct parts *p)
{
	double wanted = 0, spare = fmax(-p->missing[OWNER_STEPS], 0);

	p->moved[OWNER_STALL] = p->missing[OWNER_STALL];
	p->missing[OWNER_STALL] = 0;
	p->missing[OWNER_EVALUATION] =
		p->evaluates ? fmin(p->missing[OWNER_EVALUATION], p->metrics) : 0;
	for (int k = 0; k < OWNER_COUNT; k++)
		wanted += p->missing[k] = fmax(p->missing[k], 0);
	double given = fmax(fmin(fmin(wanted, p->known), p->between), 0);
	double part = wanted > 0 ? given / wanted : 0;
	p->moved[OWNER_CHECKPOINT] = fmin((1 - part) * p->missing[OWNER_CHECKPOINT], spare);
	p->moved[OWNER_FIRST] = (1 - part) * p->missing[OWNER_FIRST];
	for (int k = 0; k < OWNER_COUNT && given > 0; k++)
		p->missing[k] *= part / p->between;
	return given;
}

/* Time of checkpoints, first steps and stalls that is still missing is taken from the tree's steps,
 * as far as these are longer than the windows' steps. If both have the same steps, what they are
 * still longer by is time between loops: work at an epoch's end that makes no call. Returns whether
 * steps give something. */
static bool share_longer(struct parts *p)
{
	double *moved = p->moved;
	double longer = fmax(p->longer - moved[OWNER_CHECKPOINT], 0);

	moved[OWNER_FIRST] = fmin(moved[OWNER_FIRST], longer);
	moved[OWNER_STALL] = fmin(moved[OWNER_STALL], longer - moved[OWNER_FIRST]);
	moved[OWNER_BETWEEN] =
		p->more_steps || p->marked ? 0 : longer - moved[OWNER_FIRST] - moved[OWNER_STALL];
	for (int k = OWNER_FIRST; k <= OWNER_BETWEEN; k++)
		moved[k] = moved[k] * TFH_LOOPS_LEAST_PART < p->tree[0].wall_s ? 0 : moved[k];
	double all = moved[OWNER_CHECKPOINT] + moved[OWNER_FIRST] + moved[OWNER_STALL] +
		     moved[OWNER_BETWEEN];
	p->usual_s = all > p->excess ? 0 : p->usual_s;
	for (int k = 0; k < OWNER_COUNT && all > 0; k++)
		moved[k] /= all > p->excess ? p->in_steps : p->excess;
	return all > 0;
}

/* The largest part of this kind among the parts of `parent`; NULL: none. */
static struct tfh_part_of_run *largest_part(struct tfh_part_of_run *out, uint32_t n,
					    uint32_t parent, enum run_owner owner)
{
	struct tfh_part_of_run *best = NULL;

	for (uint32_t i = parent + 1; i < n; i++)
		if (out[i].parent == parent && owner_of(&out[i]) == owner &&
		    (!best || out[i].wall_s > best->wall_s))
			best = &out[i];
	return best;
}

/* Moves seconds of part `at` to the owner's part of the same parent. A new one gets the index
 * `place`, and *n grows. */
static struct tfh_part_of_run *move_time(struct tfh_part_of_run *out, uint32_t *n, uint32_t at,
					 uint32_t place, enum run_owner owner, double s)
{
	const struct tfh_part_of_run from = out[at];
	struct tfh_part_of_run *to = largest_part(out, *n, from.parent, owner);

	out[at].wall_s -= s;
	if (!to) {
		memmove(&out[place + 1], &out[place], (*n - place) * sizeof(*out));
		for (uint32_t i = ++*n; i-- > place + 1;)
			out[i].parent += out[i].parent >= place;
		to = &out[place];
		*to = (struct tfh_part_of_run){.kind = owner_branch[owner],
					       .parent = from.parent,
					       .name = "",
					       .runs = 1,
					       .begin_s = from.begin_s};
	}
	to->wall_s += s;
	return to;
}

/* Gives the owners their shares of part `at`, which is time between loops. New parts follow it;
 * returns the number of all parts. */
static uint32_t give(struct parts *p, struct tfh_part_of_run *out, uint32_t n, uint32_t at)
{
	const struct tfh_part_of_run whole = out[at];
	uint32_t before = n;

	for (int k = 0; k < OWNER_COUNT; k++) {
		double s = p->missing[k] * whole.wall_s;
		if (!(s > 0))
			continue;
		struct tfh_part_of_run *to =
			move_time(out, &n, at, at + 1 + n - before, (enum run_owner)k, s);
		if (k == OWNER_STEPS)
			to->count +=
				(uint64_t)llround((double)p->steps * whole.wall_s / p->between);
		else if (!to->count)
			to->count = whole.count;
		to->count += !to->count;
	}
	return n;
}

/* Gives the owners their shares of steps that are longer than usual;
 * returns the number of all parts. */
static uint32_t give_longer(const struct parts *p, struct tfh_part_of_run *out, uint32_t n)
{
	for (uint32_t i = 1; i < n; i++) {
		if (!is_leaf(out, n, i) || owner_of(&out[i]) != OWNER_STEPS)
			continue;
		const struct tfh_part_of_run whole = out[i];
		for (int k = OWNER_CHECKPOINT; k < OWNER_COUNT; k++) {
			double s = p->moved[k] * excess_s(p, &whole);
			if (!(s > 0))
				continue;
			struct tfh_part_of_run *to =
				move_time(out, &n, i, i + 1, (enum run_owner)k, s);
			to->count += to->count		     ? 0
				     : k == OWNER_CHECKPOINT ? p->saves
				     : k == OWNER_FIRST	     ? p->firsts
				     : k == OWNER_STALL	     ? p->stalls
							     : whole.runs;
			/* It is not one piece of the run, where lines could be looked for. */
			if (k == OWNER_BETWEEN && 2 * s > to->wall_s)
				to->runs = whole.runs + 1;
		}
	}
	return n;
}

/* If the verdict is about the time between loops, or calls show that most of it are waits for
 * input, what the tree lacks of that time is contained in its first steps. */
static uint32_t give_waits(const struct tfh_result *r, struct tfh_part_of_run *out, uint32_t n)
{
	uint32_t between = tfh_recurring_of(r, TFH_SEGMENT_BETWEEN);
	const struct tfh_recurring *x = between ? &r->recurring[between - 1] : NULL;
	bool waits = x && (r->lead == between || x->cls == TFH_CLASS_INPUT_BOUND);
	double missing = waits ? x->total_s : 0;

	for (uint32_t i = 1; i < n; i++)
		missing -= out[i].kind == TFH_BRANCH_BETWEEN ? out[i].wall_s : 0;
	for (uint32_t i = 1; i < n && missing * TFH_LOOPS_LEAST_PART > out[0].wall_s; i++) {
		double s = fmin(missing, out[i].wall_s);
		if (out[i].kind != TFH_BRANCH_FIRST || !(s > 0))
			continue;
		move_time(out, &n, i, i + 1, OWNER_BETWEEN, s)->count += out[i].count;
		missing -= s;
	}
	return n;
}

/* Steps may differ so much that no loop shows until they repeat. Until then the tree shows
 * start-up: what windows of training steps contain of it is given to steps. */
static uint32_t give_early(const struct parts *p, struct tfh_part_of_run *out, uint32_t n)
{
	for (uint32_t i = 1; i < n; i++) {
		double s = fmin(p->early, out[i].wall_s);
		if (out[i].parent || out[i].kind != TFH_BRANCH_STARTUP ||
		    s * TFH_LOOPS_LEAST_PART < out[0].wall_s)
			continue;
		move_time(out, &n, i, i + 1, OWNER_STEPS, s)->count += p->early_steps;
		break;
	}
	return n;
}

/* The device may have work of the last steps left when the host has made its last call. Returns the
 * number of all parts. */
static uint32_t give_late(const struct parts *p, struct tfh_part_of_run *out, uint32_t n)
{
	double s = n > 1 ? fmin(p->late, out[n - 1].wall_s) : 0;

	if (!(s > 0) || !largest_part(out, n, 0, OWNER_STEPS))
		return n;
	move_time(out, &n, n - 1, n - 1, OWNER_STEPS, s);
	out[n - 1].begin_s += s;
	return n;
}

/* A single loop of steps has as many of them as the verdict: the tree may have counted several
 * steps as one, such as those between two waits, or one as several. */
static void count_steps(struct tfh_result *r)
{
	uint32_t loops = 0, at = 0;

	for (uint32_t i = 1; i < r->n_tree; i++)
		if (owner_of(&r->tree[i]) == OWNER_STEPS) {
			loops++;
			at = i;
		}
	if (TFH_DETECT_ONE_LOOP && loops == 1 && r->tree[at].runs == 1)
		r->tree[at].count = r->steps.total;
}

/* Time after the last loop that belongs to no step is not time between loops: joins it with the
 * time after the last call, as the run's end. Returns the number of all parts. */
static uint32_t join_end(struct tfh_part_of_run *out, uint32_t n)
{
	for (uint32_t i = 1; i + 1 < n; i++) {
		if (!out[i].ends || out[n - 1].kind != TFH_BRANCH_AFTER)
			continue;
		out[n - 1].begin_s -= out[i].wall_s;
		out[n - 1].wall_s += out[i].wall_s;
		memmove(&out[i], &out[i + 1], (--n - i) * sizeof(*out));
		for (uint32_t k = i; k < n; k++)
			out[k].parent -= out[k].parent > i;
		break;
	}
	return n;
}

/* The gap after the last loop is part of the run's end in the tree, which no loop follows. */
static void add_last_gap(struct tfh_part_of_run *out, uint32_t n, double s)
{
	struct tfh_part_of_run *end = &out[n - 1];
	uint32_t gap = 0;

	for (uint32_t i = 1; i < n; i++)
		if (out[i].kind == TFH_BRANCH_BETWEEN && (!gap || out[i].wall_s > out[gap].wall_s))
			gap = i;
	if (!gap || end->kind != TFH_BRANCH_AFTER)
		return;
	s = fmin(s, end->wall_s);
	end->begin_s += s;
	end->wall_s -= s;
	for (uint32_t i = gap; i; i = out[i].parent)
		out[i].wall_s += s;
}

int tfh_settle_tree(const struct tfh_accounts *accounts, double last_gap_s, struct tfh_result *r)
{
	struct parts p = {.tree = r->tree, .n = r->n_tree, .usual_s = usual_s(accounts)};
	double begin = loops_begin(&p);
	uint32_t gaps = 0, leaves = 0, n = r->n_tree;

	p.end_s = n && p.tree[n - 1].kind == TFH_BRANCH_AFTER ? p.tree[n - 1].begin_s : INFINITY;
	TFH_EACH (i, accounts->step.n)
		take_window(&p, accounts, i, begin);
	take_saved(&p, r);
	for (uint32_t i = 1; i < p.n; i++) {
		if (is_leaf(p.tree, p.n, i)) {
			take_part(&p, &p.tree[i]);
			leaves++;
		}
		gaps += p.tree[i].kind == TFH_BRANCH_BETWEEN;
	}
	p.marked = accounts->facts->feed->imported && !accounts->loops->apart &&
		   accounts->loops->clock == TFH_STEP_CLOCK_MARK;
	if (!n)
		return 0;
	bool settles = TFH_DETECT_SETTLED && accounts->judged_steps;
	double given = settles ? shares(&p) : 0;
	struct tfh_part_of_run *out =
		tfh_arena_array(accounts->facts->arena,
				n + (size_t)(leaves + gaps + 1) * OWNER_COUNT, sizeof(*out));
	if (!out)
		return -ENOMEM;
	memcpy(out, r->tree, n * sizeof(*out));
	for (uint32_t i = 1; i < n && given > 0; i++)
		if (out[i].kind == TFH_BRANCH_BETWEEN)
			n = give(&p, out, n, i);
	if (settles && share_longer(&p))
		n = give_longer(&p, out, n);
	if (settles && TFH_DETECT_EARLY_STEPS)
		n = give_early(&p, out, n);
	if (settles && TFH_DETECT_LOOP_WAITS)
		n = give_waits(r, out, n);
	if (settles)
		n = give_late(&p, out, n);
	n = join_end(out, n);
	if (tfh_recurring_of(r, TFH_SEGMENT_BETWEEN))
		add_last_gap(out, n, last_gap_s);
	r->tree = out;
	r->n_tree = n;
	if (settles)
		count_steps(r);
	return 0;
}
