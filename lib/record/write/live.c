#include "record/write/live.h"

#include <string.h>
#include <sys/mman.h>

#include "base/fn.h"
#include "base/hash.h"
#include "base/map.h"

#define NAME_SLOTS (1u << 18)
#define ALLOC_SLOTS (1u << 18)
#define NAME_RECORDS (1u << 20) /* 64 MiB of address space, touched as needed */
#define MAX_PARTS 64u		/* records of one name: 2.2 KiB of text */

struct name_slot {
	uint64_t key;
	uint32_t at, parts; /* in names.records; 0 parts: free */
};

struct alloc_slot {
	uint64_t address; /* 0 free */
	struct tfh_rec rec;
};

static struct {
	struct name_slot *slots;
	struct tfh_rec *records;
	uint32_t used, entries;
} names;

static struct {
	struct alloc_slot *slots;
	uint32_t entries; /* tombstones included */
} allocs;

/* A name whose EXT records have not all passed yet. */
static struct {
	uint32_t thread, have;
	struct tfh_rec part[MAX_PARTS];
} open_name;

static uint64_t lost;

static bool ready(void)
{
	return tfh_map_once(&names.slots, NAME_SLOTS * sizeof(*names.slots)) &&
	       tfh_map_once(&names.records, NAME_RECORDS * sizeof(*names.records)) &&
	       tfh_map_once(&allocs.slots, ALLOC_SLOTS * sizeof(*allocs.slots));
}

static void keep_name(const struct tfh_rec *part, uint32_t parts, uint64_t key)
{
	uint32_t i = (uint32_t)tfh_hash_u64(key) & (NAME_SLOTS - 1);

	while (names.slots[i].parts && names.slots[i].key != key)
		i = (i + 1) & (NAME_SLOTS - 1);
	if (!names.slots[i].parts && names.entries >= NAME_SLOTS / 4 * 3) {
		lost++;
		return;
	}
	if (names.slots[i].parts != parts) {
		if (names.used + parts > NAME_RECORDS) {
			lost++;
			return;
		}
		names.entries += !names.slots[i].parts;
		names.slots[i] = (struct name_slot){.key = key, .at = names.used, .parts = parts};
		names.used += parts;
	}
	memcpy(&names.records[names.slots[i].at], part, parts * sizeof(*part));
}

static uint64_t name_key(const struct tfh_rec *r)
{
	return (uint64_t)r->kind << 48 | (uint64_t)r->fn << 32 | r->stream;
}

/* EXT records needed for the text of a NAME; other kinds carry theirs by the flag alone. */
static bool complete(const struct tfh_rec *last)
{
	return last->kind == TFT_EXT ? last->result <= TFT_EXT_BYTES : !(last->flags & TFT_F_EXT);
}

static void see_named(uint32_t thread, const struct tfh_rec *r)
{
	if (r->kind != TFT_EXT) {
		open_name.thread = thread;
		open_name.have = 0;
	} else if (!open_name.have || open_name.thread != thread) {
		return;
	}
	if (open_name.have == MAX_PARTS) {
		open_name.have = 0;
		lost++;
		return;
	}
	open_name.part[open_name.have++] = *r;
	if (complete(r)) {
		keep_name(open_name.part, open_name.have, name_key(&open_name.part[0]));
		open_name.have = 0;
	}
}

static void see_alloc(const struct tfh_rec *r)
{
	uint64_t address = r->w[1];
	uint32_t i = (uint32_t)tfh_hash_u64(address) & (ALLOC_SLOTS - 1);
	uint32_t free_slot = ALLOC_SLOTS;
	bool is_free = r->fn < TFH_FN_COUNT && tfh_fn_table[r->fn].family == TFH_FAM_FREE;

	if (!address || r->flags & TFT_F_FAILED)
		return;
	for (; allocs.slots[i].address; i = (i + 1) & (ALLOC_SLOTS - 1)) {
		if (allocs.slots[i].address == address)
			break;
		if (allocs.slots[i].address == UINT64_MAX && free_slot == ALLOC_SLOTS)
			free_slot = i;
	}
	if (is_free) {
		if (allocs.slots[i].address)
			allocs.slots[i].address = UINT64_MAX;
		return;
	}
	if (!allocs.slots[i].address) {
		if (free_slot != ALLOC_SLOTS) {
			i = free_slot;
		} else if (allocs.entries++ >= ALLOC_SLOTS / 4 * 3) {
			allocs.entries--;
			lost++;
			return;
		}
	}
	allocs.slots[i].address = address;
	allocs.slots[i].rec = *r;
}

void tfh_live_see(uint32_t thread, const struct tfh_rec *records, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct tfh_rec *r = &records[i];

		if (r->kind == TFT_CALL)
			continue;
		if (r->kind != TFT_NAME && r->kind != TFT_GRAPH && r->kind != TFT_EXT &&
		    r->kind != TFT_ALLOC)
			continue;
		if (!ready())
			return;
		if (r->kind == TFT_ALLOC)
			see_alloc(r);
		else
			see_named(thread, r);
	}
}

uint32_t tfh_live_copy(uint64_t *at, struct tfh_rec *out, uint32_t room)
{
	uint32_t n = 0;

	if (!names.slots)
		return 0;
	for (; *at < NAME_SLOTS; ++*at) {
		const struct name_slot *slot = &names.slots[*at];

		if (!slot->parts)
			continue;
		if (slot->parts > room - n)
			return n;
		memcpy(&out[n], &names.records[slot->at], slot->parts * sizeof(*out));
		for (uint32_t i = 0; i < slot->parts; i++)
			out[n++].flags |= TFT_F_REPEAT;
	}
	for (; *at < NAME_SLOTS + ALLOC_SLOTS; ++*at) {
		const struct alloc_slot *slot = &allocs.slots[*at - NAME_SLOTS];

		if (!slot->address || slot->address == UINT64_MAX)
			continue;
		if (n == room)
			return n;
		out[n] = slot->rec;
		out[n++].flags |= TFT_F_REPEAT;
	}
	return n;
}

uint64_t tfh_live_lost(void)
{
	return lost;
}

void tfh_live_forget(void)
{
	if (names.slots)
		madvise(names.slots, NAME_SLOTS * sizeof(*names.slots), MADV_DONTNEED);
	if (names.records)
		madvise(names.records, NAME_RECORDS * sizeof(*names.records), MADV_DONTNEED);
	if (allocs.slots)
		madvise(allocs.slots, ALLOC_SLOTS * sizeof(*allocs.slots), MADV_DONTNEED);
	names.used = names.entries = allocs.entries = 0;
	open_name.have = 0;
	lost = 0;
}
