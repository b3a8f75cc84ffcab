/* `tfhook top`: a running job, on the terminal's screen, in lines, as JSON or as metrics. */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/job_dir.h"
#include "model/model.h"
#include "report/report.h"
#include "top/listen.h"
#include "top/otlp.h"
#include "top/watch.h"

#define WINDOW_S 30.0
#define INTERVAL_S 2.0
/* After a signal, the reader of a full pipe gets this long for the rest of a line. */
#define REST_MS 2000

struct top_order {
	const struct tfh_command_line *args;
	struct tfh_watch *w;
	double interval_s;
	struct tfh_style style;
	const char *metrics; /* file, NULL: none */
	struct tfh_otlp *otlp;
	struct tfh_listener *listener;
	bool screen;	/* nothing else may be written to the terminal */
	char said[600]; /* the last message about metrics; "": none */
	int status;
};

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
	interrupted = number;
}

/* Reports each problem once. What cannot be printed beside the screen is printed after it. */
static void complain(struct top_order *o, const char *where, const char *why)
{
	char text[600];

	o->status = TFH_EXIT_UNREADABLE;
	snprintf(text, sizeof(text), "%s: %s", where, why);
	if (!strcmp(text, o->said))
		return;
	memcpy(o->said, text, sizeof(text));
	if (!o->screen)
		tfh_say("top: %s", o->said);
}

static void offer(struct top_order *o)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return;
	int rc = tfh_top_metrics(out, o->w);
	if (fclose(out) || rc)
		free(text);
	else
		tfh_listener_offer(o->listener, text, size);
}

static void write_metrics(void *arg)
{
	struct top_order *o = arg;
	struct tfh_err err = {0};
	int rc = o->metrics ? tfh_top_metrics_file(o->metrics, o->w) : 0;

	if (rc)
		complain(o, o->metrics, strerror(-rc));
	if (o->listener)
		offer(o);
	if (o->otlp && tfh_otlp_send(o->otlp, o->w, &err))
		complain(o, tfh_line_get(o->args, "otlp"), err.text);
}

static void judge(struct top_order *o)
{
	if (o->w->phase != TFH_WATCH_WAITING && tfh_watch_judge(o->w))
		tfh_say("top: out of memory");
}

static bool has_facts(const char *dir)
{
	FILE *f = tfh_open_facts(dir, "run.json");

	if (!f)
		return false;
	fclose(f);
	return true;
}

static int nothing(const struct tfh_watch *w)
{
	if (w->phase == TFH_WATCH_ENDED)
		tfh_say("%s: no process of it records here any more; `tfhook report` reads what "
			"was recorded",
			w->dir);
	else if (w->phase == TFH_WATCH_WAITING)
		tfh_say("%s: nothing has been recorded yet%s", w->dir,
			has_facts(w->dir)
				? ": the job has made no GPU or tf.data call"
				: ", not even run.json: is it the run directory of a job?");
	else
		tfh_say("%s: no verdict: %s", w->dir, w->why);
	return TFH_EXIT_NOTHING;
}

static int once(struct top_order *o)
{
	judge(o);
	write_metrics(o);
	if (tfh_line_get(o->args, "json"))
		tfh_top_json(stdout, o->w, 2);
	else if (o->w->result || o->w->phase == TFH_WATCH_RUNNING)
		tfh_top_text(stdout, o->w, &o->style, 0);
	if (!o->w->result)
		return nothing(o->w);
	return o->status;
}

/* Sleeps; a signal ends it. */
static void rest(double seconds)
{
	struct timespec t = {(time_t)seconds, (long)(fmod(seconds, 1) * 1e9)};

	if (!interrupted)
		nanosleep(&t, NULL);
}

static bool has_room(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLOUT};

	return poll(&p, 1, REST_MS) == 1;
}

/* Writes a whole line, or nothing if a signal arrives before the reader makes room. A line that was
 * begun is completed if the reader continues. 0 or -errno. */
static int put_whole(int fd, const char *line, size_t size)
{
	size_t done = 0;

	while (done < size) {
		if (interrupted && (!done || !has_room(fd)))
			return -EINTR;
		ssize_t n = write(fd, line + done, size - done);
		if (n < 0 && errno != EINTR)
			return -errno;
		done += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

static int put_line(const struct top_order *o, bool json)
{
	char *line = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&line, &size);

	if (!out)
		return -ENOMEM;
	if (json)
		tfh_top_json(out, o->w, 0);
	else
		tfh_top_line(out, o->w);
	int rc = fclose(out) ? -ENOMEM : put_whole(STDOUT_FILENO, line, size);
	free(line);
	return rc;
}

/* Prints lines until the job ends. */
static int lines(struct top_order *o)
{
	struct sigaction action = {.sa_handler = on_signal};
	bool json = tfh_line_get(o->args, "json");
	int rc = 0;

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	while (!interrupted && !rc) {
		tfh_watch_poll(o->w);
		bool ended = o->w->phase == TFH_WATCH_ENDED;
		if (ended || tfh_watch_due(o->w, o->interval_s))
			judge(o);
		write_metrics(o);
		rc = put_line(o, json);
		if (ended)
			break;
		rest(o->interval_s);
	}
	if (interrupted)
		return 128 + interrupted;
	if (rc)
		tfh_say("cannot write the output: %s", strerror(-rc));
	return rc ? TFH_EXIT_UNREADABLE : o->status;
}

static int show(struct top_order *o)
{
	bool screen =
		isatty(STDOUT_FILENO) && isatty(STDIN_FILENO) && !tfh_line_get(o->args, "json");

	if (tfh_line_get(o->args, "once"))
		return once(o);
	if (o->w->phase == TFH_WATCH_ENDED)
		return nothing(o->w);
	o->screen = screen;
	int rc =
		screen ? tfh_top_screen(o->w, o->interval_s, &o->style, write_metrics, o) : -ENOTTY;
	o->screen = false;
	if (rc < 0)
		return lines(o);
	if (*o->said)
		tfh_say("top: %s", o->said);
	return rc ? 128 + rc : o->status;
}

/* Opens the outputs to other tools. 0, or an exit code with a message. */
static int open_ways(struct top_order *o)
{
	const char *port = tfh_line_get(o->args, "listen"), *token = tfh_line_get(o->args, "token");
	const char *otlp = tfh_line_get(o->args, "otlp");
	struct tfh_err err = {0};
	char *end;

	if (!port != !token) {
		tfh_say("top: --listen PORT and --token FILE need each other");
		return TFH_EXIT_USAGE;
	}
	long number = port ? strtol(port, &end, 10) : 0;
	if (port && (!*port || *end || number < 1 || number > 65535)) {
		tfh_say("top: --listen needs a port from 1 to 65535, not '%s'", port);
		return TFH_EXIT_USAGE;
	}
	int rc = otlp ? tfh_otlp_new(otlp, &o->otlp, &err) : 0;
	if (!rc && port)
		rc = tfh_listener_new((uint16_t)number, token, &o->listener, &err);
	if (!rc)
		return 0;
	tfh_say("top: %s", err.text);
	return rc == -EINVAL ? TFH_EXIT_USAGE : TFH_EXIT_UNREADABLE;
}

static int cmd_top(const struct tfh_command_line *args)
{
	struct top_order o = {.args = args,
			      .interval_s = INTERVAL_S,
			      .metrics = tfh_line_get(args, "openmetrics"),
			      .style = {.color = tfh_use_color(tfh_line_get(args, "color"), stdout),
					.utf8 = tfh_use_utf8(),
					.columns = tfh_use_columns(stdout)}};
	double window = WINDOW_S;
	struct tfh_err err = {0};
	char dir[PATH_MAX];

	if (args->operands > 1) {
		tfh_say("top: name one process or run directory");
		return TFH_EXIT_USAGE;
	}
	if (tfh_line_seconds(args, "window", 1, 3600, &window) ||
	    tfh_line_seconds(args, "interval", 0.1, 3600, &o.interval_s))
		return TFH_EXIT_USAGE;
	int code = tfh_job_dir(args->operands ? args->operand[0] : NULL, dir);
	if (code)
		return code;
	code = tfh_watch_open(dir, window, &o.w, &err);
	if (code) {
		tfh_say_why(&err, code);
		return tfh_exit_code(code);
	}
	int status = open_ways(&o);
	if (!status)
		status = show(&o);
	tfh_listener_free(o.listener);
	tfh_otlp_free(o.otlp);
	tfh_watch_close(o.w);
	return status;
}

const struct tfh_command tfh_cmd_top = {
	.name = "top",
	.operand_text = "[PID|DIR]",
	.summary = "watch a running job: what holds it back now, its steps, its calls",
	.details =
		"DIR is the run directory of a running job, PID one of its processes or a process "
		"that started it; the default is your newest run directory here. tfhook judges the "
		"last seconds of the recording at each refresh, with less than 1 % of a CPU, and "
		"neither stops nor slows the job. q quits. If the output is not a terminal, each "
		"refresh prints one line.\n\n"
		"Exit code: 0 fine, 2 usage, 3 unreadable, 5 nothing to show: the job has ended, "
		"or has not recorded yet (--once).",
	.operands = TFH_OPERANDS_TRACES,
	.usage_exit = TFH_EXIT_USAGE,
	.run = cmd_top,
	.flags =
		{
			{.name = "once", .help = "print one screen as text, and exit"},
			{.name = "json",
			 .help = "print JSON, schema tfhook.top/1: one document per line (with "
				 "--once: one document)"},
			{.name = "openmetrics",
			 .arg = "FILE",
			 .help = "also keep FILE up to date for node_exporter's textfile "
				 "collector"},
			{.name = "listen",
			 .arg = "PORT",
			 .help = "also serve metrics at http://127.0.0.1:PORT/metrics, to clients "
				 "that send the token in --token FILE"},
			{.name = "token",
			 .arg = "FILE",
			 .help = "file with the token for --listen, of mode 600; created if it "
				 "does not exist"},
			{.name = "otlp",
			 .arg = "URL",
			 .help = "also send the metrics to an OpenTelemetry collector "
				 "(http://HOST:4318)"},
			{.name = "window",
			 .arg = "S",
			 .help = "judge the last S seconds, 30 by default"},
			{.name = "interval",
			 .arg = "S",
			 .help = "refresh every S seconds, 2 by default"},
			TFH_FLAG_COLOR,
		},
};
