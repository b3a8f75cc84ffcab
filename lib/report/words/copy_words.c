/* What copies between host and device, or inside the device, cost each step, and why. */
#include <inttypes.h>
#include <math.h>

#include "judge/copy_causes.h"
#include "report/format.h"
#include "report/words/remedy.h"
#include "report/words/words.h"

static const char *size(struct tfh_wording *w, double bytes)
{
	static const char *const unit[] = {"B", "kB", "MB", "GB", "TB"};
	int u = 0;

	for (; u < 4 && bytes >= 999.5; u++)
		bytes /= 1000;
	return tfh_phrase(w, u && bytes < 99.95 ? "%.3g %s" : "%.0f %s", bytes, unit[u]);
}

/* few: the copies are too small to give a rate. */
static const char *copies_line(struct tfh_wording *w, const struct tfh_transfer *t, bool few)
{
	char rate[TFH_TEXT];

	/* A copy that some steps lack has its own size, not a smaller one in each step. */
	const char *amount =
		t->calls_per_step > 0 && t->calls_per_step < 0.95
			? tfh_phrase(w, "%s per call, %.2f calls per step",
				     size(w, t->bytes_per_step / t->calls_per_step),
				     t->calls_per_step)
			: tfh_phrase(w, "%s per step in %s", size(w, t->bytes_per_step),
				     tfh_phrase_calls(w, t->calls_per_step));

	return tfh_phrase(w, "%s: %s%s%s", t->fn, amount,
			  isfinite(t->bytes_per_s) && !few
				  ? tfh_phrase(w, ", %s", tfh_fmt_rate(rate, t->bytes_per_s))
				  : "",
			  t->pageable != 1	  ? ""
			  : t->dir == TFH_DIR_D2H ? ", to pageable memory"
						  : ", from pageable memory");
}

/* Reports data that is copied again in every step, as far as addresses show, and returns advice
 * about it. If there is none, returns the usual remedy. */
static struct tfh_remedy explain_again(struct tfh_wording *w)
{
	const struct tfh_copied_again *a = &w->r->found.again;
	const char *bytes = size(w, a->bytes);
	struct tfh_remedy m = tfh_remedy_in(w->r, w->r->steady.cause);
	bool up = a->dir == TFH_DIR_H2D;

	if (!a->steps)
		return m;
	if (2 * a->back > a->steps) {
		tfh_evidence(w, TFH_TELLS_WHY,
			     tfh_phrase(w,
					"in %" PRIu64
					" steps %s are sent back to the device from where they "
					"were fetched to before",
					a->back, bytes));
		return (struct tfh_remedy){
			"data goes to the host and back in every step",
			"keep it in arrays of the device, and do there what the host does with it"};
	}
	tfh_evidence(w, TFH_TELLS_WHY,
		     tfh_phrase(w,
				up ? "in %" PRIu64
				     " steps copies are sent from the same addresses, %s "
				     "(their values may change)"
				   : "in %" PRIu64 " steps the same device memory is fetched, %s",
				a->steps, bytes));
	m.todo =
		up ? "if the values stay the same, keep them on the device; else use pinned "
		     "memory, one step ahead"
		   : "fetch weights every n-th step only; reduce sums and decisions on the device, and "
		     "fetch the result; else use pinned memory and a stream of its own";
	return m;
}

/* Copies that were issued early enough, but behind an event that waits for kernels on which they do
 * not depend. */
static struct tfh_remedy explain_held(struct tfh_wording *w)
{
	tfh_evidence(w, TFH_TELLS_WHY,
		     "the copies are issued in time, but their stream waits for an event behind "
		     "all kernels of the step before");
	return (struct tfh_remedy){
		"copies wait until the kernels before them are done",
		"let a copy wait only for the kernels that read its buffer last: two buffers or "
		"more, each with an event of its own"};
}

/* Whether a library copies from pageable to pinned memory itself,
 * since the driver was not given any pageable memory. */
static bool is_staged(const struct tfh_result *r, const struct tfh_transfer *t)
{
	return r->steady.cause == TFH_CAUSE_TRANSFER_H2D_PAGEABLE && t && t->pageable == 0;
}

/* Copies of another cause that block at least half as much: the time and the gain are those of all
 * copies together. */
static void other_copies(struct tfh_wording *w, const struct tfh_transfer *told)
{
	const struct tfh_result *r = w->r;
	double least = r->found.cause_s[r->steady.cause] / TFH_VERDICT_ALSO_PART;

	for (int c = 0; c < TFH_CAUSE_COUNT; c++) {
		const struct tfh_transfer *t =
			c != r->steady.cause && tfh_cause_part(c) == TFH_PART_TRANSFER &&
					r->found.cause_s[c] > 0 && r->found.cause_s[c] >= least
				? tfh_copies_of(r, c)
				: NULL;
		if (t && t != told)
			tfh_evidence(w, TFH_TELLS_COPIES,
				     tfh_phrase(w, "%s, which takes %s of that",
						copies_line(w, t, false),
						tfh_phrase_time(w, r->found.cause_s[c])));
	}
}

void tfh_explain_transfer(struct tfh_wording *w)
{
	const struct tfh_result *r = w->r;
	const struct tfh_verdict *v = &r->steady;
	const struct tfh_transfer *t = tfh_copies_of(r, v->cause);
	bool few = t && t->bytes_per_step < TFH_VALUE_BYTES * t->calls_per_step;

	/* The table of transfers has no memsets. */
	w->text = tfh_phrase(w,
			     v->cause == TFH_CAUSE_TRANSFER_D2D
				     ? "copies and memsets inside the device block %s of every step"
				     : "copies block %s of every step",
			     tfh_phrase_time(w, r->breakdown[TFH_PART_TRANSFER].s_per_step));
	const char *line = t ? copies_line(w, t, few) : w->text;
	if (t) {
		tfh_evidence(w, TFH_TELLS_COPIES, line);
		other_copies(w, t);
	}
	const char *from = t	     ? tfh_called_from(w, t->fn, t->where)
			   : r->lead ? NULL
				     : tfh_verdict_line(w); /* prefetches of managed memory */
	if (from)
		tfh_evidence(w, TFH_TELLS_LINE, from);
	if (is_staged(r, t))
		tfh_evidence(
			w, TFH_TELLS_WHY,
			"the data is in pageable memory: a thread of the library first copies it "
			"to pinned memory, and the loop waits for that");
	if (v->cause == TFH_CAUSE_TRANSFER_D2H && few)
		tfh_advise(w, "the host waits for small results", line,
			   "read results (.item(), .numpy()) every n-th step only",
			   TFH_REMOVE_TRANSFER);
	else {
		bool held = r->found.copies_held && v->cause == TFH_CAUSE_TRANSFER_H2D_PINNED;
		struct tfh_remedy m = held ? explain_held(w) : explain_again(w);
		if (!r->found.again.steps && v->cause == TFH_CAUSE_TRANSFER_D2H && t &&
		    t->pageable == 0)
			m.todo = "copy on a stream of its own while the next step computes; copy "
				 "less, or every n-th step only";
		tfh_advise(w, m.finding, line, m.todo, TFH_REMOVE_TRANSFER);
	}
}
