/* What the device did (kernels, copies, memory), and the input pipeline that fed it. */
#include <math.h>
#include <stdlib.h>

#include "base/print.h"
#include "model/symbols/kernel_name.h"
#include "base/text.h"
#include "report/page/page_parts.h"

/* ---- input ---- */

void tfh_page_input(const struct tfh_html_page *s)
{
	const struct tfh_supply *u = &s->r->supply;
	char text[TFH_TEXT];

	tfh_html_table(s->out, NULL, "<What the pipeline could deliver|");
	tfh_html_row(s->out, "a batch could be ready every");
	tfh_html_time(s->out, u->period_s);
	tfh_html_row(s->out, "times as fast as steps need one, at least");
	tfh_html_mean(s->out, u->headroom);
	if (u->buffer) {
		tfh_html_row(s->out, "batches ready in the buffer, at least");
		tfh_html_count(s->out, u->buffer);
	}
	tfh_html_row_end(s->out);
	tfh_html_table_end(s->out);
	if (!s->r->n_input)
		return;
	tfh_html_table(
		s->out, "Stages, beginning with the one that delivers to the steps",
		"<stage|calls a step|of its own a step|can give a second|parallel|<in threads of "
		"its own|<|<made at");
	for (uint32_t i = 0; i < s->r->n_input; i++) {
		const struct tfh_input_stage *k = &s->r->input[i];
		tfh_html(s->out, "<tr%s><th scope=\"row\"><span title=\"%s\">%s</span></th>",
			 k->guilty ? " class=\"guilty\"" : "", k->prefix, k->name);
		tfh_html_mean(s->out, k->calls_per_step);
		tfh_html_time(s->out, k->self_s_per_step);
		tfh_html_mean(s->out, k->capacity_per_s);
		if (k->parallelism)
			tfh_html_count(s->out, k->parallelism);
		else
			tfh_put("<td class=\"na\">-</td>", s->out);
		tfh_html_yes(s->out, k->async);
		tfh_html(s->out, "<td class=\"t\">%s</td>",
			 k->guilty ? "the stage that the others wait for" : "");
		if (k->file)
			tfh_html(s->out, "<td class=\"t\"><span title=\"%s\">%s, %s:%u</span>",
				 k->file, k->function, tfh_file_of(k->file), k->line);
		else
			tfh_put("<td class=\"na\">-</td>", s->out);
		tfh_html_row_end(s->out);
	}
	tfh_html_table_end(s->out);
	if (u->basis == TFH_SUPPLY_BURSTS || u->basis == TFH_SUPPLY_WAITED) {
		tfh_html(s->out, "<p class=\"note\">Known from %s %s.</p>\n",
			 tfh_fmt_count(text, u->seen),
			 u->basis == TFH_SUPPLY_BURSTS ? "bursts" : "batches that were waited for");
	}
}

/* ---- kernels ---- */

static void write_families(const struct tfh_html_page *s)
{
	if (!s->r->n_families)
		return;
	tfh_html_table(s->out, "By kind", "<kind|kernels|a step|of busy time|<");
	for (uint32_t i = 0; i < s->r->n_families; i++) {
		const struct tfh_family_time *f = &s->r->families[i];
		tfh_html_row(s->out, tfh_family_name(f->family));
		tfh_html_count(s->out, f->kernels);
		tfh_html_time(s->out, f->s_per_step);
		tfh_html_share(s->out, f->share_of_busy);
		tfh_html_bar(s->out, f->share_of_busy, "compute");
		tfh_html_row_end(s->out);
	}
	tfh_html_table_end(s->out);
}

void tfh_page_kernels(const struct tfh_html_page *s)
{
	char brief[TFH_KERNEL_NAME];

	write_families(s);
	tfh_html_table(s->out, "By name", "<kernel|<kind|calls a step|each|a step|of busy time|<");
	for (uint32_t i = 0; i < s->r->n_kernels; i++) {
		const struct tfh_kernel *k = &s->r->kernels[i];
		tfh_html(s->out, "<tr><th scope=\"row\"><code title=\"%s\">%s</code></th>", k->name,
			 tfh_kernel_short(brief, k->name, 64));
		tfh_html_text(s->out, tfh_family_name(tfh_kernel_family(k->name)));
		tfh_html_mean(s->out, k->calls_per_step);
		tfh_html_time(s->out, tfh_kernel_call_s(k));
		tfh_html_time(s->out, k->s_per_step);
		tfh_html_share(s->out, k->share_of_busy);
		tfh_html_bar(s->out, k->share_of_busy, "compute");
		tfh_html_row_end(s->out);
	}
	tfh_html_table_end(s->out);
}

/* ---- copies ---- */

static const char *const dir_words[] = {"?", "H2D", "D2H", "D2D", "H2H", "P2P", "?"};

void tfh_page_transfers(const struct tfh_html_page *s)
{
	tfh_html_table(s->out, NULL,
		       "<|<function|calls a step|bytes a step|rate|<host side|calls|of them "
		       "blocking|<called at");
	for (uint32_t i = 0; i < s->r->n_transfers; i++) {
		const struct tfh_transfer *t = &s->r->transfers[i];
		tfh_html_row(s->out, dir_words[t->dir]);
		tfh_html(s->out, "<td class=\"t\"><code>%s</code></td>", t->fn);
		tfh_html_mean(s->out, t->calls_per_step);
		tfh_html_bytes(s->out, t->bytes_per_step);
		tfh_html_rate(s->out, t->bytes_per_s);
		tfh_html_text(s->out, t->pageable < 0 ? TFH_NOT_MEASURED
				      : t->pageable   ? "pageable"
						      : "pinned");
		tfh_html_count(s->out, t->calls);
		tfh_html_count(s->out, t->blocking_calls);
		tfh_html(s->out, "<td class=\"t\">%s", t->where ? t->where : "");
		tfh_page_frames(s, t->stack);
		tfh_put("</td>", s->out);
		tfh_html_row_end(s->out);
	}
	tfh_html_table_end(s->out);
	tfh_html_note(
		s->out,
		"Blocking: calls that return only when the copy is done, however long it takes.");
}

/* ---- memory ---- */

void tfh_page_memory(const struct tfh_html_page *s)
{
	const struct tfh_heap_sum *h = &s->r->heap;

	tfh_put("<div class=\"chart\" id=\"chart-memory\"></div>\n", s->out);
	tfh_html_table(s->out, NULL, "<Device memory|");
	tfh_html_row(s->out, "most in use");
	tfh_html_bytes(s->out, (double)h->peak);
	tfh_html_row(s->out, "... after");
	tfh_html_time(s->out, (double)h->peak_t / 1e9);
	tfh_html_row(s->out, "in use at the end");
	tfh_html_bytes(s->out, (double)h->in_use);
	tfh_html_row(s->out, "the devices have");
	tfh_html_bytes(s->out, h->capacity ? (double)h->capacity : NAN);
	tfh_html_row(s->out, "never in use");
	tfh_html_bytes(s->out, !h->capacity	       ? NAN
			       : h->capacity > h->peak ? (double)(h->capacity - h->peak)
						       : 0);
	tfh_html_row(s->out, "allocations");
	tfh_html_count(s->out, h->allocations);
	tfh_html_row(s->out, "of them failed");
	tfh_html_count(s->out, h->failed);
	tfh_html_row_end(s->out);
	tfh_html_table_end(s->out);
	if (!h->n_failure)
		return;
	tfh_html_table(s->out, "Requests that failed", "<function|after|asked for|in use then");
	for (uint32_t i = 0; i < h->n_failure; i++) {
		tfh_html_row(s->out, h->failure[i].at.fn);
		tfh_html_time(s->out, (double)h->failure[i].at.t / 1e9);
		tfh_html_bytes(s->out, (double)h->failure[i].at.bytes);
		tfh_html_bytes(s->out, (double)h->failure[i].in_use);
		tfh_html_row_end(s->out);
	}
	tfh_html_table_end(s->out);
}
