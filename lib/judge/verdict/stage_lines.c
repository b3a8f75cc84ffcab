/*
 * The lines that make the stages of a tf.data pipeline. TensorFlow's own threads run a stage,
 * without any Python if its function was traced; so what the program can change is where it makes
 * the stage.
 */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "judge/verdict/line_tree.h"

/* The file of the class of a stage; the first row whose word is in the stage's type applies. */
static const char *class_file(const char *type)
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

/* Innermost frame first. The program's frame that calls the library's frame at `i`; n: none. */
static uint32_t caller_of(const struct tfh_model_line *frame, uint32_t n, uint32_t i)
{
	while (i < n && (frame[i].library || is_generated(&frame[i])))
		i++;
	return i;
}

/* A stage that a function of the program returned for an element has no op of its own: the program
 * made the stage that calls the function. */
static uint32_t stack_of(const struct tfh_facts *facts, const struct tfh_input_stage *stage)
{
	int32_t at = -1;

	for (size_t i = 0; i < facts->stage.n && at < 0; i++)
		if (facts->stage.v[i].prefix == stage->prefix)
			at = (int32_t)i;
	for (; at >= 0; at = facts->stage.v[at].parent) {
		const struct tfh_stage_use *s = &facts->stage.v[at],
					   *up = s->parent < 0 ? NULL : &facts->stage.v[s->parent];
		uint32_t stack = tfh_stage_stack(facts, s);
		if (stack || !up ||
		    !(strstr(up->type, "FlatMap") || strstr(up->type, "Interleave")))
			return stack;
	}
	return 0;
}

static void find_line(const struct tfh_facts *facts, struct tfh_input_stage *stage)
{
	const struct tfh_feed *f = facts->feed;
	struct tfh_model_line frame[TFH_VERDICT_FRAMES];
	uint32_t stack = f->lines ? stack_of(facts, stage) : 0;
	uint32_t n = stack ? f->lines(f->arg, facts->process, stack, frame, TFH_VERDICT_FRAMES) : 0;
	uint32_t at = caller_of(frame, n, 0);

	if (at < n) {
		stage->file = frame[at].file;
		stage->function = frame[at].function;
		stage->line = frame[at].line;
	}
}

/* "outer_factory.<locals>.inner_factory.<locals>.tf__photo" is made from photo. */
static const char *own_name(const char *function)
{
	const char *made = strstr(function, ".tf__");

	return tfh_ends_with(function, "<lambda>") ? NULL
	       : made				   ? made + strlen(".tf__")
						   : function;
}

/* The function of the program that is traced for this stage; NULL: a sample shows none. Innermost
 * frame first. */
static const char *traced_function(const struct tfh_model_line *frame, uint32_t n,
				   const struct tfh_input_stage *stage, const char *file)
{
	uint32_t i = 0, by;

	while (i < n && !tfh_ends_with(frame[i].file, file))
		i++;
	by = caller_of(frame, n, i);
	if (by >= n || frame[by].line != stage->line || strcmp(frame[by].file, stage->file) != 0)
		return NULL;
	while (i-- > 0)
		if (!frame[i].library || is_generated(&frame[i]))
			return own_name(frame[i].function);
	return NULL;
}

/* In the samples of `tfhook run`, then of the process itself. */
static const char *given_function(const struct tfh_facts *facts,
				  const struct tfh_input_stage *stage)
{
	const char *file = class_file(stage->name);
	const struct tfh_feed *feed = facts->feed;
	const struct tfh_start *s = feed->start ? feed->start(feed->arg, facts->process) : NULL;
	struct tfh_model_line frame[TFH_VERDICT_FRAMES];
	const char *given = NULL;

	for (uint32_t i = 0; s && file && i < s->n && !given; i++) {
		uint32_t n = tfh_start_frames(s, s->sample[i].place, frame, TFH_VERDICT_FRAMES);
		given = traced_function(frame, n, stage, file);
	}
	for (size_t i = 0; file && i < tfh_stack_samples_count(facts->samples) && !given; i++) {
		struct tfh_seen_sample k = tfh_stack_samples_at(facts->samples, i);
		uint32_t n = tfh_frames_at(facts, k.place, frame);
		given = traced_function(frame, n, stage, file);
	}
	return given;
}

/* Between loops the line is that of the thread that waits: it calls a library to get a batch. */
static bool only_waits(const struct tfh_accounts *accounts, const struct tfh_result *r)
{
	return r->lead && accounts->facts->consumers && r->found.line.callee;
}

/* Without a line of what the slow stage runs, the verdict's line is where the stage is made. */
static void lead(const struct tfh_accounts *accounts, struct tfh_result *r,
		 const struct tfh_input_stage *slow)
{
	enum tfh_cause cause = r->verdict.cause;

	if (!slow->file || (r->found.line.file && !only_waits(accounts, r)) ||
	    cause == TFH_CAUSE_NONE || tfh_cause_part(cause) != TFH_PART_INPUT)
		return;
	double s = r->found.cause_s[cause];
	r->found.line = (struct tfh_seen_line){.file = slow->file,
					       .function = slow->function,
					       .line = slow->line,
					       .s_per_step = s,
					       .of_s = s,
					       .given = given_function(accounts->facts, slow),
					       .kind = TFH_LINE_MAKES};
}

void tfh_find_stage_lines(const struct tfh_accounts *accounts, struct tfh_result *r)
{
	for (uint32_t i = 0; i < r->n_input && i < TFH_VERDICT_STAGES && TFH_DETECT_STAGE_LINES;
	     i++) {
		find_line(accounts->facts, &r->input[i]);
		if (r->input[i].guilty)
			lead(accounts, r, &r->input[i]);
	}
}
