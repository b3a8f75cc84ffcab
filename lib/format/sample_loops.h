/*
 * How far loops had come, in the EXT record that follows a sample (FORMAT.md, 2.1, STATE).
 */
#ifndef TFH_FORMAT_SAMPLE_LOOPS_H
#define TFH_FORMAT_SAMPLE_LOOPS_H

#include <stdbool.h>
#include <stdint.h>

#include "format/layout.h"

/* Loops of one sample. */
#define TFT_LOOPS 8u

struct tft_loop {
	uint32_t depth; /* of its frame in the sample's place, from 1 at the outermost one */
	bool sure;	/* whether `done` counts from the loop's first iteration */
	uint64_t done;	/* iterations, including the running one */
	uint64_t left;	/* 1 more than those that remained; 0: not known */
	uint8_t count;	/* what counted them: a digit of start.json's `counted` */
};

/* Fills an EXT record's bytes with as many of the loops as they have room for. Returns the number
 * of bytes used. */
uint32_t tft_loops_pack(const struct tft_loop *loop, uint32_t n, uint8_t out[TFT_EXT_BYTES]);
/* Reads them, up to the first that is damaged. Returns their number. */
uint32_t tft_loops_unpack(const uint8_t *from, uint32_t bytes, struct tft_loop out[TFT_LOOPS]);

#endif
