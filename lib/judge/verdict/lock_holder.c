/*
 * Without Python, samples of a thread that waits for a mutex tell the call that asks for it, and
 * with which function the thread that holds it began: what that thread does meanwhile holds up the
 * steps.
 */
#include <math.h>

#include "judge/stats.h"
#include "judge/verdict/verdict.h"

/* The part of the waits that has the same address as this one. */
static double part_of(const struct tfh_facts *facts, size_t of, bool caller, uint64_t *samples)
{
	const struct tfh_held_lock *v = facts->held.v;
	double ns = 0;

	*samples = 0;
	for (size_t i = 0; i < facts->held.n; i++) {
		if (caller ? v[i].caller != v[of].caller : v[i].begins != v[of].begins)
			continue;
		ns += v[i].ns;
		*samples += v[i].samples;
	}
	return ns;
}

/* The address with most of the waits that is in a function of the program; its share. */
static double find_most(const struct tfh_facts *facts, bool caller, double all,
			struct tfh_model_line *line, uint64_t *samples)
{
	const struct tfh_feed *f = facts->feed;
	double most = 0;

	for (size_t i = 0; i < facts->held.n; i++) {
		/* A return address comes after its call. */
		uint64_t n, at = caller ? facts->held.v[i].caller - 1 : facts->held.v[i].begins;
		double ns = part_of(facts, i, caller, &n);

		if (ns > most && at + caller && f->function_at(f->arg, facts->process, at, line)) {
			most = ns;
			*samples = n;
		}
	}
	return most / all;
}

static void name_holder(const struct tfh_facts *facts, double all, struct tfh_seen_workers *out)
{
	struct tfh_model_line line;
	uint64_t samples = 0;
	double share = find_most(facts, false, all, &line, &samples), runs = 0;

	*out = (struct tfh_seen_workers){.holds = true, .busy = 1};
	for (size_t i = 0; i < facts->held.n; i++) {
		size_t k = 0;

		while (facts->held.v[k].tid != facts->held.v[i].tid)
			k++;
		out->threads += k == i;
		out->samples += facts->held.v[i].samples;
		runs += facts->held.v[i].runs ? facts->held.v[i].ns : 0;
	}
	out->runs = runs / all;
	if (share > 0) {
		out->line.file = line.file;
		out->line.function = line.function;
		out->line.line = line.line;
		out->line.share = share;
		out->line.off = tfh_share_error(share, (double)out->samples);
	}
}

static void name_caller(const struct tfh_facts *facts, double all, struct tfh_result *r)
{
	double of_s = r->found.cause_s[r->verdict.cause], share;
	struct tfh_model_line line;
	uint64_t samples = 0, waits = 0;

	share = find_most(facts, true, all, &line, &samples);
	for (size_t i = 0; i < facts->held.n; i++)
		waits += facts->held.v[i].samples;
	if (share < TFH_VERDICT_MOST_SHARE || samples < TFH_VERDICT_LINE_SAMPLES)
		return;
	r->found.line =
		(struct tfh_seen_line){.file = line.file,
				       .function = line.function,
				       .line = line.line,
				       .s_per_step = share * of_s,
				       .off_s = tfh_share_error(share, (double)waits) * of_s,
				       .of_s = of_s,
				       .samples = samples};
}

void tfh_find_lock_holder(const struct tfh_accounts *accounts, struct tfh_result *r)
{
	const struct tfh_facts *facts = accounts->facts;
	double all = 0;

	if (r->verdict.cause != TFH_CAUSE_HOST_LOCK || r->lead || !facts->feed->function_at)
		return;
	for (size_t i = 0; i < facts->held.n; i++)
		all += facts->held.v[i].ns;
	if (all <= 0)
		return;
	if (!r->found.workers.threads && !r->found.workers.processes)
		name_holder(facts, all, &r->found.workers);
	if (!r->found.line.file)
		name_caller(facts, all, r);
}
