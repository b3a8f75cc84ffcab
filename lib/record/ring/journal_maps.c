/*
 * The memory of journals. After a failed exec, the recording is over but the process goes on.
 * Threads may be inside calls that began on the recording's rings and will end on them, so the
 * addresses stay usable until each of those threads has another ring or has ended. The pages
 * themselves are freed at once.
 */
#include "record/ring/journal.h"

#include <sys/mman.h>

#define KEPT                                                                                       \
	64 /* recordings of a process whose memory is tracked; beyond that it is never given back */

static struct kept {
	uint8_t *base; /* atomic; NULL: the entry is free */
	size_t size;
	uint64_t since;	  /* CLOCK_MONOTONIC when the recording ended; 0: it is under way */
	uint32_t threads; /* atomic: how many have a ring there */
} kept[KEPT];

static struct kept *kept_of(const void *place)
{
	for (int i = 0; i < KEPT; i++) {
		uint8_t *base = __atomic_load_n(&kept[i].base, __ATOMIC_ACQUIRE);

		if (base && (const uint8_t *)place >= base &&
		    (const uint8_t *)place < base + kept[i].size)
			return &kept[i];
	}
	return NULL;
}

void tfh_journal_map_add(void *base, size_t size)
{
	for (int i = 0; i < KEPT; i++)
		if (!__atomic_load_n(&kept[i].base, __ATOMIC_RELAXED)) {
			kept[i].size = size;
			kept[i].since = 0;
			kept[i].threads = 0;
			__atomic_store_n(&kept[i].base, base, __ATOMIC_RELEASE);
			return;
		}
}

void tfh_journal_map_enter(const struct tft_ring *ring)
{
	struct kept *k = kept_of(ring);

	if (k)
		__atomic_fetch_add(&k->threads, 1, __ATOMIC_RELAXED);
}

void tfh_journal_map_leave(const struct tft_ring *ring)
{
	struct kept *k = ring ? kept_of(ring) : NULL;

	/* release: the thread no longer touches it */
	if (k)
		__atomic_fetch_sub(&k->threads, 1, __ATOMIC_RELEASE);
}

/* A thread may have read a journal pointer and then been preempted; it is done with it long before
 * TFH_KEPT_NS. */
static void reclaim(uint64_t now)
{
	for (int i = 0; i < KEPT; i++) {
		struct kept *k = &kept[i];
		uint8_t *base = __atomic_load_n(&k->base, __ATOMIC_RELAXED);

		if (!base || !k->since || now - k->since < TFH_KEPT_NS ||
		    __atomic_load_n(&k->threads, __ATOMIC_ACQUIRE))
			continue;
		__atomic_store_n(&k->base, NULL, __ATOMIC_RELEASE);
		munmap(base, k->size);
	}
}

void tfh_journal_map_over(void *base, size_t size)
{
	uint64_t now = (uint64_t)tfh_clock_ns(CLOCK_MONOTONIC);
	struct kept *k = kept_of(base);

	reclaim(now);
	/* Maps empty pages in its place: the file's memory is freed, and the addresses stay
	 * valid. */
	if (mmap(base, size, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != MAP_FAILED &&
	    k)
		k->since = now;
}

void tfh_journal_map_forget(void)
{
	for (int i = 0; i < KEPT; i++)
		__atomic_store_n(&kept[i].base, NULL, __ATOMIC_RELAXED);
}
