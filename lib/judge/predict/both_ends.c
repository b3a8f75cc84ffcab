/*
 * A child process that answers what the program sends (facts/answers.c), at the same lines: what
 * they exchange is packed and unpacked at both ends, and one end waits while the other works. A fix
 * of these lines speeds up both ends.
 */
#include <math.h>
#include <stdlib.h>

#include "judge/predict/predict.h"

struct end_line {
	struct tfh_model_line line;
	double own, others; /* time of samples in this process, in the others */
};

struct both_ends {
	const struct tfh_accounts *accounts;
	TFH_VEC(struct end_line) of;
	double busy, own, wait; /* all time that the others work; the program works; it waits */
	double n;		/* samples */
};

static int add(struct both_ends *e, const struct tfh_model_line *frame, uint32_t n, double own,
	       double others)
{
	const struct tfh_model_line *line = n ? &frame[tfh_place_lead(frame, n)] : NULL;
	struct end_line *f = NULL;

	if (!line || line->library)
		return 0;
	for (size_t i = 0; i < e->of.n && !f; i++)
		f = tfh_same_line(&e->of.v[i].line, line) ? &e->of.v[i] : NULL;
	if (!f && TFH_PUSH(e->of, ((struct end_line){.line = *line})))
		return -1;
	f = f ? f : &e->of.v[e->of.n - 1];
	f->own += own;
	f->others += others;
	return 0;
}

static int add_own(struct both_ends *e)
{
	struct tfh_model_line frame[TFH_VERDICT_FRAMES];
	struct tfh_judged_samples at = {0};
	struct tfh_seen_sample k;
	int rc = 0;

	while (!rc && tfh_next_judged_sample(e->accounts, &at, &k)) {
		if (!tfh_sample_is_own(&k))
			continue;
		e->n++;
		if (tfh_awaits_sender(k.state)) {
			e->wait += k.ns;
			continue;
		}
		e->own += k.ns;
		rc = add(e, frame, tfh_frames_at(e->accounts->facts, k.place, frame), k.ns, 0);
	}
	return rc;
}

static int add_others(struct both_ends *e)
{
	const struct tfh_facts *facts = e->accounts->facts;
	size_t window = 0;
	struct tfh_maker m;
	int rc = 0;

	for (size_t i = 0; i < facts->child.n && !rc; i++) {
		const struct tfh_child_sample *k = &facts->child.v[i];
		if (k->thread || !tfh_judged_at(e->accounts, k->t, &window) ||
		    !tfh_maker_at(facts, k, &m) || !m.busy)
			continue;
		e->busy += k->ns;
		if (k->state == TFT_STATE_RUNNING)
			rc = add(e, m.frame, m.n, 0, k->ns);
	}
	return rc;
}

/* The estimate is the step without that work, and without the waiting for that of the others. */
void tfh_both_ends(const struct tfh_accounts *accounts, struct tfh_result *r, double step)
{
	struct tfh_whatif *w = &r->place[r->line_place - 1].gain;
	struct both_ends e = {.accounts = accounts};
	double own = 0, others = 0;

	if (accounts->facts->answers && !w->no_bound && !add_own(&e) && !add_others(&e))
		for (size_t i = 0; i < e.of.n; i++) {
			const struct end_line *f = &e.of.v[i];
			bool both = f->own > 0 && f->others > 0;
			own += both ? f->own : 0;
			others += both ? f->others : 0;
		}
	free(e.of.v);
	if (!(others > TFH_VERDICT_MOST_SHARE * e.busy) || !(e.own + e.wait > 0))
		return;
	double all = e.own + e.wait, host = r->breakdown[TFH_PART_HOST].s_per_step;
	double share = (own + e.wait * others / e.busy) / all;
	double off = TFH_PREDICT_ERRORS * sqrt(share * (1 - share) / e.n + 1 / (e.n * e.n)) * host;
	double least = r->breakdown[TFH_PART_COMPUTE].s_per_step;
	r->found.both_s = share * host;
	w->about_s = fmax(step - r->found.both_s, least);
	w->low_s = fmax(fmin(w->about_s - off, w->about_s / TFH_PREDICT_MOST_OFF_PART), least);
	w->high_s = fmin(w->about_s + off + TFH_PREDICT_LEFT_SHARE * step, step);
	w->ceiling_speedup = w->low_s > 0 ? step / w->low_s : NAN;
	w->step_s = w->speedup = NAN;
}
