/* `tfhook import`: converts another tool's trace to .tft files. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/access.h"
#include "cli/cli.h"
#include "export/tft.h"
#include "import/import.h"

/* One process: the named file. Several: a directory of that name with a file for each. */
static int write_processes(struct tfh_run *run, const char *out, struct tfh_err *err)
{
	const struct tfh_access owner_alone = {0};
	const struct tfh_process *p;
	uint32_t n = tfh_run_processes(run, &p);
	char path[4096];
	int rc = 0;

	if (n == 1)
		return tfh_export_tft(run, 0, out, err);
	rc = tfh_make_dir(out, &owner_alone);
	if (rc)
		return tfh_err_set(err, rc, "%s: %s", out, strerror(-rc));
	for (uint32_t i = 0; i < n && !rc; i++) {
		if (p[i].rank >= 0)
			snprintf(path, sizeof(path), "%s/r%d.%u.0.tft", out, p[i].rank, i);
		else
			snprintf(path, sizeof(path), "%s/p.%u.0.tft", out, i);
		rc = tfh_export_tft(run, i, path, err);
	}
	return rc;
}

static int cmd_import(const struct tfh_command_line *args)
{
	const char *out = tfh_line_get(args, "output");
	const char *const *paths = (const char *const *)args->operand;
	struct tfh_run *run = NULL;
	struct tfh_err err = {0};
	int code;

	if (!args->operands || !out) {
		tfh_say("import: %s: tfhook import TRACE... -o OUT.tft",
			args->operands ? "no output: name a file or directory with -o"
				       : "no input: name a trace");
		return TFH_EXIT_USAGE;
	}
	for (int i = 0; i < args->operands; i++)
		if (!access(paths[i], R_OK) && !tfh_import_is_foreign(paths[i])) {
			const char *other = tfh_import_other(paths[i]);
			tfh_say("%s: %s", paths[i],
				other ? other
				      : "not a trace that can be imported (PyTorch's .json or "
					".json.gz, TensorFlow's .xplane.pb)");
			return TFH_EXIT_UNREADABLE;
		}
	code = tfh_progress_open(paths, (uint32_t)args->operands, &run, &err);
	if (!code)
		tfh_say_left_out(run);
	if (!code)
		code = write_processes(run, out, &err);
	if (code == -EEXIST)
		tfh_say("%s exists and is not overwritten: name another with -o", out);
	else if (code)
		tfh_say_why(&err, code);
	tfh_run_close(run);
	return tfh_exit_code(code);
}

const struct tfh_command tfh_cmd_import = {
	.name = "import",
	.operand_text = "TRACE... -o OUT.tft",
	.summary = "convert a trace of PyTorch's or TensorFlow's profiler, or of nsys, to .tft",
	.details =
		"TRACE is Kineto JSON (.json, .json.gz), XPlane (.xplane.pb), an SQLite export of "
		"nsys, rocprof's results.json or database, Ascend's trace_view.json, or a "
		"directory of them, such as TensorBoard's log directory. Several are the ranks of "
		"one job; OUT is then a directory. report and info also read such traces directly.",
	.operands = TFH_OPERANDS_TRACES,
	.usage_exit = TFH_EXIT_USAGE,
	.run = cmd_import,
	.flags =
		{
			{.name = "output",
			 .letter = 'o',
			 .arg = "OUT",
			 .help = "the file to write, which must not exist"},
		},
};
