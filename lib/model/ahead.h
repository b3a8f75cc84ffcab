/* A producer thread that keeps a few blocks ready for its reader. */
#ifndef TFH_MODEL_AHEAD_H
#define TFH_MODEL_AHEAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TFH_AHEAD_MOST 16u

struct tfh_ahead {
	/* Fills a block, overwriting its contents. Returns false for the last one. */
	bool (*fill)(void *arg, void *block);
	void *arg;
	char *ring;
	size_t bytes; /* of a block */
	uint32_t n;   /* blocks; 1: no thread */
	bool last[TFH_AHEAD_MOST];
	bool threaded, stop, begun;
	bool reading; /* block number `read` is in use by the reader */
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	uint64_t made, read; /* numbers of blocks */
};

/* `n` <= TFH_AHEAD_MOST blocks; with one, or if no thread can be created, blocks are filled on
 * request. 0 or -ENOMEM; call tfh_ahead_stop() in either case. */
int tfh_ahead_start(struct tfh_ahead *a, bool (*fill)(void *arg, void *block), void *arg,
		    uint32_t n, size_t bytes);
/* The next block, NULL after the last one. Releases the previous block. */
void *tfh_ahead_next(struct tfh_ahead *a);
/* Waits for the thread and frees the blocks. Accepts a zeroed structure. */
void tfh_ahead_stop(struct tfh_ahead *a);

#endif
