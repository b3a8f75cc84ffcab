/*
 * Compiling in a run in which no call was recorded, besides what the verdict is about: that of the
 * loop's first iterations, and of a few of the others, is what these take longer than most. It is
 * no step's usual time, but may be most of the run's.
 */
#include <stdlib.h>

#include "judge/result_make.h"
#include "judge/verdict/compiled_lines.h"
#include "judge/verdict/sampled.h"
#include "judge/verdict/sampled_loops.h"

static enum tfh_segment segment_of(const struct tfh_sampled_steps *steps, uint32_t sample)
{
	if (!steps->steps || sample < steps->first)
		return TFH_SEGMENT_STARTUP;
	return steps->step[sample] ? TFH_SEGMENT_WARMUP : TFH_SEGMENT_BETWEEN;
}

/* Divides the steps' part of the run's tree: what `count` of them took longer is a part before it.
 * 0 or -ENOMEM. */
static int divide_steps(struct tfh_result *r, double longer_s, uint64_t count)
{
	struct tfh_part_of_run *tree = tfh_result_alloc(r, r->n_tree + 1, sizeof(*tree));
	uint32_t n = 0;

	if (!tree)
		return -ENOMEM;
	for (uint32_t i = 0; i < r->n_tree; i++) {
		struct tfh_part_of_run part = r->tree[i];
		if (part.kind == TFH_BRANCH_TRAIN) {
			longer_s = longer_s < part.wall_s ? longer_s : part.wall_s;
			part.wall_s -= longer_s;
			tree[n++] = (struct tfh_part_of_run){.kind = TFH_BRANCH_FIRST,
							     .name = part.name,
							     .count = count,
							     .runs = part.runs,
							     .begin_s = part.begin_s,
							     .wall_s = longer_s};
		}
		tree[n++] = part;
	}
	r->tree = tree;
	r->n_tree = n;
	return 0;
}

int tfh_sampled_compiling(const struct tfh_start *s, const struct tfh_sampled_steps *steps,
			  bool in_verdict, double scale, struct tfh_result *r)
{
	struct tfh_compiling *out = &r->found.compiling;
	struct tfh_compiled_lines lines = {0};
	uint64_t longer = 0; /* steps */
	uint32_t before = UINT32_MAX;
	int rc = 0;

	*out = (struct tfh_compiling){0}; /* found without these steps */
	for (uint32_t i = 0; i < s->n && !rc; i++) {
		struct tfh_model_line frame[TFH_VERDICT_FRAMES];
		const struct tfh_start_sample *k = &s->sample[i];
		uint32_t n = tfh_start_frames(s, k->place, frame, TFH_VERDICT_FRAMES);
		enum tfh_role role = tfh_sampled_role(k, frame, n);
		enum tfh_segment kind = segment_of(steps, i);
		uint32_t step = steps->steps ? steps->step[i] : 0;
		if (!n || !tfh_role_compiles(role) ||
		    (in_verdict && (kind == TFH_SEGMENT_WARMUP || !steps->steps)))
			continue;
		out->s[kind] += k->ns * scale / 1e9;
		out->samples++;
		out->times += step != before;
		longer += kind == TFH_SEGMENT_WARMUP && step != before;
		before = step;
		rc = tfh_compiled_lines_add(&lines, frame, n, role, k->ns);
	}
	tfh_compiled_lines_keep(&lines, out);
	free(lines.at.v);
	if (!rc && longer && r->n_tree > 1)
		rc = divide_steps(r, out->s[TFH_SEGMENT_WARMUP], longer);
	return rc;
}
