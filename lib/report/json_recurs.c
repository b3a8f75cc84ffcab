/* What recurs in a run, in JSON. */
#include "report/json_recurs.h"

#include "report/json_places.h"
#include "report/json_verdict.h"

static void write_steady(struct tfh_json *j, const struct tfh_verdict *v)
{
	tfh_json_key(j, "steady");
	tfh_json_object(j);
	tfh_json_class(j, v);
	tfh_json_end(j);
}

void tfh_json_recurs(struct tfh_json *j, const struct tfh_result *r)
{
	write_steady(j, &r->steady);
	tfh_json_key(j, "changes");
	tfh_json_array(j);
	for (uint32_t i = 0; i < r->n_change; i++) {
		const struct tfh_change *x = &r->change[i];
		tfh_json_object(j);
		tfh_json_ku64(j, "step", x->step);
		tfh_json_kf64(j, "at_s", x->at_s);
		tfh_json_kf64(j, "from_s", x->from_s);
		tfh_json_kf64(j, "to_s", x->to_s);
		tfh_json_kstr(j, "part", tfh_part_name(x->part));
		tfh_json_ku64_if(j, "until_step", x->until, x->until);
		if (tfh_json_begin_line(j, "line", x->file, x->line, x->function))
			tfh_json_end(j);
		tfh_json_end(j);
	}
	tfh_json_end(j);
	tfh_json_key(j, "recurs");
	tfh_json_array(j);
	for (uint32_t i = 0; i < r->n_recurring; i++) {
		const struct tfh_recurring *x = &r->recurring[i];
		tfh_json_object(j);
		tfh_json_kstr(j, "kind", tfh_segment_name(x->kind));
		tfh_json_ku64(j, "count", x->count);
		tfh_json_kf64(j, "total_s", x->total_s);
		tfh_json_kf64(j, "share", x->total_s / r->recurs_s);
		tfh_json_kstr(j, "class", tfh_class_name(x->cls));
		tfh_json_kstr(j, "cause", tfh_cause_name(x->cause));
		tfh_json_kf64(j, "blocked_s", x->blocked_s);
		tfh_json_key(j, "verdict");
		tfh_json_bool(j, r->lead ? i + 1 == r->lead : x->kind == TFH_SEGMENT_TRAIN);
		tfh_json_end(j);
	}
	tfh_json_end(j);
}
