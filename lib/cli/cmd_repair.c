/* `tfhook repair`: copies the intact parts of damaged files and left-over journals to new files. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/access.h"
#include "base/print.h"
#include "base/proc.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/files.h"
#include "cli/run.h"
#include "format/journal_view.h"
#include "format/tft_read.h"
#include "model/model.h"

static bool is_journal(const char *path)
{
	size_t len = strlen(path);

	return len > 8 && !strcmp(path + len - 8, ".journal");
}

/* Reports a result of tft_salvage. */
static int say_saved(const char *path, int code, const struct tft_salvaged *saved,
		     const struct tfh_err *err)
{
	if (code) {
		tfh_print(stdout, "%s: %s\n", path, tfh_reason(err, code, path));
		return code == -EBUSY ? TFH_EXIT_OK : TFH_EXIT_UNREADABLE;
	}
	if (!*saved->path)
		tfh_print(stdout, "%s: holds nothing that the trace files lack\n", path);
	else
		tfh_print(stdout,
			  "%s: %llu events saved to %s, %llu unreadable, %u calls in flight\n",
			  path, (unsigned long long)saved->records, saved->path,
			  (unsigned long long)saved->torn, saved->open);
	return TFH_EXIT_OK;
}

/* Results are as widely readable as their source. */
static struct tfh_access access_like(const char *path)
{
	struct tfh_access access = {0};
	struct stat st;

	if (!stat(path, &st))
		access = tfh_access_like(&st);
	return access;
}

/* Creates a directory for results of `from`, unless it exists. Returns 0 or -errno. */
static int make_results(const char *out, const char *from, bool new)
{
	struct tfh_access access = access_like(from);
	int code = tfh_make_dir(out, &access);

	if (!code || (code == -EEXIST && !new))
		return 0;
	tfh_say("repair: cannot make %s: %s; name a directory with -o", out, strerror(-code));
	return code;
}

static int save_journal(const char *path, const char *out)
{
	struct tft_salvaged saved;
	struct tfh_err err = {0};
	int code;

	if (out && make_results(out, path, false))
		return TFH_EXIT_USAGE;
	code = tft_salvage(path, out, 0, &saved, &err);
	return say_saved(path, code, &saved, &err);
}

static int save_view(struct tft_view *view, const char *out, unsigned flags)
{
	struct tft_salvaged saved;
	struct tfh_err err = {0};
	int code = tft_salvage_view(view, out, flags, &saved, &err);

	return say_saved(tft_view_path(view), code, &saved, &err);
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

/* An intact file is hard-linked, which takes no space; across file systems it is copied like a
 * damaged one. `told`: a message about the result. */
static int repair_file(const char *path, const char *dir, char told[512])
{
	struct tft_repaired done;
	struct tfh_err err = {0};
	char out[8192];

	snprintf(out, sizeof(out), "%s/%s", dir, tfh_file_of(path));
	if (tfh_file_empty(path)) {
		snprintf(told, 512, "empty: its process ended before it wrote to it");
		return TFH_EXIT_OK;
	}
	bool whole = is_whole(path);
	if (whole && !link(path, out)) {
		snprintf(told, 512, "whole");
		return TFH_EXIT_OK;
	}
	int code = tft_repair(path, out, &done, &err);
	if (code == -ENOENT && access(path, F_OK)) {
		snprintf(told, 512, "disappeared meanwhile: deleted, perhaps by TFHOOK_MAX_SIZE");
		return TFH_EXIT_OK;
	}
	if (code) {
		snprintf(told, 512, "%s", tfh_reason(&err, code, path));
		return TFH_EXIT_UNREADABLE;
	}
	snprintf(told, 512, "%u chunks saved, %llu damaged, %llu bytes cut off", done.chunks,
		 (unsigned long long)done.bad, (unsigned long long)done.tail);
	return TFH_EXIT_OK;
}

/* All files; the worst exit code of any. */
static int repair_files(const struct tfh_files *files, const char *dir)
{
	struct tfh_progress *progress =
		tfh_progress_files((const char *const *)files->path, files->n);
	int status = TFH_EXIT_OK;

	for (size_t f = 0; f < files->n; f++) {
		char told[512];
		int worst = repair_file(files->path[f], dir, told);
		status = worst > status ? worst : status;
		tfh_progress_hold(progress);
		tfh_print(stdout, "%s: %s\n", files->path[f], told);
		tfh_progress_go_on(progress);
	}
	tfh_progress_stop(progress);
	return status;
}

/* An empty file keeps its number: without it, a file would seem to be missing. */
static void keep_numbers(const struct tfh_files *files, const char *dir)
{
	char out[8192];

	for (size_t i = 0; i < files->n; i++) {
		struct tfh_access access = access_like(files->path[i]);
		snprintf(out, sizeof(out), "%s/%s", dir, tfh_file_of(files->path[i]));
		int fd =
			tfh_file_empty(files->path[i]) ? tfh_make_file(AT_FDCWD, out, &access) : -1;
		if (fd >= 0)
			close(fd);
	}
}

struct saving {
	const char *out;
	int status; /* the worst so far */
};

static void save_found(void *arg, const struct tft_found *found)
{
	struct saving *s = arg;

	if (found->code) {
		tft_view_sweep(found->view);
		return;
	}
	int code = save_view(found->view, s->out, found->copy ? TFT_SALVAGE_BESIDE : 0);
	s->status = code > s->status ? code : s->status;
}

/* The journals of a run directory, wherever they are. */
static int repair_journals(const char *dir, const char *out)
{
	struct saving s = {out, TFH_EXIT_OK};
	char real[4096];

	if (realpath(dir, real))
		tft_journals_of(real, save_found, &s);
	return s.status;
}

/* Copies what a report needs to know about the run. */
static void copy_facts(const char *dir, const char *out)
{
	static const char *const names[] = {"run.json", "end.json", "start.json"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		char to[8192], text[65536];
		struct stat st;
		snprintf(to, sizeof(to), "%s/%s", out, names[i]);
		FILE *in = tfh_open_facts(dir, names[i]), *copy = NULL;
		if (in && !fstat(fileno(in), &st)) {
			struct tfh_access access = tfh_access_like(&st);
			int fd = tfh_make_file(AT_FDCWD, to, &access);
			copy = fd < 0 ? NULL : fdopen(fd, "w");
			if (fd >= 0 && !copy)
				close(fd);
		}
		for (size_t n; copy && (n = fread(text, 1, sizeof(text), in)) > 0;)
			fwrite(text, 1, n, copy);
		if (in)
			fclose(in);
		if (copy)
			fclose(copy);
	}
}

/* Repairs one operand that is not a journal into `out` or a new directory beside it. */
static int repair_operand(const struct tfh_command_line *args, char *path, const char *out)
{
	char *one[] = {path, NULL}, own[4128];
	struct tfh_command_line part = {.command = args->command, .operand = one, .operands = 1};
	struct tfh_files files;
	struct tfh_err err;
	struct stat st;
	int status;
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
	if (make_results(out, path, out == own)) {
		tfh_files_free(&files);
		return TFH_EXIT_USAGE;
	}
	status = repair_files(&files, out);
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
		tfh_say(status == TFH_EXIT_OK
				? "%s: neither trace files nor journals to repair"
				: "%s: nothing in it can be read, so there is no result",
			path);
		return status == TFH_EXIT_OK ? TFH_EXIT_NOTHING : status;
	}
	fflush(stdout);
	tfh_say("the result is in %s", out);
	return status;
}

/* ---- journals left in /dev/shm ---- */

/* Whether its run directory was deleted, judged only if the process saw the same file system.
 * Without a segment, the process may never have reached it. */
static bool directory_gone(const struct tft_journal *j)
{
	struct stat root;

	return j->segments && access(j->run_dir, F_OK) && errno == ENOENT && j->mnt_ns &&
	       j->mnt_ns == tfh_namespace("mnt") && !stat("/", &root) &&
	       root.st_dev == j->root_dev && root.st_ino == j->root_ino;
}

static bool is_left(const struct tft_view *view)
{
	return tfh_starts_with(tft_view_path(view), "/dev/shm/tfhook.");
}

/* Repairs one of the user's own journals. */
static void take_left(void *arg, const struct tft_found *found)
{
	const struct tft_journal *j = tft_view_header(found->view);
	const char *path = tft_view_path(found->view);
	int *status = arg, worst = TFH_EXIT_OK;

	if (!is_left(found->view) || tft_view_stat(found->view)->st_uid != geteuid())
		return;
	if (found->code) {
		tft_view_sweep(found->view);
		return;
	}
	if (tft_view_life(found->view) != TFT_DEAD)
		return;
	if (directory_gone(j)) {
		tft_view_remove(found->view);
		tfh_print(stdout, "%s: its run directory %s no longer exists: removed\n", path,
			  j->run_dir);
	} else if (!*j->run_dir) {
		tfh_print(
			stdout,
			"%s: kept: the file system of its run directory did not answer before its "
			"process ended; `tfhook repair %s -o DIR` saves it\n",
			path, path);
	} else if (access(j->run_dir, F_OK)) {
		tfh_print(
			stdout,
			"%s: kept: its run directory %s is not visible from here (in a container, "
			"or not mounted?); `tfhook repair %s -o DIR` saves it elsewhere\n",
			path, j->run_dir, path);
	} else {
		worst = save_view(found->view, NULL, TFT_SALVAGE_UNLINK);
	}
	*status = worst > *status ? worst : *status;
}

static int take_own(void)
{
	int status = TFH_EXIT_OK;

	tft_journals_in("/dev/shm", take_left, &status);
	fflush(stdout);
	return status;
}

struct owners {
	uid_t *uid;
	gid_t *gid;
	unsigned n;
};

static void note_owner(void *arg, const struct tft_found *found)
{
	const struct stat *st = tft_view_stat(found->view);
	struct owners *o = arg;

	if (!is_left(found->view) || st->st_uid == geteuid())
		return;
	for (unsigned i = 0; i < o->n; i++)
		if (o->uid[i] == st->st_uid)
			return;
	uid_t *uid = realloc(o->uid, (o->n + 1) * sizeof(*uid));
	o->uid = uid ? uid : o->uid;
	gid_t *gid = uid ? realloc(o->gid, (o->n + 1) * sizeof(*gid)) : NULL;
	o->gid = gid ? gid : o->gid;
	if (!gid)
		return;
	o->uid[o->n] = st->st_uid;
	o->gid[o->n++] = st->st_gid;
}

#define USER_SECONDS 60

/* Runs in a process with that user's rights, because the user decides where the journal's directory
 * leads: nothing is written there with root's rights, and a directory that does not respond costs
 * at most a minute. */
static int take_as(uid_t uid, gid_t gid)
{
	int status;

	fflush(NULL);
	pid_t pid = fork();
	if (!pid) {
		alarm(USER_SECONDS);
		if (setgroups(0, NULL) || setresgid(gid, gid, gid) || setresuid(uid, uid, uid))
			_exit(TFH_EXIT_UNREADABLE);
		_exit(take_own());
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0) {
		tfh_say("repair: journals of user %u are kept: %s", (unsigned)uid, strerror(errno));
		return TFH_EXIT_UNREADABLE;
	}
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	tfh_say("repair: journals of user %u are kept: %s", (unsigned)uid,
		WTERMSIG(status) == SIGALRM ? "their directories did not answer within a minute"
					    : strsignal(WTERMSIG(status)));
	return TFH_EXIT_UNREADABLE;
}

static int repair_left(void)
{
	struct owners others = {0};
	int status = take_own();

	if (geteuid() == 0)
		tft_journals_in("/dev/shm", note_owner, &others);
	for (unsigned i = 0; i < others.n; i++) {
		int code = take_as(others.uid[i], others.gid[i]);
		status = code > status ? code : status;
	}
	free(others.uid);
	free(others.gid);
	return status;
}

static int cmd_repair(const struct tfh_command_line *args)
{
	const char *out = tfh_line_get(args, "output");
	int status = TFH_EXIT_OK;

	if (tfh_line_get(args, "left") && !args->operands && !out)
		return repair_left();
	if (!args->operands) {
		tfh_say("repair: no input: tfhook repair DIR|FILE... [-o DIR], or tfhook repair "
			"--left");
		return TFH_EXIT_USAGE;
	}
	for (int i = 0; i < args->operands; i++) {
		char *path = args->operand[i];
		int code = is_journal(path) ? save_journal(path, out)
					    : repair_operand(args, path, out);
		status = code > status ? code : status;
	}
	return status;
}

const struct tfh_command tfh_cmd_repair = {
	.name = "repair",
	.operand_text = "PATH...",
	.summary = "recover the intact part of damaged files and left-over journals",
	.details = "PATH is a run directory, a .tft file or a journal. The originals are never "
		   "changed. Without -o, the result is a new directory beside it, PATH.repaired; "
		   "for a journal, it is one more file in the run directory that it names.",
	.operands = TFH_OPERANDS_TRACES,
	.usage_exit = TFH_EXIT_USAGE,
	.run = cmd_repair,
	.flags =
		{
			{.name = "output",
			 .letter = 'o',
			 .arg = "DIR",
			 .help = "directory for the result, created if it does not exist"},
			{.name = "left",
			 .help = "without PATH: move the journals that your killed processes (as "
				 "root: everybody's) left in /dev/shm to their run directories"},
		},
};
