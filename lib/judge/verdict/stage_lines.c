/*
 * The line that makes the slow stage of a tf.data pipeline. TensorFlow's own threads run a stage,
 * without any Python if its function was traced; but the main thread was seen in the library's
 * constructor of such stages, which traces the function given to it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "judge/verdict/line_tree.h"

struct made_stage {
	struct tfh_model_line line;
	const char *function; /* that is given to the stage; NULL: not seen, or without a name */
};

struct stage_lines {
	const char *file;	       /* of the constructor */
	TFH_VEC(struct made_stage) at; /* in the order in which the stages were made */
};

/* The file that makes a stage; the first row whose word is in the stage's type applies. */
static const char *constructor_of(const char *type)
{
	static const struct {
		const char *word, *file;
	} table[] = {
		{"FlatMap", "/tensorflow/python/data/ops/flat_map_op.py"},
		{"Interleave", "/tensorflow/python/data/ops/interleave_op.py"},
		{"Filter", "/tensorflow/python/data/ops/filter_op.py"},
		{"Generator", "/tensorflow/python/data/ops/from_generator_op.py"},
		{"Map", "/tensorflow/python/data/ops/map_op.py"},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		if (strstr(type, table[i].word))
			return table[i].file;
	return NULL;
}

/* Code that TensorFlow makes from a function of the program has lines of its own. */
static bool is_generated(const struct tfh_model_line *f)
{
	return strstr(f->file, "__autograph_generated_file") != NULL;
}

/* "outer_factory.<locals>.inner_factory.<locals>.tf__photo" is made from photo. */
static const char *own_name(const char *function)
{
	const char *made = strstr(function, ".tf__");

	return tfh_ends_with(function, "<lambda>") ? NULL
	       : made				   ? made + strlen(".tf__")
						   : function;
}

/* Innermost frame first. */
static int add_stack(struct stage_lines *m, const struct tfh_model_line *frame, uint32_t n)
{
	struct made_stage *at = NULL;
	uint32_t i = 0, by;

	while (i < n && !tfh_ends_with(frame[i].file, m->file))
		i++;
	for (by = i; by < n && (frame[by].library || is_generated(&frame[by])); by++)
		;
	if (by >= n)
		return 0;
	for (size_t k = 0; k < m->at.n && !at; k++)
		if (tfh_same_line(&m->at.v[k].line, &frame[by]))
			at = &m->at.v[k];
	if (!at) {
		if (m->at.n == TFH_VERDICT_LINES)
			return 0;
		if (TFH_PUSH(m->at, ((struct made_stage){.line = frame[by]})))
			return -ENOMEM;
		at = &m->at.v[m->at.n - 1];
	}
	for (uint32_t k = i; k-- > 0 && !at->function;)
		if (!frame[k].library || is_generated(&frame[k])) {
			at->function = own_name(frame[k].function);
			break;
		}
	return 0;
}

/* All samples: of `tfhook run`, then of the process itself. */
static int add_samples(struct stage_lines *m, const struct tfh_facts *facts)
{
	const struct tfh_feed *feed = facts->feed;
	const struct tfh_start *s = feed->start ? feed->start(feed->arg, facts->process) : NULL;
	struct tfh_model_line frame[TFH_VERDICT_FRAMES];
	int rc = 0;

	for (uint32_t i = 0; s && i < s->n && !rc; i++) {
		uint32_t n = tfh_start_frames(s, s->sample[i].place, frame, TFH_VERDICT_FRAMES);
		rc = add_stack(m, frame, n);
	}
	for (size_t i = 0; i < tfh_stack_samples_count(facts->samples) && !rc; i++) {
		struct tfh_seen_sample k = tfh_stack_samples_at(facts->samples, i);
		rc = add_stack(m, frame, tfh_frames_at(facts, k.place, frame));
	}
	return rc;
}

/* How many stages of the pipeline the constructor made, and how many of these are nearer to the
 * source than this one: their prefixes begin with its own. 0: in a pipeline with branches. */
static uint32_t count(const struct tfh_result *r, const char *file,
		      const struct tfh_input_stage *stage, uint32_t *before)
{
	size_t own = strlen(stage->prefix), length;
	uint32_t n = 0;

	*before = 0;
	for (uint32_t i = 0; i < r->n_input; i++) {
		const struct tfh_input_stage *x = &r->input[i];
		const char *other = constructor_of(x->name);
		if (!other || strcmp(other, file) != 0)
			continue;
		length = strlen(x->prefix);
		if (strncmp(x->prefix, stage->prefix, length < own ? length : own) != 0)
			return 0;
		n++;
		*before += length > own;
	}
	return n;
}

/* One line made all such stages that were seen; otherwise there must be a line for each, since a
 * pipeline is made from its source on. */
static const struct made_stage *choose(const struct stage_lines *m, const struct tfh_result *r,
				       const struct tfh_input_stage *stage)
{
	uint32_t before, n = count(r, m->file, stage, &before);

	if (m->at.n == 1)
		return &m->at.v[0];
	return m->at.n == n && before < n ? &m->at.v[before] : NULL;
}

int tfh_find_stage_line(const struct tfh_accounts *accounts, struct tfh_result *r)
{
	const struct tfh_input_stage *stage = NULL;
	enum tfh_cause cause = r->verdict.cause;
	struct stage_lines m = {.file = NULL};

	for (uint32_t i = 0; i < r->n_input && !stage; i++)
		stage = r->input[i].guilty ? &r->input[i] : NULL;
	m.file = stage ? constructor_of(stage->name) : NULL;
	if (!TFH_DETECT_STAGE_LINES || !m.file || r->found.line.file || cause == TFH_CAUSE_NONE ||
	    tfh_cause_part(cause) != TFH_PART_INPUT)
		return 0;
	int rc = add_samples(&m, accounts->facts);
	const struct made_stage *at = rc ? NULL : choose(&m, r, stage);
	if (at) {
		double s = r->found.cause_s[cause];
		r->found.line = (struct tfh_seen_line){.file = at->line.file,
						       .function = at->line.function,
						       .line = at->line.line,
						       .given = at->function,
						       .s_per_step = s,
						       .of_s = s,
						       .kind = TFH_LINE_MAKES};
	}
	free(m.at.v);
	return rc;
}
