/* What is said about a run, in which order, and what a verdict is based on. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "model/big.h"
#include "report/words/words.h"

/* A remark about waits for a CPU, unless the verdict is about them. Returns whether there is
 * one. */
static bool remark_contention(struct tfh_wording *w)
{
	const struct tfh_result *r = w->r;

	if (r->found.contended.share < TFH_CROWDED_SHARE ||
	    r->steady.cause == TFH_CAUSE_HOST_CONTENTION)
		return false;
	tfh_remark(w,
		   tfh_phrase(w,
			      "for %.0f %% of the steps' time its threads were ready to run, but "
			      "waited for a CPU (%s)%s",
			      100 * r->found.contended.share, tfh_who_had_cpus(w),
			      r->found.machine.busy > 0 ? tfh_no_more_threads(w) : ""));
	return true;
}

static void remark_crowd(struct tfh_wording *w)
{
	const struct tfh_quality *q = &w->r->quality;

	if (q->crowded)
		tfh_remark(
			w,
			tfh_phrase(w,
				   "its threads together waited for a CPU for %s of every second: "
				   "other work, or too few CPUs, distorts the times",
				   tfh_phrase_time(w, q->run_delay_share)));
}

/* A longer recording would allow a verdict. A job that failed must first be fixed. */
static const char *ask_for_more(struct tfh_wording *w)
{
	const struct tfh_result *r = w->r;

	if (r->end == TFH_END_SIGNAL)
		return tfh_phrase(
			w, "signal %d ended the job early: record it again once it runs to its end",
			r->end_code);
	if (r->end == TFH_END_EXIT && r->end_code)
		return tfh_phrase(
			w,
			"the job ended early with exit code %d: record it again once it runs to "
			"its end",
			r->end_code);
	return "record a longer run";
}

/* Without a class: why, and what would give one. */
static void explain_none(struct tfh_wording *w)
{
	const struct tfh_result *r = w->r;
	uint64_t holed = r->found.holed_steps;

	w->missing_do = ask_for_more(w);
	if (!r->steps.count && r->steps.clock == TFH_STEP_CLOCK_NONE) {
		w->missing = "no repeating step was found";
		w->missing_do =
			tfh_phrase(w, "%s, or mark steps (include/tfhook/tfhook.h)", w->missing_do);
	} else if (!r->steps.count) {
		w->missing = tfh_phrase(w, "only %" PRIu64 " step(s), all of them start-up",
					r->steps.total);
	} else if (holed * TFH_REPORT_HOLED_PART > r->steps.count) {
		w->missing = tfh_phrase(
			w, "%" PRIu64 " of %" PRIu64 " step%s holes in the recording", holed,
			r->steps.count, r->steps.count == 1 ? " touches" : "s touch");
		w->missing_do =
			"if records were dropped, raise TFHOOK_RING_TOTAL; if files are missing, "
			"restore them";
	} else if (isnan(r->breakdown[TFH_PART_UNATTRIBUTED].share)) {
		w->missing = "no step was completed after start-up";
	} else {
		w->missing = tfh_phrase(w, "%.0f %% of the step's time could not be attributed",
					100 * r->breakdown[TFH_PART_UNATTRIBUTED].share);
		w->missing_do =
			r->steady.tier == 'C'
				? "device times are needed for this job"
				: "the device's ops began late, and what they waited for was not "
				  "recorded: record whole steps, with graphs' kernels and stream "
				  "events, while nothing else uses the device";
	}
	w->text = "not enough evidence for a verdict";
}

/* For judged steps without device times. */
static void explain_waits(struct tfh_wording *w)
{
	const struct tfh_result *r = w->r;
	const char *why = r->found.no_device_times;

	if (r->found.device_times) {
		if (r->steps.count)
			tfh_remark(w, "device times are incomplete for every judged step: what the "
				      "device did is inferred from waits");
		return;
	}
	tfh_remark(w, why && *why ? tfh_phrase(w, "no device times: %s", why)
				  : "no device times: what the device did is inferred from waits");
}

/* What the verdict is based on, and what is missing. */
static void explain_base(struct tfh_wording *w)
{
	const struct tfh_result *r = w->r;
	const struct tfh_findings *found = &r->found;

	if (r->steady.tier == 'C' && found->cpu_only)
		return;
	if (r->quality.graphs)
		tfh_remark(
			w,
			tfh_phrase(
				w,
				"from some moment on, device times were taken in windows of a few "
				"steps: %s",
				r->quality.graphs));
	if (r->steady.tier == 'C') {
		explain_waits(w);
		return;
	}
	if (found->windows_timed < found->windows)
		tfh_evidence(w, TFH_TELLS_MORE,
			     tfh_phrase(w, "device times cover %" PRIu64 " of %" PRIu64 " steps",
					found->windows_timed, found->windows));
	if (found->lead_s > TFH_REPORT_LEAD_SHARE * r->steps.median_s &&
	    found->lead_s > TFH_REPORT_LEAD_S)
		tfh_evidence(
			w, TFH_TELLS_MORE,
			tfh_phrase(
				w,
				"the host is %s ahead of the device at the end of a step: its work "
				"up to there is hidden",
				tfh_phrase_time(w, found->lead_s)));
	if (found->before_s > 0)
		tfh_remark(
			w,
			tfh_phrase(
				w,
				"the device was busy for %s with work from before the trace: not "
				"counted",
				tfh_phrase_time(w, found->before_s)));
	if (r->steady.tier == 'B')
		tfh_remark(
			w,
			"the calls that issued the device's ops are not known, and neither is what "
			"waited for what");
	if (found->lost_ops)
		tfh_remark(w, tfh_phrase(w, "the driver's profiler lost %" PRIu64 " op%s",
					 found->lost_ops, found->lost_ops == 1 ? "" : "s"));
}

bool tfh_tells_cause(const struct tfh_result *r)
{
	enum tfh_cause cause = r->steady.cause;

	return r->steady.cls == TFH_CLASS_HOST_BOUND && cause != TFH_CAUSE_NONE &&
	       cause != TFH_CAUSE_HOST_ALLOC && cause != TFH_CAUSE_HOST_COMPILE &&
	       cause != TFH_CAUSE_HOST_CONTENTION;
}

/* How many of the judged steps have what the verdict's sentence is about as their largest cost. */
static uint64_t steps_with_it(const struct tfh_result *r)
{
	uint64_t n = 0;

	if (!tfh_tells_cause(r) || !r->n_step)
		return r->steps.classes[r->steady.cls].count;
	TFH_EACH (i, r->n_step) {
		const struct tfh_step *x = &r->step[i];
		if (x->segment == TFH_SEGMENT_TRAIN && x->cls == (int)r->steady.cls &&
		    x->cause == (int)r->steady.cause)
			n++;
	}
	return n;
}

/* Whether regular slow steps are slow for the verdict's cause. */
static bool slow_for_it(const struct tfh_result *r)
{
	enum tfh_cause cause = r->steady.cause;

	return r->found.slow.every > 0 && cause != TFH_CAUSE_NONE &&
	       tfh_cause_part(cause) == r->found.slow.part;
}

/* "; every 10th step takes 38.0 ms longer", "; 40.1 ms a round: every ...", "" if such steps are
 * slow for another cause. */
static const char *in_turn(struct tfh_wording *w)
{
	const struct tfh_result *r = w->r;
	const char *round = "";

	if (!slow_for_it(r))
		return "";
	if (r->steps.rounds && r->found.cause_s[r->steady.cause] > 0)
		round = tfh_phrase(w, "%s a round: ",
				   tfh_phrase_time(w, r->found.cause_s[r->steady.cause] *
							      (double)r->steps.per_round));
	return tfh_phrase(w, "; %severy %s step takes %s longer", round,
			  tfh_phrase_ordinal(w, r->found.slow.every),
			  tfh_phrase_time(w, r->found.slow.longer_s));
}

/* Times are means, so a sentence says "every step" only if nearly all steps have the cause. */
static void moderate(struct tfh_wording *w)
{
	static const char every[] = "every step";
	const struct tfh_result *r = w->r;
	const char *old = w->text, *at = strstr(old, every);

	if (r->steady.cls == TFH_CLASS_NONE || !at ||
	    (!(r->steps.rounds && slow_for_it(r)) &&
	     (double)steps_with_it(r) >= TFH_REPORT_EVERY_SHARE * (double)r->steps.count))
		return;
	w->text = tfh_phrase(w, "%.*san average step%s%s", (int)(at - old), old,
			     at + sizeof(every) - 1, in_turn(w));
	for (uint32_t i = 0; i < w->n_advice; i++)
		if (w->advice[i].evidence == old)
			w->advice[i].evidence = w->text;
}

/* The verdict's sentence, its evidence and its advice. */
static void explain_class(struct tfh_wording *w)
{
	const struct tfh_result *r = w->r;
	enum tfh_class cls = r->steady.cls;

	if (cls != TFH_CLASS_NONE && cls != TFH_CLASS_UNCLASSIFIED)
		tfh_evidence(w, TFH_TELLS_MORE,
			     tfh_phrase(w, "%u of %" PRIu64 " step%s %s, %.0f %% of %s",
					r->steps.classes[cls].count, r->steps.count,
					r->steps.count == 1 ? " is" : "s are", tfh_class_name(cls),
					100 * r->steps.classes[cls].time_share,
					tfh_training_words(r)));
	tfh_advise_misuse(w);
	if (cls == TFH_CLASS_BALANCED)
		w->text = tfh_phrase(w,
				     "compute takes %.0f %% of the step and nothing else blocks "
				     "%.0f %% of it",
				     100 * r->breakdown[TFH_PART_COMPUTE].share,
				     100 * TFH_BLOCKING_SHARE);
	else if (!tfh_explain_cause(w))
		explain_none(w);
	moderate(w);
	tfh_explain_also(w);
	tfh_explain_kernels(w);
	if (!r->found.input_visible && cls == TFH_CLASS_HOST_BOUND &&
	    r->steady.cause == TFH_CAUSE_HOST_UNKNOWN)
		tfh_remark(w, "no input pipeline was visible");
	if (r->steps.count && r->steady.tier == 'C' && r->found.mixed_copies)
		tfh_remark(w, "queued copies were waited for together with kernels: their share is "
			      "an estimate from the best bandwidth seen");
}

/* Says of the rank that the others wait for whether its computing makes it late, which no class of
 * blocking time shows. */
static void explain_straggler(struct tfh_wording *w)
{
	const struct tfh_result *r = w->r;
	const struct tfh_rank *k = tfh_late_rank(r);

	const struct tfh_rank *late = tfh_rank_waited_for(r);
	if (late)
		tfh_evidence(w, TFH_TELLS_RANK,
			     tfh_phrase(w,
					"rank %d of %u%s makes all others wait: it arrives at the "
					"exchanges %.3g ms after the first",
					late->rank, r->n_rank, tfh_rank_device(w, late->process),
					late->late_s * 1e3));
	if (!k)
		return;
	const char *line = tfh_phrase(
		w,
		"this is rank %d of %u%s: it arrives at the exchanges %.3g ms after the first, and "
		"all others wait for it",
		k->rank, r->n_rank, tfh_rank_device(w, k->process), k->late_s * 1e3);
	if (tfh_computes_more_s(r) > 0)
		line = tfh_phrase(w, "%s; it computes %.3g ms of every step, the others %.3g ms",
				  line, k->breakdown[TFH_PART_COMPUTE] * 1e3,
				  r->found.others_compute_s * 1e3);
	tfh_evidence(w, TFH_TELLS_RANK, line);
}

static const char *why_no_line(struct tfh_wording *w)
{
	const struct tfh_result *r = w->r;

	if (r->found.no_python)
		return tfh_phrase(w, "not known: %s", r->found.no_python);
	if (r->found.functions)
		return "not known: no function in the trace has a tenth of it";
	if (r->found.imported)
		return tfh_phrase(w, "not known: the trace names no function there, for lack of %s",
				  tfh_code_events(r));
	if (r->verdict.cause == TFH_CAUSE_HOST_CODE)
		return "not known: it is native code, of which samples show no function";
	return "not known: no line of the program was seen there";
}

/* For a cause in the program's own code, if no line was seen. A trace may name the function that
 * waits. */
static void explain_no_line(struct tfh_wording *w)
{
	const struct tfh_result *r = w->r;
	enum tfh_class cls = r->verdict.cls;
	enum tfh_cause cause = r->verdict.cause;

	if ((cls != TFH_CLASS_HOST_BOUND && cls != TFH_CLASS_INPUT_BOUND) ||
	    cause == TFH_CAUSE_HOST_CONTENTION)
		return;
	for (uint32_t i = 0; i < w->n_evidence; i++)
		if (w->tells[i] == TFH_TELLS_LINE || w->tells[i] == TFH_TELLS_STAGE)
			return;
	const char *line = r->found.imported && !r->lead ? tfh_place_line(w, cause) : NULL;
	if (!line && !r->lead && r->found.around)
		line = tfh_calls_around(w);
	if (line) {
		tfh_evidence(w, TFH_TELLS_LINE, line);
		return;
	}
	/* Launches come from everywhere in the step. */
	if (r->found.functions &&
	    (cause == TFH_CAUSE_HOST_LAUNCH || cause == TFH_CAUSE_HOST_COMPILE))
		return;
	w->no_line = why_no_line(w);
}

void tfh_wording_make(struct tfh_wording *w, const struct tfh_result *r)
{
	memset(w, 0, sizeof(*w));
	tfh_arena_init(&w->arena, 0);
	w->r = r;
	w->text = "";
	tfh_name_places(w);
	if (r->found.sampled.samples) {
		tfh_explain_sampled(w);
		return;
	}
	tfh_note_generations(w);
	tfh_note_supply(w);
	explain_class(w);
	if (!remark_contention(w)) /* says it of the steps */
		remark_crowd(w);
	tfh_note_machine(w);
	tfh_note_gpu_contention(w);
	tfh_note_devices(w);
	tfh_note_priced(w);
	tfh_note_faults(w);
	explain_base(w);
	if (r->jitter_s > TFH_REPORT_JITTER_SHARE * r->steps.median_s &&
	    r->steady.cause != TFH_CAUSE_COMMUNICATION_JITTER)
		tfh_evidence(w, TFH_TELLS_WHY,
			     tfh_phrase(w, "%s per step it waits for other ranks",
					tfh_phrase_time(w, r->jitter_s)));
	tfh_note_steps(w);
	tfh_note_run(w);
	explain_straggler(w);
	const char *devices = tfh_devices_line(w);
	if (devices)
		tfh_evidence(w, TFH_TELLS_DEVICES, devices);
	tfh_advise_rest(w);
	tfh_explain_lead(w);
	tfh_note_start(w);
	explain_no_line(w);
}
