/*
 * Payload of SAMP chunks: samples one after the other, each a struct tft_sample and then `threads`
 * entries of struct tft_sample_thread. Numbers only grow, except cpus; UINT64_MAX = could not be
 * read.
 */
#ifndef TFT_SAMPLE_H
#define TFT_SAMPLE_H

#include <assert.h>
#include <stdint.h>

struct tft_sample {
	uint64_t ticks;
	uint64_t cpu_ns;     /* CPU time of the whole process */
	uint64_t flusher_ns; /* of that, ours */
	uint64_t read_bytes; /* /proc/self/io: what reached the storage layer */
	uint64_t write_bytes;
	uint32_t cpus;	  /* processors the process may run on */
	uint32_t threads; /* entries that follow: threads with recorded calls */
};
static_assert(sizeof(struct tft_sample) == 48, "on disk");

struct tft_sample_thread {
	uint32_t thread, tid;
	uint64_t run_ns;   /* on a processor */
	uint64_t delay_ns; /* ready to run, but waiting for a processor */
};
static_assert(sizeof(struct tft_sample_thread) == 24, "on disk");

/* An entry of this thread is none: what it holds instead, of the process, is told by its `tid`. */
#define TFT_SAMPLE_NO_THREAD UINT32_MAX

enum {
	TFT_SAMPLE_FAULTS = 1, /* run_ns: page faults without, delay_ns: with reading from disk */
	TFT_SAMPLE_SYSTEM = 2, /* run_ns: of cpu_ns, in the kernel; delay_ns: ns that a page fault
				  takes here at least, measured once */
	TFT_SAMPLE_MEMORY = 3, /* run_ns: bytes resident; delay_ns: bytes of a page */
	/* From 4 on: two values of the machine, a row of base/meters.def each. */
};

#endif
