/*
 * `tfhook run`: starts a job with the recorder and waits for it. The job keeps its process group,
 * terminal, output and exit status. Problems with the recording are reported on stderr and change
 * none of these.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/options.h"
#include "cli/cli.h"
#include "cli/run.h"
#include "cli/start_samples.h"

static int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/* ---- what the job inherits ---- */

struct signals {
	sigset_t mask;		/* as the job inherits it */
	struct sigaction child; /* SIGCHLD, as inherited */
	struct sigaction pipe;	/* SIGPIPE, as inherited */
};

/* Signals that `run` forwards to the job. Blocked while it runs and received with sigwaitinfo. */
static const int passed_on[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

static void block_signals(struct signals *before)
{
	struct sigaction normal = {.sa_handler = SIG_DFL};
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(passed_on) / sizeof(passed_on[0]); i++)
		sigaddset(&set, passed_on[i]);
	sigaddset(&set, SIGCHLD);
	/* With SIGCHLD ignored, the kernel would discard the job's status. */
	sigaction(SIGCHLD, &normal, &before->child);
	sigprocmask(SIG_BLOCK, &set, &before->mask);
}

static void restore_signals(const struct signals *before)
{
	sigaction(SIGCHLD, &before->child, NULL);
	sigaction(SIGPIPE, &before->pipe, NULL);
	sigprocmask(SIG_SETMASK, &before->mask, NULL);
}

static int set_variables(const struct tfh_place *place, const struct tfh_library *library)
{
	char *preload = tfh_preload_value(library->preload, getenv("LD_PRELOAD"));
	char *audit =
		*library->audit ? tfh_preload_value(library->audit, getenv("LD_AUDIT")) : NULL;
	int err =
		!preload || setenv("LD_PRELOAD", preload, 1) || setenv("TFHOOK_RUN", place->dir, 1);

	/* Records NVTX ranges if the job has any, unless another tool already uses the variable. */
	if (!getenv("NVTX_INJECTION64_PATH"))
		err |= setenv("NVTX_INJECTION64_PATH", library->preload, 1);
	if (*library->audit)
		err |= !audit || setenv("LD_AUDIT", audit, 1);
	free(preload);
	free(audit);
	return err ? -ENOMEM : 0;
}

/* ---- the job ---- */

/* Starts argv and returns its pid, or -errno of fork or exec. */
static pid_t start(char *const *argv, const struct tfh_place *place,
		   const struct tfh_library *library, const struct signals *before)
{
	int gate[2], code = 0;

	if (pipe2(gate, O_CLOEXEC))
		return -errno;
	pid_t pid = fork();
	if (pid < 0) {
		code = -errno;
		close(gate[0]);
		close(gate[1]);
		return code;
	}
	if (!pid) {
		restore_signals(before);
		if (library)
			code = set_variables(place, library);
		if (!code) {
			execvp(argv[0], argv);
			code = -errno;
		}
		/* Reached only on failure: the errno goes to the parent, which prints it. */
		ssize_t n = write(gate[1], &code, sizeof(code));
		_exit(n == sizeof(code) ? TFH_EXIT_TOOL : TFH_EXIT_NOT_EXECUTABLE);
	}
	close(gate[1]);
	ssize_t n = read(gate[0], &code, sizeof(code));
	close(gate[0]);
	if (n == sizeof(code)) {
		waitpid(pid, NULL, 0);
		return code;
	}
	return pid;
}

/*
 * Waits for the job, and samples it until it records. A signal sent to this process is forwarded to
 * the job; one from the terminal (sent by the kernel) has already reached the whole process group.
 */
static int wait_for(pid_t pid, struct tfh_start_samples *samples)
{
	sigset_t set;
	int status;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	for (size_t i = 0; i < sizeof(passed_on) / sizeof(passed_on[0]); i++)
		sigaddset(&set, passed_on[i]);
	for (;;) {
		siginfo_t info;
		pid_t ended = waitpid(pid, &status, WNOHANG);
		if (ended == pid)
			return status;
		tfh_start_samples_take(samples);
		int64_t ns = tfh_start_samples_wait(samples);
		struct timespec nap = {ns / 1000000000, ns % 1000000000};
		int sig = ns < 0 ? sigwaitinfo(&set, &info) : sigtimedwait(&set, &info, &nap);
		if (sig > 0 && sig != SIGCHLD && info.si_code != SI_KERNEL)
			kill(pid, sig);
	}
}

/* Ends as the job did: with the same code, or by the same signal (without a core file). */
static int end_like(int status, const struct signals *before)
{
	if (!WIFSIGNALED(status))
		return WEXITSTATUS(status);
	struct rlimit none = {0, 0};
	sigset_t set;
	int sig = WTERMSIG(status);

	fflush(NULL);
	setrlimit(RLIMIT_CORE, &none);
	restore_signals(before);
	signal(sig, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, sig);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	raise(sig);
	return 128 + sig;
}

/* ---- before the job ---- */

static void warn_about_room(const struct tfh_place *place)
{
	uint64_t least;
	int64_t room = tfh_place_room(place->dir, &least);

	if (room < 0)
		tfh_say("only %.1f GiB are free where the recording is written; it pauses below "
			"%.1f GiB (2 GiB, or 5 %% of the "
			"file system), so parts will be missing. Free some space, or use -o DIR "
			"elsewhere",
			(double)((int64_t)least + room) / (1 << 30), (double)least / (1 << 30));
}

/* Returns 0, or the exit code if the program cannot be started. */
static int check_program(const struct tfh_command_line *args, struct tfh_program *program,
			 bool strict)
{
	if (!args->operands) {
		tfh_say("run: no command given. usage: tfhook run [FLAGS] [--] CMD [ARG...], for "
			"example: tfhook run python3 train.py");
		return TFH_EXIT_TOOL;
	}
	tfh_program_check(args->operand[0], program);
	if (program->state == TFH_PROGRAM_OK)
		return 0;
	tfh_say("%s%s", program->why,
		program->state > TFH_PROGRAM_NOT_EXECUTABLE && strict ? " (not started: --strict)"
								      : "");
	if (program->state == TFH_PROGRAM_NOT_FOUND)
		return TFH_EXIT_NOT_FOUND;
	if (program->state == TFH_PROGRAM_NOT_EXECUTABLE)
		return TFH_EXIT_NOT_EXECUTABLE;
	return strict ? TFH_EXIT_TOOL : 0;
}

static int exec_failed(const char *name, int error)
{
	tfh_say("cannot start %s: %s", name, strerror(-error));
	return error == -ENOENT			      ? TFH_EXIT_NOT_FOUND
	       : error == -EAGAIN || error == -ENOMEM ? TFH_EXIT_TOOL
						      : TFH_EXIT_NOT_EXECUTABLE;
}

/* Finds the recorder and makes the run directory; false, with a message, if the job cannot be
 * recorded. */
static bool prepare(const struct tfh_command_line *args, struct tfh_library *library,
		    struct tfh_place *place)
{
	struct tfh_err err;

	if (tfh_library_find(library, true, &err) ||
	    (tfh_line_get(args, "audit") && tfh_library_add_audit(library, true, &err)) ||
	    tfh_place_make(place, tfh_line_get(args, "output"), args->operand[0], &err)) {
		tfh_say("%s. The job was not started", err.text);
		return false;
	}
	int code = tfh_place_write_run(place, args->operand);
	if (code == -EEXIST) {
		tfh_say("%s is being used by another `tfhook run`; name a new directory with -o. "
			"The job was not started",
			place->dir);
		return false;
	}
	warn_about_room(place);
	if (code)
		tfh_say("cannot write %s/run.json: %s", place->dir, strerror(-code));
	return true;
}

static int cmd_run(const struct tfh_command_line *args)
{
	bool quiet = tfh_line_get(args, "quiet"), strict = tfh_line_get(args, "strict");
	struct tfh_program program;
	struct tfh_library library;
	struct tfh_place place;
	struct signals before;

	/* A message that cannot be written must not end the job. */
	sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, &before.pipe);
	int code = check_program(args, &program, strict);
	if (code)
		return code;
	tfh_check_variables();
	if (!prepare(args, &library, &place)) {
		tfh_library_release(&library);
		return TFH_EXIT_TOOL;
	}
	if (!quiet)
		tfh_say("recording to %s", place.dir);

	block_signals(&before);
	int64_t started = now_ns();
	/* The loader of a 32-bit program would print an error about the recorder in every process.
	 */
	bool preload = program.state < TFH_PROGRAM_OTHER_CLASS;
	pid_t pid = start(args->operand, &place, preload ? &library : NULL, &before);
	struct tfh_start_samples *samples =
		pid > 0 && preload ? tfh_start_samples_new(&place, pid) : NULL;
	int status = pid > 0 ? wait_for(pid, samples) : 0;
	tfh_start_samples_end(samples);
	if (pid > 0)
		tfh_place_write_end(&place, pid, status, started, now_ns(),
				    tfh_start_samples_ends(samples));
	tfh_library_release(&library);
	if (pid < 0) {
		tfh_start_samples_free(samples);
		tfh_place_remove_unused(&place);
		return exec_failed(args->operand[0], pid);
	}
	bool recorded = tfh_aftermath(&place, &program, status, quiet,
				      tfh_use_color(tfh_line_get(args, "color"), stderr),
				      tfh_line_get(args, "audit"), samples);
	tfh_start_samples_free(samples);
	if (!recorded && strict)
		return TFH_EXIT_TOOL;
	return end_like(status, &before);
}

const struct tfh_command tfh_cmd_run = {
	.name = "run",
	.operand_text = "[--] CMD [ARG...]",
	.summary = "record CMD and its children, and print a short verdict",
	.details =
		"Creates the directory tfhook-<exe>-<UTC>-<id>/ here, starts CMD with the "
		"recorder preloaded, and waits. CMD's output, exit code and results do not "
		"change; tfhook writes to stderr only. The environment variables that `tfhook env` "
		"lists configure the recorder.\n\n"
		"Exit code: CMD's own; if CMD died of a signal, so does tfhook. Before CMD "
		"starts: 125 tfhook cannot record, 126 CMD is not executable, 127 CMD is not "
		"found.",
	.operands = TFH_OPERANDS_COMMAND,
	.usage_exit = TFH_EXIT_TOOL,
	.run = cmd_run,
	.flags =
		{
			{.name = "output",
			 .letter = 'o',
			 .arg = "DIR",
			 .help = "write the recording to DIR, which must be new or empty"},
			{.name = "quiet",
			 .letter = 'q',
			 .help = "print nothing, not even the verdict"},
			{.name = "strict",
			 .help = "do not start CMD if it cannot be recorded; exit 125 if nothing "
				 "was recorded"},
			TFH_FLAG_AUDIT,
			TFH_FLAG_COLOR,
		},
};
