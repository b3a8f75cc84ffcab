/* The report on a job of many ranks: who keeps the others waiting, and which ranks are missing,
 * died or hang. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/print.h"
#include "base/text.h"
#include "ranks/ranks_parts.h"
#include "ranks/ranks_words.h"
#include "report/text_parts.h"

#define FINDINGS 8u /* on the first screen */
#define ROWS 8u	    /* of the heat map there */
#define LISTED 8u   /* ranks in a sentence */

static void title(const struct tfh_page *page, const struct tfh_ranks *job)
{
	char n[TFH_TEXT], hosts[TFH_TEXT], steps[TFH_TEXT], step[TFH_TEXT], wall[TFH_TEXT];

	tfh_tinted(page, TFH_BOLD, "%s", tfh_file_of(job->command ? job->command : ""));
	tfh_print(page->out, "   %s rank%s on %s host%s", tfh_fmt_count(n, job->n),
		  job->n == 1 ? "" : "s", tfh_fmt_count(hosts, job->hosts),
		  job->hosts == 1 ? "" : "s");
	if (job->n)
		tfh_print(page->out, "   %s steps of %s", tfh_fmt_count(steps, job->steps / job->n),
			  tfh_fmt_time(step, job->step_s));
	if (job->wall_s > 0)
		tfh_print(page->out, "   %s", tfh_fmt_time(wall, job->wall_s));
	tfh_put("\n", page->out);
}

static void line(const struct tfh_page *page, const char *text)
{
	tfh_wrap(page, "  ", "    ", text);
}

/* ---- ranks that are missing, died or hang ---- */

/* "3 and 17", "3, 17, 21 and 5 more" */
static void list(char *out, size_t size, const uint32_t *v, uint32_t n)
{
	size_t at = 0;

	for (uint32_t i = 0; i < n && i < LISTED && at < size; i++) {
		bool last = i && i + 1 == n;
		at += (size_t)snprintf(out + at, size - at, "%s%u",
				       !i     ? ""
				       : last ? " and "
					      : ", ",
				       v[i]);
	}
	if (n > LISTED && at < size)
		snprintf(out + at, size - at, " and %u more", n - LISTED);
}

static bool died(const struct tfh_ranks_rank *r)
{
	return r->end == TFH_END_SIGNAL || (r->end == TFH_END_EXIT && r->code);
}

/* "rank 3 (a) died of signal 11, 1.20 s before the others, in read for 1 s, at load.py:7" */
static void dead_line(char *out, size_t size, const struct tfh_ranks *job, uint32_t rank,
		      double sooner_s)
{
	const struct tfh_ranks_rank *r = &job->rank[rank];
	char name[TFH_RANKS_NAME], time[TFH_TEXT], sooner[64] = "";

	if (sooner_s >= TFH_RANKS_SOONER_S)
		snprintf(sooner, sizeof(sooner), ", %s before the others",
			 tfh_fmt_time(time, sooner_s));
	snprintf(out, size,
		 r->end == TFH_END_SIGNAL ? "%s died of signal %d%s" : "%s failed: exit code %d%s",
		 tfh_ranks_name(name, job, rank), r->code, sooner);
	size_t at = strlen(out);
	if (!r->open || at + 2 >= size)
		return;
	strcpy(out + at, ", ");
	tfh_ranks_open_call(out + at + 2, size - at - 2, r);
}

static void print_dead(const struct tfh_page *page, const struct tfh_ranks *job)
{
	uint32_t n = 0, first = 0;
	double heard = INFINITY, next = INFINITY;
	char text[512];

	for (uint32_t i = 0; i < job->n; i++) {
		const struct tfh_ranks_rank *r = &job->rank[i];
		double at = tfh_ranks_time(job, r->host, r->heard_ns);
		if (!died(r))
			continue;
		n++;
		next = fmin(next, fmax(at, heard));
		first = at < heard ? i : first;
		heard = fmin(heard, at);
	}
	if (!n)
		return;
	dead_line(text, sizeof(text), job, first, n > 1 ? next - heard : 0);
	if (n > 1 && next - heard < TFH_RANKS_SOONER_S)
		snprintf(text, sizeof(text),
			 "%u ranks did not end by themselves, and none of them clearly before the "
			 "others",
			 n);
	else if (n > 1)
		snprintf(text + strlen(text), sizeof(text) - strlen(text),
			 "; %u others did not end by themselves", n - 1);
	line(page, text);
}

static void print_restarted(const struct tfh_page *page, const struct tfh_ranks *job)
{
	uint32_t again = 0, first = 0;
	char text[256], name[TFH_RANKS_NAME];

	for (uint32_t i = job->n; i--;)
		if (job->rank[i].processes > 1) {
			again++;
			first = i;
		}
	if (!again)
		return;
	snprintf(text, sizeof(text), "%u rank%s restarted: %s had %u processes", again,
		 again == 1 ? " was" : "s were", tfh_ranks_name(name, job, first),
		 job->rank[first].processes);
	line(page, text);
}

static void print_generations(const struct tfh_page *page, const struct tfh_ranks *job)
{
	char text[512];

	for (uint32_t i = 0; i < job->generations && i < LISTED; i++) {
		tfh_ranks_generation_sentence(text, sizeof(text), job, i);
		line(page, text);
	}
	if (job->generations > LISTED)
		tfh_print(page->out, "  ... %u more starts\n", job->generations - LISTED);
}

static void print_missing(const struct tfh_page *page, const struct tfh_ranks *job)
{
	char text[512], some[160];

	if (job->n_missing) {
		list(some, sizeof(some), job->missing, job->n_missing);
		snprintf(text, sizeof(text), "%u of %u ranks have no digest: %s", job->n_missing,
			 job->world, some);
		line(page, text);
	}
	if (job->unread) {
		snprintf(text, sizeof(text), "%u digest%s not read: %.300s", job->unread,
			 job->unread == 1 ? "" : "s", job->unread_why ? job->unread_why : "");
		line(page, text);
	}
	if (job->others) {
		snprintf(text, sizeof(text), "%u digest%s of another job left out: %.400s",
			 job->others, job->others == 1 ? "" : "s", job->others_what);
		line(page, text);
	}
}

static bool any_lost(const struct tfh_ranks *job)
{
	bool any = job->hangs || job->n_missing || job->unread || job->others || job->generations;

	for (uint32_t i = 0; i < job->n && !any; i++)
		any = died(&job->rank[i]) || job->rank[i].processes > 1;
	return any;
}

static void lost(const struct tfh_page *page, const struct tfh_ranks *job)
{
	char text[1024];

	if (!any_lost(job))
		return;
	tfh_heading(page, "MISSING, DEAD OR HANGING");
	for (uint32_t i = 0; i < job->hangs && i < LISTED; i++) {
		tfh_ranks_hang_sentence(text, sizeof(text), job, &job->hang[i]);
		line(page, text);
	}
	if (job->hangs > LISTED)
		tfh_print(page->out, "  ... %u more hang\n", job->hangs - LISTED);
	print_dead(page, job);
	print_missing(page, job);
	if (!job->generations)
		print_restarted(page, job);
	print_generations(page, job);
}

/* ---- who makes the others wait ---- */

static void slow(const struct tfh_page *page, const struct tfh_ranks *job, bool all)
{
	char text[512], wait[TFH_TEXT], share[TFH_TEXT];

	tfh_heading(page, "WHAT KEEPS OTHER RANKS WAITING");
	if (!isnan(job->wait_s)) {
		snprintf(text, sizeof(text), "a usual rank waits %s a step (%s) for the last one",
			 tfh_fmt_time(wait, job->wait_s),
			 tfh_fmt_share(share, job->wait_s / job->step_s));
		line(page, text);
	}
	for (uint32_t i = 0; i < job->findings && (all || i < FINDINGS); i++) {
		tfh_ranks_sentence(text, sizeof(text), job, &job->finding[i]);
		line(page, text);
	}
	if (!all && job->findings > FINDINGS)
		tfh_print(page->out, "  ... %u more: tfhook report --all\n",
			  job->findings - FINDINGS);
	if (!job->findings)
		line(page, "no rank, host, rail or switch stands out");
}

/* "rank 3 (a) waits 40.0 ms for rank 8 (b) in the data group of ranks 0 to 120" */
static void path(const struct tfh_page *page, const struct tfh_ranks *job)
{
	char text[512], from[TFH_RANKS_NAME], to[TFH_RANKS_NAME], group[TFH_RANKS_NAME],
		wait[TFH_TEXT];

	for (uint32_t i = 0; i + 1 < job->path_n; i++) {
		snprintf(text, sizeof(text), "%s waits %s for %s in %s",
			 tfh_ranks_name(from, job, job->path[i]),
			 tfh_fmt_time(wait, job->comm[job->path_comm[i]].last_s),
			 tfh_ranks_name(to, job, job->path[i + 1]),
			 tfh_ranks_group(group, job, job->path_comm[i]));
		line(page, text);
	}
}

/* ---- groups and clocks ---- */

static void groups(const struct tfh_page *page, const struct tfh_ranks *job)
{
	char text[256], n[TFH_TEXT], size[TFH_TEXT], took[TFH_TEXT];
	double *took_s = malloc((job->comms + 1u) * sizeof(*took_s));

	for (uint32_t from = 0; from < job->comms && took_s; from++) {
		const struct tfh_ranks_comm *c = &job->comm[from];
		uint32_t alike = 0, shown = 0, timed = 0;
		for (uint32_t i = 0; i < job->comms; i++) {
			bool same = job->comm[i].kind == c->kind && job->comm[i].ranks == c->ranks;
			alike += same;
			if (same && !isnan(job->comm[i].transfer_s))
				took_s[timed++] = job->comm[i].transfer_s;
			shown += same && i < from;
		}
		if (shown || c->ranks < 2)
			continue;
		int at = snprintf(text, sizeof(text), "%-9s %s of %s ranks",
				  tfh_ranks_kind_name(c->kind), tfh_fmt_count(n, alike),
				  tfh_fmt_count(size, c->ranks));
		if (c->stride > 1)
			at += snprintf(text + at, sizeof(text) - (size_t)at, ", every %uth",
				       c->stride);
		if (timed)
			snprintf(text + at, sizeof(text) - (size_t)at,
				 "; an exchange takes %s once all are there",
				 tfh_fmt_time(took, tfh_ranks_median(took_s, timed)));
		line(page, text);
	}
	free(took_s);
}

static void clocks(const struct tfh_page *page, const struct tfh_ranks *job)
{
	double most = 0, drift = 0, off = 0;
	uint32_t n = 0;
	char text[256], a[TFH_TEXT], b[TFH_TEXT];

	for (uint32_t h = 0; h < job->hosts; h++) {
		const struct tfh_ranks_host *x = &job->host[h];
		if (!x->aligned)
			continue;
		n++;
		most = fmax(most, fabs(x->offset_s));
		drift = fmax(drift, fabs(x->drift));
		off = fmax(off, x->residual_s);
	}
	if (job->hosts < 2)
		return;
	if (n < 2)
		snprintf(text, sizeof(text),
			 "clocks   not aligned: no exchange is known on two hosts");
	else
		snprintf(text, sizeof(text),
			 "clocks   %u of %u hosts aligned: up to %s and %.1f us a second apart, to "
			 "+-%s",
			 n, job->hosts, tfh_fmt_time(a, most), drift * 1e6, tfh_fmt_time(b, off));
	line(page, text);
}

void tfh_ranks_sentences(FILE *out, const struct tfh_ranks *job,
			 const struct tfh_ranks_style *style)
{
	const struct tfh_page page = {.out = out,
				      .style = {.color = style->color, .columns = style->columns}};

	title(&page, job);
	lost(&page, job);
	slow(&page, job, style->all);
	path(&page, job);
	tfh_ranks_slowest_steps(&page, job, style->all);
	/* The largest communicator comes first. */
	if (job->hosts > 1 || (job->comms && job->comm[0].ranks > 1))
		tfh_heading(&page, "GROUPS");
	groups(&page, job);
	clocks(&page, job);
}

void tfh_ranks_text(FILE *out, const struct tfh_ranks *job, const struct tfh_ranks_style *style)
{
	const struct tfh_page page = {.out = out,
				      .style = {.color = style->color, .columns = style->columns}};

	tfh_ranks_sentences(out, job, style);
	tfh_heading(&page, "RANKS OVER TIME");
	tfh_ranks_map(out, job, style->all ? 64 : ROWS, (unsigned)tfh_page_columns(&page));
}

void tfh_ranks_table(FILE *out, const struct tfh_ranks *job)
{
	tfh_print(out, "%7s %-24s %5s %9s %9s %9s %9s %9s %6s\n", "RANK", "HOST", "LOCAL", "STEPS",
		  "STEP", "OWN", "LATE", "HELD", "LAST");
	for (uint32_t i = 0; i < job->n; i++) {
		const struct tfh_ranks_rank *r = &job->rank[i];
		char step[TFH_TEXT], own[TFH_TEXT], late[TFH_TEXT], held[TFH_TEXT], last[TFH_TEXT],
			host[64];
		double n = r->steps ? (double)r->steps : NAN;
		tfh_print(out, "%7d %-24s %5d %9llu %9s %9s %9s %9s %6s\n", r->rank,
			  tfh_fmt_cut(host, sizeof(host), job->host[r->host].name, 24), r->local,
			  (unsigned long long)r->steps, tfh_fmt_time(step, r->wall_s / n),
			  tfh_fmt_time(own, r->own_s / n), tfh_fmt_time(late, r->late_s),
			  tfh_fmt_time(held, r->held_s),
			  isnan(r->last) ? TFH_NOT_MEASURED : tfh_fmt_share(last, r->last));
	}
}
