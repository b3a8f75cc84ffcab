/* Collectives matched over ranks and devices. */
#ifndef TFH_JUDGE_MEET_H
#define TFH_JUDGE_MEET_H

#include "judge/facts/facts.h"

struct tfh_meet *tfh_meet_new(void);
void tfh_meet_free(struct tfh_meet *m);
/* `alone`: no other process is judged with it. */
int tfh_meet_add(struct tfh_meet *m, const struct tfh_feed *f, uint32_t process, bool alone,
		 struct tfh_err *err);
int tfh_meet_match(struct tfh_meet *m);
int64_t tfh_meet_shared(const struct tfh_meet *m, uint32_t process, uint32_t device, uint64_t n);
double tfh_meet_late(const struct tfh_meet *m, uint32_t process);
double tfh_meet_held(const struct tfh_meet *m, uint32_t process);

#endif
