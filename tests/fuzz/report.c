/* A run, to the end of every report, and what must hold of them whatever the input was. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/page_file.h"
#include "judge/judge.h"
#include "fuzz.h"
#include "model/built/build.h"
#include "model/model.h"
#include "model/ops/ops.h"
#include "report/page/html_page.h"
#include "report/report.h"

static _Noreturn void broken(const char *what)
{
	fprintf(stderr, "fuzz: %s\n", what);
	abort();
}

void tfh_fuzz_refused(const struct tfh_err *err)
{
	if (!*err->text)
		broken("refused without a word");
}

/* ---- bounds ---- */

double tfh_fuzz_clock(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

void tfh_fuzz_bound(double begin, size_t size)
{
	/* Sanitized and counting edges, a run directory of 20 kB took 0.92 s alone and over 1 s on a crowded machine, of which 0.09 s
	 * are the product's. */
	if (tfh_fuzz_clock() - begin > 2 + (double)(size >> 20))
		broken("more than two seconds of processor time, and one for each megabyte");
}

/* ---- the run ---- */

static void read_events(struct tfh_run *run, uint32_t process, uint32_t n_threads)
{
	bool ordered = tfh_run_is_built(run); /* of .tft files only the recorder sees to it */
	int64_t last = INT64_MIN;
	struct tfh_merge *merge;
	struct tfh_err err;
	struct tfh_event ev;

	if (tfh_merge_open(run, process, &merge, &err))
		return;
	while (tfh_merge_next(merge, &ev)) {
		if (ordered && (ev.t1 < last || ev.t0 > ev.t1))
			broken("events out of order");
		if (ev.thread >= n_threads || !ev.fn || !ev.fn->name)
			broken("an event of no thread or function");
		last = ev.t1;
	}
	tfh_merge_close(merge);
}

static void read_ops(struct tfh_run *run, uint32_t process, uint32_t n_threads)
{
	bool ordered = tfh_run_is_built(run);
	int64_t last = INT64_MIN;
	struct tfh_ops *ops;
	struct tfh_err err;
	struct tfh_op op;

	if (tfh_ops_open(run, process, &ops, &err))
		return;
	for (; tfh_ops_next(ops, &op); last = op.t0) {
		if (ordered && (op.t0 < last || op.t1 < op.t0))
			broken("device ops out of order");
		if (!op.name || (op.thread != UINT32_MAX && op.thread >= n_threads))
			broken("a device op without name or thread");
	}
	tfh_ops_close(ops);
}

static void read_run(struct tfh_run *run)
{
	const struct tfh_thread_info *threads;
	const struct tfh_process *p;
	uint32_t n = tfh_run_processes(run, &p), n_threads = tfh_run_threads(run, &threads);

	for (uint32_t i = 0; i < n; i++) {
		read_events(run, i, n_threads);
		read_ops(run, i, n_threads);
	}
}

/* ---- what is printed ---- */

/* Length of the character at s, 0: none that may reach a terminal. */
static size_t printable(const uint8_t *s, size_t left)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t n = *s < 0x80 ? 1 : *s >= 0xf0 ? 4 : *s >= 0xe0 ? 3 : *s >= 0xc0 ? 2 : 0;
	uint32_t c = n > 1 ? *s & (0x7fu >> n) : *s;

	if (!n || n > left)
		return 0;
	for (size_t i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (s[i] & 0x3fu);
	}
	if (c < least[n] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		return 0;
	return c == '\n' || (c >= 0x20 && c != 0x7f && (c < 0x80 || c >= 0xa0)) ? n : 0;
}

/* `tabs`: they are fit, too. */
static void check_text(const char *text, size_t size, bool tabs)
{
	for (size_t at = 0, n; at < size; at += n) {
		n = tabs && text[at] == '\t' ? 1 : printable((const uint8_t *)text + at, size - at);
		if (!n)
			broken("text that is not fit for a terminal");
	}
}

void tfh_fuzz_is_text(const char *text, size_t size)
{
	check_text(text, size, false);
}

/* One value of strict JSON; NULL: none. */
static const char *json_value(const char *p, const char *end, int depth);

static const char *json_string(const char *p, const char *end)
{
	for (p++; p < end && *p != '"'; p++) {
		if ((unsigned char)*p < 0x20)
			return NULL;
		p += *p == '\\';
	}
	return p < end ? p + 1 : NULL;
}

static const char *blanks(const char *p, const char *end)
{
	while (p && p < end && strchr(" \n\t\r", *p))
		p++;
	return p;
}

static const char *json_many(const char *p, const char *end, int depth)
{
	const char close = *p == '{' ? '}' : ']';
	bool object = *p == '{';

	p = blanks(p + 1, end);
	if (p < end && *p == close)
		return p + 1;
	while (p && p < end) {
		if (object) {
			p = *p == '"' ? blanks(json_string(p, end), end) : NULL;
			p = p && p < end && *p == ':' ? blanks(p + 1, end) : NULL;
		}
		p = p ? blanks(json_value(p, end, depth + 1), end) : NULL;
		if (p && p < end && *p == close)
			return p + 1;
		p = p && p < end && *p == ',' ? blanks(p + 1, end) : NULL;
	}
	return NULL;
}

static const char *json_value(const char *p, const char *end, int depth)
{
	static const char *const words[] = {"true", "false", "null"};

	if (p >= end || depth > 64)
		return NULL;
	if (*p == '"')
		return json_string(p, end);
	if (*p == '{' || *p == '[')
		return json_many(p, end, depth);
	for (size_t i = 0; i < 3; i++)
		if (!strncmp(p, words[i], strlen(words[i])))
			return p + strlen(words[i]);
	size_t n = strspn(p, "+-0123456789.eE");
	return n ? p + n : NULL;
}

/* Documents one after another, each ended by a newline. */
void tfh_fuzz_is_json(const char *text, size_t size)
{
	const char *end = text + size, *p = blanks(text, end);

	tfh_fuzz_is_text(text, size);
	while (p && p < end)
		p = blanks(json_value(p, end, 0), end);
	if (!p)
		broken("JSON that is none");
}

typedef void (*check_fn)(const char *text, size_t size);

#define FORMS 14

static void print(const struct tfh_result *r, int form)
{
	static const char *const topics[] = {"gain", "verdict", "tier"};
	struct tfh_style style = {.color = false, .utf8 = form & 1, .wide = form & 2};
	struct tfh_wording words;
	check_fn check = tfh_fuzz_is_text;
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return;
	tfh_wording_make(&words, r);
	switch (form) {
	case 4:
		tfh_report_verdict(out, &words, &style, "tfhook: ");
		break;
	case 9:
		tfh_report_screen(out, &words, &style);
		break;
	case 10:
		for (size_t i = 0; i < tfh_section_count; i++)
			tfh_report_section(out, &words, &style, &tfh_sections[i]);
		break;
	case 5:
		tfh_report_steps_text(out, r);
		break;
	case 6:
		tfh_report_steps_csv(out, r);
		break;
	case 11:
		tfh_report_where_text(out, r, &style);
		break;
	case 12:
		tfh_report_where_folded(out, r);
		break;
	case 13:
		for (size_t i = 0; i < sizeof(topics) / sizeof(*topics); i++)
			tfh_report_why(out, &words, &style, topics[i]);
		break;
	case 7:
	case 8:
		check = tfh_fuzz_is_json;
		if (form == 7 ? tfh_report_json(out, &words) : tfh_report_steps_json(out, r))
			broken("JSON was not written");
		break;
	default:
		tfh_report_text(out, &words, &style);
	}
	tfh_wording_free(&words);
	fclose(out);
	check(text, size);
	free(text);
}

/* What a slow, a usual and a fast step waited for, and the page that shows it. */
static void print_shown(const struct tfh_result *r, const struct tfh_page_parts *parts)
{
	struct tfh_style style = {.utf8 = true};
	struct tfh_wording words;
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	tfh_wording_make(&words, r);
	for (uint32_t i = 0; out && i < parts->shown.n; i++)
		tfh_report_chain(out, &words, &style, parts->shown.step[i].step,
				 &parts->shown.step[i].chain);
	if (out) {
		tfh_report_page(out, &words, &parts->shown, &parts->curves);
		fclose(out);
	}
	check_text(text, size, true); /* the page's own script is indented */
	free(text);
	tfh_wording_free(&words);
}

void tfh_fuzz_forms(const struct tfh_result *result)
{
	for (int form = 0; form < FORMS; form++)
		print(result, form);
}

void tfh_fuzz_said(const char *text, size_t size, int status)
{
	tfh_fuzz_is_text(text, size);
	if (status != 0 && (status < 2 || status > 5))
		broken("a status that is not documented");
}

unsigned tfh_fuzz_reports;

/* FUZZ_EVERY=n: only every nth run that could be read is judged and printed. A target whose own parser is what coverage is
 * counted of (`make fuzz FUZZ_COVER=parsers`) tries several times as many inputs so. */
bool tfh_fuzz_leaves_out(void)
{
	static unsigned every, n;

	if (!every) {
		const char *text = getenv("FUZZ_EVERY");
		every = text && atoi(text) > 0 ? (unsigned)atoi(text) : 1;
	}
	return n++ % every != 0;
}

void tfh_fuzz_report(struct tfh_run *run, size_t size)
{
	struct tfh_page_parts parts = {.shown.n = 0};
	struct tfh_result *result = NULL;
	struct tfh_err err = {0};
	bool page = size % 4 == 0;

	tfh_fuzz_reports++;
	read_run(run);
	if (tfh_fuzz_leaves_out()) {
		tfh_run_close(run);
		return;
	}
	int rc = page ? tfh_page_analyze(run, &parts, &result, &err)
		      : tfh_analyze(run, &result, &err);
	if (rc && rc != -ENOMEM)
		tfh_fuzz_refused(&err);
	if (!rc)
		tfh_fuzz_forms(result);
	if (!rc && page)
		print_shown(result, &parts);
	tfh_page_free(&parts);
	if (!rc)
		tfh_result_free(result);
	tfh_run_close(run);
}

void tfh_fuzz_built(struct tfh_builder *b, int rc, struct tfh_err *err, size_t size)
{
	struct tfh_run *run;

	if (!rc)
		rc = tfh_build_run(b, &run, err);
	if (!rc) {
		tfh_fuzz_report(run, size);
		return;
	}
	tfh_fuzz_refused(err);
	tfh_build_free(b);
}
