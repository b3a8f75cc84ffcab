/*
 * The memory of journals. After an exec that failed a recording is over and its process goes on:
 * threads may be inside calls that began on its rings, and end on them, so its addresses stay
 * usable until each of those threads has another ring or has ended. What lay there goes at once.
 */
#include "record/ring/journal.h"

#include <sys/mman.h>

#define KEPT                                                                                       \
	64 /* recordings of a process whose memory is known; that of more is never given back */

static struct kept {
	uint8_t *base; /* atomic, NULL: the entry is free */
	size_t size;
	uint64_t since;	  /* CLOCK_MONOTONIC: over since then; 0: it is under way */
	uint32_t threads; /* atomic: that have a ring there */
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

	/* release: the thread touches it no more */
	if (k)
		__atomic_fetch_sub(&k->threads, 1, __ATOMIC_RELEASE);
}

/* A look at the journal that was under way when the thread was kept from its processor ends long
 * before TFH_KEPT_NS. */
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
	/* Empty pages in its place: the file's memory is freed, and the addresses stay valid. */
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
