/* `tfhook digest`: judges a recording once and keeps what the outputs need. */
#include <errno.h>
#include <string.h>

#include "cli/digests.h"

static int follow(const struct tfh_command_line *args, const char *path)
{
	double interval = 60;
	struct stat st;

	if (args->operands > 1 || tfh_line_get(args, "output")) {
		tfh_say("digest: --follow takes one directory, and no -o");
		return TFH_EXIT_USAGE;
	}
	if (tfh_line_seconds(args, "interval", 0.1, 86400, &interval))
		return TFH_EXIT_USAGE;
	errno = ENOTDIR;
	if (stat(path, &st) || !S_ISDIR(st.st_mode)) {
		tfh_say("digest: %s: %s", path, strerror(errno));
		return TFH_EXIT_UNREADABLE;
	}
	return tfh_follow_digests(path, interval);
}

static int cmd_digest(const struct tfh_command_line *args)
{
	const char *out = tfh_line_get(args, "output"), *from = args->operand[0];
	struct tfh_err err = {0};
	char newest[4096];
	int status = TFH_EXIT_OK;

	if (out && args->operands > 1) {
		tfh_say("digest: -o names one digest: give one PATH");
		return TFH_EXIT_USAGE;
	}
	if (!from && !tfh_run_newest(newest, sizeof(newest))) {
		tfh_say("no run directory of yours here; name one, or record one: tfhook run "
			"CMD...");
		return TFH_EXIT_NOTHING;
	}
	if (tfh_line_get(args, "follow"))
		return follow(args, from ? from : newest);
	for (int i = 0; i < (args->operands ? args->operands : 1); i++) {
		struct stat st;
		from = args->operands ? args->operand[i] : newest;
		int rc = stat(from, &st)
				 ? tfh_err_set(&err, -errno, "%s: %s", from, strerror(errno))
				 : 0;
		if (!rc)
			rc = tfh_digest_update(from, out, NULL, &st, &err);
		if (!rc)
			continue;
		tfh_say_why(&err, rc);
		status = tfh_exit_code(rc);
	}
	return status;
}

const struct tfh_command tfh_cmd_digest = {
	.name = "digest",
	.operand_text = "[PATH...]",
	.summary = "store the results of an analysis in a small file, for reports and diff",
	.details =
		"Analyses the recording in a run directory and writes DIR/digest.tft: for each "
		"rank the time of each step by cause, the tree of loops, lines, kernels, copies, "
		"machine, quality and verdict, in some 20 bytes per step. `tfhook report` and "
		"`tfhook diff` read it instead of the recording; it is made again after the "
		"recording or tfhook has changed. If processes on several hosts recorded into DIR, "
		"each host has a digest of its own, DIR/HOST.digest.tft, and `tfhook report DIR` "
		"reads all of them.\n\n"
		"--follow keeps digests up to date while jobs run. Given a run directory, it exits "
		"when the job ends. Given a folder, it covers all your runs on this host, "
		"including future ones, until it gets a signal. One such process per host is "
		"enough; it runs at the lowest priority and uses about 1 % of a CPU. It also gives "
		"this host's processes what `tfhook ctl DIR` on another host asks of them.\n\n"
		"Exit code: 0 fine, 2 usage, 3 unreadable, 5 nothing to analyse.",
	.operands = TFH_OPERANDS_TRACES,
	.usage_exit = TFH_EXIT_USAGE,
	.run = cmd_digest,
	.flags =
		{
			{.name = "output",
			 .letter = 'o',
			 .arg = "FILE",
			 .help = "write the digest of one PATH, which may be a trace, to FILE"},
			{.name = "follow",
			 .help = "keep it up to date: PATH is a run directory, or a folder of "
				 "them"},
			{.name = "interval",
			 .arg = "S",
			 .help = "with --follow: update a run's digest at most every S seconds, 60 "
				 "by default"},
		},
};
