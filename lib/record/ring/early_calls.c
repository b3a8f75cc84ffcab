/*
 * Most processes that load CUDA never train. So calls before the first copy, launch, get-next or
 * step (cuInit, module loads, allocations) are kept in plain memory. They become the beginning of
 * the trace if recording starts, and vanish with the process otherwise.
 */
#include "record/ring/journal.h"

#include <sys/mman.h>

#include "record/process/lock.h"

#define COLD_BYTES (TFT_RING_HEADER + TFH_COLD_RECORDS * sizeof(struct tfh_rec))

static uint8_t *cold_base; /* atomic: TFH_COLD_THREADS rings at most, touched as needed */
static uint32_t cold_most = TFH_COLD_THREADS;
static uint32_t cold_used;  /* atomic; may exceed the limit */
static uint32_t cold_first; /* earlier ones belong to a recording that is over */
/* Locks each ring's records while its thread or the flusher moves them. */
static uint32_t cold_lock[TFH_COLD_THREADS] TFH_LOCK_WORD;

static uint8_t *cold_map(void)
{
	uint8_t *base = __atomic_load_n(&cold_base, __ATOMIC_ACQUIRE);
	uint8_t *none = NULL;
	void *map;

	if (base)
		return base;
	/* 260 KiB, for the call that reports why nothing is recorded */
	if (tfh_tight_space())
		cold_most = 1;
	map = mmap(NULL, cold_most * COLD_BYTES, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (map == MAP_FAILED)
		return NULL;
	if (__atomic_compare_exchange_n(&cold_base, &none, (uint8_t *)map, false, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE))
		return map;
	munmap(map, cold_most * COLD_BYTES);
	return none;
}

struct tft_ring *tfh_early_ring(struct tfh_rec **records)
{
	uint8_t *base = cold_map();
	uint32_t i;

	if (!base || __atomic_load_n(&cold_used, __ATOMIC_RELAXED) >= cold_most)
		return NULL;
	i = __atomic_fetch_add(&cold_used, 1, __ATOMIC_ACQ_REL);
	if (i >= cold_most)
		return NULL;
	base += i * COLD_BYTES;
	*records = (struct tfh_rec *)(base + TFT_RING_HEADER);
	return (struct tft_ring *)base;
}

uint32_t tfh_early_count(void)
{
	uint32_t n = __atomic_load_n(&cold_used, __ATOMIC_ACQUIRE);

	return (n < cold_most ? n : cold_most) - cold_first;
}

struct tft_ring *tfh_early_at(uint32_t i, struct tfh_rec **records)
{
	uint8_t *ring = cold_base + (cold_first + i) * COLD_BYTES;

	*records = (struct tfh_rec *)(ring + TFT_RING_HEADER);
	return (struct tft_ring *)ring;
}

bool tfh_ring_is_cold(const struct tft_ring *ring)
{
	const uint8_t *base = __atomic_load_n(&cold_base, __ATOMIC_ACQUIRE);

	return base && (const uint8_t *)ring >= base &&
	       (const uint8_t *)ring < base + cold_most * COLD_BYTES;
}

static uint32_t *lock_of(const struct tft_ring *ring)
{
	return &cold_lock[(size_t)((const uint8_t *)ring - cold_base) / COLD_BYTES];
}

bool tfh_early_claim(const struct tft_ring *ring, bool wait)
{
	return wait ? tfh_lock(lock_of(ring)) : tfh_lock_try(lock_of(ring));
}

void tfh_early_release(const struct tft_ring *ring)
{
	tfh_unlock(lock_of(ring));
}

/* A call that was open at the fork still writes into the old ring, so the memory stays and is
 * wiped. */
void tfh_early_forget(void)
{
	if (!cold_base)
		return;
	cold_first = 0;
	for (uint32_t i = 0; i < tfh_early_count(); i++)
		madvise(cold_base + i * COLD_BYTES, COLD_BYTES, MADV_DONTNEED);
	cold_used = 0;
}

/* Threads may be inside calls that end on these rings, so other threads must not get them. */
void tfh_early_renew(void)
{
	if (!cold_base)
		return;
	cold_first += tfh_early_count();
	if (cold_first <= cold_most / 2)
		return;
	__atomic_store_n(&cold_base, NULL, __ATOMIC_RELEASE);
	cold_used = cold_first = 0;
}
