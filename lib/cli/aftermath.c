/*
 * When the job is over: what its processes left in journals goes to files, and the verdict is made.
 * All of it in a child process, so that nothing that happens here can touch the job's exit status.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "analyze/result.h"
#include "cli/cli.h"
#include "cli/journals.h"
#include "cli/run.h"
#include "format/journal.h"
#include "report/report.h"

#define MAX_JOURNALS 1024

/* Returns how many processes of the job still record; `lost` gets how many left records that
 * nothing could be made of. */
static unsigned salvage(const struct tfh_place *place, unsigned *lost)
{
	struct tfh_found_journal *found = calloc(MAX_JOURNALS, sizeof(*found));
	unsigned n = found ? tfh_journals_find(place->dir, 0, found, MAX_JOURNALS) : 0, live = 0;
	/* Where a whole group was killed, some may take longer to die than the job's first
	 * process: half a second in all, for those that still live. */
	const struct timespec nap = {0, 20000000};
	unsigned patience = 25;

	for (unsigned i = 0; i < n && i < MAX_JOURNALS; i++) {
		struct tft_salvaged saved;
		struct tfh_err err = {0};
		if (found[i].copy)
			continue; /* not of this job */
		int code = tft_salvage(found[i].path, NULL, TFT_SALVAGE_UNLINK, &saved, &err);
		for (; code == -EBUSY && patience; patience--) {
			nanosleep(&nap, NULL);
			code = tft_salvage(found[i].path, NULL, TFT_SALVAGE_UNLINK, &saved, &err);
		}
		if (code == -EBUSY)
			live++;
		else if (code && code != -EALREADY && code != -ENOENT) {
			tfh_say("process %d left records that could not be saved: %s. `tfhook "
				"repair %s` tries again",
				(int)found[i].pid, *err.text ? err.text : strerror(-code),
				found[i].path);
			++*lost;
		}
	}
	free(found);
	return live;
}

static void judge(const struct tfh_place *place, bool color)
{
	const char *paths[] = {place->dir};
	struct tfh_style style = {.color = color, .utf8 = tfh_use_utf8()};
	struct tfh_result *result = NULL;
	struct tfh_run *run = NULL;
	struct tfh_err err = {0};
	char here[4096];

	int code = tfh_run_open(paths, 1, &run, &err);
	if (!code)
		code = tfh_analyze(run, &result, &err);
	if (code)
		tfh_say("no verdict: %s", *err.text ? err.text : strerror(-code));
	else
		tfh_report_verdict(stderr, result, &style, "tfhook: ");
	tfh_result_free(result);
	tfh_run_close(run);
	/* A directory right here can be named without its path. */
	const char *shown = place->dir;
	size_t len = getcwd(here, sizeof(here)) ? strlen(here) : 0;
	if (len && !strncmp(place->dir, here, len) && place->dir[len] == '/')
		shown += len + 1;
	if (code != -ENODATA)
		tfh_say("the whole report: tfhook report %s", shown);
}

/* A job that failed early is the likeliest reason of all. */
static void say_if_failed(int status)
{
	if (WIFSIGNALED(status))
		tfh_say("the job was ended by signal %d (%s), perhaps before it came to that",
			WTERMSIG(status), strsignal(WTERMSIG(status)));
	else if (WEXITSTATUS(status))
		tfh_say("the job failed with exit code %d, perhaps before it came to that",
			WEXITSTATUS(status));
}

static void say_why_nothing(const struct tfh_place *place, const struct tfh_program *program,
			    int status, unsigned lost, bool audit)
{
	const char *enabled = getenv("TFHOOK");

	if (access(place->dir, F_OK)) {
		tfh_say("nothing is left of the recording: %s was removed while the job ran; name "
			"a directory that lasts with -o or TFHOOK_DIR",
			place->dir);
		return;
	}
	if (lost) {
		tfh_say("nothing of the recording could be written to %s: see above", place->dir);
		return;
	}
	if (enabled && !strcmp(enabled, "0")) {
		tfh_say("nothing was recorded: TFHOOK=0 switches the recorder off");
		return;
	}
	if (program->state != TFH_PROGRAM_OK) {
		tfh_say("nothing was recorded: see the first message");
		return;
	}
	if (getenv("TFHOOK_ONLY") || getenv("TFHOOK_SKIP") || getenv("TFHOOK_RANKS") ||
	    getenv("TFHOOK_WINDOW"))
		tfh_say("nothing was recorded: TFHOOK_ONLY, _SKIP, _RANKS or _WINDOW left no "
			"process or moment over, or none "
			"copied to a GPU, computed on one or took a batch from tf.data");
	else
		tfh_say("nothing was recorded: no process of this job copied to a GPU, computed "
			"on one or took a batch from tf.data that tfhook could see");
	say_if_failed(status);
	if (!audit)
		tfh_say("a GPU library opened with RTLD_DEEPBIND (taichi does so) is seen with "
			"`tfhook run --audit` only");
	tfh_say("if it should have: `tfhook doctor %s` looks for what stands in the way; launchers "
		"that clear the "
		"environment (sudo, env -i, ssh, containers) need the variables of `tfhook env`",
		program->path);
}

/* In the child: 0 when something was recorded, 1 when not. */
static int aftermath(const struct tfh_place *place, const struct tfh_program *program, int status,
		     bool quiet, bool color, bool audit)
{
	unsigned lost = 0, live = salvage(place, &lost);

	if (!tfh_place_traces(place->dir)) {
		if (live && !quiet)
			tfh_say("%u process%s of the job still run%s; when they ended: tfhook "
				"report %s",
				live, live == 1 ? "" : "es", live == 1 ? "s" : "", place->dir);
		else if (!quiet)
			say_why_nothing(place, program, status, lost, audit);
		return live ? 0 : 1;
	}
	if (!quiet)
		judge(place, color);
	return 0;
}

bool tfh_aftermath(const struct tfh_place *place, const struct tfh_program *program, int job,
		   bool quiet, bool color, bool audit)
{
	int status = 0;

	fflush(NULL);
	pid_t pid = fork();
	if (pid < 0) {
		tfh_say("no verdict: %s; later: tfhook report %s", strerror(errno), place->dir);
		return true;
	}
	if (!pid) {
		sigset_t none;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		sigemptyset(&none);
		for (int sig = 1; sig < 32; sig++)
			signal(sig, SIG_DFL);
		/* Whoever ends a job often signals its whole group, more than once; Ctrl-C gives up
		 * the verdict. */
		signal(SIGTERM, SIG_IGN);
		signal(SIGHUP, SIG_IGN);
		sigprocmask(SIG_SETMASK, &none, NULL);
		int code = aftermath(place, program, job, quiet, color, audit);
		fflush(NULL);
		_exit(code);
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFSIGNALED(status) && WTERMSIG(status) != SIGINT)
		tfh_say("the verdict could not be made (signal %d); the recording is in %s",
			WTERMSIG(status), place->dir);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 1) {
		tfh_place_remove_unused(place);
		return false;
	}
	return true;
}
