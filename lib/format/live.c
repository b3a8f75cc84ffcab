#include "format/live.h"

#include <string.h>
#include <sys/mman.h>

#include "base/hash.h"
#include "base/map.h"

#define NAME_SLOTS (1u << 18)
#define ALLOC_SLOTS (1u << 18)
#define NAME_RECORDS (1u << 20) /* 64 MiB of address space, touched as needed */

struct tft_live_name {
	uint64_t key;
	uint32_t at, parts; /* in l->records; 0 parts: free */
};

struct tft_live_alloc {
	uint64_t address; /* 0 free */
	struct tfh_rec rec;
};

static bool ready(struct tft_live *l)
{
	return tfh_map_once(&l->names, NAME_SLOTS * sizeof(*l->names)) &&
	       tfh_map_once(&l->records, NAME_RECORDS * sizeof(*l->records)) &&
	       tfh_map_once(&l->allocs, ALLOC_SLOTS * sizeof(*l->allocs));
}

static void keep_name(struct tft_live *l, const struct tfh_rec *part, uint32_t parts, uint64_t key)
{
	uint32_t i = (uint32_t)tfh_hash_u64(key) & (NAME_SLOTS - 1);

	while (l->names[i].parts && l->names[i].key != key)
		i = (i + 1) & (NAME_SLOTS - 1);
	if (!l->names[i].parts && l->n_names >= NAME_SLOTS / 4 * 3) {
		l->lost++;
		return;
	}
	if (l->names[i].parts != parts) {
		if (l->used + parts > NAME_RECORDS) {
			l->lost++;
			return;
		}
		l->n_names += !l->names[i].parts;
		l->names[i] = (struct tft_live_name){.key = key, .at = l->used, .parts = parts};
		l->used += parts;
	}
	memcpy(&l->records[l->names[i].at], part, parts * sizeof(*part));
}

static uint64_t name_key(const struct tfh_rec *r)
{
	return (uint64_t)r->kind << 48 | (uint64_t)r->fn << 32 | r->stream;
}

/* Whether this is the last record of its object: the last EXT record of a text, or a record without
 * EXT records. */
static bool complete(const struct tfh_rec *last)
{
	return last->kind == TFT_EXT ? last->result <= TFT_EXT_BYTES : !(last->flags & TFT_F_EXT);
}

static void see_named(struct tft_live *l, uint32_t thread, const struct tfh_rec *r)
{
	if (r->kind != TFT_EXT) {
		l->open.thread = thread;
		l->open.have = 0;
	} else if (!l->open.have || l->open.thread != thread) {
		return;
	}
	if (l->open.have == TFT_LIVE_PARTS) {
		l->open.have = 0;
		l->lost++;
		return;
	}
	l->open.part[l->open.have++] = *r;
	if (complete(r)) {
		keep_name(l, l->open.part, l->open.have, name_key(&l->open.part[0]));
		l->open.have = 0;
	}
}

static void see_alloc(struct tft_live *l, const struct tfh_rec *r)
{
	uint64_t address = r->w[1];
	uint32_t i = (uint32_t)tfh_hash_u64(address) & (ALLOC_SLOTS - 1);
	uint32_t free_slot = ALLOC_SLOTS;
	bool is_free = r->fn < l->n_fn && l->fn[r->fn].family == TFH_FAM_FREE;

	if (!address || r->flags & TFT_F_FAILED)
		return;
	for (; l->allocs[i].address; i = (i + 1) & (ALLOC_SLOTS - 1)) {
		if (l->allocs[i].address == address)
			break;
		if (l->allocs[i].address == UINT64_MAX && free_slot == ALLOC_SLOTS)
			free_slot = i;
	}
	if (is_free) {
		if (l->allocs[i].address)
			l->allocs[i].address = UINT64_MAX;
		return;
	}
	if (!l->allocs[i].address) {
		if (free_slot != ALLOC_SLOTS) {
			i = free_slot;
		} else if (l->n_allocs++ >= ALLOC_SLOTS / 4 * 3) {
			l->n_allocs--;
			l->lost++;
			return;
		}
	}
	l->allocs[i].address = address;
	l->allocs[i].rec = *r;
}

void tft_live_see(struct tft_live *l, uint32_t thread, const struct tfh_rec *records, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct tfh_rec *r = &records[i];

		if (r->kind == TFT_CALL)
			continue;
		if (r->kind != TFT_NAME && r->kind != TFT_GRAPH && r->kind != TFT_EXT &&
		    r->kind != TFT_ALLOC)
			continue;
		if (!ready(l))
			return;
		if (r->kind == TFT_ALLOC)
			see_alloc(l, r);
		else
			see_named(l, thread, r);
	}
}

uint32_t tft_live_copy(const struct tft_live *l, uint64_t *at, struct tfh_rec *out, uint32_t room)
{
	uint32_t n = 0;

	if (!l->names)
		return 0;
	for (; *at < NAME_SLOTS; ++*at) {
		const struct tft_live_name *slot = &l->names[*at];

		if (!slot->parts)
			continue;
		if (slot->parts > room - n)
			return n;
		memcpy(&out[n], &l->records[slot->at], slot->parts * sizeof(*out));
		for (uint32_t i = 0; i < slot->parts; i++)
			out[n++].flags |= TFT_F_REPEAT;
	}
	for (; *at < NAME_SLOTS + ALLOC_SLOTS; ++*at) {
		const struct tft_live_alloc *slot = &l->allocs[*at - NAME_SLOTS];

		if (!slot->address || slot->address == UINT64_MAX)
			continue;
		if (n == room)
			return n;
		out[n] = slot->rec;
		out[n++].flags |= TFT_F_REPEAT;
	}
	return n;
}

void tft_live_forget(struct tft_live *l)
{
	if (l->names)
		madvise(l->names, NAME_SLOTS * sizeof(*l->names), MADV_DONTNEED);
	if (l->records)
		madvise(l->records, NAME_RECORDS * sizeof(*l->records), MADV_DONTNEED);
	if (l->allocs)
		madvise(l->allocs, ALLOC_SLOTS * sizeof(*l->allocs), MADV_DONTNEED);
	l->used = l->n_names = l->n_allocs = 0;
	l->open.have = 0;
	l->lost = 0;
}

void tft_live_free(struct tft_live *l)
{
	if (l->names)
		munmap(l->names, NAME_SLOTS * sizeof(*l->names));
	if (l->records)
		munmap(l->records, NAME_RECORDS * sizeof(*l->records));
	if (l->allocs)
		munmap(l->allocs, ALLOC_SLOTS * sizeof(*l->allocs));
	*l = (struct tft_live){.fn = l->fn, .n_fn = l->n_fn};
}
