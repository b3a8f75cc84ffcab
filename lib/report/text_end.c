/* How a job ended that did not end normally: the ranks that fell silent first, the calls in flight,
 * and where in the program they were made. */
#include <string.h>

#include "base/print.h"
#include "model/symbols/kernel_name.h"
#include "model/symbols/pylines.h"
#include "report/text_parts.h"

#define OPEN_FRAMES 256 /* Python frames */

/* ", for 12.3 s"; unknown for a call that had just started when the recording ended. */
static const char *open_for(char out[TFH_TEXT + 8], double seconds)
{
	char time[TFH_TEXT];

	if (seconds >= 1e-6)
		snprintf(out, TFH_TEXT + 8, ", for %s", tfh_fmt_time(time, seconds));
	else
		snprintf(out, TFH_TEXT + 8, ", just begun");
	return out;
}

/* "cuStreamSynchronize stream 7 on thread 4711 python3, for 12.3 s; last kernel x" */
static void call_line(const struct tfh_result *r, const struct tfh_in_flight *open, char *out,
		      size_t size)
{
	const struct tfh_run *run = r->run;
	const struct tfh_last_launch *last = tfh_report_last(r, open);
	const struct tfh_thread_info *threads, *thread = NULL;
	char fn[128], since[TFH_TEXT + 8], who[96] = "";

	if (open->thread < tfh_run_threads(run, &threads))
		thread = &threads[open->thread];
	int32_t rank = tfh_report_rank(r, open->process);
	int at = rank >= 0 ? snprintf(who, sizeof(who), " of rank %d", rank) : 0;
	if (thread)
		snprintf(who + at, sizeof(who) - (size_t)at, " on thread %u%s%s", thread->tid,
			 thread->name ? " " : "", thread->name ? thread->name : "");
	bool detail = open->detail && *open->detail;
	char stream[32], kernel[64], brief[TFH_KERNEL_NAME];
	if (last)
		tfh_fmt_cut(kernel, sizeof(kernel), tfh_kernel_short(brief, last->kernel, 48), 48);
	if (last && open->handle) {
		snprintf(stream, sizeof(stream), "stream %u", last->stream);
		snprintf(out, size, "%s %s%s%s; last kernel %s",
			 tfh_fmt_cut(fn, sizeof(fn), open->fn, 60), stream, who,
			 open_for(since, open->open_s), kernel);
		return;
	}
	int n = snprintf(out, size, "%s%s%s%s%s", tfh_fmt_cut(fn, sizeof(fn), open->fn, 60),
			 detail ? " " : "", detail ? open->detail : "", who,
			 open_for(since, open->open_s));
	if (last && n > 0 && (size_t)n < size)
		snprintf(out + n, size - (size_t)n, "; last kernel %s", kernel);
}

/* "train.py:142 step > torch/cuda/__init__.py:40 synchronize, waiting for a lock"; "" without
 * samples. Returns whether the place is known. */
static bool open_place(const struct tfh_result *r, const struct tfh_in_flight *open, char *out,
		       size_t size)
{
	struct tfh_model_line frame[OPEN_FRAMES];
	char where[400];
	const char *state = open->look_ns ? tfh_state_words(open->state) : "";

	tfh_place_text(frame, tfh_run_place(r->run, open->process, open->place, frame, OPEN_FRAMES),
		       where, sizeof(where));
	snprintf(out, size, "%s%s%s", where, *where && *state ? ", " : "", state);
	return *where;
}

static void print_in_flight(const struct tfh_page *page, const struct tfh_in_flight *open,
			    bool place)
{
	char line[512];

	call_line(page->r, open, line, sizeof(line));
	tfh_wrap(page, "  in flight: ", "    ", line);
	bool known = open_place(page->r, open, line, sizeof(line));
	if (*line && place)
		tfh_wrap(page, known ? "    at " : "    its thread is ", "    ", line);
}

#define TIMED_OUT 124 /* what `timeout` returns when it ended the command, whatever that returned */

/* How the job ended, "" if it ended normally. */
static void end_line(const struct tfh_result *r, char *out, size_t size)
{
	const char *name = r->end == TFH_END_SIGNAL ? sigdescr_np(r->end_code) : NULL;
	const char *const *argv;
	uint32_t argc = tfh_run_command(r->run, &argv);

	out[0] = '\0';
	if (r->end == TFH_END_SIGNAL)
		snprintf(out, size, "ENDED BY SIGNAL %d (%s)", r->end_code,
			 name ? name : "unknown");
	else if (r->end == TFH_END_KILLED)
		snprintf(out, size, "ENDED ABRUPTLY (killed, or the machine went down)");
	else if (r->end == TFH_END_RUNNING)
		snprintf(out, size, "STILL RUNNING: this is what is written so far");
	else if (r->end == TFH_END_EXIT && r->end_code == TIMED_OUT && argc &&
		 tfh_report_timed(argv, argc))
		snprintf(out, size, "STOPPED BY timeout (exit code %d)", r->end_code);
	else if (r->end == TFH_END_EXIT && r->end_code)
		snprintf(out, size, "THE JOB FAILED: exit code %d", r->end_code);
}

#define MOST_SILENT 4	  /* ranks */
#define MOST_OPEN 4	  /* calls */
#define MOST_COMPARED 256 /* calls that are compared to find the most frequent one */

static bool fell_silent(const struct tfh_rank *k)
{
	return k->silent_s >= TFH_REPORT_SILENT_S;
}

/* "died of SIGSEGV", "had failed with exit code 1"; false: its end is unknown or normal. */
static bool died_line(const struct tfh_result *r, const struct tfh_rank *k, char *out, size_t size)
{
	const struct tfh_process *p;
	char how[TFH_TEXT], time[TFH_TEXT];

	tfh_run_processes(r->run, &p);
	p += k->process;
	if (!p->end_known || (p->end == TFH_END_EXIT && !p->end_code))
		return false;
	int n = snprintf(out, size,
			 p->end == TFH_END_SIGNAL ? "rank %d died of %s" : "rank %d failed: %s",
			 k->rank, tfh_end_text(how, p));
	if (k->silent_s >= TFH_REPORT_SILENT_S && n > 0 && (size_t)n < size)
		snprintf(out + n, size - (size_t)n, ", %s before the last rank stopped",
			 tfh_fmt_time(time, k->silent_s));
	return true;
}

static void silent_line(const struct tfh_result *r, const struct tfh_rank *k, char *out,
			size_t size)
{
	char time[TFH_TEXT];

	if (died_line(r, k, out, size))
		return;
	snprintf(
		out, size,
		k->closed
			? "rank %d had exited %s before the last one stopped"
			: "rank %d stopped first: it recorded nothing in the last %s, while others "
			  "went on or waited",
		k->rank, tfh_fmt_time(time, k->silent_s));
}

/* The ranks that fell silent first. The others mostly wait for them, and their open calls are not
 * the cause. */
static void print_silent(const struct tfh_page *page)
{
	const struct tfh_result *r = page->r;
	char line[160];

	for (uint32_t i = 0, n = 0; i < r->n_rank && n < MOST_SILENT; i++) {
		if (!fell_silent(&r->rank[i]))
			continue;
		silent_line(r, &r->rank[i], line, sizeof(line));
		tfh_wrap(page, "  ", "    ", line);
		n++;
	}
}

static bool print_headline(const struct tfh_page *page)
{
	char line[160];

	end_line(page->r, line, sizeof(line));
	if (!*line)
		return false;
	tfh_put("\n", page->out);
	if (strlen(line) > tfh_page_columns(page)) {
		tfh_wrap(page, "", "  ", line);
		return true;
	}
	tfh_tinted(page, TFH_YELLOW, "%s", line);
	tfh_put("\n", page->out);
	return true;
}

void tfh_text_end(const struct tfh_page *page)
{
	const struct tfh_in_flight *open;
	uint32_t n = tfh_run_in_flight(page->r->run, &open);

	if (!print_headline(page))
		return;
	print_silent(page);
	for (uint32_t i = 0; i < n && i < MOST_OPEN; i++) {
		bool within = i && open[i].thread == open[i - 1].thread;
		print_in_flight(page, &open[i], !within);
	}
	if (n > MOST_OPEN)
		tfh_print(page->out, "  ... %u more call%s in flight\n", n - MOST_OPEN,
			  n == MOST_OPEN + 1 ? "" : "s");
}

/* ---- on the first screen: one rank, one call, and how many more ---- */

/* "7 more calls in flight, mostly cuStreamSynchronize, for up to 600 s" */
static void others_line(const struct tfh_in_flight *open, uint32_t n, uint32_t shown, char *out,
			size_t size)
{
	uint32_t sample = n < MOST_COMPARED ? n : MOST_COMPARED, most = 0, like = 0;
	double longest = 0;
	char fn[64], time[TFH_TEXT];

	for (uint32_t i = 0; i < sample; i++) {
		uint32_t same = 0;
		for (uint32_t k = 0; k < sample && i != shown; k++)
			same += k != shown && !strcmp(open[k].fn, open[i].fn);
		most = same > like ? i : most;
		like = same > like ? same : like;
	}
	for (uint32_t k = 0; k < n; k++)
		if (k != shown && open[k].open_s > longest)
			longest = open[k].open_s;
	uint32_t others = n - (shown < n);
	snprintf(out, size, "%u more call%s in flight, %s%s, for up to %s", others,
		 others == 1 ? "" : "s", like < others ? "mostly " : "",
		 tfh_fmt_cut(fn, sizeof(fn), open[most].fn, 40), tfh_fmt_time(time, longest));
}

void tfh_screen_end(const struct tfh_page *page)
{
	const struct tfh_result *r = page->r;
	const struct tfh_rank *silent = tfh_silent_rank(r);
	const struct tfh_in_flight *open;
	uint32_t n = tfh_run_in_flight(r->run, &open), at = 0;
	char line[512];

	if (!print_headline(page))
		return;
	if (page->words->no_memory)
		tfh_row(page, "memory", page->words->no_memory);
	if (silent) {
		silent_line(r, silent, line, sizeof(line));
		tfh_row(page, "rank", line);
		while (at < n && open[at].process != silent->process)
			at++;
	}
	if (at < n) {
		call_line(r, &open[at], line, sizeof(line));
		tfh_row(page, "inside", line);
		bool known = open_place(r, &open[at], line, sizeof(line));
		if (*line)
			tfh_row(page, known ? "line" : "thread", line);
	}
	tfh_waits_line(r, line, sizeof(line));
	if (*line)
		tfh_row(page, "waits", line);
	if (n > (at < n)) {
		others_line(open, n, at, line, sizeof(line));
		tfh_row(page, "others", line);
	}
}
