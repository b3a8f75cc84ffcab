/* The ranks of a job in JSON, and the starts of all of them. */
#include "report/json_ranks.h"

#include <math.h>

/* Its first device: -1, "": not known. */
static void write_device(struct tfh_json *j, const struct tfh_process *p)
{
	static const struct tfh_device_at none = {-1, -1, -1, "", "", "", ""};
	const struct tfh_device_at *at = p->n_device ? p->device : &none;

	tfh_json_ki64_if(j, "device", at->ordinal >= 0, at->ordinal);
	tfh_json_kstr(j, "bus", *at->bus ? at->bus : NULL);
	tfh_json_kstr(j, "pcie_switch", *at->pcie ? at->pcie : NULL);
	tfh_json_kstr(j, "nic", *at->nic ? at->nic : NULL);
}

static void write_process(struct tfh_json *j, const struct tfh_result *r, const struct tfh_rank *k)
{
	const struct tfh_process *p;

	tfh_run_processes(r->run, &p);
	p += k->process;
	write_device(j, p);
	tfh_json_kstr(j, "end", p->end_known ? tfh_end_name(p->end) : NULL);
	tfh_json_ki64_if(j, "end_code", p->end_known, p->end_code);
}

static void write_generations(struct tfh_json *j, const struct tfh_result *r)
{
	const struct tfh_process *p;

	tfh_run_processes(r->run, &p);
	tfh_json_key(j, "generations");
	tfh_json_array(j);
	for (uint32_t i = 0; i < r->n_generation; i++) {
		const struct tfh_generation *g = &r->generation[i];
		bool known = g->failed && p[g->process].end_known, place = g->file != NULL;
		tfh_json_object(j);
		tfh_json_ku64(j, "ranks", g->ranks);
		tfh_json_ku64(j, "seen", g->seen);
		tfh_json_kf64(j, "begin_s", g->begin_s);
		tfh_json_kf64(j, "end_s", g->end_s);
		tfh_json_kbool(j, "judged", g->judged);
		if (!tfh_json_kobject_if(j, "failed", g->failed)) {
			tfh_json_end(j);
			continue;
		}
		tfh_json_ki64(j, "rank", g->rank);
		tfh_json_kstr(j, "host", g->host);
		tfh_json_kf64(j, "at_s", g->died_s);
		tfh_json_kstr(j, "end", known ? tfh_end_name(p[g->process].end) : NULL);
		tfh_json_ki64_if(j, "end_code", known, known ? p[g->process].end_code : 0);
		tfh_json_kstr(j, "file", g->file);
		tfh_json_ku64_if(j, "line", place, g->line);
		tfh_json_kstr(j, "function", g->function);
		tfh_json_kf64(j, "seen_before_s", place ? g->seen_s : NAN);
		tfh_json_end(j);
		tfh_json_end(j);
	}
	tfh_json_end(j);
}

/* A summary of each rank, if there are several. */
static void write_ranks(struct tfh_json *j, const struct tfh_result *r)
{
	tfh_json_key(j, "ranks");
	tfh_json_array(j);
	for (uint32_t i = 0; i < r->n_rank; i++) {
		const struct tfh_rank *k = &r->rank[i];
		tfh_json_object(j);
		tfh_json_ki64(j, "rank", k->rank);
		tfh_json_kstr(j, "host", k->host);
		tfh_json_kbool(j, "critical", k->process == r->process);
		tfh_json_kbool(j, "straggler", k->straggler);
		tfh_json_kstr(j, "class", tfh_class_name(k->cls));
		tfh_json_kstr(j, "cause", tfh_cause_name(k->cause));
		tfh_json_kf64(j, "share", k->share);
		tfh_json_key(j, "tier");
		tfh_json_strn(j, &k->tier, 1);
		tfh_json_ku64(j, "steps", k->steps);
		tfh_json_ku64(j, "all_steps", k->all_steps);
		tfh_json_ku64(j, "exchanges", k->exchanges);
		tfh_json_kf64(j, "step_s", k->step_s);
		tfh_json_kf64(j, "waits_for_others_s", k->jitter_s);
		tfh_json_kf64(j, "late_s", k->late_s);
		tfh_json_kf64(j, "waited_for_s", k->held_s);
		tfh_json_kf64(j, "silent_s", k->silent_s);
		tfh_json_kbool(j, "closed", k->closed);
		write_process(j, r, k);
		tfh_json_key(j, "breakdown");
		tfh_json_object(j);
		for (int p = 0; p < TFH_PART_COUNT; p++)
			tfh_json_kf64(j, tfh_part_name((enum tfh_part)p), k->breakdown[p]);
		tfh_json_end(j);
		tfh_json_end(j);
	}
	tfh_json_end(j);
}

void tfh_json_ranks(struct tfh_json *j, const struct tfh_result *r)
{
	write_ranks(j, r);
	write_generations(j, r);
}
