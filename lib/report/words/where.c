/* Where in the program the time goes. */
#include "base/text.h"
#include "model/symbols/pylines.h"
#include "report/words/remedy.h"
#include "report/words/words.h"

#include <string.h>

/* Whether an imported trace names the functions in which calls of the verdict's cause waited, or
 * which themselves have that cause. */
static bool names_verdict(const struct tfh_wording *w, enum tfh_cause cause)
{
	bool own = cause == TFH_CAUSE_HOST_COMPILE || cause == TFH_CAUSE_HOST_CHECKPOINT ||
		   cause == TFH_CAUSE_HOST_LOGGING || cause == TFH_CAUSE_HOST_SLEEP ||
		   cause == TFH_CAUSE_HOST_LOCK || cause == TFH_CAUSE_HOST_WAIT;

	return w->r->found.imported && cause == w->r->steady.cause &&
	       ((own && w->r->found.verdict.n) || cause == TFH_CAUSE_HOST_SYNC ||
		cause == TFH_CAUSE_HOST_ALLOC || tfh_cause_part(cause) == TFH_PART_INPUT);
}

/* Whether it is the program's own code, whose functions an imported trace names. */
static bool is_code(const struct tfh_wording *w, enum tfh_cause cause)
{
	return cause == TFH_CAUSE_HOST_PYTHON ||
	       (cause == TFH_CAUSE_HOST_CODE && w->r->found.imported);
}

static const struct tfh_code_time *code_of(const struct tfh_wording *w, enum tfh_cause cause)
{
	return is_code(w, cause)	 ? &w->r->found.python
	       : names_verdict(w, cause) ? &w->r->found.verdict
					 : &w->r->found.other;
}

static bool worth_naming(const struct tfh_wording *w, double s_per_step, enum tfh_cause cause)
{
	return s_per_step >= TFH_REPORT_NAMED_SHARE * w->r->found.cause_s[cause];
}

/* A function of a trace, of whose path only the last directory is left: /app/shop/images.py(390):
 * normalize */
static const char *short_name(const char *s)
{
	size_t file = 0, directory = 0;

	for (size_t i = 0; *s == '/' && s[i] && s[i] != '('; i++)
		if (s[i] == '/') {
			directory = file;
			file = i + 1;
		}
	return s + directory;
}

static bool known(const struct tfh_call_site *site)
{
	return site->where && *site->where;
}

/* Bytes of a place's innermost frame, without its module and its callers. */
static size_t innermost(const char *where)
{
	const char *module = strstr(where, " ["), *caller = strstr(where, " < "),
		   *end = where + strlen(where);

	end = module ? module : end;
	return (size_t)((caller && caller < end ? caller : end) - where);
}

/* How many bytes of `a`'s innermost frame precede the words that it has in common with the end of
 * `b`'s. */
static int own_part(const char *a, const char *b)
{
	const char *x = a + innermost(a), *y = b + innermost(b), *own = x;

	while (x > a && y > b && x[-1] == y[-1]) {
		x--;
		y--;
		if ((x == a || x[-1] == ' ') && (y == b || y[-1] == ' '))
			own = x;
	}
	while (own > a && own[-1] == ' ')
		own--;
	return (int)(own - a);
}

uint32_t tfh_call_places(const struct tfh_result *r, struct tfh_call_place *out)
{
	const struct tfh_findings *f = &r->found;
	const struct tfh_call_place all[TFH_CALL_PLACES] = {
		{"wait", "wait", &f->wait},
		{"allocation", "allocation", &f->alloc},
		{"load", "load of modules", &f->load},
		{"pause", "pause, until", &f->pause},
		{"before", "pause, from", &f->before},
	};
	uint32_t n = 0;

	for (uint32_t i = 0; i < TFH_CALL_PLACES; i++)
		if (known(all[i].site))
			out[n++] = all[i];
	return n;
}

const char *tfh_site_at(struct tfh_wording *w, const struct tfh_call_site *site)
{
	const char *callee = known(site) ? strstr(site->where, " > ") : NULL;
	size_t n = known(site) ? innermost(site->where) : 0;

	if (callee && (size_t)(callee - site->where) < n)
		n = (size_t)(callee - site->where);
	return n ? tfh_phrase(w, ": %s at %.*s", site->fn, (int)n, site->where) : "";
}

const char *tfh_calls_around(struct tfh_wording *w)
{
	const struct tfh_call_site *from = &w->r->found.before, *to = &w->r->found.pause;
	int own;

	if (!known(from))
		return !known(to) ? NULL
		       : *to->fn ? tfh_phrase(w, "most of it ends with %s at %s", to->fn, to->where)
				 : tfh_phrase(w, "most of it ends at %s", to->where);
	if (!known(to))
		return tfh_phrase(w, "most of it follows %s at %s", from->fn, from->where);
	own = *to->fn ? own_part(from->where, to->where) : (int)innermost(from->where);
	return tfh_phrase(w, "most of it lies between %s%s%.*s and %s%s%s", from->fn,
			  own ? " at " : "", own, from->where, to->fn, *to->fn ? " at " : "",
			  to->where);
}

/* The functions in which a cause's time was spent. */
static const char *pause_line(struct tfh_wording *w, enum tfh_cause cause)
{
	const struct tfh_code_time *code = code_of(w, cause);
	const char *line = NULL;

	for (uint32_t i = 0; i < code->n; i++) {
		double ms = 1e3 * code->function[i].s_per_step;
		if (!worth_naming(w, code->function[i].s_per_step, cause))
			break;
		line = tfh_phrase(
			w, ms < 999 ? "%s%s%.3g ms of it in %s" : "%s%s%.0f ms of it in %s",
			line ? line : "", line ? ", " : "", ms, short_name(code->function[i].name));
	}
	/* Samples during pauses show more than where pauses end. */
	if (line || cause == TFH_CAUSE_HOST_CALLBACK || w->r->found.line.file)
		return line;
	return tfh_calls_around(w);
}

const char *tfh_called_from(struct tfh_wording *w, const char *fn, const char *where)
{
	const struct tfh_seen_line *l = &w->r->found.line;

	if (!l->file || l->samples || w->r->lead)
		return where && *where ? tfh_phrase(w, "%s called from %s", fn, where) : NULL;
	if (!l->line)
		return tfh_phrase(w, "%s called from %s", fn,
				  tfh_at_words(w, l->function, l->file, 0));
	/* Built-in functions have no line. */
	bool callee = l->callee && l->callee_line;
	return tfh_phrase(
		w, callee ? "%s called from %s:%u %s%s > %s:%u %s" : "%s called from %s:%u %s%s",
		fn, tfh_file_words(w, l->file), l->line, tfh_function_of(w, l->function),
		tfh_caller_words(w, l), callee ? tfh_short_file(l->callee_file) : "",
		l->callee_line, l->callee);
}

/* Whether the call's place begins with the line that samples show, which has a row of its own. */
static bool is_sampled(struct tfh_wording *w, const struct tfh_call_site *site)
{
	const struct tfh_seen_line *l = &w->r->found.line;

	if (!l->file || !l->samples || w->r->lead || !site->where)
		return false;
	const char *at = tfh_phrase(w, "%s:%u ", tfh_file_words(w, l->file), l->line);
	return tfh_starts_with(site->where, at);
}

const char *tfh_place_line(struct tfh_wording *w, enum tfh_cause cause)
{
	const struct tfh_findings *found = &w->r->found;
	const struct tfh_call_site *site = cause == TFH_CAUSE_HOST_SYNC	     ? &found->wait
					   : cause == TFH_CAUSE_HOST_ALLOC   ? &found->alloc
					   : cause == TFH_CAUSE_HOST_COMPILE ? &found->load
									     : NULL;
	if (is_code(w, cause) || cause == TFH_CAUSE_HOST_UNKNOWN ||
	    cause == TFH_CAUSE_HOST_CALLBACK || names_verdict(w, cause))
		return pause_line(w, cause);
	return site && !is_sampled(w, site) ? tfh_called_from(w, site->fn, site->where) : NULL;
}

const char *tfh_code_events(const struct tfh_result *r)
{
	static const char *const events[] = {
		[TFH_SRC_TFT] = "functions of Python",
		[TFH_SRC_KINETO] = "functions of Python (with_stack=True)",
		[TFH_SRC_XPLANE] = "functions of Python (python_tracer_level=1)",
		[TFH_SRC_NSYS] = "NVTX ranges",
		[TFH_SRC_ROCPROF] = "roctx ranges",
		[TFH_SRC_TIMELINE] = "functions of Python (TensorFlow 2: tf.profiler)",
		[TFH_SRC_ASCEND] = "functions of Python (with_stack=True)"};

	return events[tfh_run_source(r->run)];
}

bool tfh_line_grows(const struct tfh_result *r)
{
	const struct tfh_seen_line *l = &r->found.line;

	for (uint32_t i = 0; i < r->n_change && l->file; i++) {
		const struct tfh_change *x = &r->change[i];
		if (x->until && x->to_s > x->from_s && x->file && x->line == l->line &&
		    !strcmp(x->file, l->file))
			return true;
	}
	return false;
}

const char *tfh_line_advice(struct tfh_wording *w, enum tfh_cause cause)
{
	const struct tfh_seen_line *l = &w->r->found.line;

	if (cause != TFH_CAUSE_HOST_PYTHON || !l->file || !l->line || l->not_own)
		return NULL;
	/* Without a function that it calls, it is the program's own Python that takes the time. */
	bool own = !l->callee && w->r->found.seen.part[TFT_STATE_RUNNING] > TFH_VERDICT_MOST_SHARE;
	const char *at = tfh_phrase(w, "%s:%u", tfh_file_words(w, l->file), l->line);

	if (tfh_function_of_line(w->r))
		at = tfh_phrase(w, "%s (%s)", tfh_function_of(w, l->function), at);
	return tfh_phrase(w, "make %s faster%s, or %s", at,
			  own ? " (if it loops: operations on whole arrays, or numba)" : "",
			  tfh_less_often(w->r, true));
}

const char *tfh_less_often(const struct tfh_result *r, bool python)
{
	static const char *const words[2][2] = {
		{"do it less often, in another thread, or while the device computes",
		 "do it less often, in another process, or while the device computes"},
		{"do it less often, or in another thread",
		 "do it less often, or in another process"}};

	return words[r->found.cpu_only][python];
}

const char *tfh_place_advice(struct tfh_wording *w, enum tfh_cause cause)
{
	const struct tfh_code_time *code = code_of(w, cause);
	const char *less = tfh_less_often(w->r, cause != TFH_CAUSE_HOST_CODE);

	if (tfh_loads_files(w->r, cause))
		return NULL;
	if (cause == TFH_CAUSE_HOST_PYTHON && tfh_line_grows(w->r))
		return tfh_phrase(
			w,
			"what %s:%u goes through grows from step to step: keep the result "
			"of the step before, and add only what is new",
			tfh_file_words(w, w->r->found.line.file), w->r->found.line.line);
	const char *line = w->r->lead ? NULL : tfh_line_advice(w, cause);
	if (line)
		return line;
	if (!w->r->found.imported || (!is_code(w, cause) && cause != TFH_CAUSE_HOST_UNKNOWN))
		return NULL;
	if (code->n && worth_naming(w, code->function[0].s_per_step, cause))
		return tfh_phrase(
			w,
			is_code(w, cause)
				? "make %s faster, or %s"
				: "see what %s waits for or prepares, and do it beforehand, or %s",
			short_name(code->function[0].name), less);
	if (w->r->found.functions ||
	    code->s_per_step * TFH_REPORT_CODE_PART >= w->r->found.cause_s[cause])
		return tfh_phrase(w, "%s; no function in the trace has a tenth of it", less);
	return tfh_phrase(w, "record once more with %s to see what that thread does, and %s",
			  tfh_code_events(w->r), less);
}
