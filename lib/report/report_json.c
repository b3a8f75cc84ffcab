/* The report as JSON: schema tfhook.report/1 (docs/report.schema.json). Fields are only ever added.
 */
#include <math.h>
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "report/json_memory.h"
#include "report/json_ranks.h"
#include "report/json_recurs.h"
#include "report/json_places.h"
#include "report/json_start.h"
#include "report/json_verdict.h"
#include "report/run_tree.h"
#include "report/machine_table.h"
#include "report/report.h"

static const char *const dir_names[] = {NULL, "h2d", "d2h", "d2d", "h2h", "p2p", NULL};

static void write_run(struct tfh_json *j, const struct tfh_result *r)
{
	const char *const *argv;
	uint32_t argc = tfh_run_command(r->run, &argv);
	int64_t start = tfh_run_start_realtime_ns(r->run);
	time_t seconds = (time_t)(start / 1000000000);
	char when[40];
	struct tm tm;
	size_t n;

	gmtime_r(&seconds, &tm);
	n = strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(when + n, sizeof(when) - n, ".%06dZ", (int)(start / 1000 % 1000000));
	tfh_json_key(j, "run");
	tfh_json_object(j);
	tfh_json_key(j, "command");
	tfh_json_array(j);
	for (uint32_t i = 0; i < argc; i++)
		tfh_json_str(j, argv[i]);
	tfh_json_end(j);
	tfh_json_kstr(j, "host", tfh_run_host(r->run));
	tfh_json_kf64(j, "wall_s", (double)tfh_run_wall_ns(r->run) * 1e-9);
	tfh_json_kstr(j, "start_utc", start > 0 ? when : NULL);
	tfh_json_kstr(j, "source", tfh_source_name(tfh_run_source(r->run)));
	tfh_json_end(j);
}

static void write_end(struct tfh_json *j, const struct tfh_result *r)
{
	const struct tfh_thread_info *threads;
	const struct tfh_in_flight *open;
	uint32_t n_threads = tfh_run_threads(r->run, &threads);
	uint32_t n = tfh_run_in_flight(r->run, &open);

	tfh_json_key(j, "end");
	tfh_json_object(j);
	tfh_json_kstr(j, "how", tfh_end_name(r->end));
	tfh_json_ki64_if(j, "code", r->end == TFH_END_EXIT, r->end_code);
	tfh_json_ki64_if(j, "signal", r->end == TFH_END_SIGNAL, r->end_code);
	tfh_json_key(j, "in_flight");
	tfh_json_array(j);
	for (uint32_t i = 0; i < n; i++) {
		bool known = open[i].thread < n_threads;
		int32_t rank = tfh_report_rank(r, open[i].process);
		tfh_json_object(j);
		tfh_json_kstr(j, "fn", open[i].fn);
		tfh_json_ku64_if(j, "thread", known, known ? threads[open[i].thread].tid : 0);
		tfh_json_ki64_if(j, "rank", rank >= 0, rank);
		tfh_json_kf64(j, "open_s", open[i].open_s);
		tfh_json_kstr(j, "detail", open[i].detail);
		const struct tfh_last_launch *last = tfh_report_last(r, &open[i]);
		tfh_json_kstr(j, "last_kernel", last ? last->kernel : NULL);
		tfh_json_open_place(j, r, &open[i]);
		tfh_json_end(j);
	}
	tfh_json_end(j);
	tfh_json_end(j);
}

int32_t tfh_report_rank(const struct tfh_result *r, uint32_t process)
{
	for (uint32_t i = 0; i < r->n_rank; i++)
		if (r->rank[i].process == process)
			return r->rank[i].rank;
	return -1;
}

const struct tfh_last_launch *tfh_report_last(const struct tfh_result *r,
					      const struct tfh_in_flight *open)
{
	if (open->process != r->process || !strstr(open->fn, "ynchronize"))
		return NULL;
	for (uint32_t i = 0; i < r->n_last && open->handle; i++)
		if (r->last[i].handle == open->handle)
			return &r->last[i];
	return r->n_last && !open->handle ? &r->last[0] : NULL;
}

static void write_steps(struct tfh_json *j, const struct tfh_result *r)
{
	const struct tfh_steps *s = &r->steps;
	const struct tfh_pattern *p = &r->pattern;

	tfh_json_key(j, "steps");
	tfh_json_object(j);
	tfh_json_ku64(j, "count", s->count);
	tfh_json_ku64(j, "warmup", s->warmup);
	tfh_json_ku64(j, "unclassified", s->unclassified);
	tfh_json_ku64(j, "total", s->total);
	tfh_json_kf64(j, "median_s", s->median_s);
	tfh_json_kf64(j, "p95_s", s->p95_s);
	tfh_json_kf64(j, "total_s", s->total_s);
	tfh_json_kstr(j, "clock", tfh_step_clock_name(s->clock));
	tfh_json_kstr(j, "clock_name", s->clock_name);
	tfh_json_kf64(j, "per_execution", s->per_execution);
	tfh_json_ku64(j, "rounds", s->rounds);
	tfh_json_ku64(j, "steps_per_round", s->per_round);
	tfh_json_ku64(j, "batches_per_update", p->per_update);
	tfh_json_ku64(j, "micro_steps", p->inner);
	tfh_json_key(j, "kinds");
	tfh_json_array(j);
	for (uint32_t i = 0; i < p->n_kind; i++) {
		tfh_json_object(j);
		tfh_json_ku64(j, "launches", p->kind[i].launches);
		tfh_json_ku64(j, "count", p->kind[i].count);
		tfh_json_kf64(j, "median_s", p->kind[i].median_s);
		tfh_json_kf64(j, "time_share", p->kind[i].time_share);
		tfh_json_end(j);
	}
	tfh_json_end(j);
	tfh_json_key(j, "classes");
	tfh_json_object(j);
	for (int c = 0; c < TFH_CLASS_COUNT; c++) {
		const struct tfh_class_count *k = &s->classes[c];
		if (!k->count)
			continue;
		tfh_json_key(j, tfh_class_name((enum tfh_class)c));
		tfh_json_object(j);
		tfh_json_ku64(j, "count", k->count);
		tfh_json_kf64(j, "time_share", k->time_share);
		tfh_json_kf64(j, "median_s", k->median_s);
		tfh_json_kf64(j, "p95_s", k->p95_s);
		tfh_json_end(j);
	}
	tfh_json_end(j);
	tfh_json_end(j);
}

static void write_parts(struct tfh_json *j, const struct tfh_result *r)
{
	tfh_json_key(j, "breakdown");
	tfh_json_array(j);
	for (int p = 0; p < TFH_PART_COUNT; p++) {
		tfh_json_object(j);
		tfh_json_kstr(j, "name", tfh_part_name((enum tfh_part)p));
		tfh_json_kf64(j, "s_per_step", r->breakdown[p].s_per_step);
		tfh_json_kf64(j, "share", r->breakdown[p].share);
		tfh_json_end(j);
	}
	tfh_json_end(j);
	tfh_json_key(j, "causes");
	tfh_json_array(j);
	for (int c = 0; c < TFH_CAUSE_COUNT; c++) {
		if (!(r->found.cause_s[c] > 0))
			continue;
		tfh_json_object(j);
		tfh_json_kstr(j, "cause", tfh_cause_name((enum tfh_cause)c));
		tfh_json_kstr(j, "part", tfh_part_name(tfh_cause_part((enum tfh_cause)c)));
		tfh_json_kf64(j, "s_per_step", r->found.cause_s[c]);
		tfh_json_end(j);
	}
	tfh_json_end(j);
	tfh_json_key(j, "stages");
	tfh_json_array(j);
	for (int s = 0; s < TFH_STAGE_COUNT; s++) {
		tfh_json_object(j);
		tfh_json_kstr(j, "name", tfh_stage_name((enum tfh_stage)s));
		tfh_json_kf64(j, "exposed_s", r->stages[s].exposed_s);
		tfh_json_kf64(j, "hidden_s", r->stages[s].hidden_s);
		tfh_json_end(j);
	}
	tfh_json_end(j);
}

static void write_gain(struct tfh_json *j, const struct tfh_whatif *w)
{
	tfh_json_kf64(j, "step_s", w->step_s);
	tfh_json_kf64(j, "low_s", w->low_s);
	tfh_json_kf64(j, "high_s", w->high_s);
	tfh_json_kf64(j, "floor_s", w->floor_s);
	tfh_json_kf64(j, "speedup", w->speedup);
	tfh_json_kf64(j, "ceiling_speedup", w->ceiling_speedup);
	tfh_json_kf64(j, "about_s", isnan(w->step_s) && w->about_s > 0 ? w->about_s : NAN);
	tfh_json_kf64(j, "run_saved_s", w->saved_s);
	tfh_json_kstr(j, "no_bound", w->no_bound);
}

static void write_whatif(struct tfh_json *j, const struct tfh_result *r)
{
	tfh_json_key(j, "whatif");
	tfh_json_array(j);
	for (uint32_t i = 0; i < r->n_whatif; i++) {
		tfh_json_object(j);
		tfh_json_kstr(j, "remove", tfh_remove_name(r->whatif[i].remove));
		write_gain(j, &r->whatif[i]);
		tfh_json_end(j);
	}
	tfh_json_end(j);
	if (tfh_json_kobject_if(j, "whatif_uncrowded", r->uncrowded.ceiling_speedup > 0)) {
		write_gain(j, &r->uncrowded);
		tfh_json_end(j);
	}
	tfh_json_key(j, "whatif_places");
	tfh_json_array(j);
	for (uint32_t i = 0; i < r->n_place; i++) {
		const struct tfh_place_gain *g = &r->place[i];
		tfh_json_object(j);
		tfh_json_kstr(j, "file", g->file);
		tfh_json_kstr(j, "function", g->function);
		tfh_json_ku64(j, "line", g->line);
		tfh_json_ku64(j, "first_line", g->first_line);
		tfh_json_ku64(j, "last_line", g->last_line);
		tfh_json_kbool(j, "whole", g->whole);
		tfh_json_kf64(j, "s_per_step", g->s_per_step);
		tfh_json_kf64(j, "off_s", g->off_s);
		tfh_json_kbool(j, "verdict", i + 1 == r->line_place);
		write_gain(j, &g->gain);
		tfh_json_end(j);
	}
	tfh_json_end(j);
}

static void write_segments(struct tfh_json *j, const struct tfh_result *r)
{
	tfh_json_key(j, "segments");
	tfh_json_array(j);
	for (uint32_t i = 0; i < r->n_segments; i++) {
		const struct tfh_segment_sum *s = &r->segments[i];
		tfh_json_object(j);
		tfh_json_kstr(j, "kind", tfh_segment_name(s->kind));
		tfh_json_ku64(j, "count", s->count);
		tfh_json_kf64(j, "total_s", s->total_s);
		tfh_json_kf64(j, "every_steps", s->every_steps);
		tfh_json_end(j);
	}
	tfh_json_end(j);
}

/* Copies by direction, and waits, in an interval without records. */
static void write_anchors(struct tfh_json *j, const struct tfh_discarded *g)
{
	if (!g->knows_anchors) {
		tfh_json_knull(j, "copies");
		tfh_json_knull(j, "waits");
		return;
	}
	tfh_json_key(j, "copies");
	tfh_json_array(j);
	for (uint32_t i = 0; i < TFT_SKETCH_WAIT; i++) {
		if (!g->anchor[i].count)
			continue;
		tfh_json_object(j);
		tfh_json_kstr(j, "direction", dir_names[i]);
		tfh_json_ku64(j, "count", g->anchor[i].count);
		tfh_json_ku64(j, "bytes", g->anchor[i].bytes);
		tfh_json_kf64(j, "total_s", g->anchor[i].total_s);
		tfh_json_end(j);
	}
	tfh_json_end(j);
	tfh_json_key(j, "waits");
	tfh_json_object(j);
	tfh_json_ku64(j, "count", g->anchor[TFT_SKETCH_WAIT].count);
	tfh_json_kf64(j, "total_s", g->anchor[TFT_SKETCH_WAIT].total_s);
	tfh_json_end(j);
}

/* Intervals of which only the sketches remain. */
static void write_discarded(struct tfh_json *j, const struct tfh_result *r)
{
	tfh_json_key(j, "discarded");
	tfh_json_array(j);
	for (uint32_t i = 0; i < r->n_discarded; i++) {
		const struct tfh_discarded *g = &r->discarded[i];
		tfh_json_object(j);
		tfh_json_kf64(j, "start_s", g->start_s);
		tfh_json_kf64(j, "end_s", g->end_s);
		tfh_json_ku64(j, "events", g->events);
		tfh_json_ku64(j, "launches", g->launches);
		tfh_json_ku64(j, "steps", g->steps);
		tfh_json_kbool(j, "estimated", g->estimated);
		tfh_json_kf64(j, "mean_s", g->mean_s);
		tfh_json_kf64(j, "median_s", g->median_s);
		tfh_json_key(j, "calls");
		tfh_json_array(j);
		for (uint32_t k = 0; k < g->n_call; k++) {
			tfh_json_object(j);
			tfh_json_kstr(j, "fn", g->call[k].fn);
			tfh_json_ku64(j, "count", g->call[k].count);
			tfh_json_kf64(j, "total_s", g->call[k].total_s);
			tfh_json_end(j);
		}
		tfh_json_end(j);
		write_anchors(j, g);
		tfh_json_end(j);
	}
	tfh_json_end(j);
}

/* Times during startup, and modules loaded or compiled after it. */
static void write_startup(struct tfh_json *j, const struct tfh_result *r)
{
	static const char *const name[TFH_PHASE_COUNT] = {
		[TFH_PHASE_DRIVER] = "driver_s", [TFH_PHASE_CONTEXT] = "context_s",
		[TFH_PHASE_MODULE] = "module_s", [TFH_PHASE_BATCH] = "batch_s",
		[TFH_PHASE_STEP] = "step_s",	 [TFH_PHASE_STEADY] = "steady_s"};

	tfh_json_key(j, "startup");
	tfh_json_object(j);
	for (int k = 0; k < TFH_PHASE_COUNT; k++)
		tfh_json_kf64(j, name[k], r->startup[k]);
	tfh_json_end(j);
	tfh_json_key(j, "recompiles");
	tfh_json_object(j);
	tfh_json_ku64(j, "count", r->pattern.recompiles);
	tfh_json_kf64(j, "total_s", r->pattern.recompile_s);
	tfh_json_end(j);
}

static void write_input(struct tfh_json *j, const struct tfh_result *r)
{
	tfh_json_key(j, "input");
	tfh_json_object(j);
	tfh_json_kf64(j, "period_s", r->supply.period_s);
	tfh_json_kf64(j, "headroom", r->supply.headroom);
	tfh_json_ku64_if(j, "buffer", r->supply.buffer, r->supply.buffer);
	tfh_json_key(j, "stages");
	tfh_json_array(j);
	for (uint32_t i = 0; i < r->n_input; i++) {
		const struct tfh_input_stage *s = &r->input[i];
		tfh_json_object(j);
		tfh_json_kstr(j, "name", s->name);
		tfh_json_kstr(j, "prefix", s->prefix);
		tfh_json_kf64(j, "self_s_per_step", s->self_s_per_step);
		tfh_json_kf64(j, "calls_per_step", s->calls_per_step);
		tfh_json_kf64(j, "capacity_per_s", s->capacity_per_s);
		tfh_json_ku64_if(j, "parallelism", s->parallelism, s->parallelism);
		tfh_json_kbool(j, "async", s->async);
		tfh_json_kbool(j, "guilty", s->guilty);
		if (tfh_json_begin_line(j, "made_at", s->file, s->line, s->function))
			tfh_json_end(j);
		tfh_json_end(j);
	}
	tfh_json_end(j);
	tfh_json_end(j);
}

static void write_kernels(struct tfh_json *j, const struct tfh_result *r)
{
	tfh_json_key(j, "kernels");
	tfh_json_array(j);
	for (uint32_t i = 0; i < r->n_kernels; i++) {
		const struct tfh_kernel *k = &r->kernels[i];
		tfh_json_object(j);
		tfh_json_kstr(j, "name", k->name);
		tfh_json_kf64(j, "calls_per_step", k->calls_per_step);
		tfh_json_kf64(j, "median_s", k->median_s);
		tfh_json_kf64(j, "s_per_step", k->s_per_step);
		tfh_json_kf64(j, "share_of_busy", k->share_of_busy);
		tfh_json_kstr(j, "family", tfh_family_name(tfh_kernel_family(k->name)));
		tfh_json_end(j);
	}
	tfh_json_end(j);
}

static void write_devices(struct tfh_json *j, const struct tfh_result *r)
{
	tfh_json_key(j, "devices");
	tfh_json_array(j);
	for (uint32_t i = 0; i < r->n_devices; i++) {
		tfh_json_object(j);
		tfh_json_ku64(j, "device", r->devices[i].device);
		tfh_json_kf64(j, "compute_s", r->devices[i].compute_s);
		tfh_json_end(j);
	}
	tfh_json_end(j);
}

static void write_families(struct tfh_json *j, const struct tfh_result *r)
{
	tfh_json_key(j, "families");
	tfh_json_array(j);
	for (uint32_t i = 0; i < r->n_families; i++) {
		tfh_json_object(j);
		tfh_json_kstr(j, "family", tfh_family_name(r->families[i].family));
		tfh_json_ku64(j, "kernels", r->families[i].kernels);
		tfh_json_kf64(j, "s_per_step", r->families[i].s_per_step);
		tfh_json_kf64(j, "share_of_busy", r->families[i].share_of_busy);
		tfh_json_end(j);
	}
	tfh_json_end(j);
}

static void write_transfers(struct tfh_json *j, const struct tfh_result *r)
{
	tfh_json_key(j, "transfers");
	tfh_json_array(j);
	for (uint32_t i = 0; i < r->n_transfers; i++) {
		const struct tfh_transfer *t = &r->transfers[i];
		tfh_json_object(j);
		tfh_json_kstr(j, "fn", t->fn);
		tfh_json_kstr(j, "direction", dir_names[t->dir]);
		tfh_json_key(j, "pageable");
		if (t->pageable < 0)
			tfh_json_null(j);
		else
			tfh_json_bool(j, t->pageable);
		tfh_json_kf64(j, "calls_per_step", t->calls_per_step);
		tfh_json_kf64(j, "bytes_per_step", t->bytes_per_step);
		tfh_json_kf64(j, "bytes_per_s", t->bytes_per_s);
		tfh_json_ku64(j, "calls", t->calls);
		tfh_json_ku64(j, "blocking_calls", t->blocking_calls);
		tfh_json_kstr(j, "where", t->where && *t->where ? t->where : NULL);
		tfh_json_frames(j, r, t->stack);
		tfh_json_end(j);
	}
	tfh_json_end(j);
}

static void write_advice(struct tfh_json *j, const struct tfh_wording *w)
{
	tfh_json_key(j, "advice");
	tfh_json_array(j);
	for (uint32_t i = 0; i < w->n_advice; i++) {
		tfh_json_object(j);
		tfh_json_kstr(j, "finding", w->advice[i].finding);
		tfh_json_kstr(j, "evidence", w->advice[i].evidence);
		tfh_json_kf64(j, "gain", w->advice[i].gain);
		tfh_json_kstr(j, "do", w->advice[i].todo);
		tfh_json_end(j);
	}
	tfh_json_end(j);
	tfh_json_key(j, "remarks");
	tfh_json_array(j);
	for (uint32_t i = 0; i < w->n_remark; i++)
		tfh_json_str(j, w->remark[i]);
	tfh_json_end(j);
}

static void write_quality(struct tfh_json *j, const struct tfh_quality *q)
{
	tfh_json_key(j, "quality");
	tfh_json_object(j);
	tfh_json_ku64(j, "events", q->events);
	tfh_json_ku64(j, "dropped", q->dropped);
	tfh_json_ku64(j, "unhooked", q->unhooked);
	tfh_json_key(j, "unhooked_names");
	tfh_json_array(j);
	for (uint64_t i = 0; i < q->unhooked; i++)
		tfh_json_str(j, q->unhooked_names[i]);
	tfh_json_end(j);
	tfh_json_ku64(j, "unnamed", q->unnamed);
	tfh_json_kf64(j, "unattributed_share", q->unattributed_share);
	tfh_json_kbool(j, "clean_end", q->clean_end);
	tfh_json_kstr(j, "gpu_times", q->gpu_times);
	if (q->graphs)
		tfh_json_kstr(j, "graphs", q->graphs);
	tfh_json_kf64(j, "overhead_share", q->overhead_share);
	tfh_json_kf64(j, "cupti_share", q->cupti_share);
	tfh_json_kf64(j, "device_times_share", q->device_times_share);
	tfh_json_kf64(j, "run_delay_share", q->run_delay_share);
	tfh_json_kstr(j, "clock", q->clock);
	tfh_json_kf64(j, "clock_residual_s", q->clock_residual_s);
	tfh_json_ku64(j, "files", q->files);
	tfh_json_ku64(j, "files_complete", q->files_complete);
	tfh_json_ku64(j, "holes", q->holes);
	tfh_json_end(j);
}

/* Shares by the rules of XProf's overview page. */
static void write_xprof(struct tfh_json *j, const struct tfh_result *r)
{
	static const char *const name[TFH_XPROF_COUNT] = {[TFH_XPROF_COMPUTE] = "compute",
							  [TFH_XPROF_OUTPUT] = "output",
							  [TFH_XPROF_DEVICE] = "device_to_device",
							  [TFH_XPROF_COLLECTIVES] = "collectives",
							  [TFH_XPROF_INPUT] = "input",
							  [TFH_XPROF_OTHER] = "other"};

	if (!tfh_json_kobject_if(j, "xprof", !isnan(r->xprof[0])))
		return;
	for (int k = 0; k < TFH_XPROF_COUNT; k++)
		tfh_json_kf64(j, name[k], r->xprof[k]);
	tfh_json_end(j);
}

int tfh_report_json(FILE *out, const struct tfh_wording *words)
{
	const struct tfh_result *r = words->r;
	struct tfh_json j;

	tfh_json_init(&j, out, 2);
	tfh_json_object(&j);
	tfh_json_kstr(&j, "schema", "tfhook.report/1");
	write_run(&j, r);
	tfh_report_software_json(&j, r);
	tfh_json_key(&j, "world");
	tfh_json_object(&j);
	tfh_json_ku64(&j, "ranks", r->ranks);
	tfh_json_ku64(&j, "seen", r->ranks_seen);
	tfh_json_ku64(&j, "hosts", r->hosts);
	tfh_json_end(&j);
	write_end(&j, r);
	tfh_json_verdict(&j, words);
	tfh_json_recurs(&j, r);
	write_steps(&j, r);
	write_parts(&j, r);
	tfh_json_computed(&j, r);
	write_whatif(&j, r);
	tfh_json_tree(&j, r);
	tfh_json_start(&j, r);
	tfh_json_sampled(&j, r);
	write_segments(&j, r);
	write_discarded(&j, r);
	write_startup(&j, r);
	write_input(&j, r);
	write_devices(&j, r);
	write_kernels(&j, r);
	write_families(&j, r);
	write_transfers(&j, r);
	tfh_json_places(&j, r);
	write_advice(&j, words);
	write_quality(&j, &r->quality);
	write_xprof(&j, r);
	tfh_json_memory(&j, r);
	tfh_json_key(&j, "machine");
	tfh_report_machine_json(&j, r);
	tfh_json_ranks(&j, r);
	tfh_json_end(&j);
	return tfh_json_finish(&j);
}
