/* `tfhook export`: writes a run in a format of other tools. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/part_file.h"
#include "cli/python_start.h"
#include "export/naming.h"

struct export_order {
	const struct tfh_format *format;
	const char *out; /* "-": standard output */
	char name[4096];
	bool force, part, hide;
	uint64_t first, last;
};

/* What one file is written from. */
struct job {
	const struct tfh_format *format;
	const struct tfh_export *x;
	struct tfh_err err;
};

/* ---- the order ---- */

static bool number(const char **text, uint64_t *out)
{
	char *end;

	errno = 0;
	*out = strtoull(*text, &end, 10);
	bool ok = **text >= '0' && **text <= '9' && !errno;
	*text = end;
	return ok;
}

/* "3-7", "3" */
static bool parse_steps(const char *text, struct export_order *o)
{
	const char *p = text;

	if (!text)
		return true;
	o->part = number(&p, &o->first);
	o->last = o->first;
	if (o->part && *p == '-') {
		p++;
		o->part = number(&p, &o->last);
	}
	if (o->part && !*p && o->first <= o->last)
		return true;
	tfh_say("export: --steps needs numbers of steps, such as 10-20 or 15, not '%s'", text);
	return false;
}

/* Names the output after what is exported: the last part of its path. */
static void default_name(struct export_order *o, const char *path)
{
	size_t n = strlen(path);

	while (n > 1 && path[n - 1] == '/')
		n--;
	size_t at = n;
	while (at && path[at - 1] != '/')
		at--;
	bool named = n > at && path[at] != '.' && path[at] != '-' && !o->hide;
	snprintf(o->name, sizeof(o->name), "%.*s.%s", named ? (int)(n - at) : 6,
		 named ? path + at : "tfhook", o->format->suffix);
	o->out = o->name;
}

static bool parse_order(const struct tfh_command_line *args, struct export_order *o)
{
	const char *to = tfh_line_get(args, "to");

	*o = (struct export_order){.format = to ? tfh_format_find(to) : NULL,
				   .out = tfh_line_get(args, "output"),
				   .force = tfh_line_get(args, "force"),
				   .hide = tfh_line_get(args, "anonymize")};
	if (!to)
		tfh_say("export: to which format? --to FORMAT; `tfhook help export` lists them");
	else if (o->out && !*o->out)
		tfh_say("export: -o needs the name of a file, or - for standard output");
	else
		return parse_steps(tfh_line_get(args, "steps"), o);
	return false;
}

/* ---- files ---- */

static int never(const char *path)
{
	struct stat st;

	return lstat(path, &st) ? -errno : -EEXIST;
}

/* With --force: an existing regular file may be replaced. */
static int files_only(const char *path)
{
	struct stat st;

	if (lstat(path, &st))
		return -errno;
	return S_ISREG(st.st_mode) ? 0 : -EEXIST;
}

static int write_job(void *arg, FILE *out)
{
	struct job *job = arg;

	return job->format->write(job->x, out, &job->err);
}

static int write_one(const struct export_order *o, const char *path, struct tfh_export *x,
		     struct tfh_err *err)
{
	struct job job = {.format = o->format, .x = x};
	int rc;

	if (!strcmp(path, "-")) {
		int fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
		rc = fd < 0 ? -errno : tfh_part_write(fd, write_job, &job);
	} else {
		rc = tfh_part_file(path, o->force ? files_only : never, write_job, &job);
	}
	if (!rc)
		return 0;
	if (*job.err.text)
		*err = job.err;
	else if (rc == -EEXIST)
		tfh_err_set(err, rc, "%s exists and is not overwritten: name another with -o%s",
			    path, o->force ? "" : ", or use --force");
	else
		tfh_err_set(err, rc, "cannot write %s: %s",
			    strcmp(path, "-") ? path : "to standard output", strerror(-rc));
	return rc;
}

/* A directory with a file for each process. */
static int write_files(const struct export_order *o, struct tfh_export *x, struct tfh_err *err)
{
	const struct tfh_process *p;
	uint32_t n = tfh_run_processes(x->run, &p);
	char path[4096], rank[32];
	int rc = mkdir(o->out, 0777) ? -errno : 0;

	if (rc && !(rc == -EEXIST && o->force))
		return tfh_err_set(err, rc, "%s: %s", o->out,
				   rc == -EEXIST
					   ? "it exists; each process becomes a file in a new "
					     "directory, which -o names"
					   : strerror(-rc));
	rc = 0;
	for (uint32_t i = 0; i < n && !rc; i++) {
		if (!p[i].events)
			continue;
		x->only = i;
		tfh_export_rank_name(x, i, rank);
		snprintf(path, sizeof(path), "%s/%s.%s", o->out, rank, o->format->suffix);
		rc = write_one(o, path, x, err);
	}
	return rc;
}

static uint32_t processes_with_events(const struct tfh_export *x)
{
	const struct tfh_process *p;
	uint32_t n = tfh_run_processes(x->run, &p), some = 0;

	for (uint32_t i = 0; i < n; i++)
		some += p[i].events > 0;
	return some;
}

static int write_out(const struct export_order *o, struct tfh_export *x, struct tfh_err *err)
{
	bool several = o->format->by_rank && processes_with_events(x) > 1;

	if (several && !strcmp(o->out, "-"))
		return tfh_err_set(
			err, -EINVAL,
			"a file of this format holds one process, and there are several: "
			"name a directory with -o");
	return several ? write_files(o, x, err) : write_one(o, o->out, x, err);
}

/* ---- the command ---- */

static int judge(struct tfh_run *run, const struct export_order *o, struct tfh_export *x,
		 struct tfh_err *err)
{
	struct tfh_progress *progress = tfh_progress_start(run);
	int rc = tfh_export_open(run, x, err);

	x->through = tfh_python_through;
	tfh_progress_stop(progress);
	if (!rc && o->hide)
		rc = tfh_export_hide_names(x, err);
	return rc || !o->part ? rc : tfh_export_limit(x, o->first, o->last, err);
}

static int export(struct export_order *o, const char *const *paths, uint32_t n, struct tfh_err *err)
{
	struct tfh_export x = {.run = NULL};
	struct tfh_run *run = NULL;
	int rc = tfh_progress_open(paths, n, &run, err);

	if (rc)
		return rc;
	tfh_say_left_out(run);
	if (!o->out)
		default_name(o, n == 1 ? paths[0] : tfh_run_path(run));
	/* Checked before the work, and again when the file gets its name. */
	if (strcmp(o->out, "-") && !o->force && never(o->out) == -EEXIST)
		rc = tfh_err_set(
			err, -EEXIST,
			"%s exists and is not overwritten: name another with -o, or use --force",
			o->out);
	if (!rc)
		rc = judge(run, o, &x, err);
	if (!rc)
		rc = write_out(o, &x, err);
	tfh_export_close(&x);
	tfh_run_close(run);
	return rc;
}

static int cmd_export(const struct tfh_command_line *args)
{
	struct tfh_err err = {0};
	struct export_order o;

	if (!parse_order(args, &o))
		return TFH_EXIT_USAGE;
	int rc = export(&o, (const char *const *)args->operand, (uint32_t)args->operands, &err);
	if (rc)
		tfh_say_why(&err, rc);
	else if (strcmp(o.out, "-"))
		tfh_say("wrote %s", o.out);
	return tfh_exit_code(rc);
}

/* " perfetto kineto", and a line for each. */
#define FORMAT(name, blanks, suffix, by_rank, help) " " #name
static const char format_names[] =
#include "export/formats.def"
	;
#undef FORMAT

const struct tfh_command tfh_cmd_export = {
	.name = "export",
	.operand_text = "--to FORMAT [PATH...]",
	.summary = "write a run in another tool's format",
#define FORMAT(name, blanks, suffix, by_rank, help) "\n" #name blanks help
	.details =
		"PATH is as in `tfhook report`: a run directory, .tft files, or a trace of another "
		"profiler. The memory used does not grow with the number of calls. Formats:"
#include "export/formats.def"
		"\n\nExit code: 0 fine, 2 usage, 3 unreadable or not written, 5 nothing to export.",
#undef FORMAT
	.operands = TFH_OPERANDS_TRACES,
	.usage_exit = TFH_EXIT_USAGE,
	.run = cmd_export,
	.flags =
		{
			{.name = "to",
			 .arg = "FORMAT",
			 .choices = format_names + 1,
			 .help = "the output format, see below"},
			{.name = "output",
			 .letter = 'o',
			 .arg = "OUT",
			 .help = "the file to write, - for standard output; by default it is named "
				 "after PATH"},
			{.name = "steps",
			 .arg = "A-B",
			 .help = "export only steps A to B, and what overlaps them in time"},
			{.name = "anonymize",
			 .help = "for a trace that goes to others: pseudonyms for kernels, ranges, "
				 "threads, programs and hosts"},
			{.name = "force", .help = "replace OUT if it is a file"},
		},
};
