/*
 * Activity buffers. The job's threads give them to CUPTI, CUPTI fills them and returns them on any
 * thread, and the flusher reads them. They are in a table of slots, each with an atomic owner; no
 * thread waits for another.
 */
#include "hook/cupti/cupti.h"

#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "record/gpu/gpu.h"

/* A buffer holds 4,800 kernel records. When this many are unread, the flusher cannot keep up, and
 * further records are counted and dropped: at most 64 MB, besides what CUPTI holds. */
#define BUFFER_BYTES (1u << 20)
#define SLOTS 256u
#define UNREAD_MOST 64u

enum owner {
	NONE,	 /* no memory yet */
	CLAIMED, /* being changed by the thread that claimed it */
	FREE,	 /* zeroed */
	CUPTI,	 /* given to CUPTI at `since` */
	FOREIGN, /* represents a buffer of the job's profiler that CUPTI holds */
	FULL	 /* to be read by the flusher */
};

static struct buffer_slot {
	uint8_t *buffer; /* of a FOREIGN one: the job's buffer */
	uint32_t owner;	 /* atomic, enum owner */
	uint32_t round;
	uint64_t since;
	uint64_t ticket; /* order in which they were returned */
	size_t valid;
} slots[SLOTS];

static uint32_t unread;	 /* atomic: number of FULL ones */
static uint64_t tickets; /* atomic */

static bool claim(struct buffer_slot *s, uint32_t from)
{
	return __atomic_load_n(&s->owner, __ATOMIC_RELAXED) == from &&
	       __atomic_compare_exchange_n(&s->owner, &from, CLAIMED, false, __ATOMIC_ACQ_REL,
					   __ATOMIC_RELAXED);
}

static void hand_to(struct buffer_slot *s, uint32_t owner)
{
	__atomic_store_n(&s->owner, owner, __ATOMIC_RELEASE);
}

static uint8_t *memory(void)
{
	void *map = mmap(NULL, BUFFER_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			 -1, 0);
	return map == MAP_FAILED ? NULL : map;
}

/* A claimed slot with an empty buffer; NULL if all are in use or there is no memory. */
static struct buffer_slot *empty(void)
{
	for (unsigned i = 0; i < SLOTS; i++)
		if (claim(&slots[i], FREE))
			return &slots[i];
	for (unsigned i = 0; i < SLOTS; i++) {
		if (!claim(&slots[i], NONE))
			continue;
		slots[i].buffer = memory();
		if (slots[i].buffer)
			return &slots[i];
		hand_to(&slots[i], NONE);
		return NULL;
	}
	return NULL;
}

void tfh_buffers_requested(uint8_t **buffer, size_t *size, size_t *most)
{
	struct buffer_slot *s = empty();

	tfh_cupti_first_buffer();
	*most = 0; /* as many records as fit */
	*size = BUFFER_BYTES;
	if (s) {
		s->since = tfh_ticks();
		s->round = tfh_profiler_round_given();
		*buffer = s->buffer;
		hand_to(s, CUPTI);
		return;
	}
	/* Before 12.9, CUPTI does not accept "no buffer". Records in this one are lost. */
	*buffer = tfh_cupti_version() < 27 ? memory() : NULL;
	if (!*buffer)
		*size = 0;
}

static struct buffer_slot *slot_of(const uint8_t *buffer, uint32_t owner)
{
	for (unsigned i = 0; i < SLOTS; i++)
		if (slots[i].buffer == buffer &&
		    __atomic_load_n(&slots[i].owner, __ATOMIC_ACQUIRE) == owner)
			return &slots[i];
	return NULL;
}

const uint8_t *tfh_buffers_ours(const uint8_t *buffer, uint32_t *round)
{
	const struct buffer_slot *s = slot_of(buffer, CUPTI);

	if (s)
		*round = s->round;
	return s ? buffer : NULL;
}

/* Counts the records of a buffer that will not be read. */
static uint64_t count_records(uint8_t *buffer, size_t valid)
{
	uint8_t *record = NULL;
	uint64_t n = 0;

	while (!TFH_CUPTI(NEXT_RECORD)(buffer, valid, &record))
		n++;
	return n;
}

static void lose(uint8_t *buffer, size_t valid)
{
	if (tfh_gpu_storing && valid)
		tfh_gpu_lost(count_records(buffer, valid));
}

static void queue(struct buffer_slot *s, size_t valid)
{
	s->valid = valid;
	s->ticket = __atomic_fetch_add(&tickets, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&unread, 1, __ATOMIC_RELAXED);
	hand_to(s, FULL);
}

static bool may_queue(void)
{
	return __atomic_load_n(&tfh_gpu_storing, __ATOMIC_ACQUIRE) && tfh_cupti_here() &&
	       __atomic_load_n(&unread, __ATOMIC_RELAXED) < UNREAD_MOST;
}

static void count_dropped(CUcontext ctx, uint32_t stream)
{
	size_t n = 0;

	if (!TFH_CUPTI(DROPPED)(ctx, stream, &n) && n) {
		tfh_profiler_dropped(n);
		if (tfh_gpu_storing)
			tfh_gpu_lost(n);
	}
}

void tfh_buffers_completed(CUcontext ctx, uint32_t stream, uint8_t *buffer, size_t size,
			   size_t valid)
{
	struct buffer_slot *s = slot_of(buffer, CUPTI);

	(void)size;
	count_dropped(ctx, stream);
	if (!s) { /* a buffer without a slot */
		if (buffer) {
			lose(buffer, valid);
			munmap(buffer, BUFFER_BYTES);
		}
		return;
	}
	if (valid && may_queue()) {
		queue(s, valid);
		return;
	}
	lose(buffer, valid);
	memset(buffer, 0, valid);
	hand_to(s, FREE);
}

void tfh_buffers_foreign_out(uint8_t *buffer)
{
	for (unsigned i = 0; i < SLOTS; i++) {
		if (!claim(&slots[i], NONE))
			continue;
		slots[i].buffer = buffer;
		slots[i].since = tfh_ticks();
		hand_to(&slots[i], FOREIGN);
		return;
	}
}

static void copy_in(uint8_t *buffer, size_t valid)
{
	uint8_t *record = NULL;

	/* A buffer of the job may be larger than ours, so it is copied in pieces of whole
	 * records. */
	while (valid) {
		struct buffer_slot *s = may_queue() ? empty() : NULL;
		size_t piece = valid;

		if (!s) {
			lose(buffer, valid);
			return;
		}
		if (valid > BUFFER_BYTES) {
			piece = 0;
			record = NULL;
			while (!TFH_CUPTI(NEXT_RECORD)(buffer, valid, &record) &&
			       (size_t)(record - buffer) <= BUFFER_BYTES)
				piece = (size_t)(record - buffer);
			if (!piece) { /* a record larger than a buffer, which does not occur */
				hand_to(s, FREE);
				return;
			}
		}
		memcpy(s->buffer, buffer, piece);
		queue(s, piece);
		buffer += piece;
		valid -= piece;
	}
}

void tfh_buffers_foreign_back(uint8_t *buffer, size_t valid)
{
	struct buffer_slot *s = slot_of(buffer, FOREIGN);

	if (s && claim(s, FOREIGN)) {
		s->buffer = NULL;
		hand_to(s, NONE);
	}
	if (__atomic_load_n(&tfh_gpu_storing, __ATOMIC_ACQUIRE) && tfh_cupti_here())
		copy_in(buffer, valid);
}

/* ---- the flusher's side ---- */

bool tfh_buffers_foreign(void)
{
	for (unsigned i = 0; i < SLOTS; i++)
		if (__atomic_load_n(&slots[i].owner, __ATOMIC_ACQUIRE) == FOREIGN)
			return true;
	return false;
}

static struct buffer_slot *first_full(void)
{
	struct buffer_slot *first = NULL;

	for (unsigned i = 0; i < SLOTS; i++)
		if (__atomic_load_n(&slots[i].owner, __ATOMIC_ACQUIRE) == FULL &&
		    (!first || slots[i].ticket < first->ticket))
			first = &slots[i];
	return first;
}

void tfh_buffers_collect(void (*take)(uint8_t *buffer, size_t valid))
{
	struct buffer_slot *s;

	while (__atomic_load_n(&unread, __ATOMIC_RELAXED) && (s = first_full())) {
		take(s->buffer, s->valid);
		memset(s->buffer, 0, s->valid);
		__atomic_fetch_sub(&unread, 1, __ATOMIC_RELAXED);
		hand_to(s, FREE);
	}
}

uint64_t tfh_buffers_oldest(uint64_t now)
{
	uint64_t oldest = now;

	for (unsigned i = 0; i < SLOTS; i++) {
		uint32_t owner = __atomic_load_n(&slots[i].owner, __ATOMIC_ACQUIRE);
		/* A buffer that is returned now has not been read yet. */
		if (owner != NONE && owner != FREE && slots[i].since < oldest)
			oldest = slots[i].since;
	}
	return oldest;
}

void tfh_buffers_forget(void)
{
	for (unsigned i = 0; i < SLOTS; i++) {
		if (!claim(&slots[i], CUPTI) && !claim(&slots[i], FOREIGN))
			continue;
		/* CUPTI may still write to it, so the memory is leaked. */
		slots[i].buffer = NULL;
		hand_to(&slots[i], NONE);
	}
}
