/* Device memory: how much was in use over the run, and requests that failed. */
#include "base/print.h"
#include "report/text_parts.h"

#define DRAWN 40u /* columns of the course over time */

/* Eight heights from 0 to the peak. */
static void course(const struct tfh_page *page)
{
	static const char *const height[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	static const char plain[] = " .:-=+*#@";
	const struct tfh_heap_sum *h = &page->r->heap;
	uint32_t columns = h->drawn < DRAWN ? h->drawn : DRAWN;

	tfh_put("  over time ", page->out);
	for (uint32_t c = 0; c < columns; c++) {
		uint64_t most = 0;
		for (uint32_t i = c * h->drawn / columns; i < (c + 1) * h->drawn / columns; i++)
			most = h->line[i] > most ? h->line[i] : most;
		size_t at = h->peak ? (size_t)((most * 8 + h->peak - 1) / h->peak) : 0;
		if (page->style.utf8)
			tfh_print(page->out, "%s", height[at]);
		else
			tfh_print(page->out, "%c", plain[at]);
	}
	tfh_put("\n", page->out);
}

static void failures(const struct tfh_page *page)
{
	const struct tfh_heap_sum *h = &page->r->heap;
	char time[TFH_TEXT], bytes[TFH_TEXT], used[TFH_TEXT], fn[64], total[TFH_TEXT];

	for (uint32_t i = 0; i < h->n_failure; i++) {
		const struct tfh_failure *f = &h->failure[i];
		tfh_print(page->out, "  failed at %s: %s of %s with %s in use\n",
			  tfh_fmt_time(time, (double)f->at.t * 1e-9),
			  tfh_fmt_cut(fn, sizeof(fn), f->at.fn, 32),
			  tfh_fmt_bytes(bytes, (double)f->at.bytes),
			  tfh_fmt_bytes(used, (double)f->in_use));
	}
	if (h->failed > h->n_failure)
		tfh_print(page->out, "  %s requests failed in all\n",
			  tfh_fmt_count(total, h->failed));
}

void tfh_text_memory(const struct tfh_page *page)
{
	const struct tfh_heap_sum *h = &page->r->heap;
	char peak[TFH_TEXT], all[TFH_TEXT + 8] = "", at[TFH_TEXT], end[TFH_TEXT], n[TFH_TEXT],
					    line[240];

	if (!h->allocations && !h->failed)
		return;
	if (h->capacity)
		snprintf(all, sizeof(all), " of %s", tfh_fmt_bytes(n, (double)h->capacity));
	snprintf(line, sizeof(line),
		 "at most %s%s, %s after the start; %s at the end; %s allocation%s",
		 tfh_fmt_bytes(peak, (double)h->peak), all,
		 tfh_fmt_time(at, tfh_into_run(page->r, (double)h->peak_t * 1e-9)),
		 tfh_fmt_bytes(end, (double)h->in_use), tfh_fmt_count(n, h->allocations),
		 h->allocations == 1 ? "" : "s");
	tfh_heading(page, "DEVICE MEMORY");
	tfh_wrap(page, "  ", "    ", line);
	if (h->drawn)
		course(page);
	failures(page);
}
