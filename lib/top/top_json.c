/* The live view as JSON, schema tfhook.top/1. */
#include <math.h>

#include "base/json.h"
#include "top/watch.h"

#define HISTORY 120u /* steps */

static const char *phase_name(enum tfh_watch_phase phase)
{
	static const char *const name[] = {"waiting", "running", "ended"};

	return name[phase];
}

static void put_verdict(struct tfh_json *j, const struct tfh_watch *w)
{
	const struct tfh_result *r = w->result;
	const struct tfh_seen_line *line = &r->found.line;

	tfh_json_key(j, "verdict");
	tfh_json_object(j);
	tfh_json_kstr(j, "class", tfh_class_name(r->verdict.cls));
	tfh_json_kstr(j, "cause", tfh_cause_name(r->verdict.cause));
	tfh_json_kf64(j, "share", r->verdict.share);
	tfh_json_kstr(j, "confidence", tfh_confidence_name(r->verdict.confidence));
	char tier[2] = {r->verdict.tier, '\0'};
	tfh_json_kstr(j, "tier", tier);
	tfh_json_kstr(j, "text", w->words.text);
	if (tfh_json_kobject_if(j, "line", line->file)) {
		tfh_json_kstr(j, "file", line->file);
		tfh_json_ku64(j, "line", line->line);
		tfh_json_kstr(j, "function", line->function);
		tfh_json_kf64(j, "s_per_step", line->s_per_step);
		tfh_json_end(j);
	}
	tfh_json_end(j);
}

static void put_steps(struct tfh_json *j, const struct tfh_result *r)
{
	tfh_json_key(j, "steps");
	tfh_json_object(j);
	tfh_json_ku64(j, "judged", r->steps.count);
	tfh_json_ku64(j, "seen", r->n_step);
	tfh_json_kf64(j, "median_s", r->steps.median_s);
	tfh_json_kf64(j, "p95_s", r->steps.p95_s);
	tfh_json_key(j, "last_s");
	tfh_json_array(j);
	for (uint64_t i = r->n_step > HISTORY ? r->n_step - HISTORY : 0; i < r->n_step; i++)
		tfh_json_f64(j, r->step[i].dur_s);
	tfh_json_end(j);
	tfh_json_end(j);
	tfh_json_key(j, "breakdown");
	tfh_json_object(j);
	for (int p = 0; p < TFH_PART_COUNT; p++)
		tfh_json_kf64(j, tfh_part_name((enum tfh_part)p), r->breakdown[p].s_per_step);
	tfh_json_end(j);
}

static void put_calls(struct tfh_json *j, const struct tfh_watch *w, const struct tfh_watched *of)
{
	tfh_json_key(j, "in_flight");
	tfh_json_array(j);
	for (uint32_t i = 0; i < of->state.n_call; i++) {
		const struct tfh_follow_call *c = &of->state.call[i];
		char place[400];
		tfh_watch_place(w, of, c, place, sizeof(place));
		tfh_json_object(j);
		tfh_json_ku64(j, "tid", c->tid);
		tfh_json_kstr(j, "thread", c->name);
		tfh_json_kstr(j, "fn", c->fn);
		tfh_json_kf64(j, "since_s", c->since_s);
		tfh_json_kstr(j, "where", *place ? place : NULL);
		tfh_json_end(j);
	}
	tfh_json_end(j);
}

static void put_process(struct tfh_json *j, const struct tfh_watch *w, const struct tfh_watched *of)
{
	const struct tfh_follow_state *s = &of->state;

	tfh_json_object(j);
	tfh_json_kstr(j, "host", s->host);
	tfh_json_ku64(j, "pid", s->pid);
	tfh_json_ki64_if(j, "rank", s->rank >= 0, s->rank);
	tfh_json_kbool(j, "records", s->alive);
	tfh_json_ku64(j, "batches", s->steps);
	tfh_json_ku64(j, "lost", s->dropped);
	tfh_json_kf64(j, "paused_s", s->paused_s);
	tfh_json_kf64(j, "recorder_cpu_s", s->recorder_s);
	tfh_json_kf64(j, "age_s", s->age_s);
	for (uint32_t i = 0; w->result && i < w->result->n_rank; i++) {
		const struct tfh_rank *k = &w->result->rank[i];
		if (k->process != of->process)
			continue;
		tfh_json_kstr(j, "class", tfh_class_name(k->cls));
		tfh_json_kf64(j, "step_s", k->step_s);
		tfh_json_kbool(j, "straggler", k->straggler);
	}
	put_calls(j, w, of);
	tfh_json_end(j);
}

int tfh_top_json(FILE *out, const struct tfh_watch *w, int indent)
{
	struct tfh_json j;

	tfh_json_init(&j, out, indent);
	tfh_json_object(&j);
	tfh_json_kstr(&j, "schema", "tfhook.top/1");
	tfh_json_kstr(&j, "directory", w->dir);
	tfh_json_kstr(&j, "job", *w->name ? w->name : NULL);
	tfh_json_kstr(&j, "phase", phase_name(w->phase));
	tfh_json_kstr(&j, "end", tfh_end_name(w->end));
	tfh_json_kf64(&j, "window_s", w->window_s);
	tfh_json_kf64(&j, "judged_ago_s",
		      w->judged_at_s > 0 ? tfh_watch_now() - w->judged_at_s : NAN);
	tfh_json_kf64(&j, "silent_s", tfh_watch_silent(w));
	tfh_json_kf64(&j, "cost_share", tfh_watch_cost(w));
	tfh_json_kstr(&j, "why_not", *w->why ? w->why : NULL);
	if (w->result) {
		put_verdict(&j, w);
		put_steps(&j, w->result);
	}
	tfh_json_key(&j, "processes");
	tfh_json_array(&j);
	for (uint32_t i = 0; i < w->n_of; i++)
		put_process(&j, w, &w->of[i]);
	tfh_json_end(&j);
	tfh_json_end(&j);
	return tfh_json_finish(&j);
}
