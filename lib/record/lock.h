/*
 * The only lock of what is loaded into a job. It is held for microseconds, its holder calls nothing
 * of the job's or the driver's, and whoever wants it goes on without it when it cannot be had soon:
 * a signal handler inside the holder, a debugger at the holder, a forked child must not be a
 * hang. What was to be written then is lost, and the caller says so where that can be seen.
 *
 * All words lie in one section, which the fork handler empties in the child: it has one thread, and
 * that one holds none. scripts/check-waits refuses locks and waits of other kinds.
 */
#ifndef TFH_RECORD_LOCK_H
#define TFH_RECORD_LOCK_H

#include <stdbool.h>
#include <stdint.h>

/* For static variables: uint32_t, or arrays of it. */
#define TFH_LOCK_WORD __attribute__((section("tfh_locks")))

/*
 * True: the caller holds it. Waits 10 ms at most, as long as a holder may be kept from a processor
 * by others, and only once for one holder: from then on nobody waits for that one. errno is kept.
 */
bool tfh_lock(uint32_t *word);

/* The same without waiting, for what the other thread does as well. */
bool tfh_lock_try(uint32_t *word);

void tfh_unlock(uint32_t *word);

/* In a forked child: all are free. */
void tfh_locks_forked(void);

#endif
