/*
 * The live view as metrics, for node_exporter's textfile collector and everything else that reads OpenMetrics. All are gauges,
 * whose lines are the same in Prometheus' older text format.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clean.h"
#include "base/json.h"
#include "base/print.h"
#include "top/watch.h"

#define LABEL 512

/* A label's value: cleaned, and then with the two escapes that the format knows. */
static const char *label(char out[LABEL], const char *text)
{
	char clean[LABEL / 2];
	size_t n = 0;

	tfh_clean(clean, sizeof(clean), text, strlen(text));
	for (const char *p = clean; *p; p++) {
		if (*p == '\\' || *p == '"')
			out[n++] = '\\';
		out[n++] = *p;
	}
	out[n] = '\0';
	return out;
}

static void family(FILE *out, const char *name, const char *help)
{
	tfh_print(out, "# TYPE %s gauge\n# HELP %s %s\n", name, name, help);
}

/* Labels are made of our own words and of label()s, so that braces and quotes are where they belong. */
static void value(FILE *out, const char *name, const char *labels, double v)
{
	char number[32];

	if (isnan(v))
		return;
	tfh_json_format_double(number, v);
	tfh_print(out, "%s{%s} %s\n", name, labels, number);
}

/* host, pid and rank of a process. */
static void process_labels(char out[2 * LABEL], const struct tfh_watched *of)
{
	char host[LABEL];
	int n = snprintf(out, 2 * LABEL, "host=\"%s\",pid=\"%u\"", label(host, of->state.host),
			 of->state.pid);

	if (of->state.rank >= 0)
		snprintf(out + n, 2 * LABEL - (size_t)n, ",rank=\"%d\"", of->state.rank);
}

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
	{"tfhook_recorder_cpu_seconds", "Processor time of the recorder.", recorder_value},
	{"tfhook_writing_paused_seconds", "Nothing was written for so long.", paused_value},
	{"tfhook_call_in_flight_seconds", "Age of the oldest call in flight.", in_flight_value},
};

static void put_processes(FILE *out, const struct tfh_watch *w)
{
	char labels[2 * LABEL];

	for (size_t m = 0; w->n_of && m < sizeof(of_process) / sizeof(of_process[0]); m++) {
		family(out, of_process[m].name, of_process[m].help);
		for (uint32_t i = 0; i < w->n_of; i++) {
			process_labels(labels, &w->of[i]);
			value(out, of_process[m].name, labels, of_process[m].of(&w->of[i]));
		}
	}
}

static void put_judgement(FILE *out, const struct tfh_watch *w)
{
	const struct tfh_result *r = w->result;
	const char *cause = tfh_cause_name(r->verdict.cause);
	char labels[2 * LABEL], file[LABEL];
	double silent = tfh_watch_silent(w);

	family(out, "tfhook_verdict_share", "Part of the training time that the verdict is about.");
	snprintf(labels, sizeof(labels), "class=\"%s\",cause=\"%s\"",
		 tfh_class_name(r->verdict.cls), cause ? cause : "");
	value(out, "tfhook_verdict_share", labels, isnan(r->verdict.share) ? 0 : r->verdict.share);
	if (r->found.line.file) {
		family(out, "tfhook_line_seconds", "Time of a step at the line to blame.");
		snprintf(labels, sizeof(labels), "file=\"%s\",line=\"%u\"",
			 label(file, r->found.line.file), r->found.line.line);
		value(out, "tfhook_line_seconds", labels, r->found.line.s_per_step);
	}
	if (!r->steps.count)
		return;
	family(out, "tfhook_step_seconds",
	       "Duration of a step: the median, and what 95 of 100 stay below.");
	value(out, "tfhook_step_seconds", "point=\"median\"", r->steps.median_s);
	value(out, "tfhook_step_seconds", "point=\"p95\"", r->steps.p95_s);
	family(out, "tfhook_step_part_seconds", "Parts of a step on average.");
	for (int p = 0; p < TFH_PART_COUNT; p++) {
		snprintf(labels, sizeof(labels), "part=\"%s\"", tfh_part_name((enum tfh_part)p));
		value(out, "tfhook_step_part_seconds", labels, r->breakdown[p].s_per_step);
	}
	family(out, "tfhook_since_step_seconds", "Time since the last step that is known ended.");
	value(out, "tfhook_since_step_seconds", "", silent);
}

int tfh_top_metrics(FILE *out, const struct tfh_watch *w)
{
	char job[LABEL], dir[LABEL], labels[2 * LABEL + 32];

	family(out, "tfhook_job_running", "1 while the job is watched and records, with its name.");
	snprintf(labels, sizeof(labels), "job=\"%s\",directory=\"%s\"", label(job, w->name),
		 label(dir, w->dir));
	value(out, "tfhook_job_running", labels, w->phase == TFH_WATCH_RUNNING);
	put_processes(out, w);
	if (w->result)
		put_judgement(out, w);
	tfh_put("# EOF\n", out);
	return ferror(out) ? -EIO : 0;
}

/* A reader sees the old file or the new one, never a part. */
int tfh_top_metrics_file(const char *path, const struct tfh_watch *w)
{
	size_t n = strlen(path) + 16;
	char *temporary = malloc(n);
	int rc = temporary ? 0 : -ENOMEM, fd = -1;

	if (!rc) {
		snprintf(temporary, n, "%s.XXXXXX", path);
		fd = mkstemp(temporary);
		rc = fd < 0 ? -errno : 0;
	}
	if (rc) {
		free(temporary);
		return rc;
	}
	/* The collector may be another user. */
	FILE *out = fchmod(fd, 0644) ? NULL : fdopen(fd, "w");
	if (out) {
		rc = tfh_top_metrics(out, w);
		if (fclose(out) && !rc)
			rc = -errno;
	} else {
		rc = -errno;
		close(fd);
	}
	if (!rc && rename(temporary, path))
		rc = -errno;
	if (rc)
		unlink(temporary);
	free(temporary);
	return rc;
}
