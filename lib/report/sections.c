/* The whole report, and its parts that can be requested by name. */
#include <stdlib.h>

#include "base/print.h"
#include "report/machine_table.h"
#include "report/text_parts.h"

void tfh_report_text(FILE *out, const struct tfh_wording *words, const struct tfh_style *style)
{
	static void (*const parts[])(const struct tfh_page *) = {
		tfh_text_title,	 tfh_text_end,	   tfh_text_verdict,   tfh_text_sampled,
		tfh_text_tree,	 tfh_text_classes, tfh_text_breakdown, tfh_text_whatif,
		tfh_text_ranks,	 tfh_text_input,   tfh_text_kernels,   tfh_text_transfers,
		tfh_text_memory, tfh_text_advice,  tfh_text_data};
	struct tfh_page page = {.out = out, .words = words, .r = words->r, .style = *style};

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		parts[i](&page);
}

static void machine(const struct tfh_page *page)
{
	tfh_report_machine_text(page->out, page->r, page->style.utf8);
}

static void where(const struct tfh_page *page)
{
	tfh_report_where_text(page->out, page->r, &page->style);
}

const struct tfh_section tfh_sections[] = {
	{"kernels", "no kernel ran in the judged steps", tfh_text_kernels},
	{"transfers", "nothing was copied in the judged steps", tfh_text_transfers},
	{"input", "no input pipeline was seen", tfh_text_input},
	{"where", "", where},
	{"memory", "no allocation of device memory was seen", tfh_text_memory},
	{"ranks", "there is one rank", tfh_text_ranks},
	{"machine", "", machine},
};
const size_t tfh_section_count = sizeof(tfh_sections) / sizeof(tfh_sections[0]);

static void print_section(const struct tfh_page *page, const void *section)
{
	((const struct tfh_section *)section)->print(page);
}

void tfh_report_section(FILE *out, const struct tfh_wording *words, const struct tfh_style *style,
			const struct tfh_section *section)
{
	struct tfh_page page = {.out = out, .words = words, .r = words->r, .style = *style};

	page.style.every = true;
	char *text = tfh_in_memory(&page, print_section, section);
	if (text && !*text)
		tfh_print(out, "%s\n", section->none);
	else if (text)
		tfh_pass_on(&page, text + (*text == '\n'));
	free(text);
}
