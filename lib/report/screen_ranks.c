/* The first screen of several ranks that did not end normally: how far each one got, its call in
 * flight, and its last sign of life. Ranks that are alike share a row. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/print.h"
#include "report/text_parts.h"

#define LIST 12 /* columns for the ranks of a row */
#define CALL 26 /* columns for a call */

struct rank_row {
	const struct tfh_rank *first;
	const struct tfh_process *how;	  /* its process, which has how it ended */
	const struct tfh_in_flight *open; /* of the first rank; NULL: none */
	double open_s;			  /* longest of all ranks */
	uint32_t n;
	bool silent; /* it fell silent before all others */
	char list[64];
};

/* By number: names of signals differ between C libraries, and old ones only have sentences. */
static const struct {
	int number;
	const char *name;
} signals[] = {
	{SIGABRT, "SIGABRT"}, {SIGALRM, "SIGALRM"}, {SIGBUS, "SIGBUS"},	  {SIGFPE, "SIGFPE"},
	{SIGHUP, "SIGHUP"},   {SIGILL, "SIGILL"},   {SIGINT, "SIGINT"},	  {SIGKILL, "SIGKILL"},
	{SIGPIPE, "SIGPIPE"}, {SIGQUIT, "SIGQUIT"}, {SIGSEGV, "SIGSEGV"}, {SIGSYS, "SIGSYS"},
	{SIGTERM, "SIGTERM"}, {SIGTRAP, "SIGTRAP"}, {SIGUSR1, "SIGUSR1"}, {SIGUSR2, "SIGUSR2"},
	{SIGXCPU, "SIGXCPU"}, {SIGXFSZ, "SIGXFSZ"},
};

const char *tfh_end_text(char out[TFH_TEXT], const struct tfh_process *p)
{
	if (p->end == TFH_END_EXIT)
		snprintf(out, TFH_TEXT, "exit code %d", p->end_code);
	else
		snprintf(out, TFH_TEXT, "signal %d", p->end_code);
	for (size_t i = 0; p->end == TFH_END_SIGNAL && i < sizeof(signals) / sizeof(*signals); i++)
		if (signals[i].number == p->end_code)
			snprintf(out, TFH_TEXT, "%s", signals[i].name);
	return out;
}

static const struct tfh_process *process_of(const struct tfh_result *r, const struct tfh_rank *k)
{
	const struct tfh_process *p;

	tfh_run_processes(r->run, &p);
	return p + k->process;
}

/* Whether a process failed by itself: by a signal that nobody sends, or an exit code of its own.
 * Launchers end the other ranks with SIGTERM or SIGKILL. */
static bool failed_itself(const struct tfh_process *p)
{
	static const int own[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGSYS, SIGTRAP};

	if (!p->end_known || p->end == TFH_END_EXIT)
		return p->end_known && p->end_code;
	for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++)
		if (own[i] == p->end_code)
			return true;
	return false;
}

/* The only rank that failed by itself; NULL: none did, or several. */
static const struct tfh_rank *failed_rank(const struct tfh_result *r)
{
	const struct tfh_rank *found = NULL;

	for (uint32_t i = 0; i < r->n_rank; i++) {
		if (!failed_itself(process_of(r, &r->rank[i])))
			continue;
		if (found)
			return NULL;
		found = &r->rank[i];
	}
	return found;
}

const struct tfh_rank *tfh_silent_rank(const struct tfh_result *r)
{
	const struct tfh_rank *first = NULL, *failed = failed_rank(r);

	for (uint32_t i = 0; i < r->n_rank && !failed; i++) {
		const struct tfh_rank *k = &r->rank[i];
		if (k->silent_s >= TFH_REPORT_SILENT_S &&
		    (!first || first->closed > k->closed ||
		     (first->closed == k->closed && k->silent_s > first->silent_s)))
			first = k;
	}
	return failed ? failed : first;
}

static const struct tfh_in_flight *open_of(const struct tfh_result *r, const struct tfh_rank *k)
{
	const struct tfh_in_flight *open;
	uint32_t n = tfh_run_in_flight(r->run, &open);

	for (uint32_t i = 0; i < n; i++)
		if (open[i].process == k->process)
			return &open[i];
	return NULL;
}

static bool alike(const struct tfh_result *r, const struct rank_row *row, const struct tfh_rank *k,
		  const struct tfh_in_flight *open, bool silent)
{
	const struct tfh_process *a = process_of(r, row->first), *b = process_of(r, k);

	return a->end_known == b->end_known && a->end == b->end && a->end_code == b->end_code &&
	       !row->silent && !silent && row->first->closed == k->closed &&
	       row->first->all_steps == k->all_steps && row->first->exchanges == k->exchanges &&
	       !row->open == !open && (!open || !strcmp(row->open->fn, open->fn));
}

/* "0-4, 6, 7": adds a rank to a list in ascending order. */
static void add_to_list(struct rank_row *row, const struct tfh_rank *k, int32_t before)
{
	size_t n = strlen(row->list);
	char *dash = strrchr(row->list, '-'), *comma = strrchr(row->list, ',');
	bool range = dash && (!comma || dash > comma);

	if (row->n && k->rank == before + 1) {
		if (range)
			n = (size_t)(dash - row->list);
		snprintf(row->list + n, sizeof(row->list) - n, "-%d", k->rank);
	} else {
		snprintf(row->list + n, sizeof(row->list) - n, "%s%d", row->n ? ", " : "", k->rank);
	}
}

/* Makes all rows; that of the rank that fell silent first comes first. Returns their number. */
static uint32_t make_rows(const struct tfh_result *r, struct rank_row *row)
{
	const struct tfh_rank *silent = tfh_silent_rank(r);
	uint32_t n = silent != NULL;
	int32_t *before = calloc(r->n_rank + 1, sizeof(*before)); /* last rank of each row */

	if (!before)
		return 0;
	if (silent) {
		row[0] = (struct rank_row){
			silent, process_of(r, silent), open_of(r, silent), 0, 0, true, ""};
		row[0].open_s = row[0].open ? row[0].open->open_s : 0;
		add_to_list(&row[0], silent, 0);
		row[0].n = 1;
	}
	for (uint32_t i = 0; i < r->n_rank; i++) {
		const struct tfh_rank *k = &r->rank[i];
		const struct tfh_in_flight *open = open_of(r, k);
		uint32_t at = 0;
		if (k == silent)
			continue;
		while (at < n && !alike(r, &row[at], k, open, false))
			at++;
		if (at == n)
			row[n++] = (struct rank_row){
				.first = k, .how = process_of(r, k), .open = open};
		add_to_list(&row[at], k, before[at]);
		before[at] = k->rank;
		row[at].n++;
		if (open && open->open_s > row[at].open_s)
			row[at].open_s = open->open_s;
	}
	free(before);
	return n;
}

static void print_rank_row(const struct tfh_page *page, const struct rank_row *row)
{
	char list[64], steps[TFH_TEXT], exchanges[TFH_TEXT], call[64] = "-", fn[64], time[TFH_TEXT];
	char end[48] = "last of all";

	if (row->open)
		snprintf(call, sizeof(call), "%s %s",
			 tfh_fmt_cut(fn, sizeof(fn), row->open->fn, 17),
			 tfh_fmt_time(time, row->open_s));
	if (row->how->end_known)
		tfh_end_text(end, row->how);
	else if (row->first->closed)
		snprintf(end, sizeof(end), "had exited");
	else if (row->first->silent_s >= TFH_REPORT_SILENT_S)
		snprintf(end, sizeof(end), "%s before", tfh_fmt_time(time, row->first->silent_s));
	tfh_print(page->out, "%s %-*s %10s  %9s  %-*s  %s\n", row->silent ? " !" : "  ", LIST,
		  tfh_fmt_cut(list, sizeof(list), row->list, LIST),
		  tfh_fmt_count(steps, row->first->all_steps),
		  row->first->exchanges ? tfh_fmt_count(exchanges, row->first->exchanges) : "-",
		  CALL, call, end);
}

/* Whether the job did not end normally. */
static bool ended_badly(const struct tfh_result *r)
{
	return r->end == TFH_END_SIGNAL || r->end == TFH_END_KILLED ||
	       (r->end == TFH_END_EXIT && r->end_code);
}

void tfh_screen_ranks(const struct tfh_page *page, size_t most)
{
	const struct tfh_result *r = page->r;
	struct rank_row *row;
	uint32_t n;

	if (r->n_rank < 2 || !most || !ended_badly(r) || tfh_page_columns(page) < TFH_PAGE_COLUMNS)
		return;
	row = calloc(r->n_rank + 1, sizeof(*row));
	n = row ? make_rows(r, row) : 0;
	if (n)
		tfh_heading(page, "   %-*s %10s  %9s  %-*s  %s", LIST, "RANK", "STEPS", "EXCHANGES",
			    CALL, "IN FLIGHT AT ITS END",
			    row[0].how->end_known ? "ENDED BY" : "LAST HEARD");
	for (uint32_t i = 0; i < n && i < most; i++)
		print_rank_row(page, &row[i]);
	if (n > most)
		tfh_print(page->out, "   ... %zu more: tfhook report --ranks\n", n - most);
	free(row);
}

void tfh_waits_line(const struct tfh_result *r, char *out, size_t size)
{
	const struct tfh_rank *silent = tfh_silent_rank(r);
	uint64_t theirs = 0;
	uint32_t waiting = 0;

	out[0] = '\0';
	for (uint32_t i = 0; silent && i < r->n_rank; i++) {
		const struct tfh_rank *k = &r->rank[i];
		if (k == silent || k->closed)
			continue;
		if (waiting++ && k->exchanges != theirs)
			return;
		theirs = k->exchanges;
	}
	if (!waiting || theirs <= silent->exchanges)
		return;
	char a[TFH_TEXT], b[TFH_TEXT];
	snprintf(out, size, "%u rank%s wait%s in exchange %s; rank %d has begun %s", waiting,
		 waiting == 1 ? "" : "s", waiting == 1 ? "s" : "", tfh_fmt_count(a, theirs),
		 silent->rank, tfh_fmt_count(b, silent->exchanges));
}
