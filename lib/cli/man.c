/*
 * Manual pages, made from the tables of commands and settings: one for each command, and tfhook(7).
 * They use man's macros, which groff and mandoc read.
 */
#include <ctype.h>
#include <string.h>

#include "base/options.h"
#include "base/print.h"
#include "base/text.h"
#include "cli/cli.h"
#include "tfhook/version.h"

#define DATE "2026-11-26"
#define WIDTH 70 /* columns after which a line of the source ends at the next blank */

/* Prints our own text. A part in backquotes is bold; what roff would read as a request or an escape
 * is escaped. */
static void put_line(FILE *out, const char *text, size_t len)
{
	bool bold = false, start = true;
	size_t column = 0;

	for (size_t i = 0; i < len; i++, column++) {
		char c = text[i];
		if (c == ' ' && column + strcspn(text + i + 1, " ") > WIDTH && i + 1 < len) {
			tfh_put("\n", out);
			start = true;
			column = 0;
			continue;
		}
		bool dash = c == '-' && (!i || text[i - 1] == ' ' || text[i - 1] == '`' ||
					 text[i - 1] == '-' || text[i - 1] == '(');
		if (start && (c == '.' || c == '\''))
			tfh_put("\\&", out);
		start = false;
		if (c == '`') {
			bold = !bold;
			tfh_print(out, "\\f%c", bold ? 'B' : 'R');
		} else if (c == '\\') {
			tfh_put("\\e", out);
		} else if (c == '~') {
			tfh_put("\\(ti", out);
		} else if (c == '^') {
			tfh_put("\\(ha", out);
		} else if (dash) {
			tfh_put("\\-", out);
		} else {
			tfh_print(out, "%c", c);
		}
	}
	tfh_put("\n", out);
}

static void put_text(FILE *out, const char *text)
{
	put_line(out, text, strlen(text));
}

static void upper(const char *text, char *out, size_t size)
{
	size_t n = 0;

	for (; text[n] && n + 1 < size; n++)
		out[n] = (char)toupper((unsigned char)text[n]);
	out[n] = '\0';
}

static void head(FILE *out, const char *name, int section, const char *summary)
{
	char title[64];

	upper(name, title, sizeof(title));
	tfh_print(out, ".TH %s %d %s \"tfhook %s\" \"tfhook\"\n.SH NAME\n%s \\-\n", title, section,
		  DATE, TFHOOK_VERSION, name);
	put_text(out, summary);
}

/* "record \fIDIR\fR": a flag as it is typed. */
static void synopsis(FILE *out, const struct tfh_command *command)
{
	tfh_print(out, ".SH SYNOPSIS\n\\fBtfhook %s\\fR\n", command->name);
	for (size_t i = 0; i < TFH_MAX_FLAGS && command->flags[i].name; i++) {
		const struct tfh_flag *flag = &command->flags[i];
		tfh_print(out, "[\\fB\\-\\-%s\\fR%s%s%s]\n", flag->name, flag->arg ? " \\fI" : "",
			  flag->arg ? flag->arg : "", flag->arg ? "\\fR" : "");
	}
	if (*command->operand_text)
		put_text(out, command->operand_text);
}

static void flags(FILE *out, const struct tfh_command *command)
{
	if (command->flags[0].name)
		tfh_put(".SH OPTIONS\n", out);
	for (size_t i = 0; i < TFH_MAX_FLAGS && command->flags[i].name; i++) {
		const struct tfh_flag *flag = &command->flags[i];
		tfh_put(".TP\n", out);
		if (flag->letter)
			tfh_print(out, "\\fB\\-%c\\fR, ", flag->letter);
		tfh_print(out, "\\fB\\-\\-%s\\fR%s%s%s\n", flag->name, flag->arg ? " \\fI" : "",
			  flag->arg ? flag->arg : "", flag->arg ? "\\fR" : "");
		put_text(out, flag->help);
		if (flag->choices)
			tfh_print(out, ".br\n%s is one of: %s.\n", flag->arg, flag->choices);
	}
}

/* A line "name   text" of the details is an item of a list. */
static void put_details_line(FILE *out, const char *text, size_t len)
{
	const char *gap = memmem(text, len, "  ", 2);
	size_t name = gap ? (size_t)(gap - text) : 0;

	if (!name || name > 20) {
		put_line(out, text, len);
		return;
	}
	while (name + strspn(gap, " ") < len && *gap == ' ')
		gap++;
	tfh_put(".TP\n.B ", out);
	put_line(out, text, name);
	put_line(out, gap, len - (size_t)(gap - text));
}

/* Paragraphs. The one about exit codes gets its own section. */
static void details(FILE *out, const struct tfh_command *command)
{
	bool paragraph = false;

	tfh_put(".SH DESCRIPTION\n", out);
	if (!*command->details) {
		tfh_print(out, "%c", toupper((unsigned char)command->summary[0]));
		put_text(out, command->summary + 1);
	}
	for (const char *text = command->details; *text;) {
		size_t len = strcspn(text, "\n");
		if (tfh_starts_with(text, "Exit code: ")) {
			flags(out, command);
			tfh_put(".SH EXIT STATUS\n", out);
			put_line(out, text + strlen("Exit code: "), len - strlen("Exit code: "));
			return;
		}
		if (!len)
			paragraph = true;
		else if (paragraph)
			tfh_put(".PP\n", out);
		if (len) {
			put_details_line(out, text, len);
			paragraph = false;
		}
		text += len + (text[len] == '\n');
	}
	flags(out, command);
}

void tfh_man_command(FILE *out, const struct tfh_command *command)
{
	char name[48];

	snprintf(name, sizeof(name), "tfhook-%s", command->name);
	head(out, name, 1, command->summary);
	synopsis(out, command);
	details(out, command);
	tfh_put(".SH SEE ALSO\n.BR tfhook (7),\n.BR tft (5)\n", out);
}

static void settings(FILE *out)
{
	tfh_put(".SH ENVIRONMENT\nSettings of the recorder; in brackets the default.\n", out);
	for (int i = 0; i < TFH_OPT_COUNT; i++) {
		const struct tfh_option_spec *s = &tfh_option_specs[i];
		bool shown = *s->fallback && strcmp(s->fallback, "-1"); /* -1: unknown */
		tfh_print(out, ".TP\n.B %s\n", s->name);
		put_text(out, s->help);
		if (shown)
			tfh_print(out, "[%s]\n", s->fallback);
	}
}

void tfh_man_overview(FILE *out, const struct tfh_command *const *all)
{
	head(out, "tfhook", 7,
	     "where each training step's time goes, and what fixing it would gain");
	tfh_put(".SH SYNOPSIS\n"
		"\\fBtfhook\\fR \\fICOMMAND\\fR [\\fIFLAGS\\fR] ...\n"
		".PP\n.nf\n"
		"tfhook run python3 train.py     record a job; ends with a verdict\n"
		"tfhook report                   the verdict of the newest recording here\n"
		"tfhook top                      a running job\n"
		".fi\n"
		".SH DESCRIPTION\n",
		out);
	put_text(out,
		 "A preloaded library records a training job's calls of the GPU driver, of "
		 "TensorFlow's input pipeline and of PyTorch's DataLoader and, through CUPTI, when "
		 "each kernel and copy ran.");
	put_text(
		out,
		"Afterwards, or while it runs, the command finds the training steps, charges every "
		"moment of a step to a cause, names the bottleneck and the line of Python that it "
		"is in, and predicts the step time without it.");
	put_text(out, "The job's code, output, results and exit status do not change.");
	tfh_put(".SH COMMANDS\nEach has a page of its own.\n", out);
	for (const struct tfh_command *const *c = all; *c; c++) {
		tfh_print(out, ".TP\n.BR tfhook\\-%s (1)\n", (*c)->name);
		put_text(out, (*c)->summary);
	}
	settings(out);
	tfh_put(".SH FILES\n.TP\n.I tfhook\\-PROGRAM\\-TIME\\-ID/\n", out);
	put_text(out, "A run directory: run.json, start.json and end.json about the job, and the "
		      "segments of each recording process, `r<rank>.<host>.<pid>.<n>.tft` or "
		      "`p.<host>.<pid>.<n>.tft`.");
	tfh_put(".TP\n.I /dev/shm/*.journal\n", out);
	put_text(out,
		 "What running processes have not written yet, where it does not lie in the run "
		 "directory.");
	tfh_put(".SH EXIT STATUS\n", out);
	put_text(out, "`tfhook run` exits as the job does; before the job starts: 125 it cannot be "
		      "recorded, 126 not executable, 127 not found.");
	put_text(out,
		 "All others: 0 fine, 1 a check failed, 2 usage, 3 unreadable, 4 incomplete, 5 "
		 "nothing to analyse.");
	tfh_put(".SH SEE ALSO\n", out);
	for (const struct tfh_command *const *c = all; *c; c++)
		tfh_print(out, ".BR tfhook\\-%s (1),\n", (*c)->name);
	tfh_put(".BR tft (5)\n", out);
}
