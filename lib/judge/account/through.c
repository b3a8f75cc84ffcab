/*
 * The lines of the program through which all steps run: where it calls a library that has the loop
 * over the steps (Trainer.fit()). Nearly all samples of steps are below such a line, so it explains
 * none of them, and cannot be left out. A line that makes one step, called in a loop of the
 * program, has as many samples below it: what tells them apart is where the loop is, or else that
 * batches are asked for below it, too.
 */
#include <string.h>

#include "judge/account/account.h"

/* Index of the innermost frame of a function, or at a line; n: none. */
static uint32_t find(const struct tfh_model_line *frame, uint32_t n,
		     const struct tfh_model_line *what, bool line)
{
	uint32_t i = 0;

	while (i < n &&
	       !(line ? tfh_same_line(&frame[i], what) : tfh_same_function(&frame[i], what)))
		i++;
	return i;
}

/* Whether nearly all samples of judged steps are in a function, or at a line of it. */
static bool has_all(const struct tfh_accounts *accounts, const struct tfh_model_line *what,
		    bool line)
{
	struct tfh_model_line frame[TFH_VERDICT_FRAMES];
	double all = 0, in = 0;
	uint64_t samples = 0;
	struct tfh_judged_samples at = {0};
	struct tfh_seen_sample k;

	while (tfh_next_judged_sample(accounts, &at, &k)) {
		uint32_t n = tfh_frames_at(accounts->facts, k.place, frame);
		all += n ? k.ns : 0;
		samples += n > 0;
		in += n && find(frame, n, what, line) < n ? k.ns : 0;
	}
	return samples >= (uint64_t)TFH_VERDICT_LINE_SAMPLES &&
	       in >= (1 - TFH_BLOCKING_SHARE) * all;
}

/* The time of calls with known stacks (or of the pauses before them): of all, and of those below a
 * line or in a function. */
struct below {
	double all, in;
};

static struct below calls_below(const struct tfh_accounts *accounts,
				const struct tfh_site_use site[TFH_ACCOUNT_SITES],
				const struct tfh_model_line *what, bool line)
{
	const struct tfh_feed *f = accounts->facts->feed;
	struct tfh_model_line frame[TFH_VERDICT_FRAMES];
	struct below b = {0, 0};

	for (int i = 0; f->lines && i < TFH_ACCOUNT_SITES; i++) {
		uint32_t n = site[i].stack ? f->lines(f->arg, accounts->facts->process,
						      site[i].stack, frame, TFH_VERDICT_FRAMES)
					   : 0;
		b.all += n ? (double)site[i].ns + 1 : 0;
		b.in += n && find(frame, n, what, line) < n ? (double)site[i].ns + 1 : 0;
	}
	return b;
}

/* Whether most batches are the first of an iterator that is made for them. */
static bool is_anew(const struct tfh_facts *facts)
{
	uint64_t n = 0, fresh = 0;

	TFH_EACH (i, facts->batch.n) {
		n += !facts->batch.v[i].end;
		fresh += !facts->batch.v[i].end && facts->batch.v[i].fresh;
	}
	return (double)fresh > TFH_VERDICT_MOST_SHARE * (double)n;
}

/* Whether batches are asked for below the line, and what the step executes is below it, too. A
 * pipeline of its own for each step (predict()) does not show where the loop is. */
static bool does_all(const struct tfh_accounts *accounts, const struct tfh_model_line *line)
{
	const struct tfh_site_use *const site[] = {accounts->input_site, accounts->executed_site,
						   accounts->launch_site};

	if (is_anew(accounts->facts))
		return false;
	for (size_t i = 0; i < sizeof(site) / sizeof(*site); i++) {
		struct below b = calls_below(accounts, site[i], line, true);
		if (b.in < (1 - TFH_BLOCKING_SHARE) * b.all || (!i && !(b.in > 0)))
			return false;
	}
	return true;
}

/* The iterations of the loops of a frame that a sample shows, those inside of each other
 * multiplied; *k: the first of its loops, then the first of the next frame's. */
static double iterations_of(const struct tfh_start_loop *loop, uint32_t n, uint32_t *k)
{
	uint32_t depth = loop[*k].depth;
	double all = 1;

	for (; *k < n && loop[*k].depth == depth; ++*k)
		all *= (double)loop[*k].done + (loop[*k].left > 0 ? (double)loop[*k].left : 0);
	return all;
}

enum looping { NOWHERE, BELOW, HERE };

/* Where a loop of at least half as many iterations as there are steps is: in the line's own
 * function, or in a library's function below it that has nearly all samples, too. */
static enum looping loops(const struct tfh_accounts *accounts, const struct tfh_model_line *line)
{
	const struct tfh_facts *facts = accounts->facts;
	struct tfh_model_line frame[TFH_VERDICT_FRAMES], last = {.file = ""};
	bool below = false;
	size_t at = 0;

	for (size_t i = 0; i < facts->looped.n; at += facts->looped.v[i++].n) {
		const struct tfh_looped_sample *s = &facts->looped.v[i];
		uint32_t n = tfh_frames_at(facts, s->place, frame),
			 own = find(frame, n, line, true), k = 0;
		while (own < n && k < s->n) {
			uint32_t depth = facts->loop.v[at + k].depth, in = n - depth;
			double all = iterations_of(&facts->loop.v[at], s->n, &k);
			if (!depth || depth > n || in > own ||
			    2 * all < (double)accounts->train_steps)
				continue;
			if (in == own)
				return HERE;
			if (below || !frame[in].library ||
			    (*last.file && tfh_same_function(&frame[in], &last)))
				continue;
			last = frame[in];
			below = has_all(accounts, &last, false);
		}
	}
	return below ? BELOW : NOWHERE;
}

static void add(struct tfh_accounts *a, const struct tfh_model_line *line)
{
	if (a->n_through == TFH_ACCOUNT_THROUGH || tfh_runs_through(a, line) ||
	    !has_all(a, line, true))
		return;
	enum looping where = loops(a, line);
	if (where == BELOW || (where == NOWHERE && does_all(a, line)))
		a->through[a->n_through++] = *line;
}

void tfh_find_through(struct tfh_accounts *accounts)
{
	struct tfh_model_line frame[TFH_VERDICT_FRAMES];
	struct tfh_judged_samples at = {0};
	struct tfh_seen_sample k;
	uint32_t tried = 0;

	while (TFH_DETECT_ALL_STEPS && tried < TFH_ACCOUNT_THROUGH &&
	       tfh_next_judged_sample(accounts, &at, &k)) {
		uint32_t frames = tfh_frames_at(accounts->facts, k.place, frame);
		tried += frames > 0;
		for (uint32_t f = 0; f < frames; f++)
			if (!frame[f].library)
				add(accounts, &frame[f]);
	}
}

bool tfh_in_all_steps(const struct tfh_accounts *accounts, const struct tfh_model_line *line)
{
	struct below b = calls_below(accounts, accounts->input_site, line, false);

	return (b.in > 0 || !(b.all > 0)) && has_all(accounts, line, false);
}

bool tfh_runs_through(const struct tfh_accounts *accounts, const struct tfh_model_line *line)
{
	for (uint32_t i = 0; i < accounts->n_through; i++)
		if (tfh_same_line(&accounts->through[i], line))
			return true;
	return false;
}
