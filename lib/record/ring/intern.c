/*
 * Ids of handles and texts. The process has one lock-free table with two words per entry. Each
 * thread has a small cache, and a bit per id that says "this thread has published its NAME".
 *
 * A job may create texts, stages and graphs without end (a new range name in each iteration). So
 * each kind of name has a share of the ids, and kernels and streams still get one after days. Texts
 * beyond their share get an id with each number in them replaced by 0 ("iteration 0"). If there is
 * none left for that either, they share one name, and the number of such uses is recorded.
 */
#include "record/ring/rings.h"

#include <string.h>
#include <sys/mman.h>

#include "base/hash.h"
#include "base/map.h"

#define TABLE_SLOTS (1u << 18)
#define IDS_MAX (1u << 17)
#define NAMED_BYTES (IDS_MAX / 8)

struct interned {
	uint64_t key;	/* atomic; 0 free */
	uint64_t value; /* atomic; id << 32 | low half of the text's hash; 0 while being set */
};

enum id_share { LASTING, TEXTS, STAGES, GRAPHS, STEMS, SHARES };
static const uint8_t share_of[16] = {
	[TFT_NAME_OP] = TEXTS,	      [TFT_NAME_STRING] = TEXTS, [TFT_NAME_STAGE] = STAGES,
	[TFT_NAME_ITERATOR] = STAGES, [TFT_NAME_GRAPH] = GRAPHS,
};
static const uint32_t most[SHARES] = {IDS_MAX, IDS_MAX / 2, IDS_MAX / 8, IDS_MAX / 8, IDS_MAX / 16};
static uint32_t taken[SHARES]; /* atomic */
static uint64_t unnamed;       /* atomic: uses of names that got no id */
#define REST "(further names)"

static struct interned *table; /* atomic */
static uint32_t last_id;       /* atomic */

/* Whether a share has an id left. */
static bool room_for(enum id_share share)
{
	return __atomic_load_n(&taken[share], __ATOMIC_RELAXED) < most[share] &&
	       __atomic_load_n(&last_id, __ATOMIC_RELAXED) < IDS_MAX - 1;
}

/* Returns the entry of a key, creating it if `make`; NULL if there is none. The mixed key is a
 * bijection of the caller's key. */
static struct interned *find(uint64_t key, bool make)
{
	struct interned *t = make ? tfh_map_once(&table, TABLE_SLOTS * sizeof(*t))
				  : __atomic_load_n(&table, __ATOMIC_ACQUIRE);
	uint64_t mixed = tfh_hash_u64(key);
	uint32_t i = (uint32_t)mixed & (TABLE_SLOTS - 1);

	if (!t)
		return NULL;
	if (!mixed)
		mixed = 1;
	for (uint32_t n = 0; n < TABLE_SLOTS; n++, i = (i + 1) & (TABLE_SLOTS - 1)) {
		uint64_t have = __atomic_load_n(&t[i].key, __ATOMIC_ACQUIRE);

		if (have == mixed)
			return &t[i];
		if (have)
			continue;
		if (!make)
			return NULL;
		if (__atomic_compare_exchange_n(&t[i].key, &have, mixed, false, __ATOMIC_ACQ_REL,
						__ATOMIC_ACQUIRE) ||
		    have == mixed)
			return &t[i];
	}
	return NULL;
}

/* Returns the id of a key with this text. A new text gets a new id. 0: no id is left. */
static uint32_t id_of(enum id_share share, uint64_t key, uint32_t text_hash)
{
	struct interned *e = find(key, room_for(share));
	uint64_t have;

	if (!e)
		return 0;
	have = __atomic_load_n(&e->value, __ATOMIC_ACQUIRE);
	while (!have || (uint32_t)have != text_hash) {
		uint32_t id;

		if (!room_for(share))
			return 0;
		__atomic_fetch_add(&taken[share], 1, __ATOMIC_RELAXED);
		id = __atomic_add_fetch(&last_id, 1, __ATOMIC_RELAXED);
		if (id >= IDS_MAX) {
			__atomic_store_n(&last_id, IDS_MAX, __ATOMIC_RELAXED);
			return 0;
		}
		if (__atomic_compare_exchange_n(&e->value, &have, (uint64_t)id << 32 | text_hash,
						false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			return id;
	}
	return (uint32_t)(have >> 32);
}

void tfh_handles_renew(struct tfh_self *self)
{
	uint32_t now = __atomic_load_n(&tfh_peek(&tfh_epoch)->handles, __ATOMIC_ACQUIRE);

	if (self->seen.handles == now)
		return;
	memset(self->room->handle_cache, 0, sizeof(self->room->handle_cache));
	memset(self->room->functions, 0, sizeof(self->room->functions));
	if (self->named)
		memset(self->named, 0, NAMED_BYTES);
	self->stream = 0;
	self->seen.handles = now;
}

static bool was_named(const struct tfh_self *self, uint32_t id)
{
	return self->named && self->named[id / 64] >> (id % 64) & 1;
}

static void set_named(struct tfh_self *self, uint32_t id)
{
	if (!self->named) {
		void *map = mmap(NULL, NAMED_BYTES, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (map == MAP_FAILED)
			return;
		self->named = map;
	}
	self->named[id / 64] |= 1ull << (id % 64);
}

void tfh_self_names_free(struct tfh_self *self)
{
	if (self->named)
		munmap(self->named, NAMED_BYTES);
	self->named = NULL;
	self->seen.handles = 0;
}

static void remember(struct tfh_self *self, uint64_t key, uint32_t id)
{
	uint64_t *slot = tfh_handle_slot(self, key);

	slot[0] = key;
	slot[1] = id;
}

/* Publishes NAME and the EXT records of its text together. Returns false if there is no room
 * (counted). */
static bool publish_name(struct tfh_self *self, enum tft_name kind, uint32_t id, uint64_t handle,
			 uint64_t extra, const char *text, size_t len)
{
	uint32_t parts = (uint32_t)((len + TFT_EXT_BYTES - 1) / TFT_EXT_BYTES);
	struct tfh_rec *rec = tfh_reserve(self, 1 + parts);
	uint64_t now = tfh_record_time(self);

	if (!rec)
		return false;
	tfh_fill(self, rec, 0, (uint16_t)kind, TFT_NAME, now, now);
	rec->stream = id;
	rec->flags = parts ? TFT_F_EXT : 0;
	rec->w[0] = handle;
	rec->w[1] = extra;
	rec->w[2] = len;
	for (uint32_t i = 0; i < parts; i++) {
		size_t at = (size_t)i * TFT_EXT_BYTES;
		size_t n = len - at < TFT_EXT_BYTES ? len - at : TFT_EXT_BYTES;
		char bytes[TFT_EXT_BYTES] = "";

		memcpy(bytes, text + at, n);
		rec = tfh_reserved(self, 1 + i);
		tfh_fill(self, rec, 1 + i, (uint16_t)i, TFT_EXT, now, now);
		rec->result = (uint16_t)(len - at);
		memcpy((char *)rec + offsetof(struct tfh_rec, stream), bytes, sizeof(bytes));
	}
	tfh_publish(self, 1 + parts);
	return true;
}

static uint32_t name(struct tfh_self *self, enum id_share share, enum tft_name kind, uint64_t key,
		     uint32_t hash, uint64_t handle, uint64_t extra, const char *text, size_t len)
{
	uint32_t id;

	tfh_handles_renew(self);
	id = id_of(share, key, hash);
	if (!id)
		return 0;
	if (!was_named(self, id)) {
		/* Nothing can be published while a record is reserved. The next use tries again. */
		if (self->guard & TFH_GUARD_FILLING || !tfh_own_ring(self) ||
		    !publish_name(self, kind, id, handle, extra, text, len))
			return id;
		set_named(self, id);
	}
	remember(self, key, id);
	return id;
}

/* Longer texts are cut, so that they fit into a ring of 1,024 records with room to spare. */
#define TEXT_MAX (64 * TFT_EXT_BYTES - TFT_EXT_BYTES)

uint32_t tfh_handle_new(struct tfh_self *self, enum tft_name kind, uint64_t handle, uint64_t extra,
			const char *text, size_t len)
{
	if (!text)
		len = 0;
	if (len > TEXT_MAX)
		len = TEXT_MAX;
	uint32_t id = name(self, share_of[kind & 15], kind, tfh_handle_key(kind, handle),
			   len ? (uint32_t)tfh_hash_bytes(text, len) : 0, handle, extra, text, len);

	if (!id)
		__atomic_fetch_add(&unnamed, 1, __ATOMIC_RELAXED);
	return id;
}

uint32_t tfh_handle_find(struct tfh_self *self, enum tft_name kind, uint64_t handle)
{
	uint64_t key = tfh_handle_key(kind, handle);
	struct interned *e;
	uint32_t id;

	tfh_handles_renew(self);
	e = find(key, false);
	id = e ? (uint32_t)(__atomic_load_n(&e->value, __ATOMIC_ACQUIRE) >> 32) : 0;
	if (!id || !was_named(self, id))
		return 0;
	remember(self, key, id);
	return id;
}

uint32_t tfh_stream_find(struct tfh_self *self, uint64_t stream)
{
	uint32_t id = tfh_handle_known(self, TFT_NAME_STREAM, stream);

	if (id) {
		self->stream_id = id;
		self->stream = stream;
	}
	return id;
}

void tfh_handles_forget(void)
{
	__atomic_add_fetch(&tfh_peek(&tfh_epoch)->handles, 1, __ATOMIC_ACQ_REL);
}

/* Sets the top bit, which no handle key has, so texts and handles share the table. */
static uint64_t text_key(enum tft_name kind, uint64_t hash)
{
	return (hash << 4 | kind) | 1ull << 63;
}

#define STEM_MAX 512

/* Writes the text to `out`, with each number replaced by 0, and returns its length. */
static size_t without_numbers(const char *text, size_t len, char out[STEM_MAX])
{
	size_t n = 0;
	bool digit = false;

	for (size_t i = 0; i < len && n < STEM_MAX; i++) {
		bool before = digit;
		digit = text[i] >= '0' && text[i] <= '9';
		if (!digit || !before)
			out[n++] = digit ? '0' : text[i];
	}
	return n;
}

static uint32_t text_as(struct tfh_self *self, enum id_share share, enum tft_name kind,
			const char *text, size_t len)
{
	uint64_t hash = tfh_hash_bytes(text, len);

	return name(self, share, kind, text_key(kind, hash), (uint32_t)hash, hash, 0, text, len);
}

/* The id of a text when its share has none left. */
static uint32_t further_text(struct tfh_self *self, enum tft_name kind, const char *text,
			     size_t len)
{
	char stem[STEM_MAX];
	uint32_t id = text_as(self, STEMS, kind, stem, without_numbers(text, len, stem));

	__atomic_fetch_add(&unnamed, 1, __ATOMIC_RELAXED);
	return id ? id : text_as(self, LASTING, kind, REST, sizeof(REST) - 1);
}

uint32_t tfh_text_id(struct tfh_self *self, enum tft_name kind, const char *text, size_t len)
{
	uint64_t hash, key;
	uint64_t *slot;
	uint32_t id;

	if (len > TEXT_MAX)
		len = TEXT_MAX;
	hash = tfh_hash_bytes(text, len);
	key = text_key(kind, hash);
	slot = tfh_handle_slot(self, key);
	if (tfh_likely(slot[0] == key &&
		       self->seen.handles == tfh_peek(&tfh_peek(&tfh_epoch)->handles)))
		return (uint32_t)slot[1];
	id = name(self, share_of[kind & 15], kind, key, (uint32_t)hash, hash, 0, text, len);
	return id ? id : further_text(self, kind, text, len);
}

uint32_t tfh_text_number(enum tft_name kind, const char *text, size_t len, uint64_t *hash)
{
	*hash = tfh_hash_bytes(text, len);
	return id_of(share_of[kind & 15], text_key(kind, *hash), (uint32_t)*hash);
}

uint64_t tfh_names_left_out(void)
{
	return __atomic_load_n(&unnamed, __ATOMIC_RELAXED);
}

void tfh_intern_forget(void)
{
	if (table)
		madvise(table, TABLE_SLOTS * sizeof(*table), MADV_DONTNEED);
	last_id = 0;
	memset(taken, 0, sizeof(taken));
	unnamed = 0;
	__atomic_add_fetch(&tfh_peek(&tfh_epoch)->handles, 1, __ATOMIC_RELAXED);
}
