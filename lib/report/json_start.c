#include "report/json_places.h"
#include "report/json_start.h"

#include "report/words/words.h"

static void write_states(struct tfh_json *j, const double share[TFT_STATE_COUNT])
{
	tfh_json_key(j, "states");
	tfh_json_object(j);
	for (int i = 0; i < TFT_STATE_COUNT; i++)
		if (share[i] > 0 && *tfh_state_words(i))
			tfh_json_kf64(j, tfh_state_words(i), share[i]);
	tfh_json_end(j);
}

static void write_part(struct tfh_json *j, const struct tfh_seen_start *s)
{
	tfh_json_object(j);
	tfh_json_kstr(j, "part", tfh_branch_name(s->kind));
	tfh_json_kf64(j, "wall_s", s->wall_s);
	tfh_json_ku64(j, "samples", s->samples);
	tfh_json_kstr(j, "why", s->why);
	write_states(j, s->state);
	tfh_json_key(j, "lines");
	tfh_json_array(j);
	for (uint32_t i = 0; i < s->n_line; i++) {
		const struct tfh_start_line *l = &s->line[i];
		tfh_json_object(j);
		tfh_json_line(j, l->file, l->line, l->function);
		tfh_json_kstr(j, "imports", l->imports);
		tfh_json_kf64(j, "share", l->share);
		tfh_json_ku64(j, "samples", l->samples);
		tfh_json_end(j);
	}
	tfh_json_end(j);
	tfh_json_end(j);
}

static void write_compiling(struct tfh_json *j, const struct tfh_compiling *c)
{
	double all = 0;

	tfh_json_key(j, "compiling");
	tfh_json_object(j);
	for (int i = 0; i < TFH_SEGMENT_COUNT; i++)
		all += c->s[i];
	tfh_json_kf64(j, "total_s", all);
	tfh_json_ku64(j, "times", c->times);
	tfh_json_ku64(j, "samples", c->samples);
	tfh_json_key(j, "where");
	tfh_json_object(j);
	for (int i = 0; i < TFH_SEGMENT_COUNT; i++)
		if (c->s[i] > 0)
			tfh_json_kf64(j, tfh_segment_name(i), c->s[i]);
	tfh_json_end(j);
	tfh_json_line(j, c->file, c->line, c->function);
	tfh_json_kstr(j, "compiler", c->callee_file);
	tfh_json_end(j);
}

void tfh_json_start(struct tfh_json *j, const struct tfh_result *r)
{
	tfh_json_key(j, "start");
	tfh_json_array(j);
	for (int i = 0; i < TFH_SEEN_STARTS; i++)
		if (r->found.start[i].kind > TFH_BRANCH_RUN)
			write_part(j, &r->found.start[i]);
	tfh_json_end(j);
	write_compiling(j, &r->found.compiling);
}

static void write_line(struct tfh_json *j, const struct tfh_sampled_line *l)
{
	tfh_json_object(j);
	tfh_json_line(j, l->file, l->line, l->function);
	tfh_json_kstr(j, "calls", l->callee);
	tfh_json_kf64(j, "share", l->share);
	tfh_json_ku64(j, "samples", l->samples);
	tfh_json_kstr(j, "cause", tfh_cause_name(l->cause));
	tfh_json_kstr(j, "state", tfh_state_words(l->state));
	tfh_json_end(j);
}

/* Begins the object of a function; false: there is none, and null is written. */
static bool begin_function(struct tfh_json *j, const char *key, const char *file,
			   const char *function)
{
	if (!tfh_json_kobject_if(j, key, file))
		return false;
	tfh_json_kstr(j, "file", file);
	tfh_json_kstr(j, "function", function);
	return true;
}

/* The same, with some of its lines. */
static bool begin_lines(struct tfh_json *j, const char *key, const char *file, const char *function,
			uint32_t first, uint32_t last)
{
	if (!begin_function(j, key, file, function))
		return false;
	tfh_json_ku64(j, "first_line", first);
	tfh_json_ku64(j, "last_line", last);
	return true;
}

static void write_loop(struct tfh_json *j, const struct tfh_sampled *s)
{
	if (begin_lines(j, "loop", s->file, s->function, s->first, s->last))
		tfh_json_end(j);
}

static void write_step_loop(struct tfh_json *j, const struct tfh_step_loop *l)
{
	if (!begin_lines(j, "step_loop", l->file, l->function, l->first, l->last))
		return;
	tfh_json_ku64(j, "times", l->times);
	tfh_json_kbool(j, "exact", l->exact);
	tfh_json_kbool(j, "counter", l->counter);
	tfh_json_end(j);
}

static void write_pool(struct tfh_json *j, const struct tfh_pool_wait *p)
{
	if (!begin_function(j, "pool", p->file, p->function))
		return;
	tfh_json_ku64(j, "line", p->line);
	tfh_json_kf64(j, "share", p->share);
	tfh_json_end(j);
}

void tfh_json_sampled(struct tfh_json *j, const struct tfh_result *r)
{
	const struct tfh_sampled *s = &r->found.sampled;

	if (!tfh_json_kobject_if(j, "sampled", s->samples))
		return;
	tfh_json_ku64(j, "pid", s->pid);
	tfh_json_ku64(j, "samples", s->samples);
	tfh_json_kf64(j, "wall_s", s->wall_s);
	tfh_json_kf64(j, "start_s", s->start_s);
	tfh_json_kf64(j, "running_without_gil", s->released);
	write_states(j, s->state);
	tfh_json_key(j, "causes");
	tfh_json_object(j);
	for (int c = 0; c < TFH_CAUSE_COUNT; c++)
		if (s->cause[c] > 0)
			tfh_json_kf64(j, tfh_cause_name((enum tfh_cause)c), s->cause[c]);
	tfh_json_end(j);
	tfh_json_key(j, "lines");
	tfh_json_array(j);
	for (uint32_t i = 0; i < s->n_line; i++)
		write_line(j, &s->line[i]);
	tfh_json_end(j);
	write_loop(j, s);
	write_step_loop(j, &s->loop);
	write_pool(j, &s->pool);
	tfh_json_kstr(j, "why", s->why);
	tfh_json_end(j);
}
