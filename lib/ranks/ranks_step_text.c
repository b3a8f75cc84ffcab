/* The slowest path of single steps, in words. */
#include <stdlib.h>
#include <string.h>

#include "base/print.h"
#include "ranks/ranks_parts.h"
#include "ranks/ranks_words.h"
#include "report/text_parts.h"

#define SHOWN 3u   /* steps on the first screen */
#define LISTED 16u /* ranks of a step */

struct words {
	char *out;
	size_t size, at;
};

__attribute__((format(printf, 2, 3))) static void say(struct words *w, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	int n = vsnprintf(w->out + w->at, w->size - w->at, format, args);
	va_end(args);
	w->at += n < 0 ? 0 : (size_t)n < w->size - w->at ? (size_t)n : w->size - w->at - 1;
}

/* "all ranks waited 2.01 s for rank 87 (...), which waited 1.90 s for rank 80 (...) in the tensor
 * group of ..." */
static void say_links(struct words *w, const struct tfh_ranks *job, const struct tfh_ranks_step *s)
{
	char group[TFH_RANKS_NAME], name[TFH_RANKS_NAME], time[TFH_TEXT];

	for (uint32_t i = 0; i < s->links; i++) {
		const struct tfh_ranks_link *l = &s->link[i];
		tfh_ranks_group(group, job, l->comm);
		tfh_ranks_name(name, job, l->rank);
		tfh_fmt_time(time, l->wait_s);
		if (i)
			say(w, ", which waited %s for %s in %s", time, name, group);
		else
			say(w, "%s waited %s for %s", group, time, name);
	}
}

static void say_rank(struct words *w, const struct tfh_ranks *job, const struct tfh_ranks_step *s)
{
	char name[TFH_RANKS_NAME], time[TFH_TEXT];
	const char *cause = tfh_ranks_cause_name(s->cause);
	bool last = s->links && s->link[s->links - 1].rank == s->rank;

	say(w, "%s%s took %s longer by itself, %s", s->links ? "; " : "",
	    last ? "that one" : tfh_ranks_name(name, job, s->rank), tfh_fmt_time(time, s->over_s),
	    cause ? cause : "of unknown cause");
}

void tfh_ranks_step_sentence(char *out, size_t size, const struct tfh_ranks *job,
			     const struct tfh_ranks_step *s)
{
	struct words w = {out, size, 0};
	char n[TFH_TEXT], time[TFH_TEXT], usual[TFH_TEXT], group[TFH_RANKS_NAME];

	say(&w, "step %s took %s, usually %s: ", tfh_fmt_count(n, s->index),
	    tfh_fmt_time(time, s->wall_s), tfh_fmt_time(usual, job->usual_s));
	say_links(&w, job, s);
	if (s->rank != UINT32_MAX)
		say_rank(&w, job, s);
	if (s->comm != UINT32_MAX)
		say(&w, "%san exchange of %s took %s once all were there, usually %s",
		    s->links || s->rank != UINT32_MAX ? "; " : "",
		    tfh_ranks_group(group, job, s->comm), tfh_fmt_time(time, s->transfer_s),
		    tfh_fmt_time(usual, job->comm[s->comm].transfer_s));
	if (s->rank == UINT32_MAX && s->comm == UINT32_MAX)
		say(&w,
		    s->links ? "; no rank took as much longer by itself" : "no rank stands out");
}

static bool is_alike(const struct tfh_ranks_step *a, const struct tfh_ranks_step *b)
{
	return a->rank == b->rank && a->cause == b->cause && a->comm == b->comm;
}

void tfh_ranks_slowest_steps(const struct tfh_page *page, const struct tfh_ranks *job, bool all)
{
	uint32_t shown = 0;
	char text[1536];

	for (uint32_t i = 0; i < job->steps_kept && (all || shown < SHOWN); i++) {
		const struct tfh_ranks_step *s = &job->slowest[i];
		uint32_t alike = 0, before = 0;
		for (uint32_t k = 0; k < job->steps_kept; k++) {
			alike += k > i && is_alike(s, &job->slowest[k]);
			before += k < i && is_alike(s, &job->slowest[k]);
		}
		if (before)
			continue;
		if (!shown++)
			tfh_heading(page, job->asked ? "STEP" : "SLOWEST STEPS");
		tfh_ranks_step_sentence(text, sizeof(text), job, s);
		if (alike)
			snprintf(text + strlen(text), sizeof(text) - strlen(text),
				 "; likewise in %u other slow step%s", alike,
				 alike == 1 ? "" : "s");
		tfh_wrap(page, "  ", "    ", text);
	}
}

/* ---- the step that was asked for ---- */

struct by_over {
	double over_s;
	uint32_t rank;
};

static int longest_first(const void *a, const void *b)
{
	const struct by_over *x = a, *y = b;

	return x->over_s != y->over_s ? (x->over_s > y->over_s ? -1 : 1)
				      : (x->rank > y->rank) - (x->rank < y->rank);
}

static void print_ranks(FILE *out, const struct tfh_ranks *job)
{
	struct by_over *v = malloc((job->n + 1u) * sizeof(*v));
	uint32_t n = 0;

	for (uint32_t i = 0; v && i < job->n; i++)
		if (job->rank[i].in_step->wall_s > 0)
			v[n++] = (struct by_over){
				tfh_ranks_over(&job->rank[i], job->rank[i].in_step), i};
	if (n)
		qsort(v, n, sizeof(*v), longest_first);
	tfh_print(out, "\n%7s %-24s %5s %9s %9s %9s  %s\n", "RANK", "HOST", "LOCAL", "STEP", "OWN",
		  "LONGER", "CAUSE");
	for (uint32_t i = 0; i < n && i < LISTED; i++) {
		const struct tfh_ranks_rank *r = &job->rank[v[i].rank];
		char step[TFH_TEXT], own[TFH_TEXT], over[TFH_TEXT], host[64];
		double s;
		const char *cause = tfh_ranks_cause_name(tfh_ranks_over_cause(r, r->in_step, &s));
		tfh_print(out, "%7d %-24s %5d %9s %9s %9s  %s\n", r->rank,
			  tfh_fmt_cut(host, sizeof(host), job->host[r->host].name, 24), r->local,
			  tfh_fmt_time(step, r->in_step->wall_s),
			  tfh_fmt_time(own, r->in_step->own_s), tfh_fmt_time(over, v[i].over_s),
			  cause ? cause : "");
	}
	if (n > LISTED)
		tfh_print(out, "  ... %u more ranks\n", n - LISTED);
	free(v);
}

void tfh_ranks_step_text(FILE *out, const struct tfh_ranks *job,
			 const struct tfh_ranks_style *style)
{
	const struct tfh_page page = {.out = out,
				      .style = {.color = style->color, .columns = style->columns}};

	tfh_ranks_slowest_steps(&page, job, true);
	print_ranks(out, job);
}
