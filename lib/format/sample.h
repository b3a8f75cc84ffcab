/*
 * Payload of SAMP chunks: samples in sequence, each a struct tft_sample followed by `threads`
 * entries of struct tft_sample_thread. Counters only grow, except cpus. UINT64_MAX: could not be
 * read.
 */
#ifndef TFH_FORMAT_SAMPLE_H
#define TFH_FORMAT_SAMPLE_H

#include <assert.h>
#include <stdint.h>

struct tft_sample {
	uint64_t ticks;
	uint64_t cpu_ns;     /* CPU time of the whole process */
	uint64_t flusher_ns; /* part of it used by the flusher */
	uint64_t read_bytes; /* /proc/self/io: bytes that reached the storage layer */
	uint64_t write_bytes;
	uint32_t cpus;	  /* CPUs that the process may run on */
	uint32_t threads; /* entries that follow: threads with recorded calls */
};
static_assert(sizeof(struct tft_sample) == 48, "on disk");

struct tft_sample_thread {
	uint32_t thread, tid;
	uint64_t run_ns;   /* on a CPU */
	uint64_t delay_ns; /* waiting for a CPU while runnable */
};
static_assert(sizeof(struct tft_sample_thread) == 24, "on disk");

/* Marks an entry that holds a value of the process instead of a thread; its `tid` says which. */
#define TFT_SAMPLE_NO_THREAD UINT32_MAX

enum {
	TFT_SAMPLE_FAULTS = 1, /* run_ns: minor page faults, delay_ns: major ones */
	/* run_ns: kernel part of cpu_ns; delay_ns: smallest time of a page fault here, measured
	 * once. */
	TFT_SAMPLE_SYSTEM = 2,
	TFT_SAMPLE_MEMORY = 3, /* run_ns: resident bytes; delay_ns: page size */
	/* From 4 on: two values of the machine, one row of base/meters.def each. */
	/* of the thread whose index is the upper half: minor, major */
	TFT_SAMPLE_THREAD_FAULTS = 32,
	TFT_SAMPLE_THREAD_SWITCHES = 33, /* likewise: voluntary, forced */
	/* Of the process, from /proc/self/io: bytes that its system calls read and wrote, wherever
	 * from, and the number of these calls. */
	TFT_SAMPLE_IO_BYTES = 34,
	TFT_SAMPLE_IO_CALLS = 35,
};

#define TFT_SAMPLE_INDEX_SHIFT 16u

#endif
