/*
 * The report as one page of HTML that needs nothing else: no request, no script to be read. Everything that `--json` tells
 * stands in tables, in the words of the first screen; the script draws what the tables hold.
 *
 *	html.c		escapes, tables, cells
 *	sheet.c		the page around the sections, their order
 *	sheet_*.c	the sections
 *	page.css page.js timeline.js	what it looks like, and what it does
 */
#ifndef TFH_REPORT_SHEET_H
#define TFH_REPORT_SHEET_H

#include <stdio.h>

#include "report/report.h"

/* Writes the page. 0 or a negative errno; the stream belongs to the caller, who checks it for errors afterwards. */
int tfh_report_page(FILE *out, struct tfh_wording *words);

#endif
