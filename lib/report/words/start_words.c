/* What the main thread did besides the steps: before the first recorded call, in start-up, between
 * loops, in evaluations. */
#include <math.h>
#include <string.h>

#include "model/symbols/pylines.h"
#include "report/text_parts.h"
#include "report/words/words.h"

/* "tensorflow" of ".../site-packages/tensorflow/__init__.py", "slow" of ".../slow.py",
 * "torch._dynamo" of ".../site-packages/torch/_dynamo/utils.py" */
static const char *module_of(struct tfh_wording *w, const char *file)
{
	const char *name = tfh_short_file(file), *in = strchr(name, '/');
	int n = (int)strcspn(name, "/.");

	if (!in || !strcmp(in, "/__init__.py"))
		return tfh_phrase(w, "%.*s", n, name);
	return tfh_phrase(w, "%.*s.%.*s", n, name, (int)strcspn(in + 1, "/."), in + 1);
}

/* The lines of one function, or one line that imports. */
struct lines_of {
	const struct tfh_start_line *most; /* the one with most time */
	double percent;
	uint64_t samples;
};

/* most NULL: they were counted with an earlier line. */
static struct lines_of lines_of(const struct tfh_seen_start *s, uint32_t at)
{
	struct lines_of f = {.most = &s->line[at]};
	double share = 0;

	for (uint32_t i = 0; i < s->n_line; i++) {
		if (!tfh_start_together(&s->line[i], &s->line[at]))
			continue;
		if (i < at)
			return (struct lines_of){0};
		share += s->line[i].share;
		f.samples += s->line[i].samples;
	}
	/* samples represent the intervals between them, which may extend beyond the part */
	f.percent = 100 * fmin(share, 1);
	return f;
}

/* The function, or (unless `rest`) importing line, with most time; most NULL: too little was
 * seen. */
static struct lines_of largest(const struct tfh_seen_start *s, bool rest)
{
	struct lines_of most = {0};

	for (uint32_t i = 0; s->samples >= TFH_VERDICT_LINE_SAMPLES && i < s->n_line; i++) {
		struct lines_of f = lines_of(s, i);
		if (!(rest && s->line[i].imports) && f.samples >= TFH_VERDICT_LINE_SAMPLES &&
		    f.percent > most.percent)
			most = f;
	}
	return most;
}

/* "71 % importing tensorflow (train.py:3)", "12 % in load (data.py:88)" */
static const char *one_line(struct tfh_wording *w, const struct tfh_start_line *l, double percent)
{
	const char *at = tfh_phrase(w, "%s:%u", tfh_short_file(l->file), l->line);

	if (!strcmp(l->file, "<frozen site>"))
		return tfh_phrase(w, "%.0f %% starting the interpreter", percent);
	if (l->imports)
		return tfh_phrase(w, "%.0f %% importing %s (%s)", percent,
				  *l->imports ? module_of(w, l->imports) : "something", at);
	if (!strcmp(l->function, "<module>"))
		return tfh_phrase(w, "%.0f %% at %s", percent, at);
	return tfh_phrase(w, "%.0f %% in %s (%s)", percent, tfh_function_of(w, l->function), at);
}

/* The lines and functions with much of a part's time. `of`: the share of the part to be explained;
 * if less than all, imports are left out. `told`: the largest was already reported. */
static const char *lines(struct tfh_wording *w, const struct tfh_seen_start *s, bool told,
			 double of)
{
	const struct tfh_start_line *first = told ? largest(s, of < 1).most : NULL;
	const char *all = "";

	for (uint32_t i = 0; i < s->n_line; i++) {
		struct lines_of f = lines_of(s, i);
		if (f.most != first && f.percent >= 100 * TFH_REPORT_NAMED_SHARE * of &&
		    f.samples >= TFH_VERDICT_LINE_SAMPLES && !(of < 1 && f.most->imports))
			all = tfh_phrase(w, "%s%s%s", all, *all ? ", " : "",
					 one_line(w, f.most, fmin(f.percent / of, 100)));
	}
	return all;
}

static const char *states(struct tfh_wording *w, const struct tfh_seen_start *s)
{
	const char *all = "";

	for (int i = 0; i < TFT_STATE_COUNT; i++)
		if (s->state[i] >= TFH_REPORT_NAMED_SHARE && *tfh_state_words(i))
			all = tfh_phrase(w, "%s%s%.0f %% %s", all, *all ? ", " : "",
					 s->state[i] * 100, tfh_state_words(i));
	return all;
}

/* Lines, or states if there are none; "": too little was seen. */
static const char *seen(struct tfh_wording *w, const struct tfh_seen_start *s, bool told, double of)
{
	const char *what = s->samples >= TFH_VERDICT_LINE_SAMPLES ? lines(w, s, told, of) : "";

	return s->samples >= TFH_VERDICT_LINE_SAMPLES && !*what && !told && !(of < 1) ? states(w, s)
										      : what;
}

static const struct tfh_seen_start *seen_in(const struct tfh_result *r, enum tfh_branch part)
{
	for (int i = 0; i < TFH_SEEN_STARTS; i++) {
		const struct tfh_seen_start *s = &r->found.start[i];
		/* of the time between loops, only the longest was looked at */
		if (s->kind == part && 2 * s->wall_s > tfh_spent(r, part))
			return s;
	}
	return NULL;
}

/* Share of a part of the run in which modules were imported. */
static double importing(const struct tfh_seen_start *s)
{
	double share = 0;

	for (uint32_t i = 0; s && s->samples >= TFH_VERDICT_LINE_SAMPLES && i < s->n_line; i++)
		share += s->line[i].imports ? s->line[i].share : 0;
	return fmin(share, 1);
}

double tfh_imports_s(const struct tfh_result *r, enum tfh_branch part)
{
	bool start = part == TFH_BRANCH_BEFORE || part == TFH_BRANCH_STARTUP;

	return start ? tfh_spent(r, part) * importing(seen_in(r, part)) : 0;
}

/* Share of the run's end in which Python runs. The rest is the end of the interpreter and of its
 * libraries. */
static double ending(const struct tfh_result *r)
{
	const struct tfh_seen_start *s = seen_in(r, TFH_BRANCH_AFTER);
	bool python = false;
	double share = 0;

	for (int i = 0; i < TFH_SEEN_STARTS; i++)
		python |= r->found.start[i].n_line > 0;
	for (uint32_t i = 0; s && i < s->n_line; i++)
		share += s->line[i].share;
	return python ? fmin(share, 1) : 1;
}

double tfh_start_share(const struct tfh_result *r, enum tfh_branch part)
{
	double all = tfh_spent(r, part);

	if (part == TFH_BRANCH_AFTER)
		return ending(r);
	return all > 0 ? 1 - tfh_imports_s(r, part) / all : 1;
}

const char *tfh_start_seen(struct tfh_wording *w, enum tfh_branch part, bool told)
{
	const struct tfh_seen_start *s = seen_in(w->r, part);

	/* At the end, libraries and the interpreter clean up, which has no line. */
	return s && (told || part != TFH_BRANCH_AFTER)
		       ? seen(w, s, told, tfh_start_share(w->r, part))
		       : "";
}

/* Whether the line's function is not among the steps' callers. Its name then tells what the program
 * does besides the steps. */
static bool is_besides(const struct tfh_result *r, enum tfh_branch part,
		       const struct tfh_start_line *l)
{
	bool loops = part != TFH_BRANCH_BEFORE && part != TFH_BRANCH_STARTUP && r->found.n_node;

	for (uint32_t i = 0; i < r->found.n_node && loops; i++) {
		const struct tfh_seen_node *n = &r->found.node[i];
		loops = !n->file || strcmp(n->file, l->file) != 0 ||
			strcmp(n->function, l->function) != 0;
	}
	return loops;
}

const char *tfh_start_mostly(struct tfh_wording *w, enum tfh_branch part)
{
	const struct tfh_seen_start *s = seen_in(w->r, part);
	double of = tfh_start_share(w->r, part);
	double least = part == TFH_BRANCH_AFTER ? TFH_VERDICT_MOST_SHARE : TFH_REPORT_NAMED_SHARE;
	struct lines_of f = s ? largest(s, of < 1) : (struct lines_of){0};
	const struct tfh_start_line *l = f.most;

	if (!l || f.percent < 100 * least * of || !strcmp(l->file, "<frozen site>"))
		return "";
	if (l->imports && *l->imports)
		return tfh_phrase(w, "%.0f %% importing %s", f.percent, module_of(w, l->imports));
	/* a line of a library says less than its function */
	bool library = strchr(tfh_short_file(l->file), '/') != NULL;
	bool named = library || l->share <= TFH_REPORT_RUN_PART * of || is_besides(w->r, part, l);
	if (named && strcmp(l->function, "<module>") != 0)
		return tfh_phrase(w, "%.0f %% in %s (%s:%u)", fmin(f.percent / of, 100),
				  tfh_function_of(w, l->function), tfh_file_words(w, l->file),
				  l->line);
	return tfh_phrase(w, "%.0f %% at %s:%u", 100 * fmin(l->share / of, 1),
			  tfh_file_words(w, l->file), l->line);
}

enum tft_state tfh_start_waits(const struct tfh_result *r, enum tfh_branch part)
{
	const struct tfh_seen_start *s = seen_in(r, part);

	for (int i = TFT_STATE_RUNNING + 1; s && i < TFT_STATE_COUNT; i++)
		/* many things that are not waits for others' work take a lock, too */
		if (2 * s->state[i] > tfh_start_share(r, part) && *tfh_state_words(i) &&
		    (i != TFT_STATE_LOCK || part == TFH_BRANCH_AFTER))
			return (enum tft_state)i;
	return TFT_STATE_RUNNING;
}

/* The line of the program that imports for longest. */
static const struct tfh_start_line *importer(const struct tfh_result *r)
{
	const struct tfh_start_line *most = NULL;
	double most_s = 0;

	for (enum tfh_branch k = TFH_BRANCH_BEFORE; k <= TFH_BRANCH_STARTUP; k++) {
		const struct tfh_seen_start *s = seen_in(r, k);
		for (uint32_t i = 0; s && i < s->n_line; i++)
			if (s->line[i].imports && s->line[i].share * s->wall_s > most_s) {
				most = &s->line[i];
				most_s = most->share * s->wall_s;
			}
	}
	return most;
}

/* Seconds of imports, if the time before the steps is so much of the run that these are advice. */
static double imports_to_advise(const struct tfh_result *r)
{
	double wall = r->n_tree ? r->tree[0].wall_s : 0;
	double start = tfh_spent(r, TFH_BRANCH_BEFORE) + tfh_spent(r, TFH_BRANCH_STARTUP);
	double s = tfh_imports_s(r, TFH_BRANCH_BEFORE) + tfh_imports_s(r, TFH_BRANCH_STARTUP);

	return start < TFH_REPORT_RUN_PART * wall || s < TFH_REPORT_OTHER_SHARE * wall ? 0 : s;
}

void tfh_advise_imports(struct tfh_wording *w)
{
	const struct tfh_start_line *l = importer(w->r);
	double s = imports_to_advise(w->r);

	if (!l || !(s > 0))
		return;
	const char *most =
		*l->imports ? tfh_phrase(w, ", mostly %s", module_of(w, l->imports)) : "";
	/* no gain is given: imports take no longer in a longer run, so advice about what does comes
	 * first */
	tfh_advise(
		w, tfh_phrase(w, "imports%s: %s, once per run", most, tfh_phrase_time(w, s)), NULL,
		"import only what is used, and where it is used: python -X importtime shows what "
		"takes long",
		TFH_REMOVE_NONE);
}

/* Whether a note tells what a whole run imports: it has mostly done something else than its steps,
 * and has no advice about imports. */
static bool notes_imports(const struct tfh_result *r, enum tfh_branch kind, double wall)
{
	double steps = tfh_spent(r, TFH_BRANCH_TRAIN) + tfh_spent(r, TFH_BRANCH_STEP);

	return steps < TFH_REPORT_RUN_PART * wall &&
	       tfh_imports_s(r, kind) >= TFH_REPORT_OTHER_SHARE * wall &&
	       !(imports_to_advise(r) > 0);
}

/* What was seen in a part of the run and has no advice. In a whole run with steps, advice names the
 * lines of each part, so only imports are left. */
static const char *untold(struct tfh_wording *w, const struct tfh_seen_start *s, double wall)
{
	if (w->r->end != TFH_END_EXIT || !w->r->steps.count)
		return seen(w, s, false, 1);
	return notes_imports(w->r, s->kind, wall) ? lines(w, s, false, 1) : "";
}

void tfh_note_start(struct tfh_wording *w)
{
	double wall = w->r->n_tree ? w->r->tree[0].wall_s : 0;

	for (int i = 0; i < TFH_SEEN_STARTS; i++) {
		const struct tfh_seen_start *s = &w->r->found.start[i];
		const char *part, *what;
		if (s->kind <= TFH_BRANCH_RUN || s->wall_s < TFH_REPORT_OTHER_SHARE * wall)
			continue;
		part = s->kind == TFH_BRANCH_BEFORE ? tfh_outside(w->r, s->kind)
						    : tfh_branch_words(s->kind);
		what = untold(w, s, wall);
		if (*what)
			what = tfh_phrase(w, "%s (%s): %s", part, tfh_phrase_time(w, s->wall_s),
					  what);
		/* Without steps, the largest part of the run is what there is to tell. */
		if (*what && !w->r->steps.count && s->wall_s > wall / 2)
			tfh_remark_first(w, what);
		else if (*what)
			tfh_remark(w, what);
		if (s->why && s->kind == TFH_BRANCH_BEFORE)
			tfh_remark(w, tfh_phrase(w, "%s (%s) no lines of Python were seen: %s",
						 part, tfh_phrase_time(w, s->wall_s), s->why));
	}
}
