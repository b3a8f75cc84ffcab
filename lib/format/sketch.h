/*
 * Summary of a chunk in its header, so that a pass over the headers alone can choose the step
 * clock. Computed by the encoder, read by the analysis; kept in DGST chunks when the events are
 * discarded.
 */
#ifndef TFH_FORMAT_SKETCH_H
#define TFH_FORMAT_SKETCH_H

#include <stdint.h>

#define TFT_SKETCH_FNS 256
#define TFT_SKETCH_STAGES 256
#define TFT_SKETCH_CLOCKS 64
#define TFT_SKETCH_BINS 24
#define TFT_SKETCH_ANCHORS 8
#define TFT_SKETCH_WAIT 7 /* the anchor after those of enum tfh_dir */

struct tft_sketch_fn {
	uint16_t fn;
	uint16_t pad;
	uint32_t count;
	uint64_t ticks; /* sum of durations */
};

struct tft_sketch_stage {
	uint32_t stage;
	uint32_t count;
	uint64_t total, self;
};

/* A series of calls that could be the step clock, one key per iterator, op name or mark, over all
 * threads. */
struct tft_sketch_clock {
	uint16_t fn;
	uint16_t pad;
	uint32_t key; /* iterator id, op name id, ... */
	uint32_t count;
	uint32_t threads;	  /* threads that issued it in this chunk */
	uint64_t t_first, t_last; /* end times */
	uint64_t ticks;		  /* sum of durations */
};

/* Best bandwidth per direction and power-of-two size bin (bin = log2(bytes) - 10, clamped). */
struct tft_sketch_bin {
	uint8_t dir; /* enum tfh_dir */
	uint8_t bin;
	uint16_t fn;
	uint32_t count;
	uint64_t bytes, best_bytes_per_tick_q32;
};

/* All copies in one direction, or all waits: exact, since there is room for each. */
struct tft_sketch_anchor {
	uint32_t count;
	uint32_t pad;
	uint64_t ticks; /* sum of the calls' durations */
	uint64_t bytes;
	uint64_t t_first, t_last; /* end times */
};

struct tft_sketch {
	uint32_t n_fn, n_stage, n_clock, n_bin;
	uint32_t overflow;	/* entries that did not fit */
	uint32_t knows_anchors; /* 0: written before sketches had anchors */
	uint64_t launch_hash;	/* order-sensitive hash of the launched function ids */
	uint64_t launches;
	struct tft_sketch_fn fn[TFT_SKETCH_FNS];
	struct tft_sketch_stage stage[TFT_SKETCH_STAGES];
	struct tft_sketch_clock clock[TFT_SKETCH_CLOCKS];
	struct tft_sketch_bin bin[TFT_SKETCH_BINS];
	struct tft_sketch_anchor anchor[TFT_SKETCH_ANCHORS]; /* by enum tfh_dir, then waits */
};

#endif
