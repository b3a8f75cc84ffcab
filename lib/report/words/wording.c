/* Where sentences are put, and the forms they take. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "report/words/words.h"

const char *tfh_phrase(struct tfh_wording *w, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	const char *s = tfh_arena_vtext(&w->arena, fmt, args);
	va_end(args);
	return s;
}

const char *tfh_phrase_time(struct tfh_wording *w, double s)
{
	if (s >= 10)
		return tfh_phrase(w, "%.1f s", s);
	if (s >= 0.9995)
		return tfh_phrase(w, "%.2f s", s);
	return s >= 0.01   ? tfh_phrase(w, "%.0f ms", s * 1e3)
	       : s >= 1e-3 ? tfh_phrase(w, "%.2f ms", s * 1e3)
			   : tfh_phrase(w, "%.0f us", s * 1e6);
}

void tfh_evidence(struct tfh_wording *w, enum tfh_tells tells, const char *line)
{
	if (w->n_evidence >= sizeof(w->evidence) / sizeof(w->evidence[0]))
		return;
	w->tells[w->n_evidence] = tells;
	w->evidence[w->n_evidence++] = line;
}

void tfh_remark(struct tfh_wording *w, const char *text)
{
	if (w->n_remark < sizeof(w->remark) / sizeof(w->remark[0]))
		w->remark[w->n_remark++] = text;
}

static void add_advice(struct tfh_wording *w, struct tfh_advice advice)
{
	if (w->n_advice < sizeof(w->advice) / sizeof(w->advice[0]))
		w->advice[w->n_advice++] = advice;
}

void tfh_advise(struct tfh_wording *w, const char *finding, const char *why, const char *todo,
		enum tfh_remove remove)
{
	const struct tfh_result *r = w->r;
	struct tfh_advice advice = {finding, why, todo, NAN, NAN, false};

	for (uint32_t i = 0; i < r->n_whatif && remove != TFH_REMOVE_NONE; i++) {
		const struct tfh_whatif *what = &r->whatif[i];
		if (what->remove != remove)
			continue;
		advice.gain = what->ceiling_speedup;
		advice.saved_s = what->saved_s;
		advice.at_best = isnan(what->step_s);
	}
	add_advice(w, advice);
}

void tfh_advise_run(struct tfh_wording *w, const char *finding, const char *todo, double saved_s)
{
	add_advice(w, (struct tfh_advice){finding, NULL, todo, NAN, saved_s, true});
}

void tfh_wording_free(struct tfh_wording *w)
{
	tfh_arena_free(&w->arena);
}
