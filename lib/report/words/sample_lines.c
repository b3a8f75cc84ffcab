/* What samples of a thread have shown. */
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "judge/stats.h"
#include "model/symbols/pylines.h"
#include "report/format.h"
#include "report/words/words.h"

static const char *const what[TFH_SEEN_COUNT] = {
	[TFT_STATE_RUNNING] = "running",
	[TFT_STATE_GIL] = "waiting for the GIL",
	[TFT_STATE_LOCK] = "waiting for a lock",
	[TFT_STATE_SLEEP] = "sleeping",
	[TFT_STATE_READ] = "reading a file",
	[TFT_STATE_WRITE] = "writing a file",
	[TFT_STATE_NAMES] = "opening files",
	[TFT_STATE_PIPE] = "waiting for a pipe",
	[TFT_STATE_PIPE_FULL] = "waiting for room in a pipe",
	[TFT_STATE_SOCKET] = "waiting for a socket",
	[TFT_STATE_SOCKET_FULL] = "waiting for room in a socket",
	[TFT_STATE_DEVICE] = "in a device's driver",
	[TFT_STATE_CHILD] = "waiting for a child process",
	[TFT_STATE_POLL] = "polling several descriptors",
	[TFT_STATE_EVENT] = "waiting for an event",
	[TFT_STATE_PAGE] = "waiting for a page of memory",
	[TFT_STATE_MEMORY] = "changing its memory map",
	[TFT_STATE_TERMINAL] = "reading the terminal",
	[TFT_STATE_TERMINAL_OUT] = "writing to the terminal",
	[TFH_SEEN_LOG] = "writing a log",
	[TFH_SEEN_TIMER] = "waiting for a timer",
	[TFH_SEEN_MUTEX] = "waiting for a lock that another thread holds",
	[TFH_SEEN_SIGNAL] = "waiting for another thread's signal",
	[TFH_SEEN_END] = "waiting for another thread's end",
};

const char *tfh_state_words(int state)
{
	return state > 0 && state < TFH_SEEN_COUNT && what[state] ? what[state] : "";
}

/* Python's names for code without one. */
static const struct {
	const char *name, *words;
} nameless[] = {
	{"<module>", "top level"},
	{"<listcomp>", "list comprehension"},
	{"<dictcomp>", "dict comprehension"},
	{"<setcomp>", "set comprehension"},
	{"<genexpr>", "generator expression"},
	{"<lambda>", "lambda"},
};

const char *tfh_function_of(struct tfh_wording *w, const char *name)
{
	static const char inner[] = ".<locals>.";
	const char *at = name, *before = name;

	if (!name) /* a damaged digest */
		return "?";
	for (const char *next; (next = strstr(at, inner)); at = next + strlen(inner))
		before = at;
	/* a comprehension runs where it stands, a lambda where it is called */
	if (*at == '<' && before != at)
		return tfh_phrase(w, "%s%.*s", !strcmp(at, "<lambda>") ? "lambda in " : "",
				  (int)(at - strlen(inner) - before), before);
	for (size_t i = 0; i < sizeof(nameless) / sizeof(*nameless); i++)
		if (!strcmp(at, nameless[i].name))
			return nameless[i].words;
	return at;
}

const char *tfh_file_words(struct tfh_wording *w, const char *path)
{
	char name[64];

	return tfh_phrase(w, "%s", tfh_fmt_cut(name, sizeof(name), tfh_file_of(path), 32));
}

const char *tfh_at_words(struct tfh_wording *w, const char *function, const char *file,
			 uint32_t line)
{
	char name[64];

	if (line)
		return tfh_phrase(w, "%s, %s:%u", tfh_function_of(w, function),
				  tfh_file_words(w, file), line);
	return tfh_phrase(w, "%s [%s]", tfh_fmt_cut(name, sizeof(name), function, 48),
			  tfh_file_words(w, file));
}

/* ", in read_csv (pandas/io.py:12)"; a built-in function has no place: ", in fsync()". */
static const char *called_text(struct tfh_wording *w, const struct tfh_seen_line *l)
{
	if (!l->callee)
		return "";
	return l->callee_line ? tfh_phrase(w, ", in %s (%s:%u)", l->callee,
					   tfh_short_file(l->callee_file), l->callee_line)
			      : tfh_phrase(w, ", in %s()", l->callee);
}

const char *tfh_caller_words(struct tfh_wording *w, const struct tfh_seen_line *l)
{
	const char *s = "";

	if (l->through.file)
		return tfh_phrase(w, ", through %s:%u %s", tfh_file_words(w, l->through.file),
				  l->through.line, tfh_function_of(w, l->through.function));
	for (uint32_t i = 0; i < l->n_caller; i++)
		s = tfh_phrase(w, "%s%s%s:%u (%.0f %%)", s, i ? ", " : ", from ",
			       tfh_file_words(w, l->caller[i].file), l->caller[i].line,
			       100 * l->caller[i].share);
	return s;
}

/* "4.2 ms of 5 ms (sampled, +-67 us)" */
static const char *times_text(struct tfh_wording *w, const struct tfh_seen_line *l)
{
	const char *of = tfh_phrase_time(w, l->of_s), *time = tfh_phrase_time(w, l->s_per_step);

	const char *part = strcmp(time, of) ? tfh_phrase(w, "%s of %s", time, of)
					    : tfh_phrase(w, "all %s", of);
	return tfh_phrase(
		w, "%s%s", part,
		l->samples ? tfh_phrase(w, " (sampled, +-%s)", tfh_phrase_error(w, l->off_s)) : "");
}

/* The name of the time that the verdict is about, if that is not the steps'. */
static const char *lead_time(const struct tfh_result *r)
{
	static const char *const words[TFH_SEGMENT_COUNT] = {
		[TFH_SEGMENT_EVAL] = "evaluation's time",
		[TFH_SEGMENT_CHECKPOINT] = "the checkpoints' time",
		[TFH_SEGMENT_BETWEEN] = "the time between loops"};
	const char *time = r->lead ? words[r->recurring[r->lead - 1].kind] : NULL;

	return time ? time : "that time";
}

/* "84 % of the time between loops (sampled, +-2 %)" */
static const char *share_text(struct tfh_wording *w, const struct tfh_seen_line *l)
{
	double percent = 100 * l->s_per_step / l->of_s;
	const char *part = percent < 99.5 ? tfh_phrase(w, "%.0f %%", percent) : "all";

	return tfh_phrase(
		w, "%s of %s%s", part, lead_time(w->r),
		l->samples ? tfh_phrase(w, " (sampled, +-%.0f %%)", ceil(100 * l->off_s / l->of_s))
			   : "");
}

const struct tfh_place_gain *tfh_function_of_line(const struct tfh_result *r)
{
	const struct tfh_seen_line *l = &r->found.line;
	const struct tfh_place_gain *g = r->line_place ? &r->place[r->line_place - 1] : NULL;

	if (!g || !g->whole || strcmp(g->function, l->function) != 0 ||
	    strcmp(g->file, l->file) != 0 ||
	    g->s_per_step - l->s_per_step < TFH_REPORT_NAMED_SHARE * l->of_s)
		return NULL;
	return g;
}

/* "; all of Pendulum.step: 3.91 ms" */
static const char *function_text(struct tfh_wording *w, const struct tfh_seen_line *l)
{
	const struct tfh_place_gain *g = tfh_function_of_line(w->r);

	return g ? tfh_phrase(w, "; all of %s: %s", tfh_function_of(w, l->function),
			      tfh_phrase_time(w, g->s_per_step))
		 : "";
}

static const char *line_text(struct tfh_wording *w, bool share)
{
	const struct tfh_seen_line *l = &w->r->found.line;

	if (!l->file || l->s_per_step < TFH_REPORT_NAMED_SHARE * l->of_s)
		return NULL;
	const char *at = tfh_phrase(w, "%s%s", tfh_at_words(w, l->function, l->file, l->line),
				    tfh_caller_words(w, l)),
		   *called = called_text(w, l);

	if (l->kind == TFH_LINE_MAKES)
		return tfh_phrase(w, "%s%s in %s",
				  l->given ? tfh_function_of(w, l->given) : "its stage",
				  l->given ? ", given to its stage" : " is made", at);
	/* Backtraces show where calls were made, which says nothing about time if the cause is more
	 * than these calls. */
	if (!l->samples && w->r->verdict.cause != TFH_CAUSE_COMPUTE_CPU)
		return tfh_phrase(w, "%s%s%s",
				  l->kind == TFH_LINE_ASKS     ? "asked for in "
				  : l->kind == TFH_LINE_AWAITS ? "the devices are awaited in "
							       : "",
				  at, called);
	return tfh_phrase(w, "%s: %s%s%s", at, share ? share_text(w, l) : times_text(w, l), called,
			  share ? "" : function_text(w, l));
}

const char *tfh_verdict_line(struct tfh_wording *w)
{
	return line_text(w, false);
}

const char *tfh_lead_line(struct tfh_wording *w)
{
	return line_text(w, true);
}

void tfh_name_places(struct tfh_wording *w)
{
	for (uint32_t i = 0; i < w->r->n_place; i++) {
		const struct tfh_place_gain *g = &w->r->place[i];
		const char *file = tfh_file_words(w, g->file);
		char name[64];
		w->place[i] =
			g->whole ? tfh_phrase(w, "%s",
					      tfh_fmt_cut(name, sizeof(name),
							  tfh_function_of(w, g->function), 40))
			: g->first_line == g->last_line
				? tfh_phrase(w, "%s:%u", file, g->line)
				: tfh_phrase(w, "%s:%u-%u", file, g->first_line, g->last_line);
		/* The rest of the line remains. */
		if (w->r->found.sampled.samples && w->r->verdict.cause == TFH_CAUSE_HOST_COMPILE)
			w->place[i] = tfh_phrase(w, "compiling at %s", w->place[i]);
	}
}

const char *tfh_at_place(struct tfh_wording *w, const struct tfh_place_gain *g)
{
	const char *name = w->place[g - w->r->place];

	return g->whole ? tfh_phrase(w, "%s (%s:%u)", name, tfh_file_words(w, g->file), g->line)
			: name;
}

const char *tfh_mostly_in(struct tfh_wording *w)
{
	const struct tfh_result *r = w->r;
	const char *text = "";
	double s = 0;

	for (uint32_t i = 0; i < r->n_place; i++) {
		if (i + 1 == r->line_place)
			continue;
		text = tfh_phrase(w, "%s%s%s", text, *text ? ", " : ", mostly in ",
				  tfh_at_place(w, &r->place[i]));
		s += r->place[i].s_per_step;
	}
	return s > TFH_VERDICT_MOST_SHARE * r->breakdown[TFH_PART_HOST].s_per_step ? text : "";
}

/* Adds the line of the steps, if the verdict is about them. False: it is unknown. */
static bool place_line(struct tfh_wording *w)
{
	for (uint32_t i = 0; i < w->n_evidence && !w->r->found.line.samples; i++)
		if (w->tells[i] == TFH_TELLS_LINE) /* "called from" */
			return true;
	const char *line = w->r->lead ? NULL : tfh_verdict_line(w);

	if (line)
		tfh_evidence(w, TFH_TELLS_LINE, line);
	return line != NULL;
}

/* Who holds the mutex that the steps wait for. */
static const char *holder_text(struct tfh_wording *w)
{
	const struct tfh_seen_workers *k = &w->r->found.workers;
	const char *began =
		k->line.file
			? tfh_phrase(w, " that began in %s",
				     tfh_at_words(w, k->line.function, k->line.file, k->line.line))
			: "";

	if (k->threads == 1)
		return tfh_phrase(w, "%s thread%s holds the lock and runs %.0f %% of that time",
				  *began ? "the" : "one other", began, 100 * k->runs);
	return tfh_phrase(w, "%u threads hold the lock by turns and run %.0f %% of that time%s%s",
			  k->threads, 100 * k->runs, *began ? ", mostly those" : "", began);
}

/* A thread that waits for a batch or a lock waits for the threads that make or hold it, one that
 * waits for another process perhaps for the workers. */
static void workers_line(struct tfh_wording *w, bool placed)
{
	const struct tfh_seen_workers *k = &w->r->found.workers;
	enum tfh_cause cause = w->r->steady.cause;

	bool lock = cause == TFH_CAUSE_HOST_GIL || cause == TFH_CAUSE_HOST_LOCK ||
		    (cause == TFH_CAUSE_HOST_CALLBACK && w->r->found.calls_back);
	if (cause == TFH_CAUSE_NONE ||
	    !(cause == TFH_CAUSE_HOST_WAIT		? k->processes && k->line.file
	      : tfh_cause_part(cause) == TFH_PART_INPUT ? k->processes || k->threads
							: lock && k->threads))
		return;
	if (k->holds) {
		tfh_evidence(w, TFH_TELLS_LINE, holder_text(w));
		return;
	}
	/* Workers that mostly wait themselves are not busy. */
	bool waits = k->runs * 2 < k->busy;
	const char *does = tfh_phrase(w, waits ? "%.0f %% waiting" : "%.0f %% busy",
				      100 * (waits ? k->busy - k->runs : k->busy));
	bool anew = w->r->found.new_pool.file;
	const char *who =
		k->threads ? tfh_phrase(w, "%u other thread%s, %s meanwhile", k->threads,
					k->threads == 1 ? "" : "s", does)
		: anew && k->samples < TFH_FACTS_SAMPLE_LEAST
			? "worker processes, which live only for a short time"
			: tfh_phrase(w, "%u worker process%s%s, %s", k->processes,
				     k->processes == 1 ? "" : "es", anew ? " at a time" : "", does);
	const struct tfh_seen_line *l = &w->r->found.line;
	bool same = placed && k->line.file && l->file && l->samples && k->line.line == l->line &&
		    !strcmp(k->line.file, l->file);
	if (same) /* the row above names it */
		tfh_evidence(w, TFH_TELLS_LINE,
			     tfh_phrase(w, "%s, of which %.0f %% (+-%.0f %%) in the same line", who,
					100 * k->line.share, ceil(100 * k->line.off)));
	else
		tfh_evidence(w, TFH_TELLS_LINE,
			     k->line.file
				     ? tfh_phrase(w,
						  "%s, of which %.0f %% (+-%.0f %%) in %s, %s:%u",
						  who, 100 * k->line.share, ceil(100 * k->line.off),
						  tfh_function_of(w, k->line.function),
						  tfh_file_words(w, k->line.file), k->line.line)
				     : who);
}

/* A share whose error includes 0 is not given. */
static void few_samples(struct tfh_wording *w, bool placed, const char *state)
{
	uint64_t samples = w->r->found.seen.samples;

	tfh_evidence(
		w, placed ? TFH_TELLS_MORE : TFH_TELLS_WHY,
		tfh_phrase(
			w,
			"between its calls the thread was %s%s (%llu sample%s, too few for shares)",
			samples > 1 ? "mostly " : "", state, (unsigned long long)samples,
			samples > 1 ? "s" : ""));
}

bool tfh_is_at_line(const struct tfh_seen_node *n, const struct tfh_seen_line *l)
{
	return n->file && l->file && n->line == l->line && !strcmp(n->file, l->file);
}

void tfh_seen_line(struct tfh_wording *w)
{
	const struct tfh_seen_sum *seen = &w->r->found.seen;
	const char *line = NULL;
	bool told[TFH_SEEN_COUNT] = {false};

	bool placed = place_line(w);
	workers_line(w, placed);
	if (!seen->samples) /* no samples outside of calls; a loader's get-next is sampled */
		return;
	for (int n = 0; n < TFH_REPORT_SEEN; n++) {
		int most = 0;
		for (int i = 1; i < TFH_SEEN_COUNT; i++)
			if (!told[i] && what[i] && (!most || seen->part[i] > seen->part[most]))
				most = i;
		double p = seen->part[most];
		if (!most || p < TFH_REPORT_NAMED_SHARE)
			break;
		told[most] = true;
		double off = 100 * tfh_share_error(p, (double)seen->samples);
		if (off >= 100 * p && !line)
			return few_samples(w, placed, what[most]);
		if (off >= 100 * p)
			break;
		line = tfh_phrase(w, "%s%s%s %.0f %% (+-%.0f %%)", line ? line : "",
				  line ? ", " : "", what[most], 100 * p, ceil(off));
	}
	if (w->r->found.kernel_share > 0 && (w->r->steady.cause == TFH_CAUSE_INPUT_READ ||
					     w->r->steady.cause == TFH_CAUSE_HOST_CHECKPOINT ||
					     w->r->steady.cause == TFH_CAUSE_HOST_LOGGING))
		tfh_evidence(
			w, TFH_TELLS_WHY,
			tfh_phrase(w,
				   "%.0f %% of the job's CPU time is in the kernel: reading and "
				   "writing files",
				   100 * w->r->found.kernel_share));
	if (line)
		tfh_evidence(w, placed ? TFH_TELLS_MORE : TFH_TELLS_WHY,
			     tfh_phrase(w, "between its calls the thread was %s; %llu samples",
					line, (unsigned long long)seen->samples));
}
