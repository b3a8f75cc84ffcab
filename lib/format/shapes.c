#include "format/shapes.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/hash.h"

/* Limit on loose values; EXT text is 36 bytes. */
#define MAX_LOOSE (TFT_MAX_EVENTS * TFT_FIELDS)

/* A class that makes this many shapes in one chunk, with a new one for every fourth event, keeps
 * its widest fields out of the dictionary from the next chunk on. Lower limits do not pay: a step
 * of a large network has 1,000 to 3,000 different launches that recur in the next step. */
#define LEARN_FRESH 1024u
/* The same limit within a chunk, when the dictionary is nearly full. */
#define LEARN_NOW 3072u
/* 160 of 256 bits set mean about 250 different values (linear counting: -256 ln(1 - 160/256)). */
#define MANY_BITS 160u
/* 30 of 256 bits mean about 32 values; such a field returns to the dictionary. */
#define FEW_BITS 30u

enum {
	CLASS_PLAIN = 0, /* every field in the dictionary */
	CLASS_ALL = 1,	 /* no field in the dictionary: the fallback when it is full */
	CLASS_TEXT = 2,
	CLASS_FIRST_FREE = 3,
};

static uint32_t slot_of(uint8_t kind, uint16_t fn)
{
	return ((uint32_t)kind * 1024u + fn) & (TFT_CLASS_SLOTS - 1);
}

static uint8_t bit(enum tft_field f)
{
	return (uint8_t)(1u << f);
}

/* Initial classes: counters, times and addresses are kept out of the dictionary. */
static void teach(struct tft_shapes *s, const struct tfh_fn_info *fn, uint32_t fn_count)
{
	for (uint32_t i = 0; i < 1024; i++) {
		s->slots[slot_of(TFT_AGG, (uint16_t)i)].mask =
			bit(TFT_FIELD_CTX) | bit(TFT_FIELD_W0) | bit(TFT_FIELD_W1) |
			bit(TFT_FIELD_W2);
		s->slots[slot_of(TFT_CPUTIME, (uint16_t)i)].mask = bit(TFT_FIELD_W0);
		s->slots[slot_of(TFT_MARK, (uint16_t)i)].mask = bit(TFT_FIELD_W0);
		s->slots[slot_of(TFT_NAME, (uint16_t)i)].mask =
			bit(TFT_FIELD_STREAM) | bit(TFT_FIELD_W0);
		s->slots[slot_of(TFT_ALLOC, (uint16_t)i)].mask = bit(TFT_FIELD_W1);
		s->slots[slot_of(TFT_EXT, (uint16_t)i)].mask = TFT_MASK_TEXT;
	}
	for (uint32_t i = 0; i < fn_count && i < 1024; i++)
		if (fn[i].args == TFH_ARGS_GETNEXT)
			s->slots[slot_of(TFT_CALL, (uint16_t)i)].mask = bit(TFT_FIELD_W2);
}

int tft_shapes_init(struct tft_shapes *s, const struct tfh_fn_info *fn, uint32_t fn_count)
{
	memset(s, 0, sizeof(*s));
	s->key = malloc(TFT_MAX_SHAPES * sizeof(*s->key));
	s->next = calloc(TFT_CONTEXTS, sizeof(*s->next));
	s->table = calloc(TFT_SHAPE_TABLE, sizeof(*s->table));
	s->touched = malloc(TFT_CLASS_SLOTS * sizeof(*s->touched));
	/* Large arrays cost only address space until a chunk needs them. */
	s->loose = malloc(MAX_LOOSE * sizeof(*s->loose));
	s->text = malloc((size_t)TFT_MAX_EVENTS * TFT_EXT_BYTES);
	s->slots = calloc(TFT_CLASS_SLOTS, sizeof(*s->slots));
	s->distinct = calloc(TFT_DISTINCT_POOL, sizeof(*s->distinct));
	if (!s->key || !s->next || !s->table || !s->touched || !s->loose || !s->text || !s->slots ||
	    !s->distinct) {
		tft_shapes_free(s);
		return -ENOMEM;
	}
	teach(s, fn, fn_count);
	tft_shapes_reset(s);
	return 0;
}

void tft_shapes_free(struct tft_shapes *s)
{
	free(s->key);
	free(s->next);
	free(s->table);
	free(s->touched);
	free(s->loose);
	free(s->text);
	free(s->slots);
	free(s->distinct);
	memset(s, 0, sizeof(*s));
}

/* Creates a class with this mask; CLASS_PLAIN if there is no column left for it. */
static uint8_t new_class(struct tft_shapes *s, uint8_t mask, uint32_t slot)
{
	uint32_t columns = (uint32_t)__builtin_popcount(mask & TFT_MASK_ALL);

	if (s->n_classes == TFT_MAX_CLASSES || s->n_columns + columns > TFT_MAX_COLUMNS)
		return CLASS_PLAIN;
	uint32_t id = s->n_classes++;
	s->class_mask[id] = mask;
	s->class_column[id] = (uint8_t)s->n_columns;
	for (uint32_t f = 0; f < TFT_FIELDS; f++) {
		if (!(mask & bit(f)))
			continue;
		s->column_slot[s->n_columns] = (uint16_t)slot;
		s->column_field[s->n_columns] = (uint8_t)f;
		s->column_count[s->n_columns] = 0;
		s->n_columns++;
	}
	return (uint8_t)id;
}

void tft_shapes_reset(struct tft_shapes *s)
{
	memset(s->table, 0, TFT_SHAPE_TABLE * sizeof(*s->table));
	for (uint32_t i = 0; i < s->n_touched; i++) {
		struct tft_class *c = &s->slots[s->touched[i]];
		c->touched = 0;
		c->distinct = 0;
		c->events = c->fresh = 0;
	}
	memset(s->distinct, 0, s->n_distinct * sizeof(*s->distinct));
	s->n_distinct = s->n_touched = 0;
	memset(s->next, 0, TFT_CONTEXTS * sizeof(*s->next));
	s->n = s->last = s->context = 0;
	/* No class has this number, so the key equals no other one. */
	memset(s->key[0], 0xff, sizeof(s->key[0]));
	s->n_loose = s->n_text = 0;
	s->n_classes = s->n_columns = 0;
	new_class(s, 0, 0);
	new_class(s, TFT_MASK_ALL, 0);
	new_class(s, TFT_MASK_TEXT, 0);
}

static void touch(struct tft_shapes *s, struct tft_class *c, uint32_t slot)
{
	c->touched = 1;
	s->touched[s->n_touched++] = (uint16_t)slot;
	if (c->mask == 0)
		c->id = CLASS_PLAIN;
	else if (c->mask == TFT_MASK_TEXT)
		c->id = CLASS_TEXT;
	else
		c->id = new_class(s, c->mask, slot);
	if (s->n_distinct < TFT_DISTINCT_POOL)
		c->distinct = (uint16_t)++s->n_distinct;
}

static uint64_t field(const struct tfh_rec *r, uint32_t f)
{
	switch (f) {
	case TFT_FIELD_FIXED:
		return tft_rec_fixed(r);
	case TFT_FIELD_STREAM:
		return r->stream;
	case TFT_FIELD_CTX:
		return r->ctx;
	case TFT_FIELD_STACK:
		return r->stack;
	default:
		return r->w[f - TFT_FIELD_W0];
	}
}

/* Stores the fields that the class keeps out of its shapes. */
static void add_loose(struct tft_shapes *s, const struct tfh_rec *r, uint32_t class, uint32_t run)
{
	uint32_t mask = s->class_mask[class];
	uint32_t column = s->class_column[class];

	if (mask == TFT_MASK_TEXT) {
		memcpy(s->text + (size_t)s->n_text++ * TFT_EXT_BYTES,
		       (const char *)r + TFT_EXT_OFFSET, TFT_EXT_BYTES);
		return;
	}
	for (; mask; mask &= mask - 1, column++) {
		struct tft_loose *l = &s->loose[s->n_loose++];
		l->value = field(r, (uint32_t)__builtin_ctz(mask));
		l->duration = r->t_end - r->t_begin;
		l->run = run;
		l->column = column;
		s->column_count[column]++;
	}
}

/* Bytes 16..63 of the record with the class in place of seq and zeros for fields outside the
 * dictionary. */
static void make_key(uint64_t key[TFT_SHAPE_WORDS], const struct tfh_rec *r, uint32_t mask,
		     uint32_t class)
{
	struct tfh_rec k = *r;

	k.seq = class;
	if (mask & bit(TFT_FIELD_FIXED)) {
		k.fn = k.result = 0;
		k.kind = k.flags = k.depth = k.flags2 = 0;
	}
	if (mask & (bit(TFT_FIELD_STREAM) | TFT_MASK_TEXT))
		k.stream = 0;
	if (mask & (bit(TFT_FIELD_CTX) | TFT_MASK_TEXT))
		k.ctx = 0;
	if (mask & (bit(TFT_FIELD_STACK) | TFT_MASK_TEXT))
		k.stack = 0;
	for (uint32_t i = 0; i < 3; i++)
		if (mask & (bit(TFT_FIELD_W0 + i) | TFT_MASK_TEXT))
			k.w[i] = 0;
	memcpy(key, (const char *)&k + TFT_SHAPE_OFFSET, sizeof(uint64_t) * TFT_SHAPE_WORDS);
}

/* A key fits three 16-byte registers. */
typedef uint64_t pair __attribute__((vector_size(16)));

static inline pair load(const void *p)
{
	pair v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static inline bool same(const uint64_t a[TFT_SHAPE_WORDS], const uint64_t b[TFT_SHAPE_WORDS])
{
	pair d = (load(a) ^ load(b)) | (load(a + 2) ^ load(b + 2)) | (load(a + 4) ^ load(b + 4));

	return (d[0] | d[1]) == 0;
}

/* Whether this is a shape of CLASS_PLAIN with the record's fields, without building the record's
 * key. */
static inline bool same_plain(const uint64_t key[TFT_SHAPE_WORDS], const struct tfh_rec *r)
{
	/* The class, 0, is where the record has seq: the low half of the second word. */
	const pair no_seq = {~0ull, ~0xffffffffull};
	const char *p = (const char *)r + TFT_SHAPE_OFFSET;
	pair d = (load(key) ^ (load(p) & no_seq)) | (load(key + 2) ^ load(p + 16)) |
		 (load(key + 4) ^ load(p + 32));

	return (d[0] | d[1]) == 0;
}

static uint32_t hash_key(const uint64_t k[TFT_SHAPE_WORDS])
{
	/* Sum of products of 64-bit halves: three independent multiplications. */
	__uint128_t a =
		(__uint128_t)(k[0] ^ 0x9e3779b97f4a7c15ull) * (k[1] ^ 0xbf58476d1ce4e5b9ull);
	__uint128_t b =
		(__uint128_t)(k[2] ^ 0x94d049bb133111ebull) * (k[3] ^ 0xd6e8feb86659fd93ull);
	__uint128_t c =
		(__uint128_t)(k[4] ^ 0xa0761d6478bd642full) * (k[5] ^ 0xe7037ed1a0b428dbull);
	uint64_t h = (uint64_t)a ^ (uint64_t)(a >> 64) ^ (uint64_t)b ^ (uint64_t)(b >> 64) * 3 ^
		     (uint64_t)c ^ (uint64_t)(c >> 64) * 5;

	return (uint32_t)(h ^ h >> 32);
}

/* Counts the values in a new shape of the class. */
static void note_fresh(struct tft_shapes *s, struct tft_class *c,
		       const uint64_t key[TFT_SHAPE_WORDS])
{
	struct tfh_rec r;

	c->fresh++;
	if (!c->distinct)
		return;
	memcpy((char *)&r + TFT_SHAPE_OFFSET, key, sizeof(uint64_t) * TFT_SHAPE_WORDS);
	for (uint32_t f = TFT_FIELD_STREAM; f < TFT_FIELDS; f++) {
		uint32_t h = (uint32_t)tfh_hash_u64(field(&r, f)) % TFT_DISTINCT_BITS;
		s->distinct[c->distinct - 1][f][h / 64] |= 1ull << h % 64;
	}
}

static uint32_t bits_set(const uint64_t set[TFT_DISTINCT_BITS / 64])
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < TFT_DISTINCT_BITS / 64; i++)
		n += (uint32_t)__builtin_popcountll(set[i]);
	return n;
}

/* The fields of the class with many values, or else the one with most values; 0 if none stands
 * out. */
static uint8_t wide_fields(const struct tft_shapes *s, const struct tft_class *c)
{
	uint8_t mask = 0, widest = 0;
	uint32_t most = 1;

	if (!c->distinct)
		return 0;
	for (uint32_t f = TFT_FIELD_STREAM; f < TFT_FIELDS; f++) {
		uint32_t n = bits_set(s->distinct[c->distinct - 1][f]);
		if (c->mask & bit(f))
			continue;
		if (n >= MANY_BITS)
			mask |= bit(f);
		if (n > most) {
			most = n;
			widest = bit(f);
		}
	}
	return mask ? mask : widest;
}

/* Sets a learnt mask. It never becomes TFT_MASK_ALL, which is that of CLASS_ALL and keeps even fn
 * out of the dictionary. */
static void learn_class(const struct tft_shapes *s, struct tft_class *c)
{
	if (!(c->mask & TFT_MASK_TEXT))
		c->mask |= wide_fields(s, c);
}

static uint32_t add_shape(struct tft_shapes *s, const uint64_t key[TFT_SHAPE_WORDS], uint32_t place)
{
	uint32_t id = s->n++;

	memcpy(s->key[id], key, sizeof(s->key[id]));
	s->table[place] = (uint16_t)(id + 1);
	return id;
}

/* Looks up a key; *place is its slot, or the free slot where it would be inserted. */
static uint32_t find(const struct tft_shapes *s, const uint64_t key[TFT_SHAPE_WORDS],
		     uint32_t *place)
{
	uint32_t p = hash_key(key) & (TFT_SHAPE_TABLE - 1);

	while (s->table[p] && !same(s->key[s->table[p] - 1], key))
		p = (p + 1) & (TFT_SHAPE_TABLE - 1);
	*place = p;
	return s->table[p];
}

static uint32_t add_slow(struct tft_shapes *s, struct tft_class *c, uint64_t key[TFT_SHAPE_WORDS],
			 const struct tfh_rec *r, uint32_t slot, uint32_t *class)
{
	uint32_t place;
	uint32_t found = find(s, key, &place);

	if (found)
		return found - 1;
	if (c->fresh >= LEARN_NOW && c->fresh * 2 > c->events) {
		learn_class(s, c);
		c->fresh = c->events = 0;
		uint8_t id = new_class(s, c->mask, slot);
		if (id != CLASS_PLAIN)
			c->id = id;
	}
	/* the last shape is reserved for CLASS_ALL */
	if (s->n >= TFT_MAX_SHAPES - 1) {
		*class = CLASS_ALL;
		make_key(key, r, TFT_MASK_ALL, CLASS_ALL);
		found = find(s, key, &place);
		return found ? found - 1 : add_shape(s, key, place);
	}
	note_fresh(s, c, key);
	return add_shape(s, key, place);
}

/* Predicts the next shape from the last two. A kernel occurs several times in a step, each time
 * before a different one, so one shape does not predict the next (11 % correct in a step of 640
 * launches of 180 kernels). */
static inline void advance(struct tft_shapes *s, uint32_t id)
{
	s->context = (s->last * 0x9e5u ^ id) & (TFT_CONTEXTS - 1);
	s->last = id;
}

uint32_t tft_shapes_add(struct tft_shapes *s, const struct tfh_rec *r, uint32_t run)
{
	uint32_t slot = slot_of(r->kind, r->fn);
	struct tft_class *c = &s->slots[slot];
	uint64_t key[TFT_SHAPE_WORDS];
	uint32_t class, id = s->next[s->context];

	if (!c->touched)
		touch(s, c, slot);
	c->events++;
	class = c->id;
	if (class == CLASS_PLAIN && same_plain(s->key[id], r)) {
		advance(s, id);
		return id;
	}
	if (class == CLASS_PLAIN) {
		memcpy(key, (const char *)r + TFT_SHAPE_OFFSET, sizeof(key));
		key[1] &= ~0xffffffffull;
	} else {
		make_key(key, r, s->class_mask[class], class);
	}
	if (class == CLASS_PLAIN || !same(s->key[id], key)) {
		id = add_slow(s, c, key, r, slot, &class);
		s->next[s->context] = (uint16_t)id;
	}
	if (class != CLASS_PLAIN)
		add_loose(s, r, class, run);
	advance(s, id);
	return id;
}

void tft_shapes_learn(struct tft_shapes *s)
{
	for (uint32_t i = 0; i < s->n_touched; i++) {
		struct tft_class *c = &s->slots[s->touched[i]];
		if (c->fresh >= LEARN_FRESH && c->fresh * 4 > c->events)
			learn_class(s, c);
	}
}

void tft_shapes_judge_column(struct tft_shapes *s, uint32_t column, const struct tft_loose *values,
			     uint32_t n)
{
	uint64_t set[TFT_DISTINCT_BITS / 64] = {0};
	struct tft_class *c = &s->slots[s->column_slot[column]];
	uint8_t f = bit(s->column_field[column]);

	/* columns of CLASS_ALL belong to no class; short columns prove nothing */
	if (s->column_slot[column] == 0 || n < 4096 || !(c->mask & f))
		return;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t h = (uint32_t)tfh_hash_u64(values[i].value) % TFT_DISTINCT_BITS;
		set[h / 64] |= 1ull << h % 64;
	}
	if (bits_set(set) < FEW_BITS)
		c->mask &= (uint8_t)~f;
}
