/* `tfhook diff`: what changed from one run to another, or between two intervals of a run. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/digests.h"
#include "diff/diff.h"

/* Which operands belong to which side. */
struct sides {
	char *const *path[2];
	int n[2];
	struct tfh_run_digest **digest[2];
};

static int usage(const char *why)
{
	tfh_say("diff: %s", why);
	tfh_say("tfhook diff A B, tfhook diff A... -- B..., or tfhook diff --at 0-10m --at 50-60m "
		"RUN");
	return -EINVAL;
}

static int find_sides(const struct tfh_command_line *args, bool intervals, struct sides *s)
{
	int split = args->before ? args->before : args->operands / 2;

	s->path[0] = args->operand;
	if (intervals) {
		s->n[0] = 1;
		return args->operands == 1 ? 0 : usage("--at is of one run");
	}
	if (!args->before && args->operands != 2)
		return usage(args->operands < 2
				     ? "name two runs"
				     : "which runs are the second side? put -- before them");
	s->path[1] = args->operand + split;
	s->n[0] = split;
	s->n[1] = args->operands - split;
	return s->n[1] ? 0 : usage("no run behind --");
}

/* "90", "90s", "10m", "1.5h", "250ms" */
static bool read_time(const char **text, double *s)
{
	static const struct {
		const char *name;
		double s;
	} units[] = {{"ms", 1e-3}, {"s", 1}, {"m", 60}, {"h", 3600}};
	char *end;

	*s = strtod(*text, &end);
	if (end == *text || !(*s >= 0))
		return false;
	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
		size_t n = strlen(units[i].name);
		if (strncmp(end, units[i].name, n))
			continue;
		*s *= units[i].s;
		end += n;
		break;
	}
	*text = end;
	return true;
}

/* "50-60m". A first time without a unit has the second one's. */
static int read_interval(const char *text, struct tfh_diff_side *s)
{
	const char *p = text, *dash = strchr(text, '-');
	double from, to = INFINITY;
	char *bare;

	if (!dash || !read_time(&p, &from) || p != dash)
		return usage("--at needs two times, such as 50-60m, 90s-2m or 10m-");
	p = dash + 1;
	if (*p && (!read_time(&p, &to) || *p))
		return usage("--at needs two times, such as 50-60m, 90s-2m or 10m-");
	strtod(text, &bare);
	if (bare == dash && isfinite(to)) {
		double plain = strtod(dash + 1, NULL);
		from *= plain > 0 ? to / plain : 1;
	}
	s->from_s = from;
	s->to_s = to;
	return from < to ? 0 : usage("--at: the first time must be the earlier one");
}

static int open_sides(struct sides *s, struct tfh_err *err)
{
	int rc = 0;

	for (int k = 0; k < 2; k++) {
		s->digest[k] = calloc((size_t)s->n[k] + 1, sizeof(*s->digest[k]));
		if (!s->digest[k])
			return tfh_err_set(err, -ENOMEM, "out of memory");
		for (int i = 0; i < s->n[k] && !rc; i++)
			rc = tfh_digest_get(s->path[k][i], &s->digest[k][i], err);
	}
	return rc;
}

static void close_sides(struct sides *s)
{
	for (int k = 0; k < 2; k++) {
		for (int i = 0; s->digest[k] && i < s->n[k]; i++)
			tfh_digest_close(s->digest[k][i]);
		free(s->digest[k]);
	}
}

static int print(const struct tfh_command_line *args, const struct tfh_run_diff *d)
{
	if (tfh_line_get(args, "json"))
		return tfh_diff_json(stdout, d);
	tfh_diff_text(stdout, d, tfh_use_columns(stdout), tfh_line_get(args, "all"));
	return 0;
}

/* The limit's answer as an exit status. */
static int check(const char *text, const struct tfh_diff_limit *limit, const struct tfh_run_diff *d)
{
	enum tfh_diff_answer answer = tfh_diff_limit_check(d, limit);

	if (answer == TFH_DIFF_BEYOND)
		tfh_say("diff: beyond the limit: %s", text);
	if (answer == TFH_DIFF_UNSURE)
		tfh_say("diff: cannot tell whether %s: the steps differ by too much among "
			"themselves, or are too few",
			text);
	return answer == TFH_DIFF_BEYOND ? TFH_EXIT_GATE : TFH_EXIT_OK;
}

static int compare(const struct tfh_command_line *args, struct sides *s, struct tfh_run_diff *d,
		   const struct tfh_diff_limit *limit, struct tfh_err *err)
{
	int rc = open_sides(s, err);

	for (int k = 0; k < 2; k++) {
		int of = d->same_run ? 0 : k;
		d->side[k].digest = s->digest[of];
		d->side[k].n = (uint32_t)s->n[of];
		d->side[k].name = s->path[of][0];
	}
	if (!rc)
		rc = tfh_diff_make(d, err);
	if (!rc)
		rc = print(args, d);
	if (rc)
		return rc;
	return limit ? check(tfh_line_get(args, "fail-on"), limit, d) : TFH_EXIT_OK;
}

static int cmd_diff(const struct tfh_command_line *args)
{
	const char *at = tfh_line_get(args, "at"), *fail_on = tfh_line_get(args, "fail-on");
	struct tfh_run_diff *d = calloc(1, sizeof(*d));
	struct sides s = {.n = {0}};
	struct tfh_diff_limit limit;
	struct tfh_err err = {0};
	int rc = d ? 0 : tfh_err_set(&err, -ENOMEM, "out of memory");

	if (!rc)
		rc = find_sides(args, at, &s);
	if (!rc && at && !args->again)
		rc = usage("--at is given twice: the two intervals to compare");
	for (int k = 0; k < 2 && !rc; k++) {
		d->side[k].to_s = INFINITY;
		if (at)
			rc = read_interval(k ? args->again : at, &d->side[k]);
	}
	if (!rc && fail_on)
		rc = tfh_diff_limit_parse(fail_on, &limit, &err);
	if (!rc) {
		d->same_run = at;
		rc = compare(args, &s, d, fail_on ? &limit : NULL, &err);
	}
	if (rc < 0 && *err.text)
		tfh_say_why(&err, rc);
	close_sides(&s);
	free(d);
	return rc < 0 ? tfh_exit_code(rc) : rc;
}

const struct tfh_command tfh_cmd_diff = {
	.name = "diff",
	.operand_text = "A B | A... -- B... | RUN",
	.summary = "what changed from one run to another, and how sure that is",
	.details =
		"A and B are run directories, .tft files, digests or traces of other profilers. "
		"Prints by how much steps became slower or faster, with a 95 % confidence "
		"interval, which causes gained or lost time, and which lines, kernels, settings "
		"and versions differ; or that no difference was found, and how large one could "
		"still be. Several runs of each kind (A... -- B...) give a more reliable "
		"result.\n\n"
		"--at, given twice, compares two intervals of one run: --at 0-10m --at 50-60m.\n\n"
		"--fail-on takes a part of a step (step, compute, or a cause) and the largest "
		"change allowed: 'step>+5%', 'input.map>1ms', 'step<-2%'.\n\n"
		"Exit code: 0 compared, 1 a change beyond --fail-on was found, 2 usage, 3 "
		"unreadable, 5 no steps to compare.",
	.operands = TFH_OPERANDS_TRACES,
	.usage_exit = TFH_EXIT_USAGE,
	.run = cmd_diff,
	.flags =
		{
			{.name = "at",
			 .arg = "START-END",
			 .help = "an interval of RUN; give it twice to compare two intervals",
			 .twice = true},
			{.name = "fail-on",
			 .arg = "LIMIT",
			 .help = "exit 1 if a change beyond LIMIT was found"},
			{.name = "all", .help = "print every row"},
			{.name = "json", .help = "print JSON, schema tfhook.diff/1"},
		},
};
