/* `tfhook repair`: what is whole of damaged files and of left-over journals, in new files. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/print.h"
#include "cli/cli.h"
#include "cli/files.h"
#include "cli/journals.h"
#include "cli/run.h"
#include "format/journal.h"
#include "format/tft_read.h"
#include "model/model.h"

#define MAX_JOURNALS 1024

static bool is_journal(const char *path)
{
	size_t len = strlen(path);

	return len > 8 && !strcmp(path + len - 8, ".journal");
}

static int save_journal(const char *path, const char *out, unsigned flags)
{
	struct tft_salvaged saved;
	struct tfh_err err = {0};
	int code = tft_salvage(path, out, flags, &saved, &err);

	if (code) {
		tfh_print(stdout, "%s: %s\n", path, tfh_reason(&err, code, path));
		return code == -EBUSY ? TFH_EXIT_OK : TFH_EXIT_UNREADABLE;
	}
	if (!*saved.path)
		tfh_print(stdout, "%s: nothing in it that the trace files lack\n", path);
	else
		tfh_print(stdout,
			  "%s: %llu events saved to %s, %llu unreadable, %u calls in flight\n",
			  path, (unsigned long long)saved.records, saved.path,
			  (unsigned long long)saved.torn, saved.open);
	return TFH_EXIT_OK;
}

static bool is_whole(const char *path)
{
	struct tft_reader *r;

	if (tft_open(path, &r, NULL))
		return false;
	bool whole = tft_closed(r) && !tft_tail_bytes(r) && tft_verify(r, NULL) == 0;
	tft_close(r);
	return whole;
}

/* A whole file is linked, which costs no space; across file systems it is copied as a damaged one
 * is. */
static int repair_file(const char *path, const char *dir)
{
	const char *base = strrchr(path, '/');
	struct tft_repaired done;
	struct tfh_err err = {0};
	char out[8192];

	snprintf(out, sizeof(out), "%s/%s", dir, base ? base + 1 : path);
	if (tfh_file_empty(path)) {
		tfh_print(stdout, "%s: empty: its process ended before it wrote to it\n", path);
		return TFH_EXIT_OK;
	}
	bool whole = is_whole(path);
	if (whole && !link(path, out)) {
		tfh_print(stdout, "%s: whole\n", path);
		return TFH_EXIT_OK;
	}
	int code = tft_repair(path, out, &done, &err);
	if (code == -ENOENT && access(path, F_OK)) {
		tfh_print(stdout, "%s: gone meanwhile: deleted, or given up for TFHOOK_MAX_SIZE\n",
			  path);
		return TFH_EXIT_OK;
	}
	if (code) {
		tfh_print(stdout, "%s: %s\n", path, tfh_reason(&err, code, path));
		return TFH_EXIT_UNREADABLE;
	}
	tfh_print(stdout, "%s: %u chunks saved, %llu damaged, %llu bytes cut off\n", path,
		  done.chunks, (unsigned long long)done.bad, (unsigned long long)done.tail);
	return TFH_EXIT_OK;
}

/* An empty file stands for its number: without it those behind it would seem to miss one. */
static void keep_numbers(const struct tfh_files *files, const char *dir)
{
	char out[8192];

	for (size_t i = 0; i < files->n; i++) {
		const char *base = strrchr(files->path[i], '/');
		snprintf(out, sizeof(out), "%s/%s", dir, base ? base + 1 : files->path[i]);
		int fd = tfh_file_empty(files->path[i])
				 ? open(out, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)
				 : -1;
		if (fd >= 0)
			close(fd);
	}
}

/* The journals of a run directory, wherever they lie. */
static int repair_journals(const char *dir, const char *out)
{
	struct tfh_found_journal *found = calloc(MAX_JOURNALS, sizeof(*found));
	char real[4096];
	int status = TFH_EXIT_OK;
	unsigned n =
		found && realpath(dir, real) ? tfh_journals_find(real, 0, found, MAX_JOURNALS) : 0;

	for (unsigned i = 0; i < n && i < MAX_JOURNALS; i++) {
		int code = save_journal(found[i].path, out, found[i].copy ? TFT_SALVAGE_BESIDE : 0);
		status = code > status ? code : status;
	}
	free(found);
	return status;
}

/* What tells a report about the run as a whole. */
static void copy_facts(const char *dir, const char *out)
{
	static const char *const names[] = {"run.json", "end.json"};

	for (size_t i = 0; i < 2; i++) {
		char to[8192], text[65536];
		snprintf(to, sizeof(to), "%s/%s", out, names[i]);
		FILE *in = tfh_open_facts(dir, names[i]), *copy = in ? fopen(to, "wxe") : NULL;
		for (size_t n; copy && (n = fread(text, 1, sizeof(text), in)) > 0;)
			fwrite(text, 1, n, copy);
		if (in)
			fclose(in);
		if (copy)
			fclose(copy);
	}
}

/* One operand that is no journal, into `out` or a new directory beside it. */
static int repair_operand(const struct tfh_line *args, char *path, const char *out)
{
	char *one[] = {path, NULL}, own[4128];
	struct tfh_line part = {.command = args->command, .operand = one, .operands = 1};
	struct tfh_files files;
	struct tfh_err err;
	struct stat st;
	int status = TFH_EXIT_OK;
	bool directory = !stat(path, &st) && S_ISDIR(st.st_mode);

	for (size_t n = strlen(path); n > 1 && path[n - 1] == '/'; n--)
		path[n - 1] = '\0';
	if (!out) {
		snprintf(own, sizeof(own), "%.4096s.repaired", path);
		out = own;
	}
	int code = tfh_files_find(&files, &part, &err);
	if (code && !(directory && code == -ENODATA)) {
		tfh_say_why(&err, code);
		tfh_files_free(&files);
		return tfh_exit_code(code);
	}
	if (mkdir(out, 0777) && (errno != EEXIST || out == own)) {
		tfh_say("repair: cannot make %s: %s; name a directory with -o", out,
			strerror(errno));
		tfh_files_free(&files);
		return TFH_EXIT_USAGE;
	}
	for (size_t f = 0; f < files.n; f++) {
		int worst = repair_file(files.path[f], out);
		status = worst > status ? worst : status;
	}
	if (directory) {
		int worst = repair_journals(path, out);
		status = worst > status ? worst : status;
		if (tfh_place_traces(out)) {
			keep_numbers(&files, out);
			copy_facts(path, out);
		}
	}
	tfh_files_free(&files);
	if (out == own && !rmdir(out)) {
		tfh_say(status == TFH_EXIT_OK ? "%s: neither trace files nor journals to repair"
					      : "%s: nothing in it can be read, no result is made",
			path);
		return status == TFH_EXIT_OK ? TFH_EXIT_NOTHING : status;
	}
	fflush(stdout);
	tfh_say("the result is in %s", out);
	return status;
}

/* One of the journals in /dev/shm: of nobody else's, whose directories this user would write to. */
static void take_left(void *arg, const char *path, const char *name, struct tft_view *view,
		      int code)
{
	int *status = arg, worst = TFH_EXIT_OK;
	struct stat st;
	char dir[4096];

	if (strncmp(name, "tfhook.", 7) || lstat(path, &st) || st.st_uid != geteuid()) {
		tft_view_close(code ? NULL : view);
		return;
	}
	if (code) {
		tft_journal_sweep(path);
		return;
	}
	bool dead = tft_view_life(view) == TFT_DEAD;
	snprintf(dir, sizeof(dir), "%.4095s", tft_view_header(view)->run_dir);
	tft_view_close(view);
	if (!dead)
		return;
	if (access(dir, F_OK) && errno == ENOENT) {
		tfh_print(stdout, "%s: its run directory %s is gone: removed\n", path, dir);
		unlink(path);
	} else {
		worst = save_journal(path, NULL, TFT_SALVAGE_UNLINK);
	}
	*status = worst > *status ? worst : *status;
}

static int repair_left(void)
{
	int status = TFH_EXIT_OK;

	tft_journals_in("/dev/shm", take_left, &status);
	return status;
}

int tfh_cmd_repair(const struct tfh_line *args)
{
	const char *out = tfh_line_get(args, "output");
	int status = TFH_EXIT_OK;

	if (tfh_line_get(args, "left") && !args->operands && !out)
		return repair_left();
	if (!args->operands) {
		tfh_say("repair: of what? tfhook repair DIR|FILE... [-o DIR], or tfhook repair "
			"--left");
		return TFH_EXIT_USAGE;
	}
	for (int i = 0; i < args->operands; i++) {
		char *path = args->operand[i];
		int code = is_journal(path) ? save_journal(path, out, 0)
					    : repair_operand(args, path, out);
		status = code > status ? code : status;
	}
	return status;
}
