/* Which of the ranks that wait for each other delays the others. */
#include <math.h>

#include "model/symbols/pylines.h"
#include "report/words/words.h"

const char *tfh_least_waiting(struct tfh_wording *w)
{
	const struct tfh_result *r = w->r;
	const struct tfh_rank *least = NULL;

	for (uint32_t i = 0; i < r->n_rank; i++)
		if (!least || r->rank[i].jitter_s < least->jitter_s)
			least = &r->rank[i];
	if (!least || r->n_rank < 2)
		return NULL;
	const struct tfh_rank *late = tfh_rank_waited_for(r);
	if (late)
		return tfh_phrase(w,
				  "see what rank %d does that the others do not (evaluation, "
				  "saving): do it less often, in a thread, or a part of it on each "
				  "rank",
				  late->rank);
	/* If the judged rank waits least, or the one that does mostly waits for others, too, no
	 * rank is slower than all others. */
	if (least->process == r->process || least->cls == TFH_CLASS_NONE ||
	    least->cls == TFH_CLASS_COMMUNICATION_BOUND)
		return "the ranks are late in turns: give them batches of the same size, and do "
		       "what only some steps do (saving, logging) in a thread";
	return tfh_phrase(w, "rank %d waits least, and delays all: its steps are %s, %s",
			  least->rank, tfh_class_name(least->cls), tfh_cause_name(least->cause));
}

const struct tfh_rank *tfh_late_rank(const struct tfh_result *r)
{
	for (uint32_t i = 0; i < r->n_rank; i++)
		if (r->rank[i].process == r->process && r->rank[i].straggler)
			return &r->rank[i];
	return NULL;
}

double tfh_computes_more_s(const struct tfh_result *r)
{
	const struct tfh_rank *k = tfh_late_rank(r);
	double more = k ? k->breakdown[TFH_PART_COMPUTE] - r->found.others_compute_s : 0;

	return k && more > k->late_s / TFH_REPORT_LATE_PART ? more : 0;
}

double tfh_even_step_s(const struct tfh_result *r)
{
	double more = tfh_computes_more_s(r), others = r->n_rank - 1;

	return more > 0 ? tfh_step_s(r) - more * others / r->n_rank : NAN;
}

const char *tfh_rank_device(struct tfh_wording *w, uint32_t process)
{
	const struct tfh_process *p;

	if (!w->r->run || process >= tfh_run_processes(w->r->run, &p) || !p[process].n_device ||
	    p[process].device->ordinal < 0)
		return "";
	const struct tfh_device_at *at = p[process].device;
	return tfh_phrase(w, *at->bus ? ", on GPU %d (%s)" : ", on GPU %d", at->ordinal, at->bus);
}

static const char *how_it_ended(struct tfh_wording *w, const struct tfh_generation *g)
{
	const struct tfh_process *p;

	tfh_run_processes(w->r->run, &p);
	p += g->process;
	if (!p->end_known)
		return "stopped";
	return tfh_phrase(w,
			  p->end == TFH_END_SIGNAL ? "died of signal %d" : "failed (exit code %d)",
			  p->end_code);
}

static const char *when_it_ended(struct tfh_wording *w, const struct tfh_generation *g)
{
	const char *when =
		tfh_phrase(w, "%s after the first record", tfh_phrase_time(w, g->died_s));

	if (!g->file)
		return when;
	when = tfh_phrase(w, "%s, last seen at %s:%u %s", when, tfh_short_file(g->file), g->line,
			  tfh_function_of(w, g->function));
	return g->seen_s < TFH_REPORT_JUST_S
		       ? when
		       : tfh_phrase(w, "%s %s before", when, tfh_phrase_time(w, g->seen_s));
}

const char *tfh_failed_words(struct tfh_wording *w, const struct tfh_generation *g)
{
	return tfh_phrase(w, "rank %d (%s) %s %s", g->rank, g->host, how_it_ended(w, g),
			  when_it_ended(w, g));
}

void tfh_note_generations(struct tfh_wording *w)
{
	const struct tfh_result *r = w->r;
	uint32_t judged = 0, failed = r->n_generation;

	for (uint32_t i = 0; i < r->n_generation; i++) {
		judged = r->generation[i].judged ? i : judged;
		failed = r->generation[i].failed && failed == r->n_generation ? i : failed;
	}
	if (r->n_generation < 2)
		return;
	/* A narrow screen cuts notes at a comma or semicolon. */
	const char *text = tfh_phrase(w, "start %u of %u", judged + 1, r->n_generation);
	if (failed < r->n_generation) {
		const struct tfh_generation *g = &r->generation[failed];
		text = tfh_phrase(w, "%s; rank %d of %u (%s) %s in start %u, %s", text, g->rank,
				  g->ranks, g->host, how_it_ended(w, g), failed + 1,
				  when_it_ended(w, g));
	}
	tfh_remark_first(w, text);
}
