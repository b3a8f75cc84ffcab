/* The text of `tfhook top`: for a terminal's screen, for --once, and as one line. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clean.h"
#include "base/print.h"
#include "report/text_parts.h"
#include "top/watch.h"

#define MOST_BARS 120
/* A step is late if none has ended for that long beyond the usual time: a verdict may be some
 * seconds old. */
#define LATE_S 10
#define LATE_STEPS 3
#define COST_S 30 /* the first verdict costs more than the others */

/* Layouts, the largest first: rows of the step's table, calls in flight, ranks, things to do
 * next. */
static const struct top_form {
	size_t times, calls, ranks, next;
	unsigned lines; /* of a row */
	bool history, sure;
} forms[] = {
	{7, 8, 64, 1, 3, true, true},  {6, 4, 16, 1, 2, true, true}, {5, 3, 8, 1, 2, true, true},
	{5, 2, 8, 0, 2, true, true},   {4, 2, 4, 0, 1, true, true},  {4, 1, 4, 0, 1, true, true},
	{3, 1, 2, 0, 1, true, false},  {2, 1, 0, 0, 1, true, false}, {0, 1, 0, 0, 1, true, false},
	{0, 0, 0, 0, 1, false, false},
};
#define FORMS (sizeof(forms) / sizeof(forms[0]))

struct setting {
	const struct tfh_watch *w;
	const struct top_form *form;
};

/* ---- title ---- */

static void end_words(const struct tfh_watch *w, char *out, size_t size)
{
	char time[TFH_TEXT], after[TFH_TEXT + 8] = "";

	if (w->wall_s > 0)
		snprintf(after, sizeof(after), " after %s", tfh_fmt_time(time, w->wall_s));
	if (w->end == TFH_END_EXIT)
		snprintf(out, size, "ended: exit %d%s", w->end_number, after);
	else if (w->end == TFH_END_SIGNAL)
		snprintf(out, size, "ended: signal %d%s", w->end_number, after);
	else
		snprintf(out, size, "ended%s", after);
}

static void phase_words(const struct tfh_watch *w, char *out, size_t size)
{
	double age = 0;
	char time[TFH_TEXT];

	for (uint32_t i = 0; i < w->n_of; i++)
		age = fmax(age, w->of[i].state.age_s);
	if (w->phase == TFH_WATCH_WAITING)
		snprintf(out, size,
			 "waiting: no call of the GPU driver, TensorFlow or PyTorch has been "
			 "recorded yet");
	else if (w->gone)
		snprintf(out, size, "ended: it recorded nothing");
	else if (w->phase == TFH_WATCH_ENDED)
		end_words(w, out, size);
	else if (w->n_of == 1)
		snprintf(out, size, "pid %u, recording for %s", w->of[0].state.pid,
			 tfh_fmt_time(time, age));
	else
		snprintf(out, size, "%u processes, recording for %s", tfh_watch_alive(w),
			 tfh_fmt_time(time, age));
}

static uint64_t steps_of(const struct tfh_watch *w)
{
	uint64_t most = 0;

	for (uint32_t i = 0; i < w->n_of; i++)
		most = w->of[i].state.steps > most ? w->of[i].state.steps : most;
	return most;
}

static void title(const struct tfh_page *page, const struct tfh_watch *w)
{
	char name[64], field[96], a[TFH_TEXT];
	size_t column;

	tfh_fmt_cut(name, sizeof(name), *w->name ? w->name : "(unknown command)", 36);
	tfh_tinted(page, TFH_BOLD, "%s", name);
	column = tfh_columns(name, strlen(name));
	phase_words(w, field, sizeof(field));
	tfh_field(page, &column, field);
	if (steps_of(w)) {
		snprintf(field, sizeof(field), "%s batches", tfh_fmt_count(a, steps_of(w)));
		tfh_field(page, &column, field);
	}
	tfh_put("\n", page->out);
}

/* ---- steps ---- */

/* Mean durations of the last steps in groups, oldest first. Returns the number of groups. */
static size_t groups(const struct tfh_result *r, double *mean, size_t most)
{
	size_t per = (r->n_step + most - 1) / most, n = 0;

	for (uint64_t at = 0; per && at < r->n_step; at += per) {
		double sum = 0;
		uint64_t end = at + per < r->n_step ? at + per : r->n_step;
		for (uint64_t i = at; i < end; i++)
			sum += r->step[i].dur_s;
		mean[n++] = sum / (double)(end - at);
	}
	return n;
}

/* One character per group; its height is the group's mean relative to the largest. */
static void sparkline(const struct tfh_page *page, const struct tfh_result *r)
{
	static const char *const blocks[] = {"\u2581", "\u2582", "\u2583", "\u2584",
					     "\u2585", "\u2586", "\u2587", "\u2588"};
	static const char *const ascii[] = {"_", ".", ":", "-", "=", "+", "*", "#"};
	double mean[MOST_BARS], most = 0;
	size_t room = tfh_page_columns(page) - 2;
	size_t n = groups(r, mean, room < MOST_BARS ? room : MOST_BARS);

	for (size_t i = 0; i < n; i++)
		most = fmax(most, mean[i]);
	tfh_put("  ", page->out);
	for (size_t i = 0; i < n; i++) {
		int level = most > 0 ? (int)(mean[i] / most * 7.999) : 0;
		tfh_print(page->out, "%s", page->style.utf8 ? blocks[level] : ascii[level]);
	}
	tfh_put("\n", page->out);
}

static void history(const struct tfh_page *page, const struct tfh_watch *w)
{
	const struct tfh_result *r = w->result;
	char median[TFH_TEXT], p95[TFH_TEXT], n[TFH_TEXT], span[TFH_TEXT];
	double from = r->step[0].start_s, to = r->step[r->n_step - 1].start_s;

	tfh_heading(page, "STEP   median %s, 95 %% below %s; %s in the last %s",
		    tfh_fmt_time(median, r->steps.median_s), tfh_fmt_time(p95, r->steps.p95_s),
		    tfh_fmt_count(n, r->n_step),
		    tfh_fmt_time(span, to - from + r->step[r->n_step - 1].dur_s));
	sparkline(page, r);
}

static void silence(const struct tfh_page *page, const struct tfh_watch *w)
{
	double silent = tfh_watch_silent(w), usual = w->result->steps.p95_s;
	char time[TFH_TEXT], line[96];

	if (w->phase != TFH_WATCH_RUNNING || !(silent > LATE_S + LATE_STEPS * usual))
		return;
	snprintf(line, sizeof(line), "no step has ended for %s", tfh_fmt_time(time, silent));
	tfh_row(page, "stopped", line);
}

/* ---- calls in flight ---- */

static void calls(const struct tfh_page *page, const struct tfh_watch *w, size_t most)
{
	uint32_t all = 0, shown = 0;

	for (uint32_t i = 0; i < w->n_of; i++)
		all += w->of[i].state.n_call;
	if (!all || !most)
		return;
	tfh_heading(page, "IN FLIGHT");
	for (uint32_t i = 0; i < w->n_of; i++)
		for (uint32_t k = 0; k < w->of[i].state.n_call && shown < most; k++, shown++) {
			const struct tfh_follow_call *c = &w->of[i].state.call[k];
			char line[640], place[400], time[TFH_TEXT], fn[64], rank[24] = "";
			if (w->of[i].state.rank >= 0 && w->n_of > 1)
				snprintf(rank, sizeof(rank), "rank %d ", w->of[i].state.rank);
			tfh_watch_place(w, &w->of[i], c, place, sizeof(place));
			snprintf(line, sizeof(line), "%sthread %u %s: %s, for %s%s%s", rank, c->tid,
				 c->name, tfh_fmt_cut(fn, sizeof(fn), c->fn, 48),
				 tfh_fmt_time(time, c->since_s), *place ? ", " : "", place);
			tfh_put("  ", page->out);
			tfh_wrap_most(page, 2, "    ", line);
		}
	if (all > shown)
		tfh_print(page->out, "  ... %u more\n", all - shown);
}

/* ---- ranks ---- */

static const struct tfh_rank *judged_rank(const struct tfh_result *r, uint32_t process)
{
	for (uint32_t i = 0; r && i < r->n_rank; i++)
		if (r->rank[i].process == process)
			return &r->rank[i];
	return NULL;
}

static void ranks(const struct tfh_page *page, const struct tfh_watch *w, size_t most)
{
	if (w->n_of < 2 || !most)
		return;
	tfh_heading(page, "%4s %8s  %9s  %-20s %9s  %s", "RANK", "PID", "STEP", "CLASS", "LOST",
		    "STATE");
	for (uint32_t i = 0; i < w->n_of && i < most; i++) {
		const struct tfh_follow_state *s = &w->of[i].state;
		const struct tfh_rank *k = judged_rank(w->result, w->of[i].process);
		char step[TFH_TEXT], lost[TFH_TEXT], rank[16] = "-";
		if (s->rank >= 0)
			snprintf(rank, sizeof(rank), "%d", s->rank);
		tfh_print(page->out, "%4s %8u  %9s  %-20s %9s  %s%s\n", rank, s->pid,
			  k ? tfh_fmt_time(step, k->step_s) : "-",
			  k && k->cls != TFH_CLASS_NONE ? tfh_class_name(k->cls) : "-",
			  tfh_fmt_count(lost, s->dropped),
			  s->alive	       ? "records"
			  : w->of[i].was_alive ? "has ended"
					       : "on another machine",
			  k && k->straggler ? ", the others wait for it" : "");
	}
	if (w->n_of > most)
		tfh_print(page->out, "  ... %u more\n", w->n_of - (uint32_t)most);
}

/* ---- confidence ---- */

static void sure(const struct tfh_page *page, const struct tfh_watch *w)
{
	char line[400], lost[TFH_TEXT], age[TFH_TEXT], steps[TFH_TEXT], own[TFH_TEXT],
		rec[TFH_TEXT];
	double recorder = 0, since = 0, paused = 0;
	size_t n = 0;

	for (uint32_t i = 0; i < w->n_of; i++) {
		recorder += w->of[i].state.recorder_s;
		since = fmax(since, w->of[i].state.age_s);
		paused = fmax(paused, w->of[i].state.paused_s);
	}
	if (w->result)
		n += (size_t)snprintf(
			line, sizeof(line), "%s steps judged %s ago (tier %c); ",
			tfh_fmt_count(steps, w->result->steps.count),
			tfh_fmt_time(age, fmax(tfh_watch_now() - w->judged_at_s, 0.1)),
			w->result->verdict.tier);
	n += (size_t)snprintf(line + n, sizeof(line) - n, "%s records lost",
			      tfh_fmt_count(lost, tfh_watch_lost(w)));
	if (paused > 0)
		n += (size_t)snprintf(line + n, sizeof(line) - n,
				      "; nothing written for %s: the disk is full",
				      tfh_fmt_time(age, paused));
	if (since > 1)
		n += (size_t)snprintf(line + n, sizeof(line) - n, "; recorder %s of a processor",
				      tfh_fmt_share(rec, recorder / since));
	if (tfh_watch_now() - w->begun_s > COST_S)
		snprintf(line + n, sizeof(line) - n, ", this view %s",
			 tfh_fmt_share(own, tfh_watch_cost(w)));
	tfh_put("\n", page->out);
	tfh_tinted(page, TFH_BOLD, "SURE");
	tfh_put("   ", page->out);
	tfh_wrap_most(page, strlen("SURE   "), "       ", line);
}

/* ---- the whole view ---- */

static void set(const struct tfh_page *page, const void *arg)
{
	const struct setting *s = arg;
	const struct tfh_watch *w = s->w;

	title(page, w);
	if (w->result) {
		silence(page, w);
		tfh_screen_verdict(page, SIZE_MAX);
		if (w->result->n_step && s->form->history)
			history(page, w);
		if (w->result->steps.count && s->form->times)
			tfh_screen_step(page, s->form->times);
		if (s->form->next && w->result->steps.count)
			tfh_screen_next(page, s->form->next, s->form->next);
	} else if (*w->why && w->phase != TFH_WATCH_WAITING) {
		tfh_put("\n", page->out);
		tfh_wrap(page, "no verdict: ", "  ", w->why);
	}
	calls(page, w, s->form->calls);
	ranks(page, w, s->form->ranks);
	if (s->form->sure && w->n_of)
		sure(page, w);
	if (w->phase == TFH_WATCH_ENDED && !w->gone)
		tfh_wrap(page, "", "  ", "all of it: tfhook report");
}

static size_t lines_of(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

void tfh_top_text(FILE *out, const struct tfh_watch *w, const struct tfh_style *style,
		  unsigned lines)
{
	struct tfh_page page = {
		.out = out, .words = w->result ? &w->words : NULL, .r = w->result, .style = *style};

	for (size_t i = 0; i < FORMS; i++) {
		const struct setting s = {w, &forms[i]};
		page.style.lines = forms[i].lines;
		char *text = tfh_in_memory(&page, set, &s);
		bool fits = text && (!lines || i + 1 == FORMS || lines_of(text) <= lines);
		if (fits)
			tfh_pass_on(&page, text);
		free(text);
		if (fits || !text)
			return;
	}
}

static void line_of(const struct tfh_page *page, enum tfh_tells tells)
{
	for (uint32_t i = 0; i < page->words->n_evidence; i++)
		if (page->words->tells[i] == tells) {
			tfh_print(page->out, "; %s", page->words->evidence[i]);
			return;
		}
}

static void in_one_line(const struct tfh_page *page, const struct tfh_watch *w)
{
	const struct tfh_verdict *v = &page->r->verdict;
	char time[TFH_TEXT], share[TFH_TEXT];

	tfh_print(page->out, "%s", tfh_class_name(v->cls));
	if (v->cause != TFH_CAUSE_NONE)
		tfh_print(page->out, " (%s), %s, %s of training time",
			  tfh_confidence_name(v->confidence), tfh_cause_name(v->cause),
			  tfh_fmt_share(share, v->share));
	if (page->r->steps.count)
		tfh_print(page->out, "; step %s", tfh_fmt_time(time, page->r->steps.median_s));
	line_of(page, TFH_TELLS_LINE);
	if (tfh_watch_lost(w))
		tfh_print(page->out, "; %s records lost", tfh_fmt_count(time, tfh_watch_lost(w)));
}

void tfh_top_line(FILE *out, const struct tfh_watch *w)
{
	struct tfh_page page = {.out = out, .words = &w->words, .r = w->result};
	time_t now = time(NULL);
	char clock[16], phase[160];
	struct tm tm;

	strftime(clock, sizeof(clock), "%H:%M:%S", localtime_r(&now, &tm));
	tfh_print(out, "%s  ", clock);
	phase_words(w, phase, sizeof(phase));
	if (w->phase != TFH_WATCH_RUNNING)
		tfh_print(out, "%s%s", phase, w->result ? "; " : "");
	if (w->result)
		in_one_line(&page, w);
	else if (w->phase == TFH_WATCH_RUNNING)
		tfh_print(out, "no verdict yet: %s", *w->why ? w->why : phase);
	tfh_put("\n", out);
}
