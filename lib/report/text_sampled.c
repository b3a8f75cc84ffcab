/* Where the main thread's time went, for a run in which no call was recorded. */
#include "base/print.h"
#include "report/text_parts.h"
#include "report/words/words.h"

static void row(const struct tfh_page *page, double share, double all_s, const char *at,
		const char *does)
{
	char time[TFH_TEXT], line[1024];

	snprintf(line, sizeof(line), "%s%s%s", at, *does ? ": " : "", does);
	tfh_print(page->out, "  %3.0f %%  %8s  ", 100 * share, tfh_fmt_time(time, share * all_s));
	tfh_wrap_from(page, 19, "                   ", line);
}

void tfh_screen_sampled(const struct tfh_page *page, size_t rows)
{
	const struct tfh_sampled *s = &page->r->found.sampled;
	double all_s = s->wall_s - s->start_s, rest = 1;
	struct tfh_wording w = {.r = page->r};
	char a[TFH_TEXT], b[TFH_TEXT];

	if (!s->samples || !rows || !(all_s > 0))
		return;
	tfh_arena_init(&w.arena, 0);
	tfh_heading(page, "WHERE %s TIME WENT (%s, %s samples)",
		    !s->pool.file ? "THE MAIN THREAD'S" : "THE WORKERS'", tfh_fmt_time(a, all_s),
		    tfh_fmt_count(b, s->samples));
	for (uint32_t i = 0; i < s->n_line && i < rows; i++) {
		if (s->line[i].samples < TFH_VERDICT_LINE_SAMPLES)
			break;
		row(page, s->line[i].share, all_s, tfh_sampled_at(&w, &s->line[i]),
		    tfh_sampled_does(page->r, &s->line[i]));
		rest -= s->line[i].share;
	}
	if (rest >= 0.005)
		row(page, rest, all_s, "elsewhere", "");
	tfh_arena_free(&w.arena);
}

void tfh_text_sampled(const struct tfh_page *page)
{
	tfh_screen_sampled(page, TFH_VERDICT_START_LINES);
}
