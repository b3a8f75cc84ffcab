/* Threads that keep a few blocks ready for their reader. */
#ifndef TFH_MODEL_AHEAD_H
#define TFH_MODEL_AHEAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TFH_AHEAD_MOST 16u
#define TFH_AHEAD_THREADS 6u

struct tfh_ahead {
	/* Fills block number i, overwriting its contents. Returns false for the last one. */
	bool (*fill)(void *arg, void *block, uint64_t i);
	void *arg;
	char *ring;
	size_t bytes;	/* of a block */
	uint32_t n;	/* blocks; 1: no thread */
	uint64_t count; /* of blocks in all, UINT64_MAX: unknown */
	bool last[TFH_AHEAD_MOST];
	bool stop, begun;
	bool reading; /* block number `read` is in use by the reader */
	uint32_t threads;
	pthread_t thread[TFH_AHEAD_THREADS];
	pthread_mutex_t lock;
	pthread_cond_t changed;
	/* Numbers of blocks: taken to be filled, filled, read. */
	uint64_t taken, made, read;
	bool ready[TFH_AHEAD_MOST];
};

/* What is read ahead. With one block, or if no thread can be created, blocks are filled on
 * request. */
struct tfh_ahead_plan {
	bool (*fill)(void *arg, void *block, uint64_t i);
	void *arg;
	size_t bytes;	  /* of a block */
	uint32_t blocks;  /* <= TFH_AHEAD_MOST */
	uint32_t threads; /* <= TFH_AHEAD_THREADS; several only with `count` */
	uint64_t count;	  /* of blocks in all, UINT64_MAX: unknown */
};
/* 0 or -ENOMEM; call tfh_ahead_stop() in either case. */
int tfh_ahead_start(struct tfh_ahead *a, const struct tfh_ahead_plan *plan);
/* The next block, NULL after the last one. Releases the previous block. */
void *tfh_ahead_next(struct tfh_ahead *a);
/* Waits for the threads and frees the blocks. Accepts a zeroed structure. */
void tfh_ahead_stop(struct tfh_ahead *a);

#endif
