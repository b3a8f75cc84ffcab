/*
 * The journal: a shared mapping that holds all rings, staging and counters. If the job is killed,
 * its records are salvaged from it. Job threads append slots without a lock.
 */
#ifndef TFH_RECORD_RING_JOURNAL_H
#define TFH_RECORD_RING_JOURNAL_H

#include "format/journal_layout.h"
#include "record/process/recorder.h"
#include "record/run/rundir.h"

#define TFH_COLD_THREADS 64
#define TFH_COLD_RECORDS                                                                           \
	4096u /* per thread: covers the calls before the first launch, including module loads */
#define TFH_KEPT_NS 10000000000ull /* how long a finished recording's memory is kept */

struct tfh_journal {
	struct tft_journal *head;
	struct tft_slot *slots;
	struct tft_staging *staging;
	struct tfh_rec *staged;
	uint8_t *base;
	size_t size;		/* mapped */
	uint64_t next;		/* atomic: used pages << 16 | reserved slots */
	uint8_t *slot_use;	/* [TFT_JOURNAL_SLOTS] atomic, enum in journal.c */
	struct tft_ring *spare; /* atomic: large and unused, NULL: none */
	int fd;			/* in the flusher's table, if it has one (apart.h) */
	uint32_t in_table;	/* atomic: the descriptor is also open in the job's table */
	dev_t dev;
	ino_t ino;
	bool populates; /* tfh_journal_populates() */
	bool anonymous;
	bool beside;	     /* in the run directory */
	char path[PATH_MAX]; /* "" when anonymous */
};

extern struct tfh_journal tfh_journal;

/* Returns the limit of address space or data in bytes if it is so low that memory mapped by the
 * recorder could make the job's own requests fail; 0 otherwise. */
uint64_t tfh_tight_space(void);
/* Whether all new memory is locked (mlockall) and less may be locked than a recording takes, its
 * threads' stacks included. */
bool tfh_tight_lock(void);
/* Whether space for rings can be allocated through the mapping (since Linux 5.14). Otherwise the
 * job's threads need the journal's descriptor. */
bool tfh_journal_populates(void);
/* Creates and maps the journal at the first suitable place; falls back to anonymous memory. Returns
 * 0 or -errno. */
int tfh_journal_open(struct tfh_journal *j, const struct tfh_rundir *dir, uint64_t ring_total);
/* Returns a zeroed small or large ring in state FREE, or NULL at the limit. */
struct tft_ring *tfh_slot_alloc(struct tfh_journal *j, bool large);
/* Called on the flusher: makes a large ring for the next thread that needs one. Its pages take most
 * of a millisecond, which a call of the job would wait for. False at the limit. */
bool tfh_slot_prepare(struct tfh_journal *j);
/* Called on the flusher: another thread may reuse a drained ring. */
void tfh_slot_free(struct tfh_journal *j, uint32_t slot);
void tfh_journal_unlink(struct tfh_journal *j);
/* The flusher has the descriptor in its own table, so this closes it in the job's. */
void tfh_journal_handed_over(struct tfh_journal *j);
/* After a recording that ended while its process goes on: hands the mapping over to
 * journal_maps.c. */
void tfh_journal_release(struct tfh_journal *j);
/* In a forked child: maps private zero pages over the parent's journal, so that calls that were
 * open at the fork can end. */
void tfh_journal_disown(struct tfh_journal *j);

static inline struct tft_ring *tfh_journal_ring(const struct tfh_journal *j, uint32_t slot)
{
	/* acquire: pairs with the release store of an allocating thread */
	uint64_t off = __atomic_load_n(&j->slots[slot].ring_off, __ATOMIC_ACQUIRE);

	return off ? (struct tft_ring *)(j->base + off) : NULL;
}

/* ---- journal_maps.c: the address space of journals ---- */

/* Adds a mapped journal. Called by the starter. */
void tfh_journal_map_add(void *base, size_t size);
/* The calling thread enters a journal when it takes its first ring there. It leaves when it has
 * left its last ring there (NULL: it had none). */
void tfh_journal_map_enter(const struct tft_ring *ring);
void tfh_journal_map_leave(const struct tft_ring *ring);
/* Called when the recording is over and no thread is taking a ring. Frees the pages, and frees the
 * addresses once all threads have left. */
void tfh_journal_map_over(void *base, size_t size);
/* In a forked child: forgets the parent's mappings, which do not exist here. */
void tfh_journal_map_forget(void);

/* ---- early_calls.c: before the first trigger ---- */

/* The calling thread's ring in plain memory, or NULL at the limit. */
struct tft_ring *tfh_early_ring(struct tfh_rec **records);
uint32_t tfh_early_count(void);
struct tft_ring *tfh_early_at(uint32_t i, struct tfh_rec **records);
bool tfh_ring_is_cold(const struct tft_ring *ring);
/* Claims an early ring. Only the claimant may move its records: the ring's thread into the
 * journal's ring, or the flusher into staging. `wait`: waits at most 10 ms for the other one. */
bool tfh_early_claim(const struct tft_ring *ring, bool wait);
void tfh_early_release(const struct tft_ring *ring);
/* In a forked child: forgets the parent's calls. */
void tfh_early_forget(void);
/* After a failed exec: memory that was used stays mapped and is not used again. */
void tfh_early_renew(void);

#endif
