/* How a thread in TFT_STATE_LOCK waits: in the place of the descriptor in a STATE record. */
#ifndef TFH_FORMAT_WAITS_H
#define TFH_FORMAT_WAITS_H

#include <stdint.h>

/* Values are in trace files: only append. */
enum tft_wait {
	TFT_WAIT_MUTEX = 1,  /* for a lock that another thread holds */
	TFT_WAIT_SIGNAL = 2, /* until another thread signals a condition, semaphore or future */
	TFT_WAIT_END = 3,    /* for the end of a thread */
	TFT_WAIT_ANY = -1,   /* for a lock or for something else, unknown */
};

static inline enum tft_wait tft_wait_of(uint64_t word)
{
	int32_t wait = (int32_t)(word >> 32);

	return wait >= TFT_WAIT_MUTEX && wait <= TFT_WAIT_END ? (enum tft_wait)wait : TFT_WAIT_ANY;
}

#endif
