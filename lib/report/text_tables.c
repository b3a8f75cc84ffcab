/* Text report: the pipeline, kernels, transfers, advice, and the quality of the data. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/print.h"
#include "base/text.h"
#include "model/symbols/kernel_name.h"
#include "report/text_parts.h"

#define ROWS 6
#define NAME_COLUMNS 34
#define RATE_BYTES 4096 /* for copies smaller on average, a duration is shown and no rate */

static size_t name_columns(const struct tfh_page *page)
{
	return page->style.wide ? 512 : NAME_COLUMNS;
}

static uint32_t rows(const struct tfh_page *page, uint32_t n)
{
	return page->style.wide || page->style.every || n <= ROWS ? n : ROWS;
}

static void more(const struct tfh_page *page, uint32_t n, const char *section)
{
	if (rows(page, n) < n)
		tfh_print(page->out, "  ... %u more: tfhook report --%s\n", n - rows(page, n),
			  section);
}

/* ---- ranks ---- */

/* One row for each start of all ranks. */
static void generations(const struct tfh_page *page)
{
	const struct tfh_result *r = page->r;
	struct tfh_wording w = {.r = r};
	char begin[TFH_TEXT], end[TFH_TEXT], text[512];

	if (r->n_generation < 2)
		return;
	tfh_arena_init(&w.arena, 0);
	tfh_heading(page, "STARTS OF ALL RANKS");
	for (uint32_t i = 0; i < rows(page, r->n_generation); i++) {
		const struct tfh_generation *g = &r->generation[i];
		snprintf(text, sizeof(text), "%u: %u of %u ranks, from %s to %s%s%s%s", i + 1,
			 g->seen, g->ranks, tfh_fmt_time(begin, g->begin_s),
			 tfh_fmt_time(end, g->end_s), g->judged ? " <-" : "", g->failed ? "; " : "",
			 g->failed ? tfh_failed_words(&w, g) : "");
		tfh_wrap(page, "  ", "     ", text);
	}
	more(page, r->n_generation, "ranks");
	tfh_put("  <- the one that this report is about\n", page->out);
	tfh_arena_free(&w.arena);
}

/* "node1 gpu3": host and device. */
static void rank_place(const struct tfh_result *r, const struct tfh_rank *k, char out[64])
{
	const struct tfh_process *p;
	char gpu[24] = "";

	tfh_run_processes(r->run, &p);
	p += k->process;
	if (p->n_device && p->device->ordinal >= 0)
		snprintf(gpu, sizeof(gpu), " gpu%d", p->device->ordinal);
	tfh_fmt_cut(out, 64 - sizeof(gpu), k->host, 14 - (int)strlen(gpu));
	strcat(out, gpu);
}

void tfh_text_ranks(const struct tfh_page *page)
{
	const struct tfh_result *r = page->r;

	generations(page);
	if (r->n_rank < 2)
		return;
	tfh_heading(page, "%-6s %-14s %-22s %8s %10s %9s", "RANKS", "host", "cause", "step",
		    "waits", "late");
	for (uint32_t i = 0; i < rows(page, r->n_rank); i++) {
		const struct tfh_rank *k = &r->rank[i];
		const char *cause = tfh_cause_name(k->cause);
		char host[64], what[64], step[TFH_TEXT], waits[TFH_TEXT], late[TFH_TEXT];
		rank_place(r, k, host);
		tfh_print(
			page->out, "  %4d %-14s %-22s %8s %10s %9s%s\n", k->rank, host,
			tfh_fmt_cut(what, sizeof(what), cause ? cause : tfh_class_name(k->cls), 22),
			tfh_fmt_time(step, k->step_s), tfh_fmt_time(waits, k->jitter_s),
			tfh_fmt_time(late, k->late_s),
			k->straggler		   ? " late"
			: k->process == r->process ? " <-"
						   : "");
	}
	more(page, r->n_rank, "ranks");
	tfh_put("  waits: for other ranks, per step; late: behind the first at a collective, on\n"
		"  average; <- the rank that this report is about\n",
		page->out);
}

/* ---- input ---- */

/* What the pipeline could deliver, if known. */
static void supply_line(const struct tfh_page *page)
{
	const struct tfh_supply *s = &page->r->supply;
	char line[160], period[TFH_TEXT], times[TFH_TEXT];

	if (!(s->period_s > 0))
		return;
	tfh_fmt_time(period, s->period_s);
	if (s->headroom >= 1.05)
		snprintf(line, sizeof(line),
			 "a batch could be ready every %s, %s times as fast as steps need one",
			 period, tfh_fmt_mean(times, s->headroom));
	else
		snprintf(line, sizeof(line), "a batch is ready every %s at best", period);
	tfh_wrap(page, "  ", "    ", line);
}

/* "ParallelMapV2, train.py:47": with the line that makes it. */
static const char *stage_words(const struct tfh_page *page, char name[1024],
			       const struct tfh_input_stage *s)
{
	char words[1024];

	if (s->file)
		snprintf(words, sizeof(words), "%s, %s:%u", s->name, tfh_file_of(s->file), s->line);
	return tfh_fmt_cut(name, 1024, s->file ? words : s->name, name_columns(page));
}

void tfh_text_input(const struct tfh_page *page)
{
	const struct tfh_result *r = page->r;
	const char *guilty = NULL;

	if (!r->n_input)
		return;
	tfh_heading(page, "%-36s %10s %10s %10s %4s", "INPUT PIPELINE", "calls/step", "self/step",
		    "can give", "par");
	for (uint32_t i = 0; i < rows(page, r->n_input); i++) {
		const struct tfh_input_stage *s = &r->input[i];
		char name[1024], calls[TFH_TEXT], self[TFH_TEXT],
			rate[TFH_TEXT] = "", capacity[TFH_TEXT + 4] = "-", par[16] = "-";
		if (!isnan(s->capacity_per_s))
			snprintf(capacity, sizeof(capacity), "%s/s",
				 tfh_fmt_mean(rate, s->capacity_per_s));
		/* An asynchronous stage shows only how long others waited for it, which is not its
		 * own fault unless it is the slow one. */
		tfh_fmt_time(self, s->self_s_per_step);
		if ((s->async && !s->guilty) || !(s->calls_per_step > 0))
			snprintf(self, sizeof(self), "-");
		if (s->parallelism)
			snprintf(par, sizeof(par), "%u", s->parallelism);
		tfh_print(page->out, "  %-34s %10s %10s %10s %4s", stage_words(page, name, s),
			  tfh_fmt_mean(calls, s->calls_per_step), self, capacity, par);
		if (s->guilty)
			tfh_tinted(page, TFH_RED, " <-");
		tfh_put("\n", page->out);
		if (s->guilty)
			guilty = s->calls_per_step > 0 ? "" : " between loops, not in steps";
	}
	more(page, r->n_input, "input");
	if (guilty)
		tfh_print(page->out, "  <- the stage that the others wait for%s\n", guilty);
	supply_line(page);
}

/* ---- kernels and transfers ---- */

/* Columns of a kernel's name: the rest of the line. */
#define TIMED_NAME 40
#define UNTIMED_NAME 66

static void kernel_row(const struct tfh_page *page, const struct tfh_kernel *k, const char *brief,
		       bool timed)
{
	char name[4096], calls[TFH_TEXT], median[TFH_TEXT], step[TFH_TEXT], busy[TFH_TEXT];
	bool wide = page->style.wide;

	if (!wide)
		tfh_print(page->out, "  %-*s", timed ? TIMED_NAME : UNTIMED_NAME,
			  tfh_fmt_cut(name, sizeof(name), brief, TFH_KERNEL_NAME));
	tfh_print(page->out, " %10s", tfh_fmt_mean(calls, k->calls_per_step));
	if (timed)
		tfh_print(page->out, " %8s %8s %7s", tfh_fmt_time(median, tfh_kernel_call_s(k)),
			  tfh_fmt_time(step, k->s_per_step), tfh_fmt_share(busy, k->share_of_busy));
	if (wide)
		tfh_print(page->out, "  %s",
			  tfh_fmt_cut(name, sizeof(name), k->name, sizeof(name)));
	tfh_put("\n", page->out);
}

/* In the wide form, names come last and are not shortened. */
static void kernel_rows(const struct tfh_page *page, uint32_t n, bool timed)
{
	char(*brief)[TFH_KERNEL_NAME] = calloc(n, sizeof(*brief));
	const char **names = calloc(n, sizeof(*names));

	for (uint32_t i = 0; i < n && names; i++)
		names[i] = page->r->kernels[i].name;
	if (!page->style.wide && brief && names)
		tfh_kernel_shorts(brief, names, n, timed ? TIMED_NAME : UNTIMED_NAME);
	for (uint32_t i = 0; i < n && brief; i++)
		kernel_row(page, &page->r->kernels[i], page->style.wide ? NULL : brief[i], timed);
	free(brief);
	free(names);
}

void tfh_text_kernels(const struct tfh_page *page)
{
	const struct tfh_result *r = page->r;
	bool timed = false, wide = page->style.wide;

	if (!r->n_kernels)
		return;
	for (uint32_t i = 0; i < r->n_kernels; i++)
		timed |= !isnan(r->kernels[i].median_s);
	tfh_put("\n", page->out);
	tfh_tint(page, TFH_BOLD);
	tfh_print(page->out, "%-*s %10s",
		  wide	  ? 0
		  : timed ? TIMED_NAME + 2
			  : UNTIMED_NAME + 2,
		  wide ? "" : "TOP KERNELS", "calls/step");
	if (timed)
		tfh_print(page->out, " %8s %8s %7s", "each", "per step", "busy");
	tfh_put(wide ? "  KERNELS" : "", page->out);
	tfh_tint(page, TFH_PLAIN);
	tfh_put("\n", page->out);
	kernel_rows(page, rows(page, r->n_kernels), timed);
	more(page, r->n_kernels, "kernels");
}

static const char *const dir_words[] = {"?", "H2D", "D2H", "D2D", "H2H", "P2P", "?"};

void tfh_text_transfers(const struct tfh_page *page)
{
	const struct tfh_result *r = page->r;

	if (!r->n_transfers)
		return;
	tfh_heading(page, "%-30s %9s %9s %11s %6s %8s", "TOP TRANSFERS", "per step", "bytes",
		    "rate", "pinned", "blocks");
	for (uint32_t i = 0; i < rows(page, r->n_transfers); i++) {
		const struct tfh_transfer *t = &r->transfers[i];
		char name[1024], calls[TFH_TEXT], bytes[TFH_TEXT], rate[TFH_TEXT], blocks[TFH_TEXT];
		double share = t->calls ? (double)t->blocking_calls / (double)t->calls : NAN;
		tfh_print(page->out, "  %s  %-23s %9s %9s %11s %6s %8s\n", dir_words[t->dir],
			  tfh_fmt_cut(name, sizeof(name), t->fn, page->style.wide ? 512 : 23),
			  tfh_fmt_mean(calls, t->calls_per_step),
			  tfh_fmt_bytes(bytes, t->bytes_per_step),
			  t->bytes_per_step < RATE_BYTES * t->calls_per_step
				  ? "-"
				  : tfh_fmt_rate(rate, t->bytes_per_s),
			  t->pageable < 0 ? TFH_NOT_MEASURED
			  : t->pageable	  ? "no"
					  : "yes",
			  tfh_fmt_share(blocks, share));
		if (t->where && *t->where)
			tfh_wrap(page, "       ", "         ", t->where);
	}
	more(page, r->n_transfers, "transfers");
	tfh_put("  blocks: calls that return only when the copy is done, however long it takes\n",
		page->out);
}

/* ---- advice ---- */

void tfh_text_advice(const struct tfh_page *page)
{
	const struct tfh_wording *w = page->words;

	if (!w->n_advice)
		return;
	tfh_heading(page, "ADVICE");
	for (uint32_t i = 0; i < w->n_advice; i++) {
		const struct tfh_advice *a = &w->advice[i];
		char first[16], line[1024], factor[TFH_TEXT], gain[48] = "";
		if (!isnan(a->gain))
			snprintf(gain, sizeof(gain), "; up to %s faster",
				 tfh_fmt_factor(factor, a->gain));
		snprintf(first, sizeof(first), "  %u ", i + 1);
		snprintf(line, sizeof(line), "%s%s%s%s", a->finding,
			 a->evidence && *a->evidence ? ": " : "", a->evidence ? a->evidence : "",
			 gain);
		tfh_wrap(page, first, "    ", line);
		if (a->todo && *a->todo)
			tfh_wrap(page, "    -> ", "       ", a->todo);
	}
}

/* ---- quality of the data ---- */

static const char *gpu_times_words(const char *how)
{
	if (how && !strcmp(how, "cupti"))
		return "CUPTI";
	if (how && !strcmp(how, "imported"))
		return "from the imported trace";
	return "none, host calls only";
}

/* "; steps by iterator get-next" */
static void step_clock_words(const struct tfh_steps *s, char *out, size_t size)
{
	const char *kind = tfh_step_clock_name(s->clock), *name = s->clock_name;

	if (!kind) {
		if (s->count)
			snprintf(out, size, "; no step repeats: the whole trace is one");
		return;
	}
	if (s->clock == TFH_STEP_CLOCK_MARK) {
		snprintf(out, size, "; steps by marks (%.80s)", name ? name : "");
		return;
	}
	/* The name may already contain the kind. */
	bool both = name && *name && !strstr(name, kind);
	snprintf(out, size, "; steps by %s%s%.80s", both || !name || !*name ? kind : "",
		 both ? " " : "", name ? name : "");
}

/* "710 events, 0 dropped, 0 unhooked; 1 of 1 file complete; GPU times: CUPTI (tier A); ..." */
static void data_words(const struct tfh_result *r, char *out, size_t size)
{
	const struct tfh_quality *q = &r->quality;
	bool ours = !tfh_run_is_built(r->run);
	char a[TFH_TEXT], b[TFH_TEXT];
	size_t n;

	n = (size_t)snprintf(out, size, "%s events, %s dropped", tfh_fmt_count(a, q->events),
			     tfh_fmt_count(b, q->dropped));
	if (ours)
		n += (size_t)snprintf(out + n, size - n, ", %s unhooked",
				      tfh_fmt_count(a, q->unhooked));
	n += (size_t)snprintf(out + n, size - n,
			      "; %u of %u file%s complete; GPU times: %s (tier %c)",
			      q->files_complete, q->files, q->files == 1 ? "" : "s",
			      gpu_times_words(q->gpu_times), r->verdict.tier);
	if (!isnan(q->unattributed_share))
		n += (size_t)snprintf(out + n, size - n, "; unattributed: %s of step time",
				      tfh_fmt_share(a, q->unattributed_share));
	step_clock_words(&r->steps, out + n, size - n);
	n = strlen(out);
	if (q->clock)
		n += (size_t)snprintf(out + n, size - n, "; clock: %s", q->clock);
	if (!isnan(q->overhead_share))
		n += (size_t)snprintf(out + n, size - n,
				      "; recording cost %s of the run (estimate)",
				      tfh_fmt_share(a, q->overhead_share));
	if (q->device_times_share > 0)
		n += (size_t)snprintf(out + n, size - n, "; device times: the recorder's thread %s",
				      tfh_fmt_share(a, q->device_times_share));
	if (q->cupti_share > 0)
		snprintf(out + n, size - n, ", CUPTI %s", tfh_fmt_share(a, q->cupti_share));
}

void tfh_text_data(const struct tfh_page *page)
{
	const struct tfh_quality *q = &page->r->quality;
	char line[1024], a[TFH_TEXT];

	data_words(page->r, line, sizeof(line));
	tfh_put("\n", page->out);
	tfh_tinted(page, TFH_BOLD, "DATA");
	tfh_put("   ", page->out);
	tfh_wrap_from(page, strlen("DATA   "), "       ", line);
	if (q->unhooked) {
		tfh_print(page->out,
			  "       %s driver function%s the job looked up %s not recorded: tfhook "
			  "info\n",
			  tfh_fmt_count(a, q->unhooked), q->unhooked == 1 ? "" : "s",
			  q->unhooked == 1 ? "is" : "are");
	}
	if (q->unnamed)
		tfh_print(
			page->out,
			"       names of ranges, ops or graphs did not fit %s time%s and are shown "
			"as one: use fewer different names\n",
			tfh_fmt_count(a, q->unnamed), q->unnamed == 1 ? "" : "s");
	if (q->holes)
		tfh_print(page->out,
			  "       records are missing in %u place%s; steps there are not judged\n",
			  q->holes, q->holes == 1 ? "" : "s");
}
