/* What fixing the cause would gain. */

#include "base/print.h"
#include "report/page/page_parts.h"

static const char *name_of(const struct tfh_whatif *w)
{
	enum tfh_part part = tfh_remove_part(w->remove);

	return part < TFH_PART_COUNT ? tfh_part_words(part) : "everything but compute";
}

static void put_row(const struct tfh_html_page *s, const char *without, const struct tfh_whatif *w)
{
	tfh_html_row(s->out, without);
	tfh_html_time(s->out, w->step_s);
	tfh_html_time(s->out, w->low_s);
	tfh_html_time(s->out, w->high_s);
	tfh_html_time(s->out, w->floor_s);
	tfh_html_factor(s->out, w->speedup);
	tfh_html_factor(s->out, w->ceiling_speedup);
	tfh_html_time(s->out, w->saved_s);
	tfh_html_row_end(s->out);
}

void tfh_page_gain(const struct tfh_html_page *s)
{
	const struct tfh_result *r = s->r;

	tfh_put("<div id=\"combine\"></div>\n", s->out);
	tfh_html_table(s->out, "A step without ...",
		       "<|predicted|from|to|not below|faster|at best|saves of the run");
	for (uint32_t i = 0; i < r->n_whatif; i++)
		put_row(s, name_of(&r->whatif[i]), &r->whatif[i]);
	for (uint32_t i = 0; i < r->n_place; i++)
		put_row(s, s->words->place[i], &r->place[i].gain);
	if (r->uncrowded.ceiling_speedup > 0)
		put_row(s, "waiting for a CPU", &r->uncrowded);
	tfh_html_table_end(s->out);
	tfh_html_note(
		s->out,
		"Predicted: recorded steps replayed without the time charged to it, everything "
		"else as recorded; from, to: its range. At best: without any of that time, and "
		"nothing else changed. Not below: what the remaining work needs by itself. n/a: "
		"the data supports no such figure.");
}
