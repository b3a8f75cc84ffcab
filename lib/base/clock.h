/* The clock of all records: the processor's counter where it is reliable, else CLOCK_MONOTONIC in
 * ns.
 *
 * The length of a tick is not fixed. Bracketed readings of (ticks, MONOTONIC, REALTIME) are stored
 * with the records from time to time and give the length afterwards, so nothing has to be
 * calibrated by waiting. */
#ifndef TFH_BASE_CLOCK_H
#define TFH_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/arch.h"

/* Values are in trace files: only append. */
enum tfh_clock_source {
	TFH_CLOCK_MONOTONIC = 0, /* ticks are ns of CLOCK_MONOTONIC */
	TFH_CLOCK_TSC = 1,	 /* x86 time-stamp counter */
	TFH_CLOCK_CNTVCT = 2,	 /* AArch64's virtual counter */
};

enum tfh_clock_trust {
	TFH_TRUST_NONE = 0,
	/* The guest's kernel uses another clock derived from the same counter. The pairs in the
	 * file show afterwards whether the counter kept its rate (tft_clock_residual_ns). */
	TFH_TRUST_PROVISIONAL = 1,
	TFH_TRUST_FULL = 2,
};

struct tfh_clock_info {
	enum tfh_clock_source source;
	enum tfh_clock_trust trust;
	bool invariant;	      /* the processor reports a counter of constant rate */
	char clocksource[32]; /* the kernel's choice, "" if unreadable */
};

/* One bracketed reading. */
struct tfh_clock_pair {
	uint64_t ticks;	  /* middle of the narrowest bracket */
	int64_t mono_ns;  /* CLOCK_MONOTONIC then */
	int64_t real_ns;  /* CLOCK_REALTIME then */
	uint64_t bracket; /* width of the bracket in ticks: the reading's uncertainty */
};

#define TFH_CLOCK_TRIES 32 /* 1.7 us for a pair; the best of 32 is within 10 ns */

typedef int (*tfh_clock_read_fn)(clockid_t id, struct timespec *ts);

#pragma GCC visibility push(hidden)
extern uint8_t tfh_clock_counter; /* whether ticks come from the processor's counter */
/* Reads a clock of the kernel, where ticks are not the processor's counter: by the kernel's own
 * function (vDSO), which libc calls, too, or by libc's. Without libc a reading takes 15.6 instead
 * of 16.2 ns on the Intel machine of bench/README.md. */
extern tfh_clock_read_fn tfh_clock_read;
#pragma GCC visibility pop

static inline int64_t tfh_clock_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/* Now, in ticks. Without a fence, since the measured calls are longer than any reordering. */
static inline uint64_t tfh_ticks(void)
{
	struct timespec ts;

	if (__builtin_expect(tfh_clock_counter, 1))
		return tfh_arch_ticks();
	tfh_clock_read(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* Chooses the clock once per process and fills *info if not NULL. Must run before the first record,
 * since ticks are CLOCK_MONOTONIC until then. Reads one file in /sys. May be called again, also
 * from several threads. */
void tfh_clock_init(struct tfh_clock_info *info);

/* The decision of tfh_clock_init() as a pure function: may the counter be used with this kernel
 * clock source? */
enum tfh_clock_trust tfh_clock_judge(bool invariant, const char *clocksource);

/* Takes the best of TFH_CLOCK_TRIES bracketed readings; about 2 us. */
void tfh_clock_read_pair(struct tfh_clock_pair *pair);

/* Length of a tick in ns between two pairs; 0 if no tick passed. */
double tfh_clock_ns_per_tick(const struct tfh_clock_pair *a, const struct tfh_clock_pair *b);

#endif
