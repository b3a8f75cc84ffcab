#include "report/json_verdict.h"
#include "report/json_places.h"
#include "report/text_parts.h"

static void write_place(struct tfh_json *j, const struct tfh_seen_line *l)
{
	const struct tfh_caller_line *c = &l->through;

	if (!tfh_json_begin_line(j, "place", l->file, l->line, l->function))
		return;
	tfh_json_kf64(j, "s_per_step", l->s_per_step);
	tfh_json_kf64(j, "off_s", l->off_s);
	tfh_json_ku64(j, "samples", l->samples);
	if (tfh_json_begin_line(j, "through", c->file, c->line, c->function)) {
		tfh_json_kf64(j, "share", c->share);
		tfh_json_end(j);
	}
	tfh_json_key(j, "callers");
	tfh_json_array(j);
	for (c = l->caller; c < l->caller + l->n_caller; c++) {
		tfh_json_object(j);
		tfh_json_line(j, c->file, c->line, c->function);
		tfh_json_kf64(j, "share", c->share);
		tfh_json_end(j);
	}
	tfh_json_end(j);
	if (tfh_json_begin_line(j, "calls", l->callee ? l->callee_file : NULL, l->callee_line,
				l->callee))
		tfh_json_end(j);
	tfh_json_end(j);
}

static void write_workers(struct tfh_json *j, const struct tfh_seen_workers *w)
{
	if (!tfh_json_kobject_if(j, "workers", w->processes || w->threads))
		return;
	tfh_json_ku64(j, "processes", w->processes);
	tfh_json_ku64(j, "threads", w->threads);
	tfh_json_kf64(j, "busy", w->busy);
	tfh_json_ku64(j, "samples", w->samples);
	tfh_json_kbool(j, "holds", w->holds);
	if (tfh_json_begin_line(j, "place", w->line.file, w->line.line, w->line.function)) {
		tfh_json_kf64(j, "share", w->line.share);
		tfh_json_kf64(j, "off", w->line.off);
		tfh_json_end(j);
	}
	tfh_json_end(j);
}

static void write_new_pool(struct tfh_json *j, const struct tfh_seen_line *l)
{
	if (!tfh_json_begin_line(j, "new_pool", l->file, l->line, l->function))
		return;
	tfh_json_kf64(j, "s_per_step", l->s_per_step);
	tfh_json_kf64(j, "off_s", l->off_s);
	tfh_json_ku64(j, "samples", l->samples);
	tfh_json_end(j);
}

static void write_more_workers(struct tfh_json *j, const struct tfh_more_workers *m)
{
	if (!tfh_json_kobject_if(j, "more_workers", m->to))
		return;
	tfh_json_ku64(j, "from", m->from);
	tfh_json_ku64(j, "to", m->to);
	tfh_json_kf64(j, "low_s", m->low_s);
	tfh_json_kf64(j, "high_s", m->high_s);
	tfh_json_end(j);
}

void tfh_json_class(struct tfh_json *j, const struct tfh_verdict *v)
{
	tfh_json_kstr(j, "class", tfh_class_name(v->cls));
	tfh_json_kstr(j, "cause", tfh_cause_name(v->cause));
	tfh_json_key(j, "also");
	tfh_json_array(j);
	for (uint32_t i = 0; i < v->n_also; i++)
		tfh_json_str(j, tfh_class_name(v->also[i]));
	tfh_json_end(j);
	tfh_json_kf64(j, "share", v->share);
	tfh_json_kstr(j, "confidence", tfh_confidence_name(v->confidence));
}

void tfh_json_verdict(struct tfh_json *j, const struct tfh_wording *w)
{
	const struct tfh_verdict *v = &w->r->verdict;

	tfh_json_key(j, "verdict");
	tfh_json_object(j);
	tfh_json_class(j, v);
	double share = tfh_cause_share(w->r);
	tfh_json_kf64(j, "cause_share", share > 0 ? share : v->share);
	tfh_json_key(j, "tier");
	tfh_json_strn(j, &v->tier, 1);
	tfh_json_kstr(j, "text", w->text);
	tfh_json_key(j, "evidence");
	tfh_json_array(j);
	for (uint32_t i = 0; i < w->n_evidence; i++)
		tfh_json_str(j, w->evidence[i]);
	tfh_json_end(j);
	write_place(j, &w->r->found.line);
	write_workers(j, &w->r->found.workers);
	write_more_workers(j, &w->r->found.workers.more);
	write_new_pool(j, &w->r->found.new_pool);
	tfh_json_kstr(j, "missing", w->missing);
	tfh_json_kstr(j, "missing_do", w->missing_do);
	tfh_json_end(j);
}
