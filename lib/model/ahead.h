/* A producer thread that keeps a few blocks of anything ready for its reader. */
#ifndef TFH_MODEL_AHEAD_H
#define TFH_MODEL_AHEAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TFH_AHEAD_MOST 16u

struct tfh_ahead {
	/* Fills a block; what it held before may be gone. False: it is the last one. */
	bool (*fill)(void *arg, void *block);
	void *arg;
	char *ring;
	size_t bytes; /* of a block */
	uint32_t n;   /* blocks; 1 without a thread */
	bool last[TFH_AHEAD_MOST];
	bool threaded, stop, begun;
	bool reading; /* the block `read` has been handed out */
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	uint64_t made, read; /* blocks */
};

/* `n` blocks at most TFH_AHEAD_MOST; with one, or where no thread can be had, they are made when
 * they are asked for. 0 or -ENOMEM; then, too, tfh_ahead_stop is to be called. */
int tfh_ahead_start(struct tfh_ahead *a, bool (*fill)(void *arg, void *block), void *arg,
		    uint32_t n, size_t bytes);
/* The next block, NULL after the last one. The one before is given back. */
void *tfh_ahead_next(struct tfh_ahead *a);
/* Waits for the thread and frees the blocks. Also for one that is all zeros. */
void tfh_ahead_stop(struct tfh_ahead *a);

#endif
