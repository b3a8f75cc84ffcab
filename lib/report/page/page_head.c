/* The head of the page: the content of the first screen, in its words. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/print.h"
#include "report/page/page_parts.h"

static void put_field(void *arg, const char *field)
{
	const struct tfh_html_page *s = arg;

	tfh_html(s->out, "<li>%s</li>\n", field);
}

static void print_end(const struct tfh_page *page, const void *arg)
{
	(void)arg;
	tfh_text_end(page);
}

/* How a job ended that did not end normally, with the calls in flight. */
static void write_end(const struct tfh_html_page *s)
{
	struct tfh_page page = {s->out, s->words, s->r, {.utf8 = true, .columns = 100}, NULL, NULL};
	char *text = tfh_in_memory(&page, print_end, NULL);

	if (text && *text) {
		tfh_put("<pre class=\"end\">", s->out);
		tfh_html_lines(s->out, text + strspn(text, "\n"));
		tfh_put("</pre>\n", s->out);
	}
	free(text);
}

/* A row of the verdict; a row without a label continues the last one. */
static void put_row(void *arg, const char *label, const char *text)
{
	const struct tfh_html_page *s = arg;

	tfh_html(s->out, "<dt>%s</dt><dd>%s</dd>\n", label, text);
}

static const char *tone(enum tfh_class cls)
{
	if (cls == TFH_CLASS_COMPUTE_BOUND || cls == TFH_CLASS_BALANCED)
		return "good";
	return cls == TFH_CLASS_UNCLASSIFIED ? "open" : "bad";
}

static void write_verdict(const struct tfh_html_page *s)
{
	struct tfh_page page = {s->out,	 s->words, s->r, {.utf8 = true, .columns = 1000},
				put_row, (void *)s};
	const struct tfh_wording *w = s->words;
	struct tfh_headline h;

	tfh_headline_of(s->r, &h);
	tfh_html(s->out,
		 "<div class=\"verdict %s\">\n<h1><span class=\"class\">%s</span> "
		 "<span class=\"sure\">%s</span> <code>%s</code> <span "
		 "class=\"share\">%s</span></h1>\n<dl>\n",
		 tone(s->r->verdict.cls), h.cls, h.sure, h.cause, h.share);
	tfh_screen_rows(&page, SIZE_MAX);
	for (uint32_t i = 0; i < w->n_evidence; i++)
		if (w->tells[i] == TFH_TELLS_MORE)
			put_row((void *)s, "", w->evidence[i]);
	for (uint32_t i = 0; i < w->n_remark; i++)
		put_row((void *)s, "note", w->remark[i]);
	tfh_put("</dl>\n", s->out);
}

static bool said_above(const struct tfh_wording *w, const char *text)
{
	bool said = !*text || (w->text && strstr(w->text, text));

	for (uint32_t i = 0; i < w->n_evidence; i++)
		said |= !strcmp(w->evidence[i], text);
	return said;
}

static void write_item(const struct tfh_html_page *s, const struct tfh_advice *a)
{
	char gain[80];

	tfh_next_becomes(s->r, a, gain, sizeof(gain));
	tfh_html(s->out, "<li><strong>%s</strong>", a->finding);
	if (*gain)
		tfh_html(s->out, " <span class=\"becomes\">%s %s</span>",
			 isnan(tfh_run_s(s->r)) ? "with that fixed alone, a step takes"
						: "with that fixed alone, the run takes",
			 gain);
	if (a->evidence && !said_above(s->words, a->evidence))
		tfh_html(s->out, "<br>%s", a->evidence);
	if (a->todo && *a->todo)
		tfh_html(s->out, "<br>%s", a->todo);
	tfh_put("</li>\n", s->out);
}

static void write_next(const struct tfh_html_page *s)
{
	const struct tfh_advice *order[TFH_REPORT_ADVICE];
	size_t n = tfh_next_order(s->words, order);

	if (!n && !s->words->missing_do)
		return;
	tfh_put("<h2>Do next</h2>\n<ol>\n", s->out);
	if (s->words->missing_do)
		tfh_html(s->out, "<li>%s</li>\n", s->words->missing_do);
	for (size_t i = 0; i < n; i++)
		write_item(s, order[i]);
	tfh_put("</ol>\n", s->out);
}

void tfh_page_head(const struct tfh_html_page *s)
{
	char sure[TFH_SURE];

	tfh_html(s->out, "<header>\n<div class=\"job\"><strong>%s</strong>\n<ul>\n",
		 tfh_job_name(s->r->run));
	tfh_title_fields(s->r, put_field, (void *)s);
	tfh_put("</ul></div>\n", s->out);
	write_end(s);
	write_verdict(s);
	write_next(s);
	tfh_sure_words(s->r, sure);
	tfh_html(s->out, "<p class=\"rests\"><b>Sure</b> %s</p>\n</div>\n</header>\n", sure);
}
