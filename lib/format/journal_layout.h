/*
 * Byte layout of a journal: one file per recording process with its rings, the flusher's staging
 * area and what another process needs to interpret them. The owner maps it shared, so its pages
 * survive if the owner is killed by SIGKILL. Rings, open-call slots and AGG slots are in
 * format/layout.h. Normative text: format/FORMAT.md, section 3.
 *
 *	0		struct tft_journal (TFT_JOURNAL_HEADER bytes)
 *	slots_off	TFT_JOURNAL_SLOTS x struct tft_slot
 *	head_off	HEAD payload, head_bytes of at most TFT_JOURNAL_HEAD_CAP
 *	staging_off	struct tft_staging, then its records at staging.records_off
 *	...		ring slots, appended while the process runs: header page, then records
 *
 * Every part starts at a multiple of 4096. The file only grows. tft_journal_plan() computes the
 * offsets.
 */
#ifndef TFH_FORMAT_JOURNAL_LAYOUT_H
#define TFH_FORMAT_JOURNAL_LAYOUT_H

#include "format/layout.h"

#define TFT_JOURNAL_VERSION 1
#define TFT_JOURNAL_HEADER 16384u
#define TFT_JOURNAL_SLOTS 4096u
#define TFT_JOURNAL_HEAD_CAP (256u << 10)
#define TFT_RING_HEADER 4096u
#define TFT_RING_SMALL (64u << 10) /* bytes of records of a new thread's ring: 1,024 records */
#define TFT_RING_LARGE (1u << 20)  /* size once it has been more than half full: 16,384 records */
#define TFT_STAGING_RECORDS 65536u
#define TFT_STAGING_BATCHES 8192u

/* tft_journal.flags; set before the state becomes RUNNING, constant afterwards. */
enum {
	TFT_JF_TICKS_ARE_NS = 1, /* ticks are CLOCK_MONOTONIC nanoseconds */
	/* The owner holds a write lock on byte 0 while it lives: F_OFD_SETLK, or POSIX F_SETLK. */
	TFT_JF_LOCKED = 2,
	TFT_JF_IN_DEV_SHM = 4,
};

enum tft_journal_state {
	TFT_JOURNAL_SETUP = 0, /* being initialised: nothing to salvage */
	TFT_JOURNAL_RUNNING = 1,
	TFT_JOURNAL_FINISHED = 2, /* everything was written; the owner removes it next */
};

/* One instant on the three clocks. */
struct tft_clock_triple {
	uint64_t ticks, monotonic_ns, realtime_ns;
};

struct tft_journal {
	/* line 0: constant after set-up */
	/* TFT_JOURNAL_SETUP_MAGIC from the first write on; TFT_JOURNAL_MAGIC stored last, with
	 * release. */
	uint64_t magic;
	uint32_t version;      /* TFT_JOURNAL_VERSION; a reader refuses later ones */
	uint32_t header_bytes; /* TFT_JOURNAL_HEADER */
	uint64_t slots_off;
	uint64_t head_off;
	uint64_t staging_off;
	uint32_t pid;
	uint32_t ppid;
	/* Field 22 of /proc/self/stat: clock ticks after boot; distinguishes a reused pid. */
	uint64_t process_start;
	uint32_t flags; /* TFT_JF_* */
	int32_t rank;	/* -1 = none */
	/* line 1: constant after set-up */
	uint64_t tick_hz;	       /* estimate, 0 = unknown */
	struct tft_clock_triple start; /* when recording began */
	/* with TFT_CTL_GPU_ON_AT: for how many steps, 0 = no end */
	uint64_t at_count;
	uint64_t at_answer; /* the flusher's: the step at which it will obey */
	uint64_t reserved0[2];
	/* line 2: written by other processes */
	uint64_t control; /* TFT_CTL_*; atomic read-modify-write */
	uint64_t at_step; /* step of the last request of this kind; 0 = none, or withdrawn */
	/* calls of threads without a ring; as dropped, drop_* of a ring */
	uint64_t beyond, beyond_first, beyond_last;
	uint64_t beyond_seen, beyond_writing, beyond_mark;
	/* line 3: the flusher's progress; each field one atomic store */
	uint32_t state;	       /* enum tft_journal_state */
	uint32_t slot_count;   /* release: slot table entries in use */
	uint64_t heartbeat_ns; /* CLOCK_MONOTONIC, at least once a second */
	uint32_t segment;      /* number of the segment being written; valid when segments > 0 */
	uint32_t segments;     /* segments created so far */
	uint32_t head_bytes;   /* release: length of the HEAD payload copy, 0 = none yet */
	/* Release: triples taken so far; the newest is clock[(clock_n - 1) & 1]. */
	uint32_t clock_n;
	uint64_t events_written;
	uint64_t bytes_written;
	uint64_t dropped; /* cumulative, all causes */
	/* CLOCK_MONOTONIC since which writing is paused (disk full); 0: it is not. */
	uint64_t paused_ns;
	/* line 4 */
	struct tft_clock_triple clock[2]; /* used alternately, so that one is always complete */
	uint64_t flusher_cpu_ns;
	uint64_t steps; /* step marks or consumer get-next calls seen so far: for `tfhook top` */
	/* strings: constant after set-up, except run_dir; NUL-terminated */
	char boot_id[48];
	char host[64];
	char comm[64];
	/* absolute path of the run directory; empty until it is known. The first character is
	 * stored last, with release */
	char run_dir[4096];
	/* Segment n is "<run_dir>/<prefix>.<n>.tft", n decimal without leading zeros. */
	char prefix[256];
	/* the owner's namespaces and root, constant after set-up; 0 = unknown */
	uint64_t pid_ns, mnt_ns; /* numbers of its namespaces */
	uint64_t root_dev, root_ino;
};
static_assert(offsetof(struct tft_journal, pid_ns) == 4848, "journal");
static_assert(offsetof(struct tft_journal, tick_hz) == 64, "journal");
static_assert(offsetof(struct tft_journal, at_count) == 96, "journal");
static_assert(offsetof(struct tft_journal, control) == 128, "journal");
static_assert(offsetof(struct tft_journal, state) == 192, "journal");
static_assert(offsetof(struct tft_journal, clock) == 256, "journal");
static_assert(offsetof(struct tft_journal, boot_id) == 320, "journal");
static_assert(sizeof(struct tft_journal) <= TFT_JOURNAL_HEADER, "journal");

/* Position of a ring header, whose records_off locates the records. Written before slot_count
 * includes it. */
struct tft_slot {
	uint64_t ring_off;
	uint64_t bytes; /* of header page and records together */
};

/*
 * Staging area. The flusher copies records out of a ring, then appends (or extends) a batch, and
 * only then advances the ring's tail. When the chunk's write(2) has returned, it sets n_batches and
 * used to 0. So a record is always in a ring, in staging or in a chunk, perhaps in two of them; its
 * number (thread, first + i) identifies duplicates.
 */
struct tft_staged {
	uint64_t first; /* number of the first record in its thread */
	uint32_t thread;
	uint32_t tid;
	uint32_t offset; /* in records, from records_off */
	uint32_t count;	 /* release store when a batch is extended */
};
static_assert(sizeof(struct tft_staged) == 24, "journal");

struct tft_staging {
	uint64_t records_off; /* from the start of the journal */
	uint32_t capacity;    /* in records */
	/* +1 (release) right before n_batches and used are reset: a concurrent read was torn. */
	uint32_t epoch;
	uint32_t n_batches; /* release: complete batches */
	uint32_t used;	    /* records in use: where the next batch begins */
	uint64_t reserved1[5];
	struct tft_staged batch[TFT_STAGING_BATCHES];
};
static_assert(offsetof(struct tft_staging, batch) == 64, "journal");

static inline uint64_t tft_page_up(uint64_t n)
{
	return (n + 4095) & ~4095ull;
}

/* Computes the offsets of a new journal's fixed parts; returns where ring slots begin (the size of
 * a journal without rings). */
static inline uint64_t tft_journal_plan(uint64_t *slots_off, uint64_t *head_off,
					uint64_t *staging_off, uint64_t *staging_records_off)
{
	*slots_off = TFT_JOURNAL_HEADER;
	*head_off = tft_page_up(*slots_off + TFT_JOURNAL_SLOTS * sizeof(struct tft_slot));
	*staging_off = *head_off + TFT_JOURNAL_HEAD_CAP;
	*staging_records_off = tft_page_up(*staging_off + sizeof(struct tft_staging));
	return *staging_records_off + TFT_STAGING_RECORDS * sizeof(struct tfh_rec);
}

#endif
