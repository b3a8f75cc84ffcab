/*
 * After the job: salvages the journals its processes left, and prints the verdict. This runs in
 * child processes, so that it cannot affect the job's exit status, and for a bounded time, since
 * somebody may be waiting for the job.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "judge/judge.h"
#include "base/clock.h"
#include "base/print.h"
#include "base/proc.h"
#include "cli/cli.h"
#include "cli/python_start.h"
#include "cli/run.h"
#include "cli/start_samples.h"
#include "format/journal_view.h"
#include "report/report.h"

/* Limit for each of the two children, besides what the first has to write. */
#define MOST_NS 2000000000ll
/* Time without a processor does not count, up to this multiple of the limit. */
#define STARVED 5
/* A slower disk does not extend the limit further. */
#define WRITES_PER_S (16 << 20)
/* Time for records already on their way to a file when this process is asked to end. */
#define GRACE_NS 500000000ll

/* ---- a child with a limit ---- */

enum how { DONE, LATE, STOPPED };

static int64_t now_ns(void)
{
	return tfh_clock_ns(CLOCK_MONOTONIC);
}

/* How long the child was runnable without a processor. */
static int64_t starved_ns(pid_t pid)
{
	char path[64], text[128];
	const char *delay;

	snprintf(path, sizeof(path), "/proc/%d/schedstat", (int)pid);
	tfh_read_small(path, text, sizeof(text));
	delay = strchr(text, ' ');
	return delay ? strtoll(delay + 1, NULL, 10) : 0;
}

static void enders(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGHUP);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGQUIT);
}

/* Signals handled for the job no longer matter; a scheduler signals the whole group. */
static void forget_signals(void)
{
	const struct timespec none = {0, 0};
	sigset_t set;

	enders(&set);
	while (sigtimedwait(&set, NULL, &none) > 0)
		;
}

static void prepare_child(void)
{
	sigset_t none;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigemptyset(&none);
	for (int sig = 1; sig < 32; sig++)
		signal(sig, SIG_DFL);
	/* The signal goes to the whole group; this process' parent decides. */
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static enum how wait_for(pid_t pid, int64_t limit, int *status)
{
	int64_t begin = now_ns(), end = begin + limit;
	enum how how = LATE;
	sigset_t set;

	enders(&set);
	sigaddset(&set, SIGCHLD);
	for (;;) {
		struct timespec nap = {0, 20000000};

		if (waitpid(pid, status, WNOHANG) == pid)
			return how == STOPPED ? STOPPED : DONE;
		if (now_ns() >= end) {
			int64_t more = how == LATE ? starved_ns(pid) : 0;

			if (more > (STARVED - 1) * limit)
				more = (STARVED - 1) * limit;
			if (now_ns() >= end + more)
				break;
		}
		int sig = sigtimedwait(&set, NULL, &nap);
		if (sig > 0 && sig != SIGCHLD && how != STOPPED) {
			how = STOPPED;
			end = now_ns() + GRACE_NS;
		}
	}
	kill(pid, SIGKILL);
	/* A child that hangs in the kernel is left to it. */
	for (int i = 0; i < 50 && waitpid(pid, status, WNOHANG) != pid; i++)
		nanosleep(&(struct timespec){0, 2000000}, NULL);
	*status = 0;
	return how;
}

/* ---- salvage ---- */

static void add_bytes(void *arg, const struct tft_found *found)
{
	int64_t *sum = arg;

	if (!found->code && !found->copy)
		*sum += (int64_t)tft_view_stat(found->view)->st_blocks * 512;
}

/* Bytes in this job's journals only: other jobs may have left many. */
static int64_t journal_bytes(const struct tfh_place *place)
{
	int64_t sum = 0;

	tft_journals_of(place->dir, add_bytes, &sum);
	return sum;
}

/* Results of salvage() as a child's exit code. */
#define LOST 1
#define LIVE 2 /* from here on the number of processes still recording */
#define LIVE_MOST 60

struct left {
	unsigned live, lost;
	/* When a whole group is killed, some processes may outlive the job's first one: wait half a
	 * second in all for them. */
	unsigned patience;
};

static void save(void *arg, const struct tft_found *found)
{
	const struct timespec nap = {0, 20000000};
	struct left *left = arg;
	struct tft_salvaged saved;
	struct tfh_err err = {0};

	if (found->code || found->copy) /* of another job */
		return;
	int code = tft_salvage_view(found->view, NULL, TFT_SALVAGE_UNLINK, &saved, &err);
	for (; code == -EBUSY && left->patience; left->patience--) {
		nanosleep(&nap, NULL);
		code = tft_salvage_view(found->view, NULL, TFT_SALVAGE_UNLINK, &saved, &err);
	}
	if (code == -EBUSY)
		left->live++;
	else if (code && code != -EALREADY && code != -ENOENT) {
		tfh_say("process %u left records that could not be saved: %s. `tfhook repair %s` "
			"tries again",
			tft_view_header(found->view)->pid, *err.text ? err.text : strerror(-code),
			tft_view_path(found->view));
		left->lost++;
	}
}

static int salvage(const struct tfh_place *place)
{
	struct left left = {.patience = 25};

	tft_journals_of(place->dir, save, &left);
	return (left.lost ? LOST : 0) + LIVE * (int)(left.live < LIVE_MOST ? left.live : LIVE_MOST);
}

/* ---- messages ---- */

/* A directory directly below the working directory is shown without its path. */
static const char *shown(const struct tfh_place *place)
{
	char here[4096];
	size_t len = getcwd(here, sizeof(here)) ? strlen(here) : 0;

	if (len && !strncmp(place->dir, here, len) && place->dir[len] == '/')
		return place->dir + len + 1;
	return place->dir;
}

static void judge(const struct tfh_place *place, bool color)
{
	const char *paths[] = {place->dir};
	struct tfh_style style = {
		.color = color, .utf8 = tfh_use_utf8(), .columns = tfh_use_columns(stderr)};
	struct tfh_result *result = NULL;
	struct tfh_run *run = NULL;
	struct tfh_err err = {0};

	int code = tfh_run_open(paths, 1, &run, &err);
	if (!code) {
		struct tfh_progress *progress = tfh_progress_start(run);
		code = tfh_analyze(run, &result, &err);
		tfh_progress_stop(progress);
	}
	if (code) {
		tfh_say("no verdict: %s", *err.text ? err.text : strerror(-code));
	} else {
		struct tfh_wording words;
		tfh_wording_make(&words, result);
		tfh_report_verdict(stderr, &words, &style, "tfhook: ");
		tfh_wording_free(&words);
	}
	tfh_result_free(result);
	tfh_run_close(run);
	if (code != -ENODATA)
		tfh_say("the report: tfhook report %s", shown(place));
}

/* A job that failed early is the most likely reason. Returns whether it failed. */
static bool say_if_failed(int status)
{
	if (WIFSIGNALED(status))
		tfh_say("the job was ended by signal %d (%s), perhaps before it did any of that",
			WTERMSIG(status), strsignal(WTERMSIG(status)));
	else if (WEXITSTATUS(status))
		tfh_say("the job failed with exit code %d, perhaps before it did any of that",
			WEXITSTATUS(status));
	return status;
}

static bool is_full(const char *dir)
{
	struct statvfs fs;
	uint64_t least;

	return tfh_place_room(dir, &least) < 0 ||
	       (!statvfs(dir, &fs) && fs.f_files && !fs.f_favail);
}

static void say_how_to_mark(const char *what)
{
	char package[4096];
	bool found = tfh_python_package(package);

	tfh_say("%s%s%s%s, include/tfhook/tfhook.h in C", what, found ? " (PYTHONPATH=" : "",
		found ? package : "", found ? ")" : "");
}

/* No call was recorded, but the main thread was sampled. */
static void judge_samples(const struct tfh_place *place, int status, bool color)
{
	tfh_say("no call was recorded: no process of this job used a GPU, took a batch from "
		"tf.data or a PyTorch DataLoader, or ran a backward pass of PyTorch's, that tfhook "
		"could see; by samples of its main thread:");
	say_if_failed(status);
	judge(place, color);
	say_how_to_mark("steps can be marked: tfhook.step_scope() in Python");
}

/* Python was seen at work, but not for long enough. */
static void say_if_short(const struct tfh_start_samples *samples)
{
	uint32_t n = tfh_start_samples_placed(samples);

	if (n)
		tfh_say("the job was too short to be judged by samples of its main thread: only %u "
			"found it at a line of Python",
			n);
}

/* What prevented the recording; false: nothing that is known. */
static bool say_obstacle(const struct tfh_place *place, const struct tfh_program *program,
			 bool lost)
{
	const char *enabled = getenv("TFHOOK");

	if (access(place->dir, F_OK))
		tfh_say("nothing is left of the recording: %s was removed while the job ran; name "
			"a permanent directory with -o or TFHOOK_DIR",
			place->dir);
	else if (lost)
		tfh_say("nothing of the recording could be written to %s: see above", place->dir);
	else if (is_full(place->dir))
		tfh_say("nothing was recorded: the file system of %s is full (2 GiB or 5 %% stay "
			"free); free some space, or name another directory with -o or TFHOOK_DIR",
			place->dir);
	else if (enabled && !strcmp(enabled, "0"))
		tfh_say("nothing was recorded: TFHOOK=0 switches the recorder off");
	else if (program->state != TFH_PROGRAM_OK)
		tfh_say("nothing was recorded: see the first message");
	else
		return false;
	return true;
}

static void say_why_nothing(const struct tfh_place *place, const struct tfh_program *program,
			    int status, bool lost, bool audit,
			    const struct tfh_start_samples *samples)
{
	if (say_obstacle(place, program, lost))
		return;
	if (getenv("TFHOOK_ONLY") || getenv("TFHOOK_SKIP") || getenv("TFHOOK_RANKS") ||
	    getenv("TFHOOK_WINDOW"))
		tfh_say("nothing was recorded: TFHOOK_ONLY, _SKIP, _RANKS or _WINDOW excluded "
			"every process or moment, or no process used a GPU, tf.data or PyTorch's "
			"training");
	else
		tfh_say("nothing was recorded: no process of this job used a GPU, took a batch "
			"from tf.data or a PyTorch DataLoader, or ran a backward pass of "
			"PyTorch's, that tfhook could see");
	bool failed = say_if_failed(status);
	if (!failed)
		say_if_short(samples);
	if (!failed)
		say_how_to_mark(
			"to have its steps recorded, mark them: tfhook.step_scope() in Python");
	if (!failed && !audit)
		tfh_say("a GPU library opened with RTLD_DEEPBIND (taichi does so) is only recorded "
			"with `tfhook run --audit`");
	tfh_say("if it should have: `tfhook doctor %s` looks for the obstacle; launchers "
		"that clear the "
		"environment (sudo, env -i, ssh, containers) need the variables of `tfhook env`",
		program->path);
}

/* ---- both steps ---- */

/* Prints the verdict, or why there is none; runs in a child. */
static enum how print_verdict(const struct tfh_place *place, const struct tfh_program *program,
			      int job, int left, bool traces, bool color, bool audit,
			      const struct tfh_start_samples *samples)
{
	bool sampled = !traces && !(left & LOST) && tfh_start_samples_kept(samples);
	unsigned live = (unsigned)left / LIVE;
	int status = 0;
	pid_t pid = fork();

	if (pid < 0) {
		tfh_say("no verdict: %s; later: tfhook report %s", strerror(errno), shown(place));
		return DONE;
	}
	if (!pid) {
		prepare_child();
		if (traces)
			judge(place, color);
		else if (live)
			tfh_say("%u process%s of the job still run%s; once they have ended: tfhook "
				"report %s",
				live, live == 1 ? "" : "es", live == 1 ? "s" : "", place->dir);
		else if (sampled)
			judge_samples(place, job, color);
		else
			say_why_nothing(place, program, job, left & LOST, audit, samples);
		fflush(NULL);
		_exit(0);
	}
	enum how how = wait_for(pid, MOST_NS, &status);
	if (how == LATE && isatty(STDERR_FILENO))
		tfh_put("\r\033[K", stderr); /* the line of progress that the child had begun */
	if (how == LATE)
		tfh_say("the verdict takes too long to wait for: tfhook report %s", shown(place));
	else if (WIFSIGNALED(status) && WTERMSIG(status) != SIGINT)
		tfh_say("the verdict could not be made (signal %d); the recording is in %s",
			WTERMSIG(status), place->dir);
	return how;
}

bool tfh_aftermath(const struct tfh_place *place, const struct tfh_program *program, int job,
		   bool quiet, bool color, bool audit, const struct tfh_start_samples *samples)
{
	int64_t bytes = journal_bytes(place);
	int left = 0;

	forget_signals();
	fflush(NULL);
	pid_t pid = fork();
	if (!pid) {
		prepare_child();
		int code = salvage(place);
		fflush(NULL);
		_exit(code);
	}
	enum how how =
		pid < 0 ? DONE : wait_for(pid, MOST_NS + bytes * 1000000000 / WRITES_PER_S, &left);
	left = WIFEXITED(left) ? WEXITSTATUS(left) : LOST;
	bool traces = tfh_place_traces(place->dir) > 0;
	bool sampled = !traces && !(left & LOST) && tfh_start_samples_kept(samples);
	if (how == DONE && !quiet)
		how = print_verdict(place, program, job, left, traces, color, audit, samples);
	else if (how == LATE && !quiet)
		tfh_say("saving the records of killed processes takes too long to wait for: tfhook "
			"report %s",
			shown(place));
	if (how == STOPPED && !quiet)
		tfh_say("stopped by a signal; the verdict: tfhook report %s", shown(place));
	if (traces || left >= LIVE || how != DONE)
		return true;
	if (!(left & LOST) && !sampled)
		tfh_place_remove_unused(place);
	return false;
}
