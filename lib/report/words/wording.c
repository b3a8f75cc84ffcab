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

void tfh_evidence(struct tfh_wording *w, const char *line)
{
	if (w->n_evidence < sizeof(w->evidence) / sizeof(w->evidence[0]))
		w->evidence[w->n_evidence++] = line;
}

void tfh_remark(struct tfh_wording *w, const char *text)
{
	if (w->n_remark < sizeof(w->remark) / sizeof(w->remark[0]))
		w->remark[w->n_remark++] = text;
}

void tfh_advise(struct tfh_wording *w, const char *finding, const char *why, const char *todo,
		double gain)
{
	if (w->n_advice < sizeof(w->advice) / sizeof(w->advice[0]))
		w->advice[w->n_advice++] = (struct tfh_advice){finding, why, todo, gain};
}

double tfh_ceiling(const struct tfh_result *r, enum tfh_remove what)
{
	for (uint32_t i = 0; i < r->n_whatif; i++)
		if (r->whatif[i].remove == what)
			return r->whatif[i].ceiling_speedup;
	return NAN;
}

void tfh_wording_free(struct tfh_wording *w)
{
	tfh_arena_free(&w->arena);
}
