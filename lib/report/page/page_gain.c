/* What fixing the cause would gain. */

#include "base/print.h"
#include "report/page/page_parts.h"

static const char *name_of(const struct tfh_whatif *w)
{
	enum tfh_part part = tfh_remove_part(w->remove);

	return part < TFH_PART_COUNT ? tfh_part_words(part) : "everything but compute";
}

void tfh_page_gain(const struct tfh_html_page *s)
{
	tfh_put("<div id=\"combine\"></div>\n", s->out);
	tfh_html_table(s->out, "A step without ...",
		       "<|predicted|from|to|not below|faster|at best|saves of the run");
	for (uint32_t i = 0; i < s->r->n_whatif + s->r->n_place; i++) {
		bool part = i < s->r->n_whatif;
		uint32_t place = part ? 0 : i - s->r->n_whatif;
		const struct tfh_whatif *w = part ? &s->r->whatif[i] : &s->r->place[place].gain;
		tfh_html_row(s->out, part ? name_of(w) : s->words->place[place]);
		tfh_html_time(s->out, w->step_s);
		tfh_html_time(s->out, w->low_s);
		tfh_html_time(s->out, w->high_s);
		tfh_html_time(s->out, w->floor_s);
		tfh_html_factor(s->out, w->speedup);
		tfh_html_factor(s->out, w->ceiling_speedup);
		tfh_html_time(s->out, w->saved_s);
		tfh_html_row_end(s->out);
	}
	tfh_html_table_end(s->out);
	tfh_html_note(
		s->out,
		"Predicted: recorded steps replayed without the time charged to it, everything "
		"else as recorded; from, to: its range. At best: without any of that time, and "
		"nothing else changed. Not below: what the remaining work needs by itself. n/a: "
		"the data supports no such figure.");
}
