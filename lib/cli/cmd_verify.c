/* `tfhook verify`: checks the checksums of every chunk, decodes every event chunk, and checks for a
 * clean end. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/print.h"
#include "cli/cli.h"
#include "cli/digests.h"
#include "cli/files.h"
#include "format/tft_read.h"

struct counts {
	uint64_t chunks, events, bad, tail, dropped, torn;
	bool closed, clean, salvaged;
	enum tfh_rest rest; /* determined if the process did not finish this file */
};

/* Decoding checks what the checksum cannot: that the columns hold as many records as the header
 * says. */
static int check_events(struct tft_reader *r, uint32_t chunk, uint64_t *events)
{
	struct tft_events *ev;
	struct tfh_err err;
	uint64_t n = 0;

	int code = tft_events_open(r, chunk, &ev, &err);
	if (code)
		return code;
	for (uint32_t i = 0; i < tft_run_count(ev); i++) {
		struct tft_cursor cursor;
		struct tfh_rec rec;
		tft_cursor_init(&cursor, ev, i);
		while (tft_next(&cursor, &rec))
			n++;
	}
	tft_events_close(ev);
	*events += n;
	return n == tft_chunk(r, chunk)->events ? 0 : -EBADMSG;
}

static int check_file(const char *path, struct counts *c, struct tfh_err *err)
{
	struct tft_reader *r;

	memset(c, 0, sizeof(*c));
	int code = tft_open(path, &r, err);
	if (code)
		return code;
	for (uint32_t i = 0; i < tft_chunk_count(r); i++) {
		const struct tft_chunk_info *info = tft_chunk(r, i);
		const void *data;
		size_t len;
		c->chunks++;
		if (info->dropped > c->dropped)
			c->dropped = info->dropped;
		code = info->type == TFT_EVNT ? check_events(r, i, &c->events)
					      : tft_chunk_payload(r, i, &data, &len, err);
		c->bad += code != 0 || !info->crc_ok;
	}
	if (tft_is_digest(r) && !c->bad)
		c->bad += !tfh_digest_check(path);
	c->bad += tft_bad_chunks(r);
	c->tail = tft_tail_bytes(r);
	c->closed = tft_closed(r);
	c->clean = tft_clean_end(r);
	c->salvaged = tfh_is_salvaged(r, &c->torn);
	tft_close(r);
	return 0;
}

/* Whether a file that was not closed continues in a salvaged one. Rings and staging hold everything
 * its end may lack. */
static bool is_saved(const struct counts *c)
{
	return (c->closed || !c->salvaged) &&
	       (c->rest == TFH_REST_SALVAGED || c->rest == TFH_REST_TORN);
}

/* Describes the problems; "" if there are none. */
static void troubles(const struct counts *c, char *out, size_t size)
{
	size_t n = 0;

	out[0] = '\0';
	if (c->bad)
		n += (size_t)snprintf(out + n, size - n, ", %llu damaged chunks",
				      (unsigned long long)c->bad);
	if (c->tail && !is_saved(c) && n < size)
		n += (size_t)snprintf(out + n, size - n,
				      ", truncated: %llu bytes after the last whole chunk",
				      (unsigned long long)c->tail);
	else if (!c->clean && c->rest == TFH_REST_NONE && n < size)
		n += (size_t)snprintf(out + n, size - n,
				      ", not closed (the process was killed or still runs)");
	else if (!c->closed && !is_saved(c) && n < size)
		n += (size_t)snprintf(out + n, size - n, ", not closed");
	if (c->torn && n < size)
		n += (size_t)snprintf(out + n, size - n, ", %llu records could not be salvaged",
				      (unsigned long long)c->torn);
	if (c->dropped && n < size)
		snprintf(out + n, size - n, ", %llu events dropped while recording",
			 (unsigned long long)c->dropped);
}

/* Reports a missing earlier file of a process: files are numbered from 0. */
static bool report_missing(const char *path)
{
	size_t len = strlen(path), dot = len > 4 ? len - 4 : 0, at = dot;
	char before[4096];

	while (at && path[at - 1] >= '0' && path[at - 1] <= '9')
		at--;
	unsigned long n = at < dot ? strtoul(path + at, NULL, 10) : 0;
	if (!n || !at || path[at - 1] != '.' || strcmp(path + dot, ".tft"))
		return false;
	int size = snprintf(before, sizeof(before), "%.*s%lu.tft", (int)at, path, n - 1);
	if (size < 0 || (size_t)size >= sizeof(before) || !access(before, F_OK))
		return false;
	tfh_print(stdout, "%s: missing: deleted, perhaps by TFHOOK_MAX_SIZE\n", before);
	return true;
}

/* An empty file is no problem if a salvaged one follows. */
static int report_empty(const struct tfh_files *files, const char *path, bool quiet)
{
	enum tfh_rest rest = tfh_files_rest(files, path);
	bool saved = rest == TFH_REST_SALVAGED || rest == TFH_REST_TORN;

	if (!saved || !quiet)
		tfh_print(
			stdout,
			"%s: %s: empty: its process was killed, or the disk full, before the first "
			"write to it%s\n",
			path, saved ? "whole" : "incomplete",
			saved ? "; what it recorded is in a salvaged file" : "");
	return saved ? TFH_EXIT_OK : TFH_EXIT_INCOMPLETE;
}

/* What was found of a file. Returns an exit code. */
static int report_file(const struct tfh_files *files, const char *path, int code, struct counts *c,
		       const struct tfh_err *err, bool quiet, bool *mendable)
{
	char wrong[256];

	if (code == -ENOENT) { /* while the others were checked */
		tfh_print(stdout, "%s: missing: deleted, perhaps by TFHOOK_MAX_SIZE\n", path);
		return TFH_EXIT_INCOMPLETE;
	}
	if (code) {
		tfh_print(stdout, "%s: unreadable: %s\n", path, tfh_reason(err, code, path));
		return TFH_EXIT_UNREADABLE;
	}
	c->rest = c->clean ? TFH_REST_NONE : tfh_files_rest(files, path);
	troubles(c, wrong, sizeof(wrong));
	*mendable |= *wrong && (c->bad || c->tail || !c->clean);
	if (*wrong || !quiet)
		tfh_print(stdout, "%s: %s: %llu events in %llu chunks%s%s\n", path,
			  *wrong ? "incomplete" : "whole", (unsigned long long)c->events,
			  (unsigned long long)c->chunks,
			  c->salvaged		      ? ", salvaged from a process that was killed"
			  : !c->closed && is_saved(c) ? ", the rest in a salvaged file"
						      : "",
			  wrong);
	return *wrong ? TFH_EXIT_INCOMPLETE : TFH_EXIT_OK;
}

/* One file, and whether one before it is missing. Returns an exit code. */
static int verify(const struct tfh_files *files, const char *path, bool quiet,
		  struct tfh_progress *progress, bool *mendable)
{
	struct tfh_err err = {0};
	struct counts c;
	int code = 0;

	tfh_progress_hold(progress);
	int before = report_missing(path) ? TFH_EXIT_INCOMPLETE : TFH_EXIT_OK;
	bool empty = tfh_file_empty(path);
	int status = empty ? report_empty(files, path, quiet) : TFH_EXIT_OK;
	tfh_progress_go_on(progress);
	if (!empty) {
		code = check_file(path, &c, &err);
		tfh_progress_hold(progress);
		status = report_file(files, path, code, &c, &err, quiet, mendable);
		tfh_progress_go_on(progress);
	}
	return status ? status : before;
}

static int cmd_verify(const struct tfh_command_line *args)
{
	bool quiet = tfh_line_get(args, "quiet"), mendable = false;
	int status = TFH_EXIT_OK;
	struct tfh_files files;
	struct tfh_err err;

	int code = tfh_files_find(&files, args, &err);
	if (code) {
		tfh_say_why(&err, code);
		tfh_files_free(&files);
		return tfh_exit_code(code);
	}
	struct tfh_progress *progress =
		tfh_progress_files((const char *const *)files.path, files.n);
	for (size_t i = 0; i < files.n; i++) {
		code = verify(&files, files.path[i], quiet, progress, &mendable);
		if (code == TFH_EXIT_UNREADABLE || status == TFH_EXIT_OK)
			status = code;
	}
	tfh_progress_stop(progress);
	fflush(stdout);
	if (mendable)
		tfh_say("`tfhook report` uses what is intact; `tfhook repair %s` copies it to new "
			"files",
			files.dir);
	tfh_files_free(&files);
	return status;
}

const struct tfh_command tfh_cmd_verify = {
	.name = "verify",
	.operand_text = "[PATH...]",
	.summary = "check every chunk's checksum and that each file ended cleanly",
	.details = "Exit code: 0 complete, 3 unreadable, 4 incomplete (damaged chunks, a truncated "
		   "file, lost events).",
	.operands = TFH_OPERANDS_TRACES,
	.usage_exit = TFH_EXIT_USAGE,
	.run = cmd_verify,
	.flags =
		{
			{.name = "quiet", .letter = 'q', .help = "print only what is wrong"},
		},
};
