/* `tfhook ctl`: controls running jobs through the control word of their journals. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "cli/cli.h"
#include "format/journal_view.h"

/* GPU_ON and GPU_OFF are two words on the command line. */
enum verb { STOP, START, FLUSH, GPU_ON, GPU_OFF, VERBS };
#define AT (TFT_CTL_GPU_ON_AT | TFT_CTL_GPU_OFF_AT)
static const struct {
	const char *name;
	uint32_t set, clear;
	uint32_t set_at; /* with --at-step */
} verbs[VERBS] = {{"stop", TFT_CTL_STOP, 0, 0},
		  {"start", 0, TFT_CTL_STOP, 0},
		  {"flush", TFT_CTL_FLUSH, 0, 0},
		  {"gpu on", TFT_CTL_GPU_ON, TFT_CTL_GPU_OFF | AT, TFT_CTL_GPU_ON_AT},
		  {"gpu off", TFT_CTL_GPU_OFF, TFT_CTL_GPU_ON | AT, TFT_CTL_GPU_OFF_AT}};

#define NAPS 200 /* 4 s */

/* The flusher clears the bits when it has done what they say; it checks every 100 ms. */
static bool wait_for(const struct tft_view *view, uint64_t bits, int *naps)
{
	const struct timespec nap = {0, 20000000};
	bool done = false;
	uint64_t word;

	for (;;) {
		done = tft_view_read(view, &word, sizeof(word),
				     offsetof(struct tft_journal, control)) ||
		       !(word & bits) || tft_view_life(view) != TFT_ALIVE;
		if (done || !*naps)
			return done;
		--*naps;
		nanosleep(&nap, NULL);
	}
}

struct ctl_order {
	enum verb verb;
	uint32_t steps;
	uint64_t at;
	int naps; /* left for the answers of all processes together */
	unsigned told, failed, late;
};

static int give(const struct ctl_order *o, const struct tft_view *view, struct tfh_err *err)
{
	if (o->at)
		return tft_view_set_gpu(view, verbs[o->verb].set_at, AT, 0, o->at, o->steps, err);
	if (verbs[o->verb].set_at)
		return tft_view_set_gpu(view, verbs[o->verb].set, verbs[o->verb].clear, o->steps, 0,
					0, err);
	return tft_view_set_control(view, verbs[o->verb].set, verbs[o->verb].clear, o->steps, err);
}

static void control(void *arg, const struct tft_found *found)
{
	struct ctl_order *o = arg;
	struct tfh_err err;

	if (found->code || tft_view_life(found->view) != TFT_ALIVE)
		return;
	if (give(o, found->view, &err)) {
		tfh_say("process %u: %s", tft_view_header(found->view)->pid, err.text);
		o->failed++;
		return;
	}
	o->told++;
	int naps = NAPS;
	o->late += o->verb == FLUSH && !wait_for(found->view, TFT_CTL_FLUSH, &naps);
}

/* What a process will do. */
static void say_answer(const struct ctl_order *o, const char *who, uint64_t first, uint64_t seen)
{
	char last[32] = "", passed[64] = "", none[64] = "";

	if (o->verb == GPU_ON && o->steps)
		snprintf(last, sizeof(last), " to %" PRIu64, first + o->steps - 1);
	if (first > o->at)
		snprintf(passed, sizeof(passed),
			 "step %" PRIu64 " has passed or is too near: ", o->at);
	else if (!seen)
		snprintf(none, sizeof(none), " (it has counted no step yet)");
	tfh_say("%s: %s%s from step %" PRIu64 "%s%s", who, passed,
		o->verb == GPU_ON ? "device times" : "no device times", first, last, none);
}

/* Waits for the answer of this process and prints it. All processes have received the request
 * before. */
static void hear(void *arg, const struct tft_found *found)
{
	const size_t from = offsetof(struct tft_journal, at_step);
	struct ctl_order *o = arg;
	const struct tft_journal *head;
	uint64_t step, first = 0, seen = 0;
	char who[64], rank[32] = "";
	struct tfh_err err;

	if (found->code || tft_view_life(found->view) != TFT_ALIVE ||
	    tft_view_read(found->view, &step, sizeof(step), from) || step != o->at)
		return;
	head = tft_view_header(found->view);
	if (head->rank >= 0)
		snprintf(rank, sizeof(rank), " (rank %d)", head->rank);
	snprintf(who, sizeof(who), "process %u%s", head->pid, rank);
	if (wait_for(found->view, AT, &o->naps)) {
		if (!tft_view_read(found->view, &first, sizeof(first),
				   offsetof(struct tft_journal, at_answer)) &&
		    !tft_view_read(found->view, &seen, sizeof(seen),
				   offsetof(struct tft_journal, steps)) &&
		    first)
			say_answer(o, who, first, seen);
		return;
	}
	o->late++;
	tft_view_set_gpu(found->view, 0, AT, 0, 0, 0, &err);
	tfh_say("%s: no answer after 4 s, so the command was cancelled (is the process stopped, or "
		"its recorder of an earlier version?)",
		who);
}

static int usage(void)
{
	tfh_say("ctl: usage: tfhook ctl DIR|PID start|stop|flush|gpu on|gpu off [--at-step N] "
		"[--steps N]");
	return TFH_EXIT_USAGE;
}

static int parse_steps(const char *name, const char *text, uint32_t *steps)
{
	char *end;

	errno = 0;
	unsigned long n = strtoul(text, &end, 10);
	if (errno || *end || end == text || *text == '-' || !n || n > UINT32_MAX) {
		tfh_say("ctl: --%s needs a number of at least 1, not '%s'", name, text);
		return -EINVAL;
	}
	*steps = (uint32_t)n;
	return 0;
}

/* Calls `fn` for a run directory's processes, or a pid's. Returns 0 or an exit code. */
static int each_of(const char *target, tft_found_fn fn, struct ctl_order *o)
{
	char dir[4096], *end;
	struct stat st;
	long pid = strtol(target, &end, 10);

	if (!stat(target, &st) && S_ISDIR(st.st_mode) && realpath(target, dir)) {
		tft_journals_of(dir, fn, o);
		return 0;
	}
	if (*end || pid <= 0 || pid > INT32_MAX) {
		tfh_say("ctl: '%s' is neither a run directory nor a process id", target);
		return TFH_EXIT_USAGE;
	}
	int code = tft_journals_of_process((pid_t)pid, fn, o);
	if (code != -EACCES && code != -EPERM)
		return 0;
	tfh_say("ctl: no permission to inspect process %ld: %s; name its run directory", pid,
		strerror(-code));
	return TFH_EXIT_GATE;
}

static int cmd_ctl(const struct tfh_command_line *args)
{
	const char *limit = tfh_line_get(args, "steps"), *at = tfh_line_get(args, "at-step");
	struct ctl_order o = {.naps = NAPS};
	uint32_t step = 0;
	char words[32];
	int verb = 0;

	if (args->operands < 2 || args->operands > 3)
		return usage();
	snprintf(words, sizeof(words), "%s%s%s", args->operand[1], args->operands == 3 ? " " : "",
		 args->operands == 3 ? args->operand[2] : "");
	while (verb < VERBS && strcmp(words, verbs[verb].name))
		verb++;
	if (verb == VERBS || (limit && verb != START && verb != GPU_ON) ||
	    (at && !verbs[verb].set_at))
		return usage();
	if ((limit && parse_steps("steps", limit, &o.steps)) ||
	    (at && parse_steps("at-step", at, &step)))
		return TFH_EXIT_USAGE;
	o.verb = (enum verb)verb;
	o.at = step;
	int code = each_of(args->operand[0], control, &o);
	if (!code && o.at && o.told)
		code = each_of(args->operand[0], hear, &o);
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
		o.late && verb == FLUSH
			? "; writing has not finished after 4 s (is the disk full, or the process "
			  "stopped?)"
			: "");
	return o.failed || o.late ? TFH_EXIT_GATE : TFH_EXIT_OK;
}

const struct tfh_command tfh_cmd_ctl = {
	.name = "ctl",
	.operand_text = "DIR|PID start|stop|flush|gpu on|gpu off",
	.summary = "control the recording of a running job",
	.details =
		"stop     record no more calls (handles and memory are still tracked, so start is "
		"cheap)\n"
		"start    resume recording\n"
		"flush    write what is recorded so far, so that `tfhook report DIR` sees it\n"
		"gpu on   record device times, whatever TFHOOK_CUPTI says\n"
		"gpu off  record no device times\n\n"
		"--at-step switches all processes of a job at the same step. Each process counts "
		"its own steps, so run the same command on every host, some seconds before step N. "
		"Steps are counted from 1 as for TFHOOK_WINDOW: by the job's step marks, otherwise "
		"by the get-next calls of its iterators (the report counts from 0). For every "
		"process the command prints when it will switch. If step N has already passed, "
		"that is at once. A process that has recorded nothing yet cannot be controlled.",
	.operands = TFH_OPERANDS_TRACES,
	.usage_exit = TFH_EXIT_USAGE,
	.run = cmd_ctl,
	.flags =
		{
			{.name = "at-step",
			 .arg = "N",
			 .help = "with gpu on, gpu off: switch at step N"},
			{.name = "steps",
			 .arg = "N",
			 .help = "with start: stop again after N steps; with gpu on: for N steps"},
		},
};
