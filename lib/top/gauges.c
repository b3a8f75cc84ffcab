#include "top/gauges.h"

#include <math.h>
#include <stdio.h>

static void point(const struct tfh_gauge_sink *to, const struct tfh_label *label, uint32_t n,
		  double v)
{
	if (!isnan(v))
		to->point(to->arg, label, n, v);
}

/* ---- per process ---- */

static double steps_value(const struct tfh_watched *of)
{
	return (double)of->state.steps;
}

static double lost_value(const struct tfh_watched *of)
{
	return (double)of->state.dropped;
}

static double recorder_value(const struct tfh_watched *of)
{
	return of->state.recorder_s;
}

static double paused_value(const struct tfh_watched *of)
{
	return of->state.paused_s;
}

static double alive_value(const struct tfh_watched *of)
{
	return of->state.alive;
}

static double in_flight_value(const struct tfh_watched *of)
{
	double longest = 0;

	for (uint32_t i = 0; i < of->state.n_call; i++)
		longest = fmax(longest, of->state.call[i].since_s);
	return longest;
}

static const struct {
	const char *name, *help;
	double (*of)(const struct tfh_watched *of);
} of_process[] = {
	{"tfhook_recording", "Whether the process records.", alive_value},
	{"tfhook_batches", "Batches or step marks so far.", steps_value},
	{"tfhook_records_lost", "Records lost so far.", lost_value},
	{"tfhook_recorder_cpu_seconds", "CPU time of the recorder.", recorder_value},
	{"tfhook_writing_paused_seconds", "How long writing has been paused.", paused_value},
	{"tfhook_call_in_flight_seconds", "Age of the oldest call in flight.", in_flight_value},
};

static void process_point(const struct tfh_gauge_sink *to, const struct tfh_watched *of, double v)
{
	char pid[16], rank[16];
	const struct tfh_label label[] = {{"host", of->state.host}, {"pid", pid}, {"rank", rank}};

	snprintf(pid, sizeof(pid), "%u", of->state.pid);
	snprintf(rank, sizeof(rank), "%d", of->state.rank);
	point(to, label, of->state.rank >= 0 ? 3 : 2, v);
}

static void put_processes(const struct tfh_watch *w, const struct tfh_gauge_sink *to)
{
	for (size_t m = 0; w->n_of && m < sizeof(of_process) / sizeof(of_process[0]); m++) {
		to->gauge(to->arg, of_process[m].name, of_process[m].help);
		for (uint32_t i = 0; i < w->n_of; i++)
			process_point(to, &w->of[i], of_process[m].of(&w->of[i]));
	}
}

/* ---- the verdict ---- */

static void put_line(const struct tfh_result *r, const struct tfh_gauge_sink *to)
{
	char line[16];
	const struct tfh_label label[] = {{"file", r->found.line.file}, {"line", line}};

	if (!r->found.line.file)
		return;
	snprintf(line, sizeof(line), "%u", r->found.line.line);
	to->gauge(to->arg, "tfhook_line_seconds", "Time of a step at the line to blame.");
	point(to, label, 2, r->found.line.s_per_step);
}

static void put_steps(const struct tfh_watch *w, const struct tfh_gauge_sink *to)
{
	const struct tfh_result *r = w->result;
	const struct tfh_label median = {"point", "median"}, p95 = {"point", "p95"};

	to->gauge(to->arg, "tfhook_step_seconds",
		  "Duration of a step: the median and the 95th percentile.");
	point(to, &median, 1, r->steps.median_s);
	point(to, &p95, 1, r->steps.p95_s);
	to->gauge(to->arg, "tfhook_step_part_seconds", "Parts of a step on average.");
	for (int p = 0; p < TFH_PART_COUNT; p++) {
		const struct tfh_label part = {"part", tfh_part_name((enum tfh_part)p)};
		point(to, &part, 1, r->breakdown[p].s_per_step);
	}
	to->gauge(to->arg, "tfhook_since_step_seconds",
		  "Time since the last step that is known ended.");
	point(to, NULL, 0, tfh_watch_silent(w));
}

static void put_judgement(const struct tfh_watch *w, const struct tfh_gauge_sink *to)
{
	const struct tfh_result *r = w->result;
	const char *cause = tfh_cause_name(r->verdict.cause);
	const struct tfh_label verdict[] = {{"class", tfh_class_name(r->verdict.cls)},
					    {"cause", cause ? cause : ""}};

	to->gauge(to->arg, "tfhook_verdict_share",
		  "Part of the training time that the verdict is about.");
	point(to, verdict, 2, isnan(r->verdict.share) ? 0 : r->verdict.share);
	put_line(r, to);
	if (r->steps.count)
		put_steps(w, to);
}

void tfh_top_gauges(const struct tfh_watch *w, const struct tfh_gauge_sink *to)
{
	const struct tfh_label job[] = {{"job", w->name}, {"directory", w->dir}};

	to->gauge(to->arg, "tfhook_job_running",
		  "1 while the job is watched and records, with its name.");
	point(to, job, 2, w->phase == TFH_WATCH_RUNNING);
	put_processes(w, to);
	if (w->result)
		put_judgement(w, to);
}
