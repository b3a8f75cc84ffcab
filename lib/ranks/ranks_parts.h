/* The steps of tfh_ranks_find(), in their order. */
#ifndef TFH_RANKS_RANKS_PARTS_H
#define TFH_RANKS_RANKS_PARTS_H

#include "digest/digest.h"
#include "judge/numbers.h"
#include "ranks/ranks.h"

/* ranks_fold.c: adds the steps of a digest to its ranks; `rank` by number of DRNK. */
struct tfh_ranks_folding;
struct tfh_ranks_folding *tfh_ranks_folding_new(const struct tfh_ranks *job);
int tfh_ranks_fold(struct tfh_ranks_folding *x, struct tfh_run_digest *d,
		   struct tfh_ranks_rank *rank, struct tfh_err *err);

/* Doubles the width of a rank's intervals until it is at least that. */
void tfh_ranks_widen(struct tfh_ranks_rank *r, double width_s);

/* ranks_others.c: which digests are of another job than most ranks. `part`: ranks of each
 * digest. */
int tfh_ranks_find_others(struct tfh_ranks *job, char *const *path,
			  struct tfh_ranks_rank *const *part, bool *other);

/* ranks_sample.c: its anchors and communicators. */
int tfh_ranks_take_anchors(struct tfh_run_digest *d, uint32_t steps, struct tfh_ranks_rank *rank,
			   struct tfh_err *err);

/* ranks_slowest.c: chooses the steps whose paths are looked for, before the digests are read: the
 * one asked for, or the slowest ones of one rank. */
void tfh_ranks_choose_steps(struct tfh_ranks *job, char *const *digest, uint32_t n,
			    const uint64_t *step);
/* Keeps an exchange of a rank if it overlaps one of its steps that were chosen; `at`: where to look
 * first, at first 0. */
void tfh_ranks_keep_exchange(struct tfh_ranks_rank *r, uint32_t steps, uint32_t *at,
			     const struct tfh_ranks_sample *s);

/* ranks_generations.c: keeps the ranks of one start of all ranks, and describes the others. 0 or
 * -ENOMEM. */
int tfh_ranks_split(struct tfh_ranks *job);

/* ranks_read.c: reads all digests on a few threads. 0 or -errno with `err`. */
int tfh_ranks_read(struct tfh_ranks *job, char *const *digest, uint32_t n, struct tfh_err *err);

/* ranks_places.c: numbers the PCIe switches and NVLink domains. 0 or -ENOMEM. */
int tfh_ranks_number_places(struct tfh_ranks *job);
/* Ranks some of whose NVLinks are down. 0 or -ENOMEM. */
int tfh_ranks_find_few_links(struct tfh_ranks *job);

/* ranks_comms.c: joins the ranks' parts to communicators, and chooses peers. 0 or -ENOMEM. */
int tfh_ranks_join(struct tfh_ranks *job);

/* ranks_clocks.c: aligns the hosts' clocks by the ends of exchanges. 0 or -ENOMEM. */
int tfh_ranks_align(struct tfh_ranks *job);
/* Time on the common axis, in seconds, of a host's time since its start. */
double tfh_ranks_time(const struct tfh_ranks *job, uint32_t host, int64_t ns);

/* ranks_late.c: which ranks are late to exchanges, and how long they take. 0 or -ENOMEM. */
int tfh_ranks_find_late(struct tfh_ranks *job);

/* ranks_step.c: the slowest path of each step that was chosen. 0 or -ENOMEM. */
int tfh_ranks_find_steps(struct tfh_ranks *job);
/* By how much a rank's own time in a step exceeds its usual one; in which part mostly: enum
 * tfh_cause, TFH_CAUSE_COUNT: computing, -1: in none; and `s` of it. */
double tfh_ranks_over(const struct tfh_ranks_rank *r, const struct tfh_ranks_in_step *in);
int tfh_ranks_over_cause(const struct tfh_ranks_rank *r, const struct tfh_ranks_in_step *in,
			 double *s);

/* ranks_slow.c: ranks, hosts and places that take longer than their peers. 0 or -ENOMEM. */
int tfh_ranks_find_slow(struct tfh_ranks *job);
/* ranks_rare.c: ranks some of whose steps are far longer than usual. 0 or -ENOMEM. */
int tfh_ranks_find_rare(struct tfh_ranks *job);
/* ranks_links.c: exchanges that take longer than others of their kind; clocks that differ. 0 or
 * -ENOMEM. */
int tfh_ranks_find_links(struct tfh_ranks *job);
/* ranks_hang.c: missing ranks, and exchanges that were not completed. 0 or -ENOMEM. */
int tfh_ranks_find_hangs(struct tfh_ranks *job);

/* ranks_text.c: all of the text but the map; every line is a title, a heading, or a sentence that
 * is indented. */
void tfh_ranks_sentences(FILE *out, const struct tfh_ranks *job,
			 const struct tfh_ranks_style *style);

/* ranks_step_text.c: sentences about the slowest steps, below a heading. */
struct tfh_page;
void tfh_ranks_slowest_steps(const struct tfh_page *page, const struct tfh_ranks *job, bool all);

/* ranks_map.c: number and name of the shade of a share of a step. */
#define TFH_RANKS_SHADES 6u
unsigned tfh_ranks_shade(double share);
const char *tfh_ranks_shade_name(unsigned shade);
/* Number of columns of the map, at most `most`. The excess in one column, as a share of a step, of
 * the ranks from..to-1 over their peers: that of the worst one; NAN: no steps. */
uint32_t tfh_ranks_columns(const struct tfh_ranks *job, uint32_t most);
double tfh_ranks_worst(const struct tfh_ranks *job, uint32_t from, uint32_t to, uint32_t column,
		       uint32_t columns);

/* Frees what a rank keeps. */
void tfh_ranks_drop(struct tfh_ranks_rank *r);
/* Adds a finding, all 0. NULL: out of memory. */
struct tfh_ranks_finding *tfh_ranks_add(struct tfh_ranks *job, enum tfh_ranks_what what);
/* Median of n values, which are sorted; NAN: none. */
double tfh_ranks_median(double *v, uint32_t n);
/* Median distance from a value, scaled to a standard deviation; `v` is changed. */
double tfh_ranks_spread(double *v, uint32_t n, double from);

#endif
