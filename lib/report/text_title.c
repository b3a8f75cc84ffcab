/* The first line of a report: the job, its ranks, steps and run time, how it ended, and when it
 * ran. */
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/clean.h"
#include "base/print.h"
#include "base/text.h"
#include "report/text_parts.h"

/* A folder's path may end with a slash. */
static const char *base_name(const char *path)
{
	const char *name = tfh_file_of(path);

	return *name ? name : path;
}

const char *tfh_job_name(const struct tfh_run *run)
{
	const char *const *argv;
	uint32_t argc = tfh_run_command(run, &argv);

	if (argc)
		return tfh_report_job(argv, argc);
	return tfh_run_is_built(run) ? base_name(tfh_run_path(run)) : "(unknown command)";
}

const char *tfh_source_words(enum tfh_source source)
{
	static const char *const words[] = {
		[TFH_SRC_TFT] = "tfhook's recording",  [TFH_SRC_KINETO] = "PyTorch's trace",
		[TFH_SRC_XPLANE] = "XProf's trace",    [TFH_SRC_NSYS] = "nsys' export",
		[TFH_SRC_ROCPROF] = "rocprof's trace", [TFH_SRC_TIMELINE] = "TensorFlow's timeline",
		[TFH_SRC_ASCEND] = "Ascend's trace"};

	return words[source];
}

/* "exit 0", "signal 11", "killed"; for another profiler's trace, that profiler. */
static const char *end_words(const struct tfh_result *r, char *out, size_t size)
{
	enum tfh_source source = tfh_run_source(r->run);

	out[0] = '\0';
	if (r->end == TFH_END_EXIT)
		snprintf(out, size, "exit %d", r->end_code);
	else if (r->end == TFH_END_SIGNAL)
		snprintf(out, size, "signal %d", r->end_code);
	else if (r->end == TFH_END_NONE)
		snprintf(out, size, "%s", source == TFH_SRC_TFT ? "" : tfh_source_words(source));
	else
		snprintf(out, size, "%s", r->end == TFH_END_RUNNING ? "still running" : "killed");
	return out;
}

void tfh_title_fields(const struct tfh_result *r, void (*put)(void *arg, const char *field),
		      void *arg)
{
	time_t start = (time_t)(tfh_run_start_realtime_ns(r->run) / 1000000000);
	char field[96], a[TFH_TEXT];
	struct tm tm;

	if (r->ranks > 1 || r->hosts > 1) {
		snprintf(field, sizeof(field), "%u rank%s, %u host%s", r->ranks,
			 r->ranks == 1 ? "" : "s", r->hosts, r->hosts == 1 ? "" : "s");
		put(arg, field);
	}
	snprintf(field, sizeof(field), "%s%s step%s",
		 r->found.sampled.loop.file && !r->found.sampled.loop.exact ? "about " : "",
		 tfh_fmt_count(a, r->steps.total), r->steps.total == 1 ? "" : "s");
	if (r->steps.rounds) {
		size_t n = strlen(field);
		snprintf(field + n, sizeof(field) - n, " (%s rounds of %" PRIu64 ")",
			 tfh_fmt_count(a, r->steps.rounds), r->steps.per_round);
	}
	if (r->found.sampled.samples && !r->steps.total)
		snprintf(field, sizeof(field), "no steps recorded");
	put(arg, field);
	put(arg, tfh_fmt_time(a, (double)tfh_run_wall_ns(r->run) * 1e-9));
	if (*end_words(r, field, sizeof(field)))
		put(arg, field);
	if (start > 0) {
		gmtime_r(&start, &tm);
		strftime(field, sizeof(field), "%Y-%m-%d", &tm);
		put(arg, field);
	}
}

struct title {
	const struct tfh_page *page;
	size_t column;
};

static void put_field(void *arg, const char *field)
{
	struct title *t = arg;

	tfh_field(t->page, &t->column, field);
}

void tfh_text_title(const struct tfh_page *page)
{
	struct title t = {.page = page};
	char name[128];

	tfh_fmt_cut(name, sizeof(name), tfh_job_name(page->r->run), 36);
	tfh_tinted(page, TFH_BOLD, "%s", name);
	t.column = tfh_columns(name, strlen(name));
	tfh_title_fields(page->r, put_field, &t);
	tfh_put("\n", page->out);
}
