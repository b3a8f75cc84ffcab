/* Where sentences are stored, and their common forms. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "report/words/words.h"

const char *tfh_phrase(struct tfh_wording *w, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	const char *s = tfh_arena_vtext(&w->arena, fmt, args);
	va_end(args);
	return s;
}

static const char *phrase_us(struct tfh_wording *w, double us)
{
	return tfh_phrase(w, us >= 99.95 ? "%.0f us" : us >= 9.995 ? "%.1f us" : "%.2f us", us);
}

const char *tfh_phrase_time(struct tfh_wording *w, double s)
{
	if (s >= 10)
		return tfh_phrase(w, "%.1f s", s);
	if (s >= 0.9995)
		return tfh_phrase(w, "%.2f s", s);
	return s >= 0.09995    ? tfh_phrase(w, "%.0f ms", s * 1e3)
	       : s >= 9.995e-3 ? tfh_phrase(w, "%.1f ms", s * 1e3)
	       : s >= 9.995e-4 ? tfh_phrase(w, "%.2f ms", s * 1e3)
			       : phrase_us(w, s * 1e6);
}

const char *tfh_phrase_error(struct tfh_wording *w, double s)
{
	if (s >= 1)
		return tfh_phrase(w, "%.1f s", s);
	return s >= 9.95e-3    ? tfh_phrase(w, "%.0f ms", s * 1e3)
	       : s >= 9.995e-4 ? tfh_phrase(w, "%.1f ms", s * 1e3)
			       : tfh_phrase(w, "%.0f us", s * 1e6);
}

const char *tfh_phrase_ordinal(struct tfh_wording *w, double n)
{
	static const char *const end[] = {"th", "st", "nd", "rd"};
	unsigned long long whole = (unsigned long long)llround(n);
	bool teen = whole % 100 / 10 == 1;

	return tfh_phrase(w, "%llu%s", whole, !teen && whole % 10 < 4 ? end[whole % 10] : "th");
}

const char *tfh_phrase_calls(struct tfh_wording *w, double calls)
{
	bool whole = fabs(calls - round(calls)) < 0.05;

	return tfh_phrase(w, whole ? "%.0f call%s" : "%.1f call%s", calls,
			  whole && fabs(calls - 1) < 0.5 ? "" : "s");
}

void tfh_evidence(struct tfh_wording *w, enum tfh_tells tells, const char *line)
{
	if (w->n_evidence >= sizeof(w->evidence) / sizeof(w->evidence[0]))
		return;
	w->tells[w->n_evidence] = tells;
	w->evidence[w->n_evidence++] = line;
}

void tfh_remark(struct tfh_wording *w, const char *text)
{
	if (w->n_remark < sizeof(w->remark) / sizeof(w->remark[0]))
		w->remark[w->n_remark++] = text;
}

void tfh_remark_first(struct tfh_wording *w, const char *text)
{
	uint32_t most = sizeof(w->remark) / sizeof(w->remark[0]);
	uint32_t n = w->n_remark < most ? w->n_remark++ : most - 1;

	memmove(w->remark + w->n_first + 1, w->remark + w->n_first,
		(n - w->n_first) * sizeof(w->remark[0]));
	w->remark[w->n_first++] = text;
}

static void add_advice(struct tfh_wording *w, struct tfh_advice advice)
{
	if (w->n_advice < sizeof(w->advice) / sizeof(w->advice[0]))
		w->advice[w->n_advice++] = advice;
}

const char *tfh_gain_how(const struct tfh_whatif *gain)
{
	static const char *const how[] = {[TFH_GAIN_PREDICTED] = "",
					  [TFH_GAIN_ESTIMATED] = "about ",
					  [TFH_GAIN_BOUND] = "at best ",
					  [TFH_GAIN_LEAST] = "at most "};

	return how[tfh_gain_of(gain)];
}

void tfh_advise_gain(struct tfh_wording *w, const char *finding, const char *why, const char *todo,
		     const struct tfh_whatif *gain)
{
	add_advice(w, (struct tfh_advice){finding, why, todo, gain->ceiling_speedup, gain->saved_s,
					  tfh_gain_how(gain)});
}

bool tfh_fixes_all(const struct tfh_result *r)
{
	return r->verdict.cause == TFH_CAUSE_HOST_LAUNCH && !r->found.cpu_only;
}

/* The gain from fixing what the verdict names. If its line is known, that is the gain of this
 * place, not of its whole part. */
static const struct tfh_whatif *gain_of(const struct tfh_result *r, enum tfh_remove remove)
{
	enum tfh_cause cause = r->steady.cause;

	bool blamed = cause != TFH_CAUSE_NONE && tfh_remove_part(remove) == tfh_cause_part(cause);

	/* Less idle time is no gain. */
	if (blamed && !r->lead && r->found.serves != TFH_SERVES_NOT)
		return NULL;
	if (blamed && !r->lead && r->line_place && !tfh_fixes_all(r))
		return &r->place[r->line_place - 1].gain;
	if (blamed && cause == TFH_CAUSE_HOST_CONTENTION)
		return r->uncrowded.ceiling_speedup > 0 ? &r->uncrowded : NULL;
	for (uint32_t i = 0; i < r->n_whatif; i++)
		if (r->whatif[i].remove == remove)
			return &r->whatif[i];
	return NULL;
}

void tfh_advise(struct tfh_wording *w, const char *finding, const char *why, const char *todo,
		enum tfh_remove remove)
{
	const struct tfh_whatif none = {.step_s = 0, .ceiling_speedup = NAN, .saved_s = NAN};
	const struct tfh_whatif *gain = remove == TFH_REMOVE_NONE ? NULL : gain_of(w->r, remove);

	tfh_advise_gain(w, finding, why, todo, gain ? gain : &none);
}

void tfh_advise_run(struct tfh_wording *w, const char *finding, const char *todo, double saved_s)
{
	add_advice(w, (struct tfh_advice){finding, NULL, todo, NAN, saved_s, "at best "});
}

void tfh_wording_free(struct tfh_wording *w)
{
	tfh_arena_free(&w->arena);
}

const char *tfh_inner_name(const char *name)
{
	static const struct {
		const char *part, *words;
	} inner[] = {{"Engine::execute", "backward()"},
		     {"step_on_iterator", "Keras' own step"},
		     {"step_on_data", "Keras' own step"}};

	for (size_t i = 0; i < sizeof(inner) / sizeof(*inner); i++)
		if (strstr(name, inner[i].part))
			return inner[i].words;
	return name;
}

const char *tfh_stage_words(struct tfh_wording *w, const char *name)
{
	static const struct {
		const char *fused, *parts;
	} fusions[] = {{"MapAndBatch", "map + batch"},
		       {"ShuffleAndRepeat", "shuffle + repeat"},
		       {"MapAndFilter", "map + filter"}};

	for (size_t i = 0; i < sizeof(fusions) / sizeof(*fusions); i++)
		if (strstr(name, fusions[i].fused))
			return tfh_phrase(w, "%s (%s)", fusions[i].parts, name);
	return name;
}
