/* How much of their CPU time the job's threads have on the memory node of its devices, and how much
 * on others. */
#ifndef TFH_RECORD_WATCH_NEAR_H
#define TFH_RECORD_WATCH_NEAR_H

#include <stdbool.h>
#include <stdint.h>

/* Takes the memory nodes of the job's devices, a bit for each node; returns whether the machine has
 * others. `sys` is "/sys". */
bool tfh_near_find(const char *sys, uint64_t nodes);
/* A thread has used `run_ns` so far and was last on `cpu`. The time since its last reading counts
 * for where it is now. */
void tfh_near_add(uint32_t tid, uint64_t run_ns, unsigned cpu);
/* ns on the devices' nodes, and on others: both only grow. */
uint64_t tfh_near_ns(void);
uint64_t tfh_far_ns(void);

#endif
