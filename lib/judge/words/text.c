/*
 * The verdict in words: one sentence, its evidence, what is missing when there is none, and what to
 * do. Sentences and advice of each cause are in text_cause.c.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "judge/words/remedy.h"
#include "judge/words/text.h"

/* Of the device's memory. */
#define NEARLY_FULL 0.95

static void remark_crowd(const struct tfh_accounts *accounts, struct tfh_result *r)
{
	double waited = tfh_crowd(accounts->facts);

	if (waited > TFH_CROWDED_SHARE)
		tfh_remark(r,
			   tfh_text(accounts->facts->arena,
				    "in every second the job's threads together waited %s for a "
				    "processor: other work on this machine, or too few processors, "
				    "distorts these times",
				    tfh_text_time(accounts, waited)));
}

static uint64_t holed_steps(const struct tfh_accounts *accounts)
{
	uint64_t n = 0;

	TFH_EACH (i, accounts->loops->window.n)
		if (accounts->use[i].segment == TFH_SEGMENT_TRAIN &&
		    accounts->loops->window.v[i].hole)
			n += accounts->loops->window.v[i].steps;
	return n;
}

static void explain_none(const struct tfh_accounts *accounts, struct tfh_result *r)
{
	struct tfh_verdict *v = &r->verdict;

	if (!r->steps.count) {
		v->missing = accounts->loops->clock == TFH_STEP_CLOCK_NONE
				     ? "no repeating step was found"
				     : tfh_text(accounts->facts->arena,
						"only %" PRIu64 " step(s), all of them start-up",
						r->steps.total);
		v->missing_do =
			accounts->loops->clock == TFH_STEP_CLOCK_NONE
				? "record a longer run, or mark steps (include/tfhook/tfhook.h)"
				: "record a longer run";
	} else if (holed_steps(accounts) * 2 > r->steps.count) {
		v->missing = tfh_text(accounts->facts->arena,
				      "%" PRIu64 " of %" PRIu64 " step%s holes in the recording",
				      holed_steps(accounts), r->steps.count,
				      r->steps.count == 1 ? " touches" : "s touch");
		v->missing_do = "if records were dropped, raise TFHOOK_RING_TOTAL; if files are "
				"missing, bring them back";
	} else if (isnan(r->breakdown[TFH_PART_UNATTRIBUTED].share)) {
		v->missing = "no step ran to its end after the start-up";
		v->missing_do = "record a longer run";
	} else {
		v->missing = tfh_text(accounts->facts->arena,
				      "%.0f %% of the step's time could not be attributed",
				      100 * r->breakdown[TFH_PART_UNATTRIBUTED].share);
		v->missing_do =
			tfh_tier(accounts) == 'C'
				? "device times are needed for this job"
				: "what the device's ops waited for was not recorded: record whole "
				  "steps, with graphs' kernels and stream events";
	}
	v->text = "not enough evidence for a verdict";
}

/* What the verdict rests on, and what is missing. */
static void explain_base(const struct tfh_accounts *accounts, struct tfh_result *r)
{
	const struct tfh_device *d = accounts->device;
	uint64_t judged = d ? d->windows_a + d->windows_b : 0;

	if (r->verdict.tier == 'C' && accounts->facts->cpu_only)
		return;
	if (r->quality.graphs)
		tfh_remark(r, tfh_text(accounts->facts->arena,
				       "graphs: only whole launches were timed from some moment "
				       "on: %s",
				       r->quality.graphs));
	if (r->verdict.tier == 'C' && d && d->gpu.source != TFH_GPU_NONE) {
		if (r->steps.count)
			tfh_remark(
				r,
				"there are device times, but for no step that is judged they are "
				"complete: what the device did is concluded from waits");
		return;
	}
	if (r->verdict.tier == 'C') {
		tfh_remark(
			r,
			d && d->gpu.why && *d->gpu.why
				? tfh_text(accounts->facts->arena, "no device times: %s",
					   d->gpu.why)
				: "no device times: what the device did is concluded from waits");
		return;
	}
	if (judged < accounts->loops->window.n)
		tfh_evidence(&r->verdict, tfh_text(accounts->facts->arena,
						   "device times cover %" PRIu64 " of %zu steps",
						   judged, accounts->loops->window.n));
	double lead =
		accounts->judged_steps ? (double)d->lead / 1e9 / (double)accounts->judged_steps : 0;
	if (lead > 0.5 * r->steps.median_s && lead > 1e-3)
		tfh_evidence(
			&r->verdict,
			tfh_text(accounts->facts->arena,
				 "the host is %s ahead of the device at the end of a step: what it "
				 "does meanwhile costs nothing",
				 tfh_text_time(accounts, lead)));
	if (accounts->loops->lead_in)
		tfh_remark(r, tfh_text(accounts->facts->arena,
				       "the device was busy with work from before the trace for "
				       "%s: not counted",
				       tfh_text_time(accounts,
						     (double)accounts->loops->lead_in / 1e9)));
	if (r->verdict.tier == 'B')
		tfh_remark(r,
			   "the device's ops could not be joined with the calls that issued them: "
			   "what waited for what is not known");
	if (d->gpu.dropped)
		tfh_remark(r, tfh_text(accounts->facts->arena,
				       "the driver's profiler lost %" PRIu64 " op%s",
				       d->gpu.dropped, d->gpu.dropped == 1 ? "" : "s"));
}

/* Requests for device memory that failed. */
static void explain_memory(const struct tfh_accounts *accounts, struct tfh_result *r)
{
	const struct tfh_heap_sum *h = &r->heap;
	const struct tfh_failure *f = &h->failure[0];
	const char *last = "";

	if (h->capacity && (double)h->peak > NEARLY_FULL * (double)h->capacity)
		tfh_remark(r, tfh_text(accounts->facts->arena,
				       "device memory was nearly full: %.1f MB of %.1f MB",
				       (double)h->peak / 1e6, (double)h->capacity / 1e6));
	if (!h->failed)
		return;
	if (f->n_before)
		last = tfh_text(accounts->facts->arena,
				"; the last one before it was %s of %.1f MB", f->before[0].fn,
				(double)f->before[0].bytes / 1e6);
	const char *text =
		tfh_text(accounts->facts->arena,
			 "%" PRIu64 " request%s for device memory failed, the first %.1f s after "
			 "the start: %s of %.1f MB with %.1f MB in use%s",
			 h->failed, h->failed == 1 ? "" : "s", (double)f->at.t / 1e9, f->at.fn,
			 (double)f->at.bytes / 1e6, (double)f->in_use / 1e6, last);
	tfh_remark(r, text);
	tfh_advise(r, "device memory ran out", text,
		   "smaller batches, or free what is kept between steps; see `memory` in --json",
		   NAN);
}

/* The late one of several ranks. */
static void explain_ranks(const struct tfh_accounts *accounts, struct tfh_result *r)
{
	if (r->jitter_s > 0.01 * r->steps.median_s &&
	    r->verdict.cause != TFH_CAUSE_COMMUNICATION_JITTER)
		tfh_evidence(&r->verdict, tfh_text(accounts->facts->arena,
						   "%s of every step it waits for other ranks",
						   tfh_text_time(accounts, r->jitter_s)));
}

/* What most steps do not do is not said of every step: the times are means. */
static void moderate(const struct tfh_accounts *accounts, struct tfh_result *r)
{
	static const char every[] = "every step";
	struct tfh_verdict *v = &r->verdict;
	const char *old = v->text, *at = strstr(old, every);

	if (v->cls < 0 || !at || 2 * (uint64_t)r->steps.classes[v->cls].count >= r->steps.count)
		return;
	v->text = tfh_text(accounts->facts->arena, "%.*san average step%s", (int)(at - old), old,
			   at + sizeof(every) - 1);
	for (uint32_t i = 0; i < r->n_advice; i++)
		if (r->advice[i].evidence == old)
			r->advice[i].evidence = v->text;
}

void tfh_explain(const struct tfh_accounts *accounts, struct tfh_result *r)
{
	struct tfh_verdict *v = &r->verdict;

	v->text = "";
	if (v->cls >= 0 && v->cls != TFH_CLASS_UNCLASSIFIED)
		tfh_evidence(v,
			     tfh_text(accounts->facts->arena,
				      "%u of %" PRIu64 " step%s %s, %.0f %% of training time",
				      r->steps.classes[v->cls].count, r->steps.count,
				      r->steps.count == 1 ? " is" : "s are", tfh_class_name(v->cls),
				      100 * r->steps.classes[v->cls].time_share));
	if (v->cls == TFH_CLASS_BALANCED)
		v->text = tfh_text(
			accounts->facts->arena,
			"compute takes %.0f %% of the step and nothing else blocks 5 %% of it",
			100 * r->breakdown[TFH_PART_COMPUTE].share);
	else if (!tfh_explain_cause(accounts, r))
		explain_none(accounts, r);
	moderate(accounts, r);
	tfh_explain_also(accounts, r);
	tfh_explain_kernels(accounts, r);
	if (!accounts->facts->consumers && v->cls == TFH_CLASS_HOST_BOUND &&
	    v->cause == TFH_CAUSE_HOST_UNKNOWN)
		tfh_remark(r, "no input pipeline was visible");
	/* 1 GB/s: slower than any link; where even that would not matter nothing needs to be said.
	 */
	if (v->tier == 'C' && (double)accounts->mixed_bytes > 0.05 * (double)accounts->train_ns)
		tfh_remark(r,
			   "queued copies were waited for together with kernels: their share is an "
			   "estimate from the best bandwidth seen");
	remark_crowd(accounts, r);
	tfh_tell_faults(accounts, r);
	explain_base(accounts, r);
	explain_ranks(accounts, r);
	explain_memory(accounts, r);
}

void tfh_tell_stalls(const struct tfh_accounts *accounts, struct tfh_result *r)
{
	double part[TFH_PART_COUNT] = {0}, total = 0;
	enum tfh_part most = TFH_PART_HOST;
	unsigned n = 0;

	TFH_EACH (i, r->n_step) {
		if (r->step[i].segment != TFH_SEGMENT_STALL)
			continue;
		n++;
		total += r->step[i].dur_s;
		for (int p = 0; p < TFH_PART_COUNT; p++)
			part[p] += (double)r->step[i].breakdown[p];
	}
	for (int p = 0; p < TFH_PART_COUNT; p++)
		if (part[p] > part[most])
			most = p;
	if (!n)
		return;
	tfh_remark(
		r,
		tfh_text(accounts->facts->arena,
			 "%u step%s took %.3g s%s, over 20 times the usual (%s): a pause, or work "
			 "that no other step does; not counted above",
			 n, n == 1 ? "" : "s", total, n == 1 ? "" : " in all",
			 tfh_part_name(most)));
}

void tfh_tell_alike_loops(const struct tfh_accounts *accounts, struct tfh_result *r)
{
	if (accounts->loops->alike_loops && accounts->loops->clock == TFH_STEP_CLOCK_ITERATOR)
		tfh_remark(r, tfh_text(accounts->facts->arena,
				       "%u loops of as many batches feed functions of the same "
				       "name: models trained in turn, judged together",
				       accounts->loops->alike_loops));
}
