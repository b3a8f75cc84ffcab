/* Limits on a change, for scripts. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diff/diff.h"

static int part_named(const char *name, size_t n)
{
	if (n == 4 && !strncmp(name, "mean", n))
		return TFH_DIFF_PARTS;
	for (int p = 0; p < TFH_DIFF_PARTS; p++)
		if (strlen(tfh_diff_part_name(p)) == n && !strncmp(tfh_diff_part_name(p), name, n))
			return p;
	return -1;
}

/* Seconds of a unit; 0: per cent. */
static bool unit_of(const char *text, double *s)
{
	static const struct {
		const char *name;
		double s;
	} units[] = {{"%", 0}, {"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}};

	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
		if (!strcmp(text, units[i].name)) {
			*s = units[i].s;
			return true;
		}
	return false;
}

int tfh_diff_limit_parse(const char *text, struct tfh_diff_limit *out, struct tfh_err *err)
{
	size_t n = strcspn(text, "<>");
	char *end;
	double unit;

	out->part = part_named(text, n);
	if (!text[n] || out->part < 0)
		return tfh_err_set(
			err, -EINVAL,
			"'%.80s' is not a limit: name a part and its largest change, such as "
			"step>+5%% or input.map>1ms",
			text);
	out->above = text[n] == '>';
	out->value = strtod(text + n + 1, &end);
	end += strspn(end, " ");
	if (end == text + n + 1 || !isfinite(out->value) || !unit_of(end, &unit))
		return tfh_err_set(
			err, -EINVAL,
			"'%.80s' is not a limit: a number and %%, s, ms, us or ns must follow %c",
			text, text[n]);
	out->share = unit == 0;
	out->value *= out->share ? 0.01 : unit;
	return 0;
}

static const struct tfh_diff_part *part_of(const struct tfh_run_diff *d, int part)
{
	for (uint32_t i = 0; i < d->n_part; i++)
		if (d->part[i].part == part)
			return &d->part[i];
	return part == TFH_DIFF_STEP ? &d->step : part == TFH_DIFF_PARTS ? &d->mean : NULL;
}

enum tfh_diff_answer tfh_diff_limit_check(const struct tfh_run_diff *d,
					  const struct tfh_diff_limit *l)
{
	const struct tfh_diff_part *p = part_of(d, l->part);
	double whole = l->part == TFH_DIFF_PARTS ? d->mean.a_s : d->step.a_s;
	double limit = l->share ? l->value * whole : l->value;

	if (!p) /* neither side has it */
		return TFH_DIFF_WITHIN;
	if (isnan(p->off_s))
		return TFH_DIFF_UNSURE;
	double low = p->delta_s - p->off_s, high = p->delta_s + p->off_s;
	bool beyond = l->above ? p->delta_s > limit : p->delta_s < limit;
	if (beyond)
		return p->found ? TFH_DIFF_BEYOND : TFH_DIFF_UNSURE;
	return (l->above ? high > limit : low < limit) ? TFH_DIFF_UNSURE : TFH_DIFF_WITHIN;
}
