/* `tfhook why`: what one step waited for, as a chain with times;
 * or how a figure of the report was computed. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/judged.h"
#include "judge/chain.h"
#include "judge/judge.h"
#include "report/report.h"

/* The first operand, if it is a step's number or a topic, and not a file. */
struct question {
	const char *topic; /* NULL: a step */
	bool numbered;
	uint64_t step;
};

static bool is_number(const char *text)
{
	size_t n = strspn(text, "0123456789");

	return n && !text[n] && n < 19;
}

static int take_question(const struct tfh_command_line *args, struct question *q)
{
	const char *first = args->operands ? args->operand[0] : NULL;

	*q = (struct question){.topic = NULL};
	if (!first || !access(first, F_OK))
		return 0;
	if (is_number(first)) {
		q->numbered = true;
		q->step = strtoull(first, NULL, 10);
		return 1;
	}
	q->topic = tfh_report_topic(first) ? first : NULL;
	return q->topic != NULL;
}

/* The request, and the chain of its step. */
struct asked {
	struct question q;
	bool has_chain;
	struct tfh_chain chain;
};

static const struct tfh_step *step_of(const struct question *q, const struct tfh_result *r)
{
	return q->numbered ? tfh_report_step(r, q->step) : tfh_report_median_step(r);
}

static struct tfh_chain *choose(void *arg, const struct tfh_result *r)
{
	struct asked *a = arg;
	const struct tfh_step *step = step_of(&a->q, r);

	if (!step)
		return NULL;
	tfh_chain_init_step(&a->chain, r->process, step);
	a->has_chain = true;
	return &a->chain;
}

static int judge(void *arg, struct tfh_run *run, struct tfh_result **out, struct tfh_err *err)
{
	struct asked *a = arg;
	struct tfh_steps_wanted wanted = {choose, a, a->q.numbered ? a->q.step : TFH_NO_STEP};

	return tfh_analyze_steps(run, a->q.topic ? NULL : &wanted, NULL, NULL, out, err);
}

static int answer(const struct tfh_judged *j, const struct asked *a, const struct tfh_style *style,
		  struct tfh_err *err)
{
	const struct tfh_result *r = j->result;
	const struct question *q = &a->q;
	const struct tfh_step *step = step_of(q, r);
	/* without steps, the verdict is all that can be explained */
	const char *topic =
		!q->topic && !q->numbered && r->found.sampled.samples ? "verdict" : q->topic;
	struct tfh_wording words;
	int code = 0;

	if (!step && !q->topic && q->numbered && r->n_step)
		return tfh_err_set(
			err, -EINVAL, "why: there is no step %llu; the steps are %llu to %llu",
			(unsigned long long)q->step, (unsigned long long)r->step[0].index,
			(unsigned long long)r->step[r->n_step - 1].index);
	if (!step && !topic)
		return tfh_err_set(err, -ENODATA,
				   "why: no step was found; `tfhook report` says what is missing");
	if (j->digest && !topic)
		return tfh_err_set(
			err, -ENODATA,
			"why: what a step waited for needs the recording's segments, which are "
			"gone; `tfhook why gain` and `verdict` do not");
	tfh_wording_make(&words, r);
	if (topic)
		tfh_report_why(stdout, &words, style, topic);
	else
		code = tfh_report_chain(stdout, &words, style, step, &a->chain);
	tfh_wording_free(&words);
	return code;
}

static int cmd_why(const struct tfh_command_line *args)
{
	struct tfh_style style = {
		.color = tfh_use_color(tfh_line_get(args, "color"), stdout),
		.utf8 = tfh_use_utf8(),
		.every = tfh_line_get(args, "all"),
		.columns = tfh_use_columns(stdout),
	};
	struct tfh_judged judged = {.run = NULL};
	struct tfh_err err = {0};
	struct asked asked = {.has_chain = false};
	int taken = take_question(args, &asked.q);

	int code = tfh_judged_open((const char *const *)args->operand + taken,
				   (uint32_t)(args->operands - taken), !asked.q.topic, judge,
				   &asked, &judged, &err);
	if (!code)
		code = answer(&judged, &asked, &style, &err);
	if (code)
		tfh_say_why(&err, code);
	if (asked.has_chain)
		tfh_chain_free(&asked.chain);
	tfh_judged_close(&judged);
	return code ? tfh_exit_code(code) : TFH_EXIT_OK;
}

const struct tfh_command tfh_cmd_why = {
	.name = "why",
	.operand_text = "[STEP|TOPIC] [PATH...]",
	.summary = "what a step waited for, as a chain with times; where a figure comes from",
	.details =
		"STEP is a step's number, as in `tfhook report --steps`; the default is a step of "
		"median length. Every moment of it is charged to what the step waited for: "
		"computing, a call of the program, a pause, a copy. TOPIC is gain, verdict, tier, "
		"or a cause such as input.map, and prints how the report arrived at that figure. "
		"PATH is as in `tfhook report`.\n\n"
		"Exit code: 0 fine, 2 usage, 3 unreadable, 5 no such step.",
	.operands = TFH_OPERANDS_TRACES,
	.usage_exit = TFH_EXIT_USAGE,
	.run = cmd_why,
	.flags =
		{
			{.name = "all", .help = "print every link by itself, however short"},
			TFH_FLAG_COLOR,
		},
};
