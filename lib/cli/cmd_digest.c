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

int tfh_cmd_digest(const struct tfh_command_line *args)
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
