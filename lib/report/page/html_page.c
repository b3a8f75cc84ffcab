#include "report/page/html_page.h"

#include <stdlib.h>
#include <string.h>

#include "base/print.h"
#include "base/text.h"
#include "report/page/page_parts.h"

static bool always(const struct tfh_result *r)
{
	(void)r;
	return true;
}

static bool has_steps(const struct tfh_result *r)
{
	return r->steps.total > 0;
}

static bool has_whatif(const struct tfh_result *r)
{
	return r->n_whatif > 0 || r->uncrowded.ceiling_speedup > 0;
}

static bool has_input(const struct tfh_result *r)
{
	return r->n_input > 0 || r->supply.period_s > 0;
}

static bool has_kernels(const struct tfh_result *r)
{
	return r->n_kernels > 0;
}

static bool has_transfers(const struct tfh_result *r)
{
	return r->n_transfers > 0;
}

static bool has_memory(const struct tfh_result *r)
{
	return r->heap.allocations || r->heap.failed;
}

static bool has_ranks(const struct tfh_result *r)
{
	return r->n_rank > 1;
}

static bool has_meters(const struct tfh_result *r)
{
	const struct tfh_meter_line *l;

	return tfh_run_meters(r->run, r->process, &l) > 0;
}

static bool has_kept_steps(const struct tfh_result *r)
{
	return tfh_report_median_step(r) != NULL;
}

static const struct {
	const char *id, *title;
	bool (*has)(const struct tfh_result *r);
	void (*write)(const struct tfh_html_page *s);
} sections[] = {
	{"steps", "Where a step goes", has_steps, tfh_page_steps},
	{"timeline", "Timelines", has_kept_steps, tfh_page_timeline},
	{"gain", "What fixing it would gain", has_whatif, tfh_page_gain},
	{"lines", "Lines of Python", always, tfh_page_lines},
	{"input", "Input pipeline", has_input, tfh_page_input},
	{"kernels", "Kernels", has_kernels, tfh_page_kernels},
	{"transfers", "Copies", has_transfers, tfh_page_transfers},
	{"memory", "Device memory", has_memory, tfh_page_memory},
	{"ranks", "Ranks", has_ranks, tfh_page_ranks},
	{"machine", "Machine", has_meters, tfh_page_machine},
	{"run", "Where the run went", always, tfh_page_run},
	{"data", "What this rests on", always, tfh_page_data},
	{"json", "All figures", always, tfh_page_json},
};
#define SECTIONS (sizeof(sections) / sizeof(sections[0]))

void tfh_page_json(const struct tfh_html_page *s)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	tfh_put("<details><summary>The whole report as JSON, as <code>tfhook report --json</code> "
		"prints it</summary>\n<pre id=\"report\">",
		s->out);
	if (f && !tfh_report_json(f, s->words) && !fclose(f))
		tfh_html_lines(s->out, text);
	tfh_put("</pre></details>\n", s->out);
	free(text);
}

static void write_navigation(const struct tfh_html_page *s)
{
	tfh_put("<nav aria-label=\"Sections\"><ul>\n", s->out);
	for (size_t i = 0; i < SECTIONS; i++)
		if (sections[i].has(s->r))
			tfh_html(s->out, "<li><a href=\"#%s\">%s</a></li>\n", sections[i].id,
				 sections[i].title);
	tfh_put("</ul></nav>\n", s->out);
}

bool tfh_is_page(const char *begin)
{
	static const char doctype[] = "<!DOCTYPE html>", generator[] = "\"tfhook report --html\"";

	return tfh_starts_with(begin, doctype) && strstr(begin, generator);
}

void tfh_page_top(FILE *out, const char *title)
{
	tfh_put("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
		"<meta http-equiv=\"Content-Security-Policy\" content=\"",
		out);
	tfh_put(tfh_page_policy, out);
	tfh_put("\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
		"<meta name=\"color-scheme\" content=\"light dark\">\n"
		"<meta name=\"generator\" content=\"tfhook report --html\">\n",
		out);
	tfh_html(out, "<title>%s</title>\n<style>", title);
	tfh_put(tfh_page_style, out);
	tfh_put("</style>\n</head>\n<body>\n", out);
}

static int write_page(const struct tfh_html_page *s)
{
	char title[512];

	snprintf(title, sizeof(title), "%s: %s", tfh_job_name(s->r->run),
		 tfh_class_name(s->r->verdict.cls));
	tfh_page_top(s->out, title);
	tfh_page_head(s);
	write_navigation(s);
	tfh_put("<main>\n", s->out);
	for (size_t i = 0; i < SECTIONS; i++) {
		const char *id = sections[i].id;
		if (!sections[i].has(s->r))
			continue;
		tfh_html(s->out,
			 "<section id=\"%s\" aria-labelledby=\"h-%s\"><h2 id=\"h-%s\">%s</h2>\n",
			 id, id, id, sections[i].title);
		sections[i].write(s);
		tfh_put("</section>\n", s->out);
	}
	tfh_put("</main>\n", s->out);
	int rc = tfh_page_drawing(s);
	tfh_put("<script>", s->out);
	tfh_put(tfh_page_script, s->out);
	tfh_put("</script>\n</body>\n</html>\n", s->out);
	return rc;
}

int tfh_report_page(FILE *out, struct tfh_wording *words, const struct tfh_shown *shown,
		    const struct tfh_curves *curves)
{
	struct tfh_along along;
	const struct tfh_html_page s = {out, words, words->r, shown, &along, curves};
	int rc = tfh_along_make(&along, s.r);

	if (!rc)
		rc = write_page(&s);
	tfh_along_free(&along);
	return rc ? rc : ferror(out) ? -EIO : 0;
}
