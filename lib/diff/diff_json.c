/* A difference as JSON: schema tfhook.diff/1. */
#include <math.h>

#include "base/json.h"
#include "diff/diff.h"

static void put_side(struct tfh_json *j, const struct tfh_diff_side *s)
{
	tfh_json_object(j);
	tfh_json_kstr(j, "path", s->name);
	tfh_json_ku64(j, "runs", s->n);
	tfh_json_ku64(j, "steps", s->steps);
	tfh_json_kf64(j, "from_s", s->from_s);
	tfh_json_kf64(j, "to_s", s->to_s);
	tfh_json_kf64(j, "step_s", s->usual.mean_s[TFH_DIFF_STEP]);
	tfh_json_kstr(j, "class", tfh_digest_fact(s->digest[0], "verdict.class"));
	tfh_json_kstr(j, "cause", tfh_digest_fact(s->digest[0], "verdict.cause"));
	tfh_json_kstr(j, "confidence", tfh_digest_fact(s->digest[0], "verdict.confidence"));
	tfh_json_kstr(j, "tier", tfh_digest_fact(s->digest[0], "verdict.tier"));
	tfh_json_end(j);
}

static void put_part(struct tfh_json *j, const struct tfh_diff_part *p, double step_s)
{
	tfh_json_object(j);
	tfh_json_kstr(j, "part", tfh_diff_part_name(p->part));
	tfh_json_kf64(j, "a_s", p->a_s);
	tfh_json_kf64(j, "b_s", p->b_s);
	tfh_json_kf64(j, "change_s", p->delta_s);
	tfh_json_kf64(j, "off_s", p->off_s);
	tfh_json_kf64(j, "change_share", step_s > 0 ? p->delta_s / step_s : NAN);
	tfh_json_kf64(j, "off_share", step_s > 0 ? p->off_s / step_s : NAN);
	tfh_json_kbool(j, "found", p->found);
	tfh_json_end(j);
}

static void put_items(struct tfh_json *j, const char *key, const struct tfh_diff_item *v,
		      uint32_t n)
{
	static const char *const how[] = {
		[TFH_DIFF_CAME] = "new", [TFH_DIFF_WENT] = "gone", [TFH_DIFF_CHANGED] = "changed"};

	tfh_json_key(j, key);
	tfh_json_array(j);
	for (uint32_t i = 0; i < n; i++) {
		tfh_json_object(j);
		tfh_json_kstr(j, "how", how[v[i].how]);
		tfh_json_kstr(j, "name", v[i].name);
		tfh_json_kf64(j, "a_s", v[i].a_s);
		tfh_json_kf64(j, "b_s", v[i].b_s);
		if (v[i].file) {
			tfh_json_kstr(j, "file", v[i].file);
			tfh_json_ku64(j, "line", v[i].line);
			tfh_json_kf64(j, "off_s", v[i].off_s);
		} else {
			tfh_json_kf64(j, "a_calls", v[i].a_calls);
			tfh_json_kf64(j, "b_calls", v[i].b_calls);
		}
		tfh_json_end(j);
	}
	tfh_json_end(j);
}

static void put_facts(struct tfh_json *j, const struct tfh_run_diff *d)
{
	tfh_json_key(j, "facts");
	tfh_json_array(j);
	for (uint32_t i = 0; i < d->n_fact; i++) {
		tfh_json_object(j);
		tfh_json_kstr(j, "name", d->fact[i].name);
		tfh_json_kstr(j, "a", d->fact[i].a);
		tfh_json_kstr(j, "b", d->fact[i].b);
		tfh_json_end(j);
	}
	tfh_json_end(j);
}

static void put_times(struct tfh_json *j, const char *key, const double s[2])
{
	tfh_json_key(j, key);
	tfh_json_object(j);
	tfh_json_kf64(j, "a_s", s[0]);
	tfh_json_kf64(j, "b_s", s[1]);
	tfh_json_end(j);
}

int tfh_diff_json(FILE *out, const struct tfh_run_diff *d)
{
	struct tfh_json j;

	tfh_json_init(&j, out, 2);
	tfh_json_object(&j);
	tfh_json_kstr(&j, "schema", "tfhook.diff/1");
	tfh_json_key(&j, "a");
	put_side(&j, &d->side[0]);
	tfh_json_key(&j, "b");
	put_side(&j, &d->side[1]);
	tfh_json_kbool(&j, "same_run", d->same_run);
	tfh_json_kbool(&j, "same_judge", !d->other_judge);
	tfh_json_key(&j, "step");
	put_part(&j, &d->step, d->step.a_s);
	tfh_json_key(&j, "mean");
	put_part(&j, &d->mean, d->mean.a_s);
	tfh_json_kstr(&j, "mean_part", tfh_diff_part_name(d->mean_part));
	tfh_json_key(&j, "parts");
	tfh_json_array(&j);
	for (uint32_t i = 0; i < d->n_part; i++)
		put_part(&j, &d->part[i], d->step.a_s);
	tfh_json_end(&j);
	put_items(&j, "lines", d->line, d->n_line);
	put_items(&j, "kernels", d->kernel, d->n_kernel);
	put_facts(&j, d);
	put_times(&j, "before_steps", d->before_s);
	put_times(&j, "run", d->run_s);
	tfh_json_end(&j);
	return tfh_json_finish(&j);
}
