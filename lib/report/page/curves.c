#include "report/page/curves.h"

#include <errno.h>
#include <stdlib.h>

#include "model/big.h"
#include "report/page/along.h"

bool tfh_curves_wanted(const struct tfh_run *run)
{
	const struct tfh_process *p;
	uint32_t ranks = 0;

	for (uint32_t i = 0, n = tfh_run_processes(run, &p); i < n; i++)
		ranks += p[i].rank >= 0 && (p[i].has_gpu || p[i].has_tf);
	return ranks > 1;
}

int tfh_curves_add(void *curves, const struct tfh_result *r, struct tfh_err *err)
{
	struct tfh_curves *c = curves;
	struct tfh_curve *grown = realloc(c->of, (c->n + 1) * sizeof(*grown));

	if (!grown)
		return tfh_err_set(err, -ENOMEM, "out of memory");
	c->of = grown;
	struct tfh_curve *x = &c->of[c->n++];
	*x = (struct tfh_curve){.process = r->process};
	TFH_EACH (i, r->n_step) {
		const struct tfh_step *s = &r->step[i];
		double at = c->wall_s > 0
				    ? tfh_into_run(r, s->start_s) / c->wall_s * TFH_CURVE_POINTS
				    : 0;
		uint32_t k = at <= 0			  ? 0
			     : at >= TFH_CURVE_POINTS - 1 ? TFH_CURVE_POINTS - 1
							  : (uint32_t)at;
		if (!tfh_along_has(s))
			continue;
		x->own_s[k] += s->dur_s - (double)s->breakdown[TFH_PART_COMMUNICATION];
		x->steps[k]++;
	}
	return 0;
}

void tfh_curves_free(struct tfh_curves *c)
{
	free(c->of);
	c->of = NULL;
	c->n = 0;
}
