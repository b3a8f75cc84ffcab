/* The machine's meters: a table as text, lines over time as JSON; software and settings. */
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/print.h"
#include "base/priced.h"
#include "base/text.h"
#include "report/format.h"
#include "report/machine_table.h"

#define DRAWN 17u /* columns of the drawing over time */

/* A value with its unit: bytes scaled, shares in percent. */
static const char *value(char out[TFH_TEXT], const char *unit, double v)
{
	if (!strcmp(unit, "bytes"))
		return tfh_fmt_bytes(out, v);
	if (!strcmp(unit, "bytes/s"))
		return tfh_fmt_rate(out, v);
	if (!strcmp(unit, "share"))
		return tfh_fmt_share(out, v);
	return tfh_fmt_mean(out, v);
}

/* Draws the meter's values over time, in DRAWN columns. */
static void draw(FILE *out, const struct tfh_meter_line *l, bool utf8)
{
	static const char *const height[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	static const char plain[] = " .:-=+*#@";

	for (uint32_t i = 0; i < DRAWN && l->n; i++) {
		uint32_t from = i * l->n / DRAWN, to = (i + 1) * l->n / DRAWN;
		double most = NAN;
		for (uint32_t k = from; k < to || k == from; k++)
			most = fmax(most, l->point[k]);
		/* anything above 0 must be visible */
		int at = l->most > 0 && most > 0 ? (int)ceil(8 * fmin(most / l->most, 1)) : 0;
		if (utf8)
			tfh_print(out, "%s", height[at]);
		else
			tfh_print(out, "%c", plain[at]);
	}
}

/* The meter's name, with its device's number: gpu0.clock. */
static const char *name_of(char out[TFH_TEXT], const struct tfh_meter_line *l)
{
	const char *name = tfh_meters[l->meter].value[l->value].name;

	if (l->device < 0)
		return name;
	snprintf(out, TFH_TEXT, "gpu%d%s", l->device, name + strlen("gpu"));
	return out;
}

void tfh_report_machine_text(FILE *out, const struct tfh_result *r, bool utf8)
{
	const struct tfh_meter_line *l;
	uint32_t n = tfh_run_meters(r->run, r->process, &l);
	char name[TFH_TEXT], mean[TFH_TEXT], most[TFH_TEXT];

	if (!n) {
		tfh_print(out,
			  "nothing was recorded about the machine: it is read once a second, from "
			  "the second second on\n");
		return;
	}
	tfh_print(out, "%-30s %9s %9s  %-*s %s\n", "THE MACHINE, ONCE A SECOND", "mean", "most",
		  (int)DRAWN, "over time", "unit");
	for (; n--; l++) {
		const char *unit = tfh_meters[l->meter].value[l->value].unit;
		if (l->most <= 0)
			continue;
		bool scaled = tfh_starts_with(unit, "bytes") || !strcmp(unit, "share");
		tfh_print(out, "%-30s %9s %9s  ", name_of(name, l), value(mean, unit, l->mean),
			  value(most, unit, l->most));
		draw(out, l, utf8);
		tfh_print(out, "%s%s\n", scaled ? "" : " ", scaled ? "" : unit);
	}
}

static void write_line(struct tfh_json *j, const struct tfh_meter_line *l)
{
	tfh_json_object(j);
	tfh_json_kstr(j, "name", tfh_meters[l->meter].value[l->value].name);
	if (l->device >= 0)
		tfh_json_ki64(j, "device", l->device);
	tfh_json_kstr(j, "unit", tfh_meters[l->meter].value[l->value].unit);
	tfh_json_kf64(j, "mean", l->mean);
	tfh_json_kf64(j, "least", l->least);
	tfh_json_kf64(j, "most", l->most);
	tfh_json_kf64(j, "start_s", (double)l->t0 / 1e9);
	tfh_json_kf64(j, "width_s", (double)l->width_ns / 1e9);
	tfh_json_key(j, "line");
	tfh_json_array(j);
	for (uint32_t i = 0; i < l->n; i++)
		tfh_json_f64(j, l->point[i]);
	tfh_json_end(j);
	tfh_json_end(j);
}

void tfh_report_machine_json(struct tfh_json *j, const struct tfh_result *r)
{
	const struct tfh_meter_line *l;
	uint32_t n = tfh_run_meters(r->run, r->process, &l);

	tfh_json_array(j);
	for (; n--; l++)
		write_line(j, l);
	tfh_json_end(j);
}

/* The CPUs or memory nodes that it was allowed to use; NULL: unknown. */
static void write_bound(struct tfh_json *j, const char *key, const char *text)
{
	tfh_json_kstr(j, key, text && strcmp(text, "?") ? text : NULL);
}

/* Threads with recorded calls, with the kernel's counts for each since it began. */
static void write_threads(struct tfh_json *j, const struct tfh_result *r)
{
	const struct tfh_thread_info *t;

	tfh_json_key(j, "threads");
	tfh_json_array(j);
	for (uint32_t n = tfh_run_threads(r->run, &t); n--; t++) {
		if (t->process != r->process || !t->index || !tfh_thread_sampled(t))
			continue;
		tfh_json_object(j);
		tfh_json_ku64(j, "tid", t->tid);
		tfh_json_kstr(j, "name", t->name);
		tfh_json_kf64(j, "cpu_s", t->timed ? t->run_s : NAN);
		tfh_json_kf64(j, "run_delay_s", t->timed ? t->delay_s : NAN);
		tfh_json_ku64_if(j, "minor_faults", t->faults_known, t->minor_faults);
		tfh_json_ku64_if(j, "major_faults", t->faults_known, t->major_faults);
		tfh_json_ku64_if(j, "voluntary_switches", t->switches_known, t->voluntary_switches);
		tfh_json_ku64_if(j, "forced_switches", t->switches_known, t->forced_switches);
		tfh_json_end(j);
	}
	tfh_json_end(j);
}

/* The software that the critical process ran with. */
void tfh_report_software_json(struct tfh_json *j, const struct tfh_result *r)
{
	const struct tfh_process *p;
	bool any = tfh_run_processes(r->run, &p) > r->process;

	tfh_json_key(j, "software");
	tfh_json_array(j);
	for (uint32_t i = 0; any && i < p[r->process].n_software; i++) {
		tfh_json_object(j);
		tfh_json_kstr(j, "name", p[r->process].software[i].name);
		tfh_json_kstr(j, "version", p[r->process].software[i].version);
		tfh_json_kstr(j, "path", p[r->process].software[i].path);
		tfh_json_end(j);
	}
	tfh_json_end(j);
	tfh_json_key(j, "settings");
	tfh_json_array(j);
	for (uint32_t i = 0; any && i < tfh_priced_count; i++) {
		if (!(p[r->process].priced >> i & 1))
			continue;
		tfh_json_object(j);
		tfh_json_kstr(j, "variable", tfh_priced[i].variable);
		tfh_json_kstr(j, "value", tfh_priced[i].value);
		tfh_json_kstr(j, "cost", tfh_priced[i].sentence);
		tfh_json_end(j);
	}
	tfh_json_end(j);
	tfh_json_key(j, "program_settings");
	tfh_json_array(j);
	for (uint32_t i = 0; any && i < p[r->process].n_setting; i++) {
		tfh_json_object(j);
		tfh_json_kstr(j, "name", p[r->process].setting[i].name);
		tfh_json_kstr(j, "value", p[r->process].setting[i].value);
		tfh_json_end(j);
	}
	tfh_json_end(j);
	tfh_json_key(j, "binding");
	tfh_json_object(j);
	write_bound(j, "processors", any ? p[r->process].bound_cpus : NULL);
	write_bound(j, "memory_nodes", any ? p[r->process].bound_nodes : NULL);
	write_bound(j, "memory_policy", any ? p[r->process].bound_policy : NULL);
	tfh_json_end(j);
	write_threads(j, r);
}
