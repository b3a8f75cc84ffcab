/* The list of steps in a result, and their numbers and times by class and by kind of segment. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "judge/verdict/classify.h"
#include "judge/verdict/verdict.h"

int tfh_expand_steps(const struct tfh_accounts *accounts, struct tfh_result *r)
{
	uint64_t n = 0;

	TFH_EACH (i, accounts->loops->window.n)
		n += accounts->loops->window.v[i].steps;
	if (n == accounts->step.n && accounts->step.n == accounts->loops->window.n && n) {
		r->step = accounts->step.v;
		r->step_cause = accounts->step_cause;
		r->n_step = n;
		return 0;
	}
	r->step = tfh_big_array(n, sizeof(*r->step));
	if (!r->step)
		return -ENOMEM;
	r->step_cause = accounts->step_cause ? tfh_big_array(n, sizeof(*r->step_cause)) : NULL;
	if (accounts->step_cause && !r->step_cause)
		return -ENOMEM;
	TFH_EACH (i, accounts->step.n) {
		uint32_t k = accounts->loops->window.v[i].steps;
		for (uint32_t j = 0; j < k; j++) {
			for (int c = 0; c < TFH_CAUSE_COUNT && r->step_cause; c++)
				r->step_cause[r->n_step][c] = accounts->step_cause[i][c] / (float)k;
			struct tfh_step *s = &r->step[r->n_step];
			*s = accounts->step.v[i];
			s->index = r->n_step++;
			s->dur_s /= k;
			s->start_s += s->dur_s * j;
			int64_t host = (s->host_t1 - s->host_t0) / k;
			s->host_t0 += host * j;
			s->host_t1 = s->host_t0 + host;
			for (int p = 0; p < TFH_PART_COUNT; p++)
				s->breakdown[p] /= (float)k;
		}
	}
	return 0;
}

/* The parts of single steps are floats, whose sum may slightly exceed the whole. */
double tfh_share_of(double part, double total)
{
	return total > 0 ? fmin(part / total, 1) : NAN;
}

static int count_classes(struct tfh_result *r, double total)
{
	double *dur = tfh_big_array(r->n_step, sizeof(*dur));

	if (!dur)
		return -ENOMEM;
	for (int c = 0; c < TFH_CLASS_COUNT; c++) {
		struct tfh_class_count *k = &r->steps.classes[c];
		double sum = 0;
		size_t n = 0;
		TFH_EACH (i, r->n_step) {
			const struct tfh_step *s = &r->step[i];
			if (s->segment != TFH_SEGMENT_TRAIN || s->cls != c)
				continue;
			dur[n++] = s->dur_s;
			sum += s->dur_s;
			for (int p = 0; p < TFH_PART_COUNT; p++)
				k->breakdown[p] += s->breakdown[p];
		}
		for (int p = 0; p < TFH_PART_COUNT; p++)
			k->breakdown[p] = tfh_share_of(k->breakdown[p], sum);
		k->count = (uint32_t)n;
		k->time_share = tfh_share_of(sum, total);
		k->median_s = tfh_quantile(dur, n, 0.5);
		k->p95_s = tfh_quantile(dur, n, 0.95);
	}
	tfh_big_free(dur);
	return 0;
}

int tfh_step_counts(const struct tfh_accounts *accounts, struct tfh_result *r)
{
	double *dur = tfh_big_array(r->n_step, sizeof(*dur)), total = 0;
	size_t n = 0;

	if (!dur)
		return -ENOMEM;
	TFH_EACH (i, r->n_step) {
		const struct tfh_step *s = &r->step[i];
		r->steps.warmup += s->segment == TFH_SEGMENT_WARMUP;
		if (s->segment != TFH_SEGMENT_TRAIN)
			continue;
		r->steps.unclassified += s->cls == TFH_CLASS_UNCLASSIFIED;
		dur[n++] = s->dur_s;
		total += s->dur_s;
	}
	r->steps.count = n;
	TFH_EACH (i, r->n_step)
		r->steps.total += r->step[i].segment != TFH_SEGMENT_EVAL;
	r->steps.total_s = total;
	r->steps.median_s = tfh_quantile(dur, n, 0.5);
	r->steps.p95_s = tfh_quantile(dur, n, 0.95);
	r->steps.clock = accounts->loops->clock;
	r->steps.clock_name = accounts->loops->clock_name;
	r->steps.per_execution = accounts->loops->per_execution;
	tfh_big_free(dur);
	return count_classes(r, total);
}

int tfh_turn_steps(struct tfh_result *r, enum tfh_class from, enum tfh_class to,
		   enum tfh_cause cause)
{
	TFH_EACH (i, r->n_step) {
		struct tfh_step *s = &r->step[i];
		double blocked = 0;
		for (int p = 0; p < TFH_PART_COUNT; p++)
			blocked += tfh_part_class(p) == to ? s->breakdown[p] : 0;
		if (s->cls != (int)from || blocked < TFH_BLOCKING_SHARE * s->dur_s)
			continue;
		s->cls = (int8_t)to;
		s->cause = (int8_t)cause;
	}
	memset(r->steps.classes, 0, sizeof(r->steps.classes));
	return count_classes(r, r->steps.total_s);
}

/* Steps from one checkpoint to the next; NAN: there are fewer than two checkpoints. */
static double checkpoints_apart(const struct tfh_accounts *accounts)
{
	uint64_t n = 0, at = 0, first = 0, last = 0;

	TFH_EACH (i, accounts->loops->window.n) {
		const struct tfh_window *w = &accounts->loops->window.v[i];
		uint8_t segment = accounts->use[i].segment;
		at += segment != TFH_SEGMENT_EVAL ? w->steps : 0;
		if (segment != TFH_SEGMENT_CHECKPOINT)
			continue;
		first = n++ ? first : at;
		last = at;
	}
	return n > 1 ? (double)(last - first) / (double)(n - 1) : NAN;
}

void tfh_fill_segments(const struct tfh_accounts *accounts, double last_gap_s, struct tfh_result *r)
{
	int64_t ns[TFH_SEGMENT_COUNT];
	uint32_t n[TFH_SEGMENT_COUNT];

	memcpy(ns, accounts->loops->segment_ns, sizeof(ns));
	memcpy(n, accounts->loops->segment_n, sizeof(n));
	/* Windows that turned out not to be training. */
	TFH_EACH (i, accounts->loops->window.n) {
		const struct tfh_window *w = &accounts->loops->window.v[i];
		uint8_t segment = accounts->use[i].segment;
		if (segment != TFH_SEGMENT_CHECKPOINT && segment != TFH_SEGMENT_COMPILE &&
		    segment != TFH_SEGMENT_STALL)
			continue;
		int64_t took = (int64_t)(accounts->step.v[i].dur_s * 1e9);
		ns[TFH_SEGMENT_TRAIN] -= took;
		n[TFH_SEGMENT_TRAIN] -= w->steps;
		ns[segment] += took;
		n[segment]++;
	}
	if (last_gap_s > 0 && tfh_recurring_of(r, TFH_SEGMENT_BETWEEN)) {
		ns[TFH_SEGMENT_BETWEEN] += (int64_t)(last_gap_s * 1e9);
		n[TFH_SEGMENT_BETWEEN]++;
	}
	for (int k = 0; k < TFH_SEGMENT_COUNT; k++) {
		if (!n[k])
			continue;
		struct tfh_segment_sum *s = &r->segments[r->n_segments++];
		s->kind = k;
		s->count = n[k];
		s->total_s = (double)ns[k] / 1e9;
		s->every_steps = k == TFH_SEGMENT_CHECKPOINT ? checkpoints_apart(accounts) : NAN;
	}
}
