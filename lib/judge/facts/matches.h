/* Collectives matched over ranks and devices. */
#ifndef TFH_JUDGE_FACTS_MATCHES_H
#define TFH_JUDGE_FACTS_MATCHES_H

#include "judge/facts/facts.h"

struct tfh_collective {
	int64_t t0, t1;
	/* Duration of the shortest participant, -1 unknown; while matching: when it was issued. */
	int64_t shared;
	int64_t alone; /* how long all others had waited for this participant alone */
	uint64_t set;  /* id common to all participants, 0 unknown; while matching: its thread */
};

struct tfh_matches *tfh_matches_new(void);
void tfh_matches_free(struct tfh_matches *m);
/* Adds a process. `alone`: no other process is analysed with it. */
int tfh_matches_add(struct tfh_matches *m, const struct tfh_feed *f, uint32_t process, bool alone,
		    struct tfh_err *err);
int tfh_matches_find(struct tfh_matches *m);
int64_t tfh_matches_shared(const struct tfh_matches *m, uint32_t process, uint32_t device,
			   uint64_t n);
/* The exchanges of a process on the CPU, by their begin. NULL: there are none. */
const struct tfh_collective *tfh_matches_exchanges(const struct tfh_matches *m, uint32_t process,
						   size_t *n);
/* Whether nearly all exchanges of a process on the CPU have a counterpart in every other one that
 * exchanges, and end together with it: they are ranks of one job, whoever numbers them. */
bool tfh_matches_all(const struct tfh_matches *m, uint32_t process);
double tfh_matches_late(const struct tfh_matches *m, uint32_t process);
double tfh_matches_held(const struct tfh_matches *m, uint32_t process);

#endif
