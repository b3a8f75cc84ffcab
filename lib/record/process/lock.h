/*
 * The only lock in code loaded into a job. It is held for microseconds, and its holder calls no
 * code of the job or the driver. A thread that cannot get it soon continues without it, because a
 * signal handler inside the holder, a debugger or a fork must not cause a hang. The data that was
 * to be written is then lost, and the caller reports this where possible.
 *
 * All lock words are in one section, which the fork handler clears in the child, since the child's
 * only thread holds none. scripts/check-waits rejects other kinds of locks and waits.
 */
#ifndef TFH_RECORD_PROCESS_LOCK_H
#define TFH_RECORD_PROCESS_LOCK_H

#include <stdbool.h>
#include <stdint.h>

/* For static variables: uint32_t, or arrays of it. */
#define TFH_LOCK_WORD __attribute__((section("tfh_locks")))

/*
 * Returns true if the caller holds the lock. Waits at most 10 ms, since a holder may be preempted,
 * and only once per holder: after that, nobody waits for that holder again. Preserves errno.
 */
bool tfh_lock(uint32_t *word);

/* Like tfh_lock(), but never waits. For work that the other thread does as well. */
bool tfh_lock_try(uint32_t *word);

void tfh_unlock(uint32_t *word);

/* In a forked child: releases all locks. */
void tfh_locks_forked(void);

#endif
