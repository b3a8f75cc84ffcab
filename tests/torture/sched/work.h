/* What the tasks of a schedule do, and the check that nothing of it is lost. */
#ifndef TESTS_TORTURE_SCHED_WORK_H
#define TESTS_TORTURE_SCHED_WORK_H

#include <stdbool.h>
#include <stdint.h>

#include "format/layout.h"
#include "turns.h"

/* What was done so far: lies in memory that the processes of a schedule share. */
struct work_sums {
	uint64_t points, published, read, lost, refused, forks, flushes, execs, usual;
};
extern struct work_sums *work_sums;

/* One schedule. `several`: with forks, by a process that has recorded nothing yet. The reason of a
 * failure goes to work_failed, which does not return. */
void work_run(uint64_t seed, bool several);
/* Two tasks: one does `first` and gets a signal at a point of it, the other one `second`, all of it
 * at another point (turns.h). Returns how many points `first` has. */
uint32_t work_pair(uint32_t first, uint32_t second, uint32_t signal_at, uint32_t change_at);
/* The name of an action, or NULL. */
const char *work_action(uint32_t i);
/* A recorder that may record again, as after a fork. */
void work_reset(void);
void work_failed(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));

/* From the fakes: a recording begins, a record or a loss is written. */
void work_begins(void);
void work_read(const struct tfh_rec *r, uint32_t thread, uint64_t number);
void work_lost(uint64_t n);

#endif
