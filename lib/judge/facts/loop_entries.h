/*
 * The loops of a program, from how far Python's iterators, or the program's own counters, had come
 * at each sample (sampling/iterators.h): when each loop was entered, and how far it went.
 */
#ifndef TFH_JUDGE_FACTS_LOOP_ENTRIES_H
#define TFH_JUDGE_FACTS_LOOP_ENTRIES_H

#include "judge/numbers.h"
#include "model/start.h"
#include "model/vec.h"

/* A loop as the stack shows it: which loop of which function, inside of which other one. Loops that
 * follow each other in a function look the same here, and are told apart by their lines. */
struct tfh_loop_path {
	uint32_t parent; /* number of the loop around it, from 1; 0: none */
	struct tfh_model_line line;
	uint32_t ordinal; /* among the loops that the frame is in, from the outermost one, 0 */
	bool called_back; /* a library is between it and the loop around it, or the program */
	uint32_t open;	  /* its newest entry, from 1 */
	uint32_t depth;	  /* of its frame, at first */
	uint32_t twin;	  /* the loop over this generator, from 1; 0: none */
	uint32_t twins;	  /* how often samples showed it to be that one */
};

/* One time that a loop was entered, as far as samples show it. */
struct tfh_loop_entry {
	uint32_t path, loop;  /* indices; loop: set by who compares loops */
	uint32_t parent;      /* entry of the loop around it, from 1; 0: none */
	uint64_t parent_done; /* the iteration of that one */
	uint64_t done;	      /* at its last sample, without `base` */
	uint64_t base;	      /* what its counter was before it was entered */
	bool base_guessed;
	bool sure; /* its iterations count from the first one */
	/* it has a counter; one that is never reset; a later entry continues it */
	bool counter, goes_on, followed;
	int64_t left;		      /* iterations left at its last sample; -1: unknown */
	uint32_t first, last, lo, hi; /* samples; lines of the loop's frame */
	double ns, waits;	      /* waits: the part that waits for computing elsewhere */
	double iterations;	      /* when it was left; set by who compares loops */
};

/* From one change of an entry's iteration to the next: that many iterations took this long. */
struct tfh_loop_span {
	uint32_t entry;
	double iterations, ns;
	bool waits; /* at both of these, the loop waited for computing elsewhere */
};

/* A sample in a loop. */
struct tfh_loop_sample {
	uint32_t sample, entry; /* indices */
	uint64_t done;
};

struct tfh_loop_samples {
	TFH_VEC(struct tfh_loop_path) path;
	TFH_VEC(struct tfh_loop_sample) at; /* in order of samples */
	TFH_VEC(struct tfh_loop_entry) entry;
	TFH_VEC(struct tfh_loop_span) span;
};

/* What a sample counts when loops are compared. */
struct tfh_loop_weight {
	double ns;
	bool waits; /* for what is computed elsewhere, having been queued before */
};

/* Samples, and the loops that they show. */
struct tfh_loop_source {
	const struct tfh_start_sample *sample; /* in time order */
	const struct tfh_start_loop *loop;     /* in order of samples, then from the outermost on */
	uint32_t n_loop;
	const struct tfh_loop_weight *weight; /* of each sample; NULL: they count nothing */
	bool libraries; /* the outermost frame of a library with loops, instead of the program's */
	const void *arg;
	/* The frames of a place, innermost first; returns their number. */
	uint32_t (*frames)(const void *arg, uint32_t place,
			   struct tfh_model_line frame[TFH_VERDICT_FRAMES]);
};

/* loop_entries.c; 0 or -ENOMEM. Freed with tfh_loop_samples_free(), also after an error. */
int tfh_loop_entries(const struct tfh_loop_source *s, struct tfh_loop_samples *out);
void tfh_loop_samples_free(struct tfh_loop_samples *l);

/* loop_generators.c: notes that an entry of the path, from 1, goes on after samples outside of
 * its loop; then joins loops over generators with those inside of these, 0 or -ENOMEM. */
void tfh_note_resumed(struct tfh_loop_samples *l, uint32_t path);
int tfh_join_generators(struct tfh_loop_samples *l);

#endif
