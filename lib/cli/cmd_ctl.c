/* `tfhook ctl`: controls running jobs through the control word of their journals. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "cli/cli.h"
#include "format/journal_view.h"

/* GPU_ON and GPU_OFF are two words on the command line. */
enum verb { STOP, START, FLUSH, GPU_ON, GPU_OFF, VERBS };
static const struct {
	const char *name;
	uint32_t set, clear;
} verbs[VERBS] = {{"stop", TFT_CTL_STOP, 0},
		  {"start", 0, TFT_CTL_STOP},
		  {"flush", TFT_CTL_FLUSH, 0},
		  {"gpu on", TFT_CTL_GPU_ON, TFT_CTL_GPU_OFF},
		  {"gpu off", TFT_CTL_GPU_OFF, TFT_CTL_GPU_ON}};

/* The flusher clears the bit when the chunk is written; it checks every 100 ms. */
static bool wait_for_flush(const struct tft_view *view)
{
	const struct timespec nap = {0, 20000000};
	bool done = false;
	uint64_t word;

	for (int i = 0; i < 200 && !done; i++) {
		done = tft_view_read(view, &word, sizeof(word),
				     offsetof(struct tft_journal, control)) ||
		       !(word & TFT_CTL_FLUSH) || tft_view_life(view) != TFT_ALIVE;
		if (!done)
			nanosleep(&nap, NULL);
	}
	return done;
}

struct ctl_order {
	enum verb verb;
	uint32_t steps;
	unsigned told, failed, late;
};

static void control(void *arg, const struct tft_found *found)
{
	struct ctl_order *o = arg;
	struct tfh_err err;

	if (found->code || tft_view_life(found->view) != TFT_ALIVE)
		return;
	if (tft_view_set_control(found->view, verbs[o->verb].set, verbs[o->verb].clear, o->steps,
				 &err)) {
		tfh_say("process %u: %s", tft_view_header(found->view)->pid, err.text);
		o->failed++;
		return;
	}
	o->told++;
	o->late += o->verb == FLUSH && !wait_for_flush(found->view);
}

static int usage(void)
{
	tfh_say("ctl: usage: tfhook ctl DIR|PID start|stop|flush|gpu on|gpu off [--steps N]");
	return TFH_EXIT_USAGE;
}

static int parse_steps(const char *text, uint32_t *steps)
{
	char *end;

	errno = 0;
	unsigned long n = strtoul(text, &end, 10);
	if (errno || *end || end == text || *text == '-' || !n || n > UINT32_MAX) {
		tfh_say("ctl: --steps needs a number of at least 1, not '%s'", text);
		return -EINVAL;
	}
	*steps = (uint32_t)n;
	return 0;
}

/* A run directory, or a pid. Returns 0 or an exit code. */
static int control_target(const char *target, struct ctl_order *o)
{
	char dir[4096], *end;
	struct stat st;
	long pid = strtol(target, &end, 10);

	if (!stat(target, &st) && S_ISDIR(st.st_mode) && realpath(target, dir)) {
		tft_journals_of(dir, control, o);
		return 0;
	}
	if (*end || pid <= 0 || pid > INT32_MAX) {
		tfh_say("ctl: '%s' is neither a run directory nor a process id", target);
		return TFH_EXIT_USAGE;
	}
	int code = tft_journals_of_process((pid_t)pid, control, o);
	if (code != -EACCES && code != -EPERM)
		return 0;
	tfh_say("ctl: no permission to inspect process %ld: %s; name its run directory", pid,
		strerror(-code));
	return TFH_EXIT_GATE;
}

int tfh_cmd_ctl(const struct tfh_command_line *args)
{
	const char *limit = tfh_line_get(args, "steps");
	struct ctl_order o = {0};
	char words[32];
	int verb = 0;

	if (args->operands < 2 || args->operands > 3)
		return usage();
	snprintf(words, sizeof(words), "%s%s%s", args->operand[1], args->operands == 3 ? " " : "",
		 args->operands == 3 ? args->operand[2] : "");
	while (verb < VERBS && strcmp(words, verbs[verb].name))
		verb++;
	if (verb == VERBS || (limit && verb != START && verb != GPU_ON))
		return usage();
	if (limit && parse_steps(limit, &o.steps))
		return TFH_EXIT_USAGE;
	o.verb = (enum verb)verb;
	int code = control_target(args->operand[0], &o);
	if (code)
		return code;
	if (!o.told && !o.failed) {
		tfh_say("no process of %s is recording on this host (it ended, runs on another "
			"host, or has made no GPU or "
			"tf.data call yet)",
			args->operand[0]);
		return TFH_EXIT_NOTHING;
	}
	tfh_say("%s: %u process%s%s", verbs[verb].name, o.told, o.told == 1 ? "" : "es",
		o.late ? "; writing has not finished after 4 s (is the disk full, or the process stopped?)"
		       : "");
	return o.failed || o.late ? TFH_EXIT_GATE : TFH_EXIT_OK;
}
