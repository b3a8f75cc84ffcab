/* The run's tree: lines of text, nested objects of JSON. */
#include "report/run_tree.h"

#include <math.h>
#include <string.h>

#include "base/print.h"
#include "report/text_parts.h"
#include "report/words/words.h"

/* Words for one (NULL: tfh_outside()) and for several parts of a kind (%s is their number), and a
 * short name for all of them. */
static const struct {
	const char *one, *many, *all;
} words[TFH_BRANCH_COUNT] = {
	[TFH_BRANCH_BEFORE] = {NULL, NULL, "before 1st call"},
	[TFH_BRANCH_STARTUP] = {"start-up", NULL, "start-up"},
	[TFH_BRANCH_SKIP] = {"one skipped batch", "%s skipped batches", "skipped batches"},
	[TFH_BRANCH_EPOCH] = {"one epoch", "%s epochs", "epochs"},
	[TFH_BRANCH_LOOP] = {"one round of a loop", "%s rounds of a loop", "loops"},
	[TFH_BRANCH_TRAIN] = {"one training step", "%s training steps", "training steps"},
	[TFH_BRANCH_EVALUATE] = {"one evaluation step", "%s evaluation steps", "evaluation"},
	[TFH_BRANCH_PREDICT] = {"one prediction step", "%s prediction steps", "prediction"},
	[TFH_BRANCH_STEP] = {"one step", "%s steps", "steps"},
	[TFH_BRANCH_FIRST] = {"first step, beyond the usual", "first steps, beyond the usual",
			      "longer 1st step"},
	[TFH_BRANCH_CHECKPOINT] = {"checkpoint", "checkpoints", "checkpoints"},
	[TFH_BRANCH_BETWEEN] = {"between loops", NULL, "between loops"},
	[TFH_BRANCH_AFTER] = {NULL, NULL, "after last call"},
	[TFH_BRANCH_STALL] = {"stall", "stalls", "stalls"},
};

const char *tfh_branch_words(enum tfh_branch kind)
{
	return words[kind].all ? words[kind].all : "";
}

static bool is_loop(const struct tfh_part_of_run *p)
{
	return p->kind == TFH_BRANCH_SKIP ||
	       (p->kind >= TFH_BRANCH_EPOCH && p->kind <= TFH_BRANCH_STEP);
}

enum tfh_branch tfh_branch_shown(const struct tfh_result *r, uint32_t i)
{
	return i && i == tfh_loop_of_steps(r) ? TFH_BRANCH_STEP : r->tree[i].kind;
}

bool tfh_branch_hidden(const struct tfh_result *r, uint32_t i)
{
	const struct tfh_part_of_run *p = &r->tree[i];
	bool alone =
		i == p->parent + 1 && (i + 1 == r->n_tree || r->tree[i + 1].parent != p->parent);

	return i && alone && p->kind == TFH_BRANCH_BETWEEN && p->parent &&
	       p->parent == tfh_loop_of_steps(r);
}

const char *tfh_branch_does(const struct tfh_part_of_run *p)
{
	return tfh_inner_name(p->name);
}

static void label(char *out, size_t size, const struct tfh_result *r,
		  const struct tfh_part_of_run *p, enum tfh_branch kind)
{
	const char *many = words[kind].many;
	char count[TFH_TEXT];

	tfh_fmt_count(count, p->count);
	if (p->count == 1 || !many)
		snprintf(out, size, "%s", words[kind].one ? words[kind].one : tfh_outside(r, kind));
	else if (is_loop(p))
		snprintf(out, size, "%s %s", count, many + strlen("%s "));
	else
		snprintf(out, size, "%s", many);
}

/* "88.0 ms each   train_step", as far as the line has room. */
static void note(char *out, size_t size, const struct tfh_part_of_run *p)
{
	char each[TFH_TEXT], name[48];
	int n = 0;

	out[0] = '\0';
	if (!is_loop(p) || p->count < 2)
		return;
	n = snprintf(out, size, "   %s each", tfh_fmt_time(each, p->wall_s / (double)p->count));
	if (*p->name && n > 0 && (size_t)n < size)
		snprintf(out + n, size - (size_t)n, "   %s",
			 tfh_fmt_cut(name, sizeof(name), tfh_branch_does(p), 16));
}

uint32_t tfh_branch_depth(const struct tfh_result *r, uint32_t i)
{
	uint32_t depth = 0;

	for (; r->tree[i].parent != i; i = r->tree[i].parent)
		depth++;
	return depth;
}

void tfh_text_tree(const struct tfh_page *page)
{
	const struct tfh_result *r = page->r;
	char text[64], time[TFH_TEXT], more[96];

	if (r->n_tree < 2 || !(r->tree[0].wall_s > 0))
		return;
	tfh_heading(page, "WHERE THE RUN WENT (%s)", tfh_fmt_time(time, r->tree[0].wall_s));
	for (uint32_t i = 1; i < r->n_tree; i++) {
		const struct tfh_part_of_run *p = &r->tree[i];
		double share = p->wall_s / r->tree[0].wall_s;
		int indent = (int)(2 * tfh_branch_depth(r, i));
		if (share < TFH_REPORT_RUN_SHARE || indent > 12 || tfh_branch_hidden(r, i))
			continue;
		label(text, sizeof(text), r, p, tfh_branch_shown(r, i));
		note(more, sizeof(more), p);
		tfh_print(page->out, "%*s%-*s %8s %3.0f %%%s\n", indent, "", 36 - indent, text,
			  tfh_fmt_time(time, p->wall_s), share * 100, more);
	}
}

static void write_part(struct tfh_json *j, const struct tfh_result *r, uint32_t at)
{
	const struct tfh_part_of_run *p = &r->tree[at];

	tfh_json_object(j);
	tfh_json_kstr(j, "kind", tfh_branch_name(p->kind));
	tfh_json_kstr(j, "name", *p->name ? p->name : NULL);
	tfh_json_ku64(j, "count", p->count);
	tfh_json_ku64(j, "runs", p->runs);
	tfh_json_kf64(j, "begin_s", p->begin_s);
	tfh_json_kf64(j, "wall_s", p->wall_s);
	tfh_json_kf64(j, "share", r->tree[0].wall_s > 0 ? p->wall_s / r->tree[0].wall_s : NAN);
	tfh_json_key(j, "parts");
	tfh_json_array(j);
	for (uint32_t i = at + 1; i < r->n_tree; i++)
		if (r->tree[i].parent == at)
			write_part(j, r, i);
	tfh_json_end(j);
	tfh_json_end(j);
}

void tfh_json_tree(struct tfh_json *j, const struct tfh_result *r)
{
	if (!r->n_tree)
		return;
	tfh_json_key(j, "tree");
	write_part(j, r, 0);
}
