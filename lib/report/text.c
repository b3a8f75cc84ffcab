/* The text report: its head (what was traced, the verdict and its evidence), then the parts of
 * text_parts.h. */
#include <ctype.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "base/clean.h"
#include "base/print.h"
#include "model/symbols/kernel_name.h"
#include "model/symbols/pylines.h"
#include "report/text_parts.h"

/* ---- what was traced ---- */

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static bool is_interpreter(const char *program)
{
	const char *base = base_name(program);

	return !strncmp(base, "python", 6) || !strncmp(base, "pypy", 4) || !strcmp(base, "env") ||
	       !strcmp(base, "sh") || !strcmp(base, "bash");
}

/* The job's name: its script or module, else its program. Owned by the run. */
static const char *job_name(const struct tfh_run *run)
{
	const char *const *argv;
	uint32_t argc = tfh_run_command(run, &argv);

	if (!argc)
		return tfh_run_is_built(run) ? base_name(tfh_run_path(run)) : "(unknown command)";
	for (uint32_t i = 0; i < argc && is_interpreter(argv[0]); i++) {
		size_t len = strlen(argv[i]);
		if (len > 3 && !strcmp(argv[i] + len - 3, ".py"))
			return base_name(argv[i]);
		if (i && !strcmp(argv[i], "-m") && i + 1 < argc)
			return argv[i + 1];
		if (i && !strcmp(argv[i], "-c"))
			break;
	}
	return base_name(argv[0]);
}

/* Adds a field after three spaces, or on a new line if it would pass column 80. */
static void add_field(const struct tfh_page *page, size_t *column, const char *field)
{
	size_t len = tfh_columns(field, strlen(field));

	if (*column + 3 + len > TFH_PAGE_COLUMNS) {
		tfh_put("\n   ", page->out);
		*column = 3;
	} else {
		tfh_put("   ", page->out);
		*column += 3;
	}
	tfh_print(page->out, "%s", field);
	*column += len;
}

static void print_title(const struct tfh_page *page)
{
	const struct tfh_result *r = page->r;
	char name[128], field[96], a[TFH_TEXT];
	time_t start = (time_t)(tfh_run_start_realtime_ns(r->run) / 1000000000);
	struct tm tm;
	size_t column;

	tfh_fmt_cut(name, sizeof(name), job_name(r->run), 40);
	tfh_tinted(page, TFH_BOLD, "tfhook report");
	tfh_print(page->out, "   %s", name);
	column = 13 + 3 + tfh_columns(name, strlen(name));
	if (r->ranks > 1 || r->hosts > 1) {
		snprintf(field, sizeof(field), "%u ranks, %u host%s", r->ranks, r->hosts,
			 r->hosts == 1 ? "" : "s");
		add_field(page, &column, field);
	}
	snprintf(field, sizeof(field), "%s step%s", tfh_fmt_count(a, r->steps.total),
		 r->steps.total == 1 ? "" : "s");
	add_field(page, &column, field);
	add_field(page, &column, tfh_fmt_time(a, (double)tfh_run_wall_ns(r->run) * 1e-9));
	if (start > 0) {
		gmtime_r(&start, &tm);
		strftime(field, sizeof(field), "%Y-%m-%d", &tm);
		add_field(page, &column, field);
	}
	tfh_put("\n", page->out);
}

/* ---- how it ended, if not normally ---- */

#define OPEN_FRAMES 256 /* of Python */

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

/* "in flight: cuStreamSynchronize stream 7 on thread 4711 python3, for 12.3 s; last kernel x" */
static void in_flight_line(const struct tfh_result *r, const struct tfh_in_flight *open, char *out,
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
		snprintf(out, size, "in flight: %s %s%s%s; last kernel %s",
			 tfh_fmt_cut(fn, sizeof(fn), open->fn, 60), stream, who,
			 open_for(since, open->open_s), kernel);
		return;
	}
	int n = snprintf(out, size, "in flight: %s%s%s%s%s",
			 tfh_fmt_cut(fn, sizeof(fn), open->fn, 60), detail ? " " : "",
			 detail ? open->detail : "", who, open_for(since, open->open_s));
	if (last && n > 0 && (size_t)n < size)
		snprintf(out + n, size - (size_t)n, "; last kernel %s", kernel);
}

/* "at train.py:142 step > torch/cuda/__init__.py:40 synchronize, waiting for a lock"; "" without samples. */
static void open_place(const struct tfh_result *r, const struct tfh_in_flight *open, char *out,
		       size_t size)
{
	struct tfh_model_line frame[OPEN_FRAMES];
	char where[400];
	const char *state = open->look_ns ? tfh_state_words(open->state) : "";

	tfh_place_text(frame, tfh_run_place(r->run, open->process, open->place, frame, OPEN_FRAMES),
		       where, sizeof(where));
	snprintf(out, size, "%s%s%s%s",
		 *where	  ? "at "
		 : *state ? "its thread is "
			  : "",
		 where, *where && *state ? ", " : "", state);
}

static void print_in_flight(const struct tfh_page *page, const struct tfh_in_flight *open,
			    bool place, const char *first, const char *more)
{
	char line[512];

	in_flight_line(page->r, open, line, sizeof(line));
	tfh_wrap(page, first, more, line);
	open_place(page->r, open, line, sizeof(line));
	if (*line && place)
		tfh_wrap(page, more, more, line);
}

/* How the job ended, "" if it ended normally. */
static void end_line(const struct tfh_result *r, char *out, size_t size)
{
	const char *name = r->end == TFH_END_SIGNAL ? sigdescr_np(r->end_code) : NULL;

	out[0] = '\0';
	if (r->end == TFH_END_SIGNAL)
		snprintf(out, size, "ENDED BY SIGNAL %d (%s)", r->end_code,
			 name ? name : "unknown");
	else if (r->end == TFH_END_KILLED)
		snprintf(out, size, "ENDED ABRUPTLY (killed, or the machine went down)");
	else if (r->end == TFH_END_RUNNING)
		snprintf(out, size, "STILL RUNNING: this is what is written so far");
	else if (r->end == TFH_END_EXIT && r->end_code)
		snprintf(out, size, "THE JOB FAILED: exit code %d", r->end_code);
}

#define MOST_SILENT 4
#define BRIEF_REMARKS 2

/* The ranks that fell silent first. The others mostly wait for them, and their open calls are not
 * the cause. Returns whether there were any. */
static bool print_silent(const struct tfh_page *page, const char *first, const char *more)
{
	const struct tfh_result *r = page->r;
	char line[160], time[TFH_TEXT];
	uint32_t n = 0;

	for (uint32_t i = 0; i < r->n_rank && n < MOST_SILENT; i++) {
		const struct tfh_rank *k = &r->rank[i];
		if (!(k->silent_s >= TFH_REPORT_SILENT_S))
			continue;
		snprintf(
			line, sizeof(line),
			k->closed
				? "rank %d had exited %s before the last one stopped"
				: "rank %d stopped first: it recorded nothing in the last %s, while others went on or waited",
			k->rank, tfh_fmt_time(time, k->silent_s));
		tfh_wrap(page, first, more, line);
		n++;
	}
	return n;
}

static void print_end(const struct tfh_page *page)
{
	const struct tfh_in_flight *open;
	uint32_t n = tfh_run_in_flight(page->r->run, &open);
	char line[512];

	end_line(page->r, line, sizeof(line));
	if (!*line)
		return;
	tfh_put("\n", page->out);
	tfh_tinted(page, TFH_YELLOW, "%s", line);
	tfh_put("\n", page->out);
	print_silent(page, "  ", "    ");
	for (uint32_t i = 0; i < n && i < 4; i++) {
		bool within = i && open[i].thread == open[i - 1].thread;
		print_in_flight(page, &open[i], !within, "  ", "    ");
	}
	if (n > 4)
		tfh_print(page->out, "  ... %u more call%s in flight\n", n - 4, n == 5 ? "" : "s");
}

/* ---- the verdict ---- */

static enum tfh_tint class_tint(enum tfh_class cls)
{
	if (cls == TFH_CLASS_COMPUTE_BOUND || cls == TFH_CLASS_BALANCED)
		return TFH_GREEN;
	return cls == TFH_CLASS_UNCLASSIFIED ? TFH_YELLOW : TFH_RED;
}

/* The part of the time that the cause is one of: what the gain below is about. NAN: the class has no other one. */
static double part_share(const struct tfh_result *r)
{
	const struct tfh_verdict *v = &r->verdict;
	enum tfh_part part = v->cause == TFH_CAUSE_NONE ? TFH_PART_NONE : tfh_cause_part(v->cause);

	if (part >= TFH_PART_COUNT || v->cls != TFH_CLASS_HOST_BOUND ||
	    v->share - r->breakdown[part].share < TFH_REPORT_PART_OFF)
		return NAN;
	return r->breakdown[part].share;
}

/* "INPUT-BOUND (high)   input.map   41 % of training time" */
static void headline(const struct tfh_page *page, char *plain, size_t size, char *rest,
		     size_t rest_size)
{
	const struct tfh_verdict *v = &page->r->verdict;
	const char *name = tfh_class_name(v->cls), *cause = tfh_cause_name(v->cause);
	char share[TFH_TEXT];
	double part = part_share(page->r);
	size_t n = 0;

	for (; name[n] && n + 1 < size; n++)
		plain[n] = (char)toupper((unsigned char)name[n]);
	plain[n] = '\0';
	n = 0;
	rest[0] = '\0';
	if (v->cls != TFH_CLASS_UNCLASSIFIED)
		n += (size_t)snprintf(rest, rest_size, " (%s)", tfh_confidence_name(v->confidence));
	if (cause && n < rest_size)
		n += (size_t)snprintf(rest + n, rest_size - n, "   %s", cause);
	if (isnan(v->share) || v->cls == TFH_CLASS_BALANCED || v->cls == TFH_CLASS_UNCLASSIFIED ||
	    n >= rest_size)
		return;
	snprintf(rest + n, rest_size - n, "   %s of training time",
		 tfh_fmt_share(share, part > 0 ? part : v->share));
}

static double class_share(const struct tfh_result *r, enum tfh_class cls)
{
	double share = 0;

	for (int p = 0; p < TFH_PART_COUNT; p++)
		share += tfh_part_class(p) == cls ? r->breakdown[p].share : 0;
	return share;
}

static void also_line(const struct tfh_result *r, char *out, size_t size)
{
	const struct tfh_verdict *v = &r->verdict;
	char share[TFH_TEXT];
	size_t n = 0;

	out[0] = '\0';
	for (uint32_t i = 0; i < v->n_also && n < size; i++)
		n += (size_t)snprintf(out + n, size - n, "%s%s, %s", i ? "; " : "also ",
				      tfh_class_name(v->also[i]),
				      tfh_fmt_share(share, class_share(r, v->also[i])));
	if (n && n < size)
		snprintf(out + n, size - n, " of training time");
}

/* The what-if that removes what the verdict names. */
static const struct tfh_whatif *whatif_of(const struct tfh_result *r)
{
	for (uint32_t i = 0; i < r->n_whatif; i++) {
		enum tfh_part part = tfh_remove_part(r->whatif[i].remove);
		enum tfh_part blamed = r->verdict.cause == TFH_CAUSE_NONE
					       ? TFH_PART_NONE
					       : tfh_cause_part(r->verdict.cause);
		if (part == blamed && part != TFH_PART_NONE)
			return &r->whatif[i];
	}
	return NULL;
}

/* ", which saves 3.12 s of the run" */
static const char *saving(const struct tfh_result *r, const struct tfh_whatif *w,
			  char out[TFH_TEXT + 40])
{
	char time[TFH_TEXT];
	double wall = r->n_tree ? r->tree[0].wall_s : 0;

	out[0] = '\0';
	if (wall > 0 && w->saved_s >= TFH_REPORT_RUN_SHARE * wall)
		snprintf(out, TFH_TEXT + 40, ", which saves %s%s of the run",
			 isnan(w->step_s) ? "at most " : "", tfh_fmt_time(time, w->saved_s));
	return out;
}

static void gain_line(const struct tfh_result *r, char *out, size_t size)
{
	const struct tfh_whatif *w = whatif_of(r);
	char step[TFH_TEXT], factor[TFH_TEXT], range[TFH_RANGE], saved[TFH_TEXT + 40];

	out[0] = '\0';
	if (!w)
		return;
	saving(r, w, saved);
	if (!isnan(w->step_s))
		snprintf(out, size, "without it %s per step (%s%s%s faster)%s",
			 tfh_fmt_time(step, w->step_s),
			 isnan(w->low_s) ? "" : tfh_fmt_times(range, w->low_s, w->high_s),
			 isnan(w->low_s) ? "" : "; ", tfh_fmt_factor(factor, w->speedup), saved);
	else if (!isnan(w->ceiling_speedup))
		snprintf(out, size, "without it at best %s per step (%s)%s",
			 tfh_fmt_time(step, tfh_least_step(r, w)),
			 tfh_fmt_factor(factor, w->ceiling_speedup), saved);
}

static void print_verdict(const struct tfh_page *page)
{
	const struct tfh_verdict *v = &page->r->verdict;
	const struct tfh_wording *w = page->words;
	char name[32], rest[160], gain[192], also[160], share[TFH_TEXT];

	headline(page, name, sizeof(name), rest, sizeof(rest));
	tfh_put("\n", page->out);
	tfh_tinted(page, class_tint(v->cls), "%s", name);
	tfh_print(page->out, "%s\n", rest);
	if (w->text && *w->text)
		tfh_wrap(page, "  ", "    ", w->text);
	for (uint32_t i = 0; i < w->n_evidence; i++)
		tfh_wrap(page, "  ", "    ", w->evidence[i]);
	if (part_share(page->r) > 0)
		tfh_print(page->out, "  host in all: %s of training time\n",
			  tfh_fmt_share(share, v->share));
	also_line(page->r, also, sizeof(also));
	if (*also)
		tfh_wrap(page, "  ", "    ", also);
	gain_line(page->r, gain, sizeof(gain));
	if (*gain)
		tfh_wrap(page, "  ", "    ", gain);
	if (w->missing)
		tfh_wrap(page, "  missing: ", "    ", w->missing);
	if (w->missing_do)
		tfh_wrap(page, "  to get a verdict: ", "    ", w->missing_do);
	for (uint32_t i = 0; i < w->n_remark; i++)
		tfh_wrap(page, "  note: ", "    ", w->remark[i]);
}

void tfh_report_text(FILE *out, const struct tfh_wording *words, const struct tfh_style *style)
{
	struct tfh_page page = {out, words, words->r, *style};

	print_title(&page);
	print_end(&page);
	print_verdict(&page);
	tfh_text_tree(&page);
	tfh_text_classes(&page);
	tfh_text_breakdown(&page);
	tfh_text_whatif(&page);
	tfh_text_ranks(&page);
	tfh_text_input(&page);
	tfh_text_kernels(&page);
	tfh_text_transfers(&page);
	tfh_text_advice(&page);
	tfh_text_data(&page);
}

void tfh_report_verdict(FILE *out, const struct tfh_wording *words, const struct tfh_style *style,
			const char *prefix)
{
	struct tfh_page page = {out, words, words->r, *style};
	const struct tfh_in_flight *open;
	const struct tfh_result *r = words->r;
	char name[32], rest[160], line[512], first[64];

	end_line(r, line, sizeof(line));
	if (*line) {
		tfh_print(out, "%s", prefix);
		tfh_tinted(&page, TFH_YELLOW, "%s", line);
		tfh_put("\n", out);
	}
	snprintf(first, sizeof(first), "%s  ", prefix);
	if (*line && !print_silent(&page, first, first) && tfh_run_in_flight(r->run, &open))
		print_in_flight(&page, &open[0], true, first, first);
	headline(&page, name, sizeof(name), rest, sizeof(rest));
	tfh_print(out, "%s", prefix);
	tfh_tinted(&page, class_tint(r->verdict.cls), "%s", name);
	tfh_print(out, "%s\n", rest);
	if (words->text && *words->text)
		tfh_wrap(&page, first, first, words->text);
	gain_line(r, line, sizeof(line));
	if (*line)
		tfh_wrap(&page, first, first, line);
	if (words->missing)
		tfh_wrap(&page, first, first, words->missing);
	for (uint32_t i = 0; !words->missing && i < words->n_remark && i < BRIEF_REMARKS; i++)
		tfh_wrap(&page, first, first, words->remark[i]);
}
