/* Sentences about a job of many ranks, for the text and for JSON. */
#ifndef TFH_RANKS_RANKS_WORDS_H
#define TFH_RANKS_RANKS_WORDS_H

#include "ranks/ranks.h"

#define TFH_RANKS_NAME 128

/* "rank 77 (host12, local rank 5)"; "the tensor group of ranks 8 to 15". Both return `out`. */
const char *tfh_ranks_name(char out[TFH_RANKS_NAME], const struct tfh_ranks *job, uint32_t rank);
const char *tfh_ranks_group(char out[TFH_RANKS_NAME], const struct tfh_ranks *job, uint32_t comm);
/* Names in JSON. NULL for an unknown cause. */
const char *tfh_ranks_kind_name(enum tfh_ranks_kind kind);
const char *tfh_ranks_what_name(enum tfh_ranks_what what);
const char *tfh_ranks_cause_name(int cause);
void tfh_ranks_sentence(char *out, size_t size, const struct tfh_ranks *job,
			const struct tfh_ranks_finding *f);
void tfh_ranks_hang_sentence(char *out, size_t size, const struct tfh_ranks *job,
			     const struct tfh_ranks_hang *h);
void tfh_ranks_step_sentence(char *out, size_t size, const struct tfh_ranks *job,
			     const struct tfh_ranks_step *s);
/* The call in which a rank was at its end; it has one. */
void tfh_ranks_open_call(char *out, size_t size, const struct tfh_ranks_rank *r);

/* "start 1, of 4 ranks: 20 steps, from 0 s to 1m12s; first rank 0 (node0) died of signal 9 ..." */
void tfh_ranks_generation_sentence(char *out, size_t size, const struct tfh_ranks *job, uint32_t i);

#endif
