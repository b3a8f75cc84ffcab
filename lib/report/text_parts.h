/* Shared by the parts of the text report: a page and functions to write on it (page.c), and the
 * parts. */
#ifndef TFH_REPORT_TEXT_PARTS_H
#define TFH_REPORT_TEXT_PARTS_H

#include "report/format.h"
#include "report/report.h"

struct tfh_page {
	FILE *out;
	const struct tfh_wording *words;
	const struct tfh_result *r;
	struct tfh_style style;
	/* Takes the rows of the first screen in place of `out`; NULL: they are printed. */
	void (*row)(void *arg, const char *label, const char *text);
	void *arg;
};

#define TFH_PAGE_COLUMNS 80

enum tfh_tint { TFH_PLAIN, TFH_BOLD, TFH_RED, TFH_YELLOW, TFH_GREEN, TFH_DIM };

/* Starts a tint on a page with colour; TFH_PLAIN ends any. */
void tfh_tint(const struct tfh_page *page, enum tfh_tint tint);

/* Like tfh_print, in a tint. A heading is bold, on a line of its own after an empty one. */
void tfh_tinted(const struct tfh_page *page, enum tfh_tint tint, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void tfh_heading(const struct tfh_page *page, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* The page's width in columns. */
size_t tfh_page_columns(const struct tfh_page *page);

/* Wraps text at the page's width, with `first` before the first line and `rest` before the others.
 * tfh_wrap_from() continues a line of which `column` columns are already written. tfh_wrap_most()
 * does so in at most as many lines as the style allows a row; a longer text ends with dots, after a
 * whole clause if one ends near there. */
void tfh_wrap(const struct tfh_page *page, const char *first, const char *rest, const char *text);
void tfh_wrap_from(const struct tfh_page *page, size_t column, const char *rest, const char *text);
void tfh_wrap_most(const struct tfh_page *page, size_t column, const char *rest, const char *text);
/* Adds a field after three spaces, or on a new line if it would pass the last column. */
void tfh_field(const struct tfh_page *page, size_t *column, const char *field);

/* Returns what a function prints on this page, in memory that the caller frees; NULL: out of
 * memory. tfh_pass_on() writes it, or a line of it. */
char *tfh_in_memory(const struct tfh_page *page,
		    void (*print)(const struct tfh_page *page, const void *arg), const void *arg);
void tfh_pass_on(const struct tfh_page *page, const char *printed);
size_t tfh_lines_of(const char *text); /* number of newlines */

/* A row of the first screen: a label and its text. */
void tfh_row(const struct tfh_page *page, const char *label, const char *text);

/* text_steps.c: the name of a part of a step's time; the lower bound of a step, in seconds, if
 * everything that a what-if removes is gone and nothing else changes. */
const char *tfh_part_words(enum tfh_part part);
double tfh_least_step(const struct tfh_result *r, const struct tfh_whatif *w);
/* run_tree.c: the name of all parts of the run of one kind, at most 15 columns. */
const char *tfh_branch_words(enum tfh_branch kind);
/* How part i of the run's tree is shown: a loop whose iterations are the steps is shown as steps.
 * tfh_branch_hidden(): whether the part is not shown, because it is inside such a step. */
enum tfh_branch tfh_branch_shown(const struct tfh_result *r, uint32_t i);
bool tfh_branch_hidden(const struct tfh_result *r, uint32_t i);
/* How many parts it is inside of. */
uint32_t tfh_branch_depth(const struct tfh_result *r, uint32_t i);
/* What the steps of such a part execute, by the user's name for it; "": unknown. */
const char *tfh_branch_does(const struct tfh_part_of_run *p);
/* run_gain.c: time of the run, NAN if the trace covers only part of it. */
double tfh_run_s(const struct tfh_result *r);
/* What the run saves if the judged process saves that much: processes alike,
 * before or after it, save as much. */
double tfh_run_saves(const struct tfh_result *r, double saved_s);

/* The whole report calls these in this order; each prints nothing if it has no data. */
void tfh_text_title(const struct tfh_page *page);
/* The job's name (its script or module, else its program), owned by the run; the fields of the
 * title that follow it. */
const char *tfh_job_name(const struct tfh_run *run);
/* "PyTorch's trace": what the run was read from. */
const char *tfh_source_words(enum tfh_source source);
void tfh_title_fields(const struct tfh_result *r, void (*put)(void *arg, const char *field),
		      void *arg);
void tfh_text_end(const struct tfh_page *page);
void tfh_text_verdict(const struct tfh_page *page);
void tfh_text_sampled(const struct tfh_page *page);
void tfh_screen_sampled(const struct tfh_page *page, size_t rows);
void tfh_text_tree(const struct tfh_page *page);
void tfh_text_classes(const struct tfh_page *page);
void tfh_text_breakdown(const struct tfh_page *page);
void tfh_text_whatif(const struct tfh_page *page);
void tfh_text_ranks(const struct tfh_page *page);
void tfh_text_input(const struct tfh_page *page);
void tfh_text_kernels(const struct tfh_page *page);
void tfh_text_transfers(const struct tfh_page *page);
void tfh_text_memory(const struct tfh_page *page);
void tfh_text_advice(const struct tfh_page *page);
void tfh_text_data(const struct tfh_page *page);

/* text_chain.c: the rows of a step's chain, each a link or several short consecutive ones. There
 * are few rows unless `every`. The caller frees them. 0 or -ENOMEM. */
struct tfh_chain_row {
	int64_t t0, t1;
	uint32_t links;
	int64_t cause[TFH_CAUSE_COUNT], compute;
	const struct tfh_link *first;
};
int tfh_chain_rows(const struct tfh_chain *chain, const struct tfh_step *step, bool every,
		   struct tfh_chain_row **rows, size_t *n);
void tfh_chain_row_words(struct tfh_wording *w, const struct tfh_chain_row *row,
			 const struct tfh_step *s, char *out, size_t size);
/* Nanoseconds of the step that are charged to nothing. */
int64_t tfh_chain_left(const struct tfh_chain *c, const struct tfh_step *s);

/* The first screen: the same content in few rows. */
void tfh_screen_end(const struct tfh_page *page);
/* screen_ranks.c: for several ranks that did not end normally, how far each one got, in at most
 * that many rows; the rank that fell silent first without having failed by itself (NULL: none); the
 * exchange that the others wait for ("": unknown). */
void tfh_screen_ranks(const struct tfh_page *page, size_t most);
const struct tfh_rank *tfh_silent_rank(const struct tfh_result *r);
/* Whether a prediction is a range, and not only a bound. */
bool tfh_is_range(const struct tfh_result *r, const struct tfh_whatif *w);
/* "SIGSEGV", "exit code 1" of a process whose end is known. */
const char *tfh_end_text(char out[TFH_TEXT], const struct tfh_process *p);
void tfh_waits_line(const struct tfh_result *r, char *out, size_t size);
void tfh_screen_verdict(const struct tfh_page *page, size_t whys);
/* The parts of the verdict's first line, "" if missing; the rows below it. */
struct tfh_headline {
	char cls[32], sure[32], share[64];
	const char *cause;
};
/* The share of the named cause, if it is not all of the host's. NAN: it is, or the class is
 * another. */
double tfh_cause_share(const struct tfh_result *r);
void tfh_headline_of(const struct tfh_result *r, struct tfh_headline *h);
void tfh_screen_rows(const struct tfh_page *page, size_t whys);
/* screen_times.c: where the run's time went, beside where a step's time goes, with at most that
 * many rows each; unless merged, with more if they are as large as the steps. */
void tfh_screen_times(const struct tfh_page *page, size_t rows, bool merged);
/* Only the second of the two. */
void tfh_screen_step(const struct tfh_page *page, size_t rows);
/* screen_next.c: that many things to do next, each with its effect on the run; the first `told`
 * with instructions. */
void tfh_screen_next(const struct tfh_page *page, size_t items, size_t told);
/* All advice (TFH_REPORT_ADVICE at most) in the order of the first screen: the verdict's own, other
 * advice with a known gain, without one, and what gains too little for the first screen. Returns
 * their number. tfh_next_becomes(): "at best 4.09 s 1.26x",
 * the run's time after one of them, or the step's if the trace covers only part of a run; "":
 * unknown. */
size_t tfh_next_order(const struct tfh_wording *w, const struct tfh_advice **order);
void tfh_next_becomes(const struct tfh_result *r, const struct tfh_advice *a, char *out,
		      size_t size);
/* text_steps.c: the kinds of time in XProf's overview page. */
extern const char *const tfh_xprof_names[TFH_XPROF_COUNT];
/* screen_sure.c: what the result is based on. */
void tfh_screen_sure(const struct tfh_page *page);
#define TFH_SURE 600
void tfh_sure_words(const struct tfh_result *r, char out[TFH_SURE]);

#endif
