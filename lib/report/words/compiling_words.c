/* Compiling besides what the verdict is about: how much of the run it takes, which line causes it,
 * and what to do. */
#include <math.h>
#include <string.h>

#include "model/symbols/pylines.h"
#include "report/words/words.h"

static double sum(const struct tfh_compiling *c)
{
	double s = 0;

	for (int i = 0; i < TFH_SEGMENT_COUNT; i++)
		s += c->s[i];
	return s;
}

double tfh_compiling_s(const struct tfh_result *r)
{
	const struct tfh_compiling *c = &r->found.compiling;
	double s = sum(c), wall = r->n_tree ? r->tree[0].wall_s : 0;
	bool told = r->lead && r->recurring[r->lead - 1].kind == TFH_SEGMENT_COMPILE;

	return !told && c->file && c->samples >= TFH_VERDICT_LINE_SAMPLES &&
			       s >= TFH_REPORT_OTHER_SHARE * wall
		       ? s
		       : 0;
}

bool tfh_compiling_is_told(const struct tfh_result *r)
{
	const struct tfh_compiling *c = &r->found.compiling;
	const struct tfh_seen_line *l = &r->found.line;

	return !r->lead && r->steady.cause == TFH_CAUSE_HOST_COMPILE && l->file && c->file &&
	       !strcmp(l->file, c->file) && l->line == c->line;
}

double tfh_compiled_in(const struct tfh_result *r, enum tfh_branch part)
{
	const double *s = r->found.compiling.s;

	if (!(tfh_compiling_s(r) > 0))
		return 0;
	switch (part) {
	case TFH_BRANCH_STARTUP:
		return fmin(s[TFH_SEGMENT_STARTUP], tfh_spent(r, part));
	case TFH_BRANCH_BEFORE:
		return fmax(s[TFH_SEGMENT_STARTUP] - tfh_spent(r, TFH_BRANCH_STARTUP), 0);
	case TFH_BRANCH_FIRST:
		return s[TFH_SEGMENT_WARMUP] + s[TFH_SEGMENT_TRAIN] + s[TFH_SEGMENT_COMPILE] +
		       s[TFH_SEGMENT_STALL];
	case TFH_BRANCH_EVALUATE:
	case TFH_BRANCH_PREDICT:
		return s[TFH_SEGMENT_EVAL];
	case TFH_BRANCH_BETWEEN:
		return s[TFH_SEGMENT_BETWEEN];
	default:
		return 0;
	}
}

/* By the package of the compiler's function that the line called. */
static const char *todo(const char *compiler)
{
	static const struct {
		const char *package, *todo;
	} table[] = {
		{"/torch/",
		 "compile a model once rather than each new one, and keep shapes the same (or "
		 "torch.compile(dynamic=True)); a short run may be faster without"},
		{"/jax/",
		 "call jax.jit once, outside of loops, keep shapes the same, and keep what was "
		 "compiled for later runs (jax_compilation_cache_dir)"},
		{"/tensorflow/",
		 "make each tf.function once, outside of loops, and keep shapes and Python "
		 "arguments the same (input_signature)"},
	};

	for (size_t i = 0; compiler && i < sizeof(table) / sizeof(*table); i++)
		if (tfh_is_in_package(compiler, table[i].package))
			return table[i].todo;
	return "compile once, outside of loops, and keep what was compiled for later runs";
}

void tfh_advise_compiling(struct tfh_wording *w)
{
	const struct tfh_compiling *c = &w->r->found.compiling;
	double s = tfh_compiling_s(w->r);
	const char *times =
		c->times > 1 ? tfh_phrase(w, ", %llu times", (unsigned long long)c->times) : "";
	/* several lines may compile; this one does most of it */
	tfh_advise_run(w,
		       tfh_phrase(w, "compiling%s: %s, %s %s:%u", times, tfh_phrase_time(w, s),
				  c->times > 1 ? "mostly at" : "at", tfh_file_words(w, c->file),
				  c->line),
		       todo(c->callee_file), s);
}
