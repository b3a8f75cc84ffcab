/* `tfhook ctl`: controls running jobs through the control word of their journals. */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/ctl_request.h"

static int usage(void)
{
	tfh_say("ctl: usage: tfhook ctl DIR|PID start|stop|flush|gpu on|gpu off [--at-step N] "
		"[--steps N] [--wait S]");
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

/* The run directory that the target is, else `dir` is "" and it is a process. 0 or an exit code. */
static int find_target(const char *target, char dir[PATH_MAX], pid_t *pid)
{
	struct stat st;
	char *end;
	long number = strtol(target, &end, 10);

	if (!stat(target, &st) && S_ISDIR(st.st_mode) && realpath(target, dir))
		return 0;
	*dir = '\0';
	*pid = (pid_t)number;
	if (!*end && number > 0 && number <= INT32_MAX)
		return 0;
	tfh_say("ctl: '%s' is neither a run directory nor a process id", target);
	return TFH_EXIT_USAGE;
}

/* The words and flags as an order. 0 or an exit code. */
static int parse(const struct tfh_command_line *args, struct tfh_ctl_order *o, double *wait_s)
{
	const char *limit = tfh_line_get(args, "steps"), *at = tfh_line_get(args, "at-step");
	uint32_t step = 0;
	char words[32];

	if (args->operands < 2 || args->operands > 3)
		return usage();
	snprintf(words, sizeof(words), "%s%s%s", args->operand[1], args->operands == 3 ? " " : "",
		 args->operands == 3 ? args->operand[2] : "");
	o->verb = tfh_ctl_verb_find(words);
	if (!tfh_ctl_fits(o->verb, limit, at))
		return usage();
	if ((limit && parse_steps("steps", limit, &o->steps)) ||
	    (at && parse_steps("at-step", at, &step)) ||
	    tfh_line_seconds(args, "wait", 0, TFH_CTL_WAIT_MOST_S, wait_s))
		return TFH_EXIT_USAGE;
	o->at = step;
	return 0;
}

static int say_result(const struct tfh_ctl_order *o, const struct tfh_ctl_asked *others,
		      const char *target)
{
	if (!o->told && !o->failed)
		tfh_say("no process of %s is recording on this host (it ended, runs on another "
			"host, or has made no GPU or "
			"tf.data call yet)",
			target);
	else
		tfh_say("%s: %u process%s%s", tfh_ctl_verb_name(o->verb), o->told,
			o->told == 1 ? "" : "es",
			o->late && o->verb == TFH_CTL_FLUSH
				? "; writing has not finished after 4 s (is the disk full, or the "
				  "process stopped?)"
				: "");
	if (!o->told && !o->failed && !others->told)
		return TFH_EXIT_NOTHING;
	return o->failed || o->late || others->missing ? TFH_EXIT_GATE : TFH_EXIT_OK;
}

/* ---- a file system that hangs ---- */

/* beyond the time to wait: sending the command and reading the answers take up to 5 s */
#define HUNG_S 20

struct watched {
	const char *target;
	double wait_s;
};

/* A call on a network file system whose server is gone may never return, but the process can be
 * ended. */
static void *watch(void *arg)
{
	const struct watched *x = arg;
	struct timespec left = {(time_t)x->wait_s + HUNG_S, 0};

	while (nanosleep(&left, &left))
		;
	tfh_say("ctl: the file system of %s has not answered for %.0f s: how far the command got "
		"is not known",
		x->target, x->wait_s + HUNG_S);
	_exit(TFH_EXIT_GATE);
}

static int cmd_ctl(const struct tfh_command_line *args)
{
	struct tfh_ctl_asked others = {.dir = -1};
	struct tfh_ctl_order o = {.steps = 0};
	char dir[PATH_MAX];
	double wait_s = 10;
	pid_t pid = 0;
	int code = parse(args, &o, &wait_s);
	struct watched watched = {args->operand[0], wait_s};
	pthread_t watcher;

	if (!code)
		pthread_create(&watcher, NULL, watch, &watched);
	if (!code)
		code = find_target(args->operand[0], dir, &pid);
	if (code)
		return code;
	code = tfh_ctl_give(&o, *dir ? dir : NULL, pid);
	if (code == -EACCES || code == -EPERM) {
		tfh_say("ctl: no permission to inspect process %d: %s; name its run directory",
			(int)pid, strerror(-code));
		return TFH_EXIT_GATE;
	}
	if (*dir)
		tfh_ctl_ask(dir, &o, wait_s, &others);
	tfh_ctl_hear(&o, *dir ? dir : NULL, pid);
	tfh_ctl_gather(&o, &others);
	return say_result(&o, &others, args->operand[0]);
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
		"A run directory that processes on other hosts share: the command is given once, on any "
		"of its hosts or beside them. It reaches this host's processes at once, and leaves a "
		"request in DIR, which `tfhook digest --follow` on each other host gives to the "
		"processes there. Every host is reported, also those where no follower answers.\n\n"
		"--at-step switches all processes of a job at the same step. Each process counts "
		"its own steps, so give the command some seconds before step N. "
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
			{.name = "wait",
			 .arg = "S",
			 .help = "wait S seconds for other hosts, 10 by default; 0: this host alone"},
		},
};
