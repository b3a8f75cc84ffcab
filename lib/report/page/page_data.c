/* Ranks, the machine, and what the result is based on. */
#include <math.h>
#include <string.h>

#include "base/meters.h"
#include "base/priced.h"
#include "base/print.h"
#include "report/page/page_parts.h"
#include "report/text_parts.h"

/* ---- ranks ---- */

static void write_rank_parts(const struct tfh_html_page *s)
{
	char heads[256] = "rank";
	size_t n = strlen(heads);

	for (int p = 0; p < TFH_PART_COUNT; p++)
		n += (size_t)snprintf(heads + n, sizeof(heads) - n, "|%s",
				      tfh_part_words((enum tfh_part)p));
	tfh_html_table(s->out, "Where a step of each rank goes", heads);
	for (uint32_t i = 0; i < s->r->n_rank; i++) {
		tfh_put("<tr class=\"heat\">", s->out);
		tfh_html_number(s->out, s->r->rank[i].rank);
		for (int p = 0; p < TFH_PART_COUNT; p++)
			tfh_html_time(s->out, s->r->rank[i].breakdown[p]);
		tfh_html_row_end(s->out);
	}
	tfh_html_table_end(s->out);
}

static void write_rank_end(const struct tfh_html_page *s, const struct tfh_rank *k)
{
	const struct tfh_process *p;
	char text[TFH_TEXT];

	tfh_run_processes(s->r->run, &p);
	p += k->process;
	if (p->end_known)
		tfh_html(s->out, "<td class=\"t\" data-v=\"%d\">%s</td>", p->end_code,
			 tfh_end_text(text, p));
	else
		tfh_html_text(s->out, "");
}

void tfh_page_ranks(const struct tfh_html_page *s)
{
	tfh_page_curves(s);
	tfh_html_table(
		s->out, NULL,
		"rank|<host|<class|<cause|share|<tier|steps|mean step|waits for others|late|waited "
		"for|silent at the end|<ended by|<");
	for (uint32_t i = 0; i < s->r->n_rank; i++) {
		const struct tfh_rank *k = &s->r->rank[i];
		char tier[2] = {k->tier, 0};
		tfh_html(s->out, "<tr%s>", k->straggler ? " class=\"guilty\"" : "");
		tfh_html_number(s->out, k->rank);
		tfh_html_text(s->out, k->host);
		tfh_html_text(s->out, tfh_class_name(k->cls));
		tfh_html_text(s->out, tfh_cause_name(k->cause));
		tfh_html_share(s->out, k->share);
		tfh_html_text(s->out, tier);
		tfh_html_count(s->out, k->steps);
		tfh_html_time(s->out, k->step_s);
		tfh_html_time(s->out, k->jitter_s);
		tfh_html_time(s->out, k->late_s);
		tfh_html_time(s->out, k->held_s);
		tfh_html_time(s->out, k->silent_s);
		write_rank_end(s, k);
		tfh_html(s->out, "<td class=\"t\">%s%s%s</td>",
			 k->process == s->r->process ? "this page's rank " : "",
			 k->straggler ? "the others wait for it " : "",
			 k->closed ? "" : "did not end by itself");
		tfh_html_row_end(s->out);
	}
	tfh_html_table_end(s->out);
	tfh_html_note(
		s->out,
		"Late: behind the first rank at exchanges, on average; waited for: of it, all "
		"others were there.");
	write_rank_parts(s);
}

/* ---- the machine ---- */

static void write_value(const struct tfh_html_page *s, const char *unit, double v)
{
	if (!strcmp(unit, "bytes"))
		tfh_html_bytes(s->out, v);
	else if (!strcmp(unit, "bytes/s"))
		tfh_html_rate(s->out, v);
	else if (!strcmp(unit, "share"))
		tfh_html_share(s->out, v);
	else
		tfh_html_mean(s->out, v);
}

void tfh_page_machine(const struct tfh_html_page *s)
{
	const struct tfh_meter_line *l;
	uint32_t n = tfh_run_meters(s->r->run, s->r->process, &l);

	tfh_put("<div class=\"chart charts\" id=\"chart-machine\"></div>\n", s->out);
	tfh_html_table(s->out, "Read once a second",
		       "<|device|mean|least|most|<unit|read from|every");
	for (; n--; l++) {
		const char *unit = tfh_meters[l->meter].value[l->value].unit;
		tfh_html(s->out, "<tr%s><th scope=\"row\">%s</th>",
			 l->most > 0 ? "" : " class=\"idle\"",
			 tfh_meters[l->meter].value[l->value].name);
		if (l->device >= 0)
			tfh_html_number(s->out, l->device);
		else
			tfh_put("<td class=\"na\">-</td>", s->out);
		write_value(s, unit, l->mean);
		write_value(s, unit, l->least);
		write_value(s, unit, l->most);
		tfh_html_text(s->out, unit);
		tfh_html_time(s->out, (double)l->t0 / 1e9);
		tfh_html_time(s->out, (double)l->width_ns / 1e9);
		tfh_html_row_end(s->out);
	}
	tfh_html_table_end(s->out);
}

/* ---- what the result is based on ---- */

static void count_row(const struct tfh_html_page *s, const char *name, uint64_t n)
{
	tfh_html_row(s->out, name);
	tfh_html_count(s->out, n);
	tfh_html_row_end(s->out);
}

static void share_row(const struct tfh_html_page *s, const char *name, double share)
{
	tfh_html_row(s->out, name);
	tfh_html_share(s->out, share);
	tfh_html_row_end(s->out);
}

static void text_row(const struct tfh_html_page *s, const char *name, const char *text)
{
	tfh_html_row(s->out, name);
	tfh_html_text(s->out, text);
	tfh_html_row_end(s->out);
}

static void write_quality(const struct tfh_html_page *s)
{
	const struct tfh_quality *q = &s->r->quality;
	const struct tfh_verdict *v = &s->r->verdict, *k = &s->r->steady;
	char tier[2] = {v->tier, 0};

	tfh_html_table(s->out, "The verdict and its data", "<|<");
	share_row(s, "share of the verdict", v->share);
	text_row(s, "the steps by themselves", tfh_class_name(k->cls));
	text_row(s, "... their cause", tfh_cause_name(k->cause));
	text_row(s, "... how sure", tfh_confidence_name(k->confidence));
	share_row(s, "... share", k->share);
	text_row(s, "tier", tier);
	text_row(s, "device times", q->gpu_times);
	if (q->graphs)
		text_row(s, "graphs", q->graphs);
	count_row(s, "events", q->events);
	count_row(s, "records lost", q->dropped);
	count_row(s, "places where records are missing", q->holes);
	count_row(s, "names that did not fit", q->unnamed);
	count_row(s, "functions looked up and not recorded", q->unhooked);
	for (uint32_t i = 0; i < q->unhooked; i++)
		text_row(s, "", q->unhooked_names[i]);
	share_row(s, "of a step unattributed", q->unattributed_share);
	share_row(s, "recording cost", q->overhead_share);
	if (q->device_times_share > 0)
		share_row(s, "device times: the recorder's thread", q->device_times_share);
	if (q->cupti_share > 0)
		share_row(s, "device times: CUPTI, as it reports", q->cupti_share);
	share_row(s, "threads waited for processors", q->run_delay_share);
	text_row(s, "clock", q->clock);
	tfh_html_row(s->out, "clock off by at most");
	tfh_html_time(s->out, q->clock_residual_s);
	tfh_html_row_end(s->out);
	count_row(s, "files", q->files);
	count_row(s, "of them complete", q->files_complete);
	text_row(s, "the recorder ended by itself", q->clean_end ? "yes" : "no");
	tfh_html_table_end(s->out);
}

static void write_job(const struct tfh_html_page *s)
{
	const struct tfh_result *r = s->r;
	const char *const *argv;
	uint32_t argc = tfh_run_command(r->run, &argv);

	tfh_html_table(s->out, "The job", "<|<");
	tfh_html_row(s->out, "command");
	tfh_put("<td class=\"t\"><code>", s->out);
	for (uint32_t i = 0; i < argc; i++)
		tfh_html(s->out, "%s%s", i ? " " : "", argv[i]);
	tfh_put("</code></td>", s->out);
	tfh_html_row_end(s->out);
	text_row(s, "host", tfh_run_host(r->run));
	text_row(s, "read from", tfh_source_words(tfh_run_source(r->run)));
	tfh_html_row(s->out, "wall time");
	tfh_html_time(s->out, (double)tfh_run_wall_ns(r->run) * 1e-9);
	tfh_html_row_end(s->out);
	count_row(s, "ranks", r->ranks);
	count_row(s, "of them recorded", r->ranks_seen);
	count_row(s, "hosts", r->hosts);
	text_row(s, "ended", tfh_end_name(r->end));
	if (r->end == TFH_END_EXIT || r->end == TFH_END_SIGNAL) {
		tfh_html_row(s->out, r->end == TFH_END_EXIT ? "exit code" : "signal");
		tfh_html_number(s->out, r->end_code);
		tfh_html_row_end(s->out);
	}
	tfh_html_table_end(s->out);
}

static void write_open_calls(const struct tfh_html_page *s)
{
	const struct tfh_thread_info *threads;
	const struct tfh_in_flight *open;
	uint32_t n_threads = tfh_run_threads(s->r->run, &threads);
	uint32_t n = tfh_run_in_flight(s->r->run, &open);

	if (!n)
		return;
	tfh_html_table(s->out, "Calls that had not returned when the recording ended",
		       "<function|<|thread|rank|for");
	for (uint32_t i = 0; i < n; i++) {
		tfh_html_row(s->out, open[i].fn);
		tfh_html_text(s->out, open[i].detail);
		tfh_html_number(s->out, open[i].thread < n_threads
						? (int64_t)threads[open[i].thread].tid
						: -1);
		tfh_html_number(s->out, tfh_report_rank(s->r, open[i].process));
		tfh_html_time(s->out, open[i].open_s);
		tfh_html_row_end(s->out);
	}
	tfh_html_table_end(s->out);
}

static void count_cell(const struct tfh_html_page *s, bool known, uint64_t n)
{
	if (known)
		tfh_html_count(s->out, n);
	else
		tfh_put("<td class=\"na\">n/a</td>", s->out);
}

/* Threads with recorded calls, as in the JSON. */
static void write_threads(const struct tfh_html_page *s)
{
	const struct tfh_thread_info *t;
	bool any = false;

	for (uint32_t n = tfh_run_threads(s->r->run, &t); n--; t++) {
		if (t->process != s->r->process || !t->index || !tfh_thread_sampled(t))
			continue;
		if (!any)
			tfh_html_table(s->out,
				       "What the kernel counted for each thread that made calls",
				       "<thread|<name|CPU time|waited for a CPU|minor faults|"
				       "major faults|voluntary switches|forced switches");
		any = true;
		tfh_put("<tr>", s->out);
		tfh_html_number(s->out, t->tid);
		tfh_html_text(s->out, t->name);
		tfh_html_time(s->out, t->timed ? t->run_s : NAN);
		tfh_html_time(s->out, t->timed ? t->delay_s : NAN);
		count_cell(s, t->faults_known, t->minor_faults);
		count_cell(s, t->faults_known, t->major_faults);
		count_cell(s, t->switches_known, t->voluntary_switches);
		count_cell(s, t->switches_known, t->forced_switches);
		tfh_html_row_end(s->out);
	}
	if (any)
		tfh_html_table_end(s->out);
}

static void write_software(const struct tfh_html_page *s)
{
	const struct tfh_process *p;

	if (tfh_run_processes(s->r->run, &p) <= s->r->process)
		return;
	p += s->r->process;
	if (p->n_software)
		tfh_html_table(s->out, "Software", "<|<version|<file");
	for (uint32_t i = 0; i < p->n_software; i++) {
		tfh_html_row(s->out, p->software[i].name);
		tfh_html_text(s->out, p->software[i].version);
		tfh_html_text(s->out, p->software[i].path);
		tfh_html_row_end(s->out);
	}
	if (p->n_software)
		tfh_html_table_end(s->out);
	if (!p->priced)
		return;
	tfh_html_table(s->out, "Settings that cost time", "<variable|<value|<cost");
	for (uint32_t i = 0; i < tfh_priced_count; i++) {
		if (!(p->priced >> i & 1))
			continue;
		tfh_html_row(s->out, tfh_priced[i].variable);
		tfh_html_text(s->out, tfh_priced[i].value);
		tfh_html_text(s->out, tfh_priced[i].sentence);
		tfh_html_row_end(s->out);
	}
	tfh_html_table_end(s->out);
}

static void write_xprof(const struct tfh_html_page *s)
{
	if (isnan(s->r->xprof[0]))
		return;
	tfh_html_table(s->out, "The same steps by the rules of XProf's overview page", "<|share");
	for (int k = 0; k < TFH_XPROF_COUNT; k++)
		share_row(s, tfh_xprof_names[k], s->r->xprof[k]);
	tfh_html_table_end(s->out);
}

void tfh_page_data(const struct tfh_html_page *s)
{
	tfh_put("<div class=\"tables\">\n", s->out);
	write_quality(s);
	write_job(s);
	write_xprof(s);
	tfh_put("</div>\n", s->out);
	write_open_calls(s);
	write_threads(s);
	write_software(s);
}
