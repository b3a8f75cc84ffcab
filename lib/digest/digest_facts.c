/* The facts of a digest: what was run, with what software, how it ended, the verdict on the whole
 * run, and its confidence. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/priced.h"
#include "digest/digest_out.h"
#include "model/open/opening.h"

#define FACTS 8192u

struct fact_rows {
	struct tfh_digest_out *o;
	struct tfh_digest_key *row;
	uint32_t n;
};

static void say(struct fact_rows *x, const char *name, const char *value)
{
	if (value && x->n < FACTS)
		x->row[x->n++] = (struct tfh_digest_key){tfh_digest_add_text(x->o, name),
							 tfh_digest_add_text(x->o, value)};
}

static void say_of(struct fact_rows *x, const char *group, const char *name, const char *value)
{
	char whole[512];

	snprintf(whole, sizeof(whole), "%s.%s", group, name);
	say(x, whole, value);
}

static void say_number(struct fact_rows *x, const char *name, double value)
{
	char text[32];

	if (isfinite(value)) {
		tfh_json_format_double(text, value);
		say(x, name, text);
	}
}

static void say_number_of(struct fact_rows *x, const char *group, const char *name, double value)
{
	char whole[512];

	snprintf(whole, sizeof(whole), "%s.%s", group, name);
	say_number(x, whole, value);
}

/* ---- what was run ---- */

static void add_command(struct fact_rows *x, const struct tfh_run *run)
{
	const char *const *argv;
	uint32_t n = tfh_run_command(run, &argv);

	for (uint32_t i = 0; i < n && i < FACTS / 4; i++) {
		char name[16];
		snprintf(name, sizeof(name), "%u", i);
		say_of(x, "command", name, argv[i]);
	}
}

/* The members of a JSON object whose values are strings. */
static void add_texts(struct fact_rows *x, struct tfh_arena *arena, const char *group,
		      const char *p)
{
	if (!p || *p != '{')
		return;
	p = tfh_facts_blanks(p + 1);
	while (*p == '"' && x->n < FACTS / 2) {
		const char *name = tfh_facts_string(arena, &p), *value;
		p = tfh_facts_blanks(p);
		if (!name || *p != ':')
			return;
		p = tfh_facts_blanks(p + 1);
		value = tfh_facts_string(arena, &p);
		if (!value)
			return;
		say_of(x, group, name, value);
		p = tfh_facts_blanks(p);
		if (*p == ',')
			p = tfh_facts_blanks(p + 1);
	}
}

static void add_runjson(struct fact_rows *x, const struct tfh_run *run)
{
	static const char *const texts[] = {"host", "kernel", "cwd", "start_utc", "tfhook"};
	struct tfh_arena arena;

	tfh_arena_init(&arena, 16u << 20);
	const char *text =
		tfh_run_path(run) ? tfh_facts_text(&arena, tfh_run_path(run), "run.json") : NULL;
	for (size_t i = 0; text && i < sizeof(texts) / sizeof(*texts); i++) {
		const char *p = tfh_facts_value(text, texts[i]);
		say_of(x, "run", texts[i], p ? tfh_facts_string(&arena, &p) : NULL);
	}
	const char *cpus = text ? tfh_facts_value(text, "cpus") : NULL;
	if (cpus)
		say_number(x, "run.cpus", strtod(cpus, NULL));
	if (text)
		add_texts(x, &arena, "env", tfh_facts_value(text, "env"));
	tfh_arena_free(&arena);
}

static void add_software(struct fact_rows *x, const struct tfh_result *r)
{
	const struct tfh_process *p;

	tfh_run_processes(r->run, &p);
	p += r->process;
	for (uint32_t i = 0; i < p->n_software; i++)
		say_of(x, "software", p->software[i].name, p->software[i].version);
	for (uint32_t k = 0; k < tfh_priced_count; k++)
		if (p->priced >> k & 1)
			say_of(x, "priced", tfh_priced[k].variable, tfh_priced[k].value);
}

/* ---- how it went ---- */

static void add_verdict(struct fact_rows *x, const char *group, const struct tfh_verdict *v)
{
	char tier[2] = {v->tier, 0};

	say_of(x, group, "class", tfh_class_name(v->cls));
	say_of(x, group, "cause", tfh_cause_name(v->cause));
	say_of(x, group, "confidence", tfh_confidence_name(v->confidence));
	say_of(x, group, "tier", tier);
	say_number_of(x, group, "share", v->share);
}

static void add_line(struct fact_rows *x, const struct tfh_seen_line *line)
{
	char number[16];

	if (!line->file)
		return;
	snprintf(number, sizeof(number), "%u", line->line);
	say(x, "verdict.file", line->file);
	say(x, "verdict.line", number);
	say(x, "verdict.function", line->function);
}

static void add_run(struct fact_rows *x, const struct tfh_result *r)
{
	say_number(x, "wall_s", (double)tfh_run_wall_ns(r->run) * 1e-9);
	say_number(x, "start_ns", (double)tfh_run_start_realtime_ns(r->run));
	say(x, "end", tfh_end_name(r->end));
	say_number(x, "end.code", r->end_code);
	say_number(x, "ranks", r->ranks);
	say_number(x, "hosts", r->hosts);
	say(x, "steps.clock", tfh_step_clock_name(r->steps.clock));
	say(x, "steps.name", r->steps.clock_name);
	say_number(x, "steps.judged", (double)r->steps.count);
	say_number(x, "steps.warmup", (double)r->steps.warmup);
	say_number(x, "steps.total", (double)r->steps.total);
	say_number(x, "steps.median_s", r->steps.median_s);
	say_number(x, "steps.p95_s", r->steps.p95_s);
	say_number(x, "recurs_s", r->recurs_s);
	for (uint32_t i = 0; i < r->n_whatif; i++) {
		const struct tfh_whatif *w = &r->whatif[i];
		char group[64];
		snprintf(group, sizeof(group), "whatif.%s", tfh_remove_name(w->remove));
		say_number_of(x, group, "step_s", w->step_s);
		say_number_of(x, group, "low_s", w->low_s);
		say_number_of(x, group, "high_s", w->high_s);
		say_number_of(x, group, "saved_s", w->saved_s);
	}
}

static void add_quality(struct fact_rows *x, const struct tfh_result *r)
{
	const struct tfh_quality *q = &r->quality;

	say_number(x, "quality.events", (double)q->events);
	say_number(x, "quality.lost", (double)q->dropped);
	say_number(x, "quality.files", q->files);
	say_number(x, "quality.files_complete", q->files_complete);
	say_number(x, "quality.holes", q->holes);
	say_number(x, "quality.unattributed", q->unattributed_share);
	say_number(x, "quality.overhead", q->overhead_share);
	say_number(x, "quality.run_delay", q->run_delay_share);
	say(x, "quality.gpu_times", q->gpu_times);
	say(x, "quality.clean_end", q->clean_end ? "yes" : "no");
}

int tfh_digest_fill_facts(struct tfh_digest_out *o, const struct tfh_result *r, uint32_t critical)
{
	struct fact_rows x = {.o = o, .row = calloc(FACTS, sizeof(*x.row))};

	if (!x.row)
		return -ENOMEM;
	say(&x, "digest", "tfhook.digest/1");
	say(&x, "judge", tfh_judge_id());
	say_number(&x, "critical", critical);
	add_command(&x, r->run);
	add_runjson(&x, r->run);
	add_software(&x, r);
	add_verdict(&x, "verdict", &r->verdict);
	add_verdict(&x, "steady", &r->steady);
	add_line(&x, &r->found.line);
	if (r->lead)
		say(&x, "verdict.about", tfh_segment_name(r->recurring[r->lead - 1].kind));
	add_run(&x, r);
	add_quality(&x, r);
	int rc = tfh_digest_put(o, TFT_DKEY, &tfh_digest_keys, x.row, x.n);
	free(x.row);
	return rc;
}
