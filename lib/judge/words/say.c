/* The forms that words of a verdict take. */
#include <math.h>

#include "judge/words/text.h"

void tfh_evidence(struct tfh_verdict *v, const char *line)
{
	if (v->n_evidence < sizeof(v->evidence) / sizeof(v->evidence[0]))
		v->evidence[v->n_evidence++] = line;
}

void tfh_advise(struct tfh_result *r, const char *finding, const char *why, const char *todo,
		double gain)
{
	if (r->n_advice < sizeof(r->advice) / sizeof(r->advice[0]))
		r->advice[r->n_advice++] = (struct tfh_advice){finding, why, todo, gain};
}

double tfh_ceiling(const struct tfh_result *r, enum tfh_remove what)
{
	for (uint32_t i = 0; i < r->n_whatif; i++)
		if (r->whatif[i].remove == what)
			return r->whatif[i].ceiling_speedup;
	return NAN;
}

const char *tfh_text_time(const struct tfh_accounts *accounts, double s)
{
	if (s >= 10)
		return tfh_text(accounts->facts->arena, "%.1f s", s);
	if (s >= 0.9995)
		return tfh_text(accounts->facts->arena, "%.2f s", s);
	return s >= 0.01   ? tfh_text(accounts->facts->arena, "%.0f ms", s * 1e3)
	       : s >= 1e-3 ? tfh_text(accounts->facts->arena, "%.2f ms", s * 1e3)
			   : tfh_text(accounts->facts->arena, "%.0f us", s * 1e6);
}

/* Samples tell how long the threads with calls were ready to run and had no processor. */
