/* `tfhook report`: reads a recording, judges it, and prints the result in the requested form. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/print.h"
#include "judge/judge.h"
#include "cli/cli.h"
#include "cli/judged.h"
#include "cli/many_ranks.h"
#include "cli/page_file.h"
#include "report/report.h"

static bool incomplete(const struct tfh_quality *q)
{
	return !q->clean_end || q->dropped || q->holes || q->files_complete < q->files;
}

/* Prints all parts requested by name, each after an empty line. */
static bool print_sections(const struct tfh_command_line *args, const struct tfh_wording *words,
			   const struct tfh_style *style)
{
	bool any = false;

	for (size_t i = 0; i < tfh_section_count; i++) {
		if (!tfh_line_get(args, tfh_sections[i].name))
			continue;
		if (any)
			tfh_put("\n", stdout);
		tfh_report_section(stdout, words, style, &tfh_sections[i]);
		any = true;
	}
	return any;
}

static int print_words(const struct tfh_command_line *args, const struct tfh_result *r)
{
	struct tfh_style style = {
		.color = tfh_use_color(tfh_line_get(args, "color"), stdout),
		.utf8 = tfh_use_utf8(),
		.wide = tfh_line_get(args, "wide"),
		.columns = tfh_use_columns(stdout),
		.rows = tfh_use_rows(stdout),
	};
	bool json = tfh_line_get(args, "json");
	struct tfh_wording words;
	int rc = 0;

	tfh_wording_make(&words, r);
	if (json)
		rc = tfh_report_json(stdout, &words);
	else if (print_sections(args, &words, &style))
		;
	else if (tfh_line_get(args, "all") || style.wide)
		tfh_report_text(stdout, &words, &style);
	else
		tfh_report_screen(stdout, &words, &style);
	tfh_wording_free(&words);
	return rc;
}

/* The step of --step N; NULL, with a message: there is none. */
static const struct tfh_step *step_asked_for(const char *text, const struct tfh_result *r)
{
	char *end;
	unsigned long long index = strtoull(text, &end, 10);
	const struct tfh_step *step = *end || !*text ? NULL : tfh_report_step(r, index);

	if (!step && r->n_step)
		tfh_say("report: there is no step %s; the steps are %llu to %llu", text,
			(unsigned long long)r->step[0].index,
			(unsigned long long)r->step[r->n_step - 1].index);
	else if (!step)
		tfh_say("report: there is no step %s: none was found", text);
	return step;
}

static int print(const struct tfh_command_line *args, const struct tfh_result *r)
{
	bool json = tfh_line_get(args, "json");
	const char *step = tfh_line_get(args, "step");
	const struct tfh_step *one;

	if (tfh_line_get(args, "csv"))
		tfh_report_steps_csv(stdout, r);
	else if (step && !(one = step_asked_for(step, r)))
		return -EINVAL;
	else if (step)
		tfh_report_step_text(stdout, r, one);
	else if (tfh_line_get(args, "steps") && json)
		return tfh_report_steps_json(stdout, r);
	else if (tfh_line_get(args, "steps"))
		tfh_report_steps_text(stdout, r);
	else if (tfh_line_get(args, "folded"))
		tfh_report_where_folded(stdout, r);
	else
		return print_words(args, r);
	return 0;
}

/* `arg`: the parts of a page, or NULL. */
static int judge(void *arg, struct tfh_run *run, struct tfh_result **out, struct tfh_err *err)
{
	return arg ? tfh_page_analyze(run, arg, out, err) : tfh_analyze(run, out, err);
}

/* Whether the output needs the recording: exact times of single steps, which a digest rounds, or
 * calls, which it does not hold. */
static bool of_calls(const struct tfh_command_line *args)
{
	return tfh_line_get(args, "html") || tfh_line_get(args, "steps") ||
	       tfh_line_get(args, "step") || tfh_line_get(args, "csv");
}

static int exit_status(const struct tfh_command_line *args, const struct tfh_result *r, int code)
{
	if (code && ferror(stdout))
		return TFH_EXIT_UNREADABLE; /* reported after all output */
	if (code == -EINVAL)
		return TFH_EXIT_USAGE; /* already reported */
	if (code) {
		tfh_say("cannot write the report: %s", strerror(-code));
		return TFH_EXIT_UNREADABLE;
	}
	if (!r->steps.total && !r->found.sampled.samples)
		return TFH_EXIT_NOTHING; /* the report says what is missing */
	if (tfh_line_get(args, "strict") && incomplete(&r->quality)) {
		tfh_say("the recording is incomplete (--strict); `tfhook verify` says where");
		return TFH_EXIT_INCOMPLETE;
	}
	return TFH_EXIT_OK;
}

static int cmd_report(const struct tfh_command_line *args)
{
	struct tfh_page_parts parts = {.shown = {.n = 0}};
	struct tfh_judged judged = {.run = NULL};
	struct tfh_err err = {0};
	const char *page = tfh_line_get(args, "html");
	int status = TFH_EXIT_OK;

	if (tfh_line_get(args, "csv") && tfh_line_get(args, "json")) {
		tfh_say("report: --csv and --json exclude each other");
		return TFH_EXIT_USAGE;
	}
	if (page && !tfh_page_allowed(args, &status))
		return status;
	if (tfh_report_many(args, &status))
		return status;
	int code = tfh_judged_open((const char *const *)args->operand, (uint32_t)args->operands,
				   of_calls(args), judge, page ? &parts : NULL, &judged, &err);
	if (code) {
		tfh_say_why(&err, code);
		status = tfh_exit_code(code);
	} else {
		status = page ? tfh_page_write(page, &judged, &parts) : TFH_EXIT_OK;
		if (!status)
			status = exit_status(args, judged.result,
					     page ? 0 : print(args, judged.result));
	}
	tfh_page_free(&parts);
	tfh_judged_close(&judged);
	return status;
}

const struct tfh_command tfh_cmd_report = {
	.name = "report",
	.operand_text = "[PATH...]",
	.summary = "where each step's time goes, and what fixing it would gain",
	.details =
		"Prints at most one screen: the verdict, what is to blame, what to do next, and "
		"how sure that is. --all prints everything; flags such as --kernels print single "
		"parts, and may be combined.\n\n"
		"PATH is a run directory or .tft files; the default is your newest run directory "
		"here. It may also be a trace of another profiler: PyTorch's Kineto JSON (.json, "
		".json.gz), TensorFlow's and JAX's XPlane (.xplane.pb, or TensorBoard's log "
		"directory), the SQLite export of nsys, rocprof's results.json or database, or "
		"Ascend's trace_view.json. Several traces are the ranks of one job.\n\n"
		"If a directory holds digests of several hosts (see `tfhook digest`), the report "
		"covers the whole job and is made from these alone: it names the ranks that the "
		"others wait for, and those that are missing, died or hang. With --ranks --json: "
		"schema tfhook.ranks/1.\n\n"
		"Exit code: 0 fine, 2 usage, 3 unreadable, 4 incomplete (with --strict), 5 "
		"nothing to analyse.",
	.operands = TFH_OPERANDS_TRACES,
	.usage_exit = TFH_EXIT_USAGE,
	.run = cmd_report,
	.flags =
		{
			{.name = "all",
			 .help = "print the whole report, not only its first screen"},
			{.name = "kernels", .help = "print all kernels by the time they take"},
			{.name = "transfers", .help = "print all copies by the bytes they move"},
			{.name = "input", .help = "print the stages of the input pipeline"},
			{.name = "where",
			 .help = "print the lines of Python where steps spend their time, as a "
				 "tree"},
			{.name = "folded",
			 .help = "print those lines as folded stacks, for flame graphs"},
			{.name = "memory", .help = "print the device memory in use over the run"},
			{.name = "ranks", .help = "print one line per rank"},
			{.name = "machine",
			 .help = "print what processors, memory, disks and network did"},
			{.name = "steps",
			 .help = "print one line per step; with --json, one JSON object per line"},
			{.name = "step",
			 .arg = "N",
			 .help = "print where step N went; with --ranks, which ranks the others "
				 "waited for in it"},
			{.name = "csv", .help = "print the steps as CSV"},
			{.name = "json",
			 .help = "print the whole report as JSON, schema tfhook.report/1"},
			{.name = "html",
			 .arg = "FILE",
			 .help = "write everything as one page to FILE, which must be new or an "
				 "earlier page; a browser shows it offline. With --ranks: a job of "
				 "many ranks, from its hosts' digests"},
			{.name = "wide",
			 .letter = 'w',
			 .help = "print names in full, whatever the terminal's width"},
			{.name = "strict", .help = "exit 4 if the recording is incomplete"},
			TFH_FLAG_COLOR,
		},
};
