/*
 * Maps iterator objects to stages of pipelines.
 *
 * Objects are identified by the id that TensorFlow gives them (a hash of prefix and address). The
 * offsets of this id, of the parent's id and of the prefix string differ between releases, so they
 * are found once per process: BuildTraceMeName of the first object prints all three, and the
 * object's first words are searched for them. After that, a known stage costs one compare, and a
 * new object at a known place one hash of its prefix.
 */
#include "hook/tf/tf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/stage_path.h"
#include "record/process/lock.h"

#define CACHE 64       /* stages in use by a thread; a large pipeline has 30 */
#define OBJECTS 16384  /* live iterator objects; parallel interleaves hold hundreds */
#define STAGES 4096    /* places in pipelines, a new set for every iterator */
#define TEXT 512       /* stored bytes of a stage's name: shapes and types can be long */
#define PREFIX 4096    /* longest plausible prefix */
#define WORDS 40       /* searched words of an object; a DatasetBaseIterator has more */
#define SLOTS 64       /* searched slots of a vtable */
#define TRIES 256      /* probes before a stage stays unnamed */
#define MANY_IDS 65536 /* half of the recorder's ids: a job may make an iterator per step */

int tfh_tf_this = -1;

struct stage {
	uint64_t key;	 /* its place in the pipeline; 0 = free */
	uint32_t parent; /* index of the stage that it feeds, from 1; 0 = none */
	uint32_t root;	 /* index of the pipeline's last stage; removed together with it */
	uint32_t id;	 /* as recorded in `journal` */
	uint32_t journal;
	uint32_t length;
	char *text;
	uint8_t place; /* enum tfh_tf_place */
};

struct object {
	uint64_t key;	/* TensorFlow's id of the object, or its address; 0 = free */
	uint32_t stage; /* index in stages, from 1 */
	bool root;
};

/* Allocated for the first object. */
static struct {
	struct object object[OBJECTS];
	struct stage stage[STAGES];
	uint32_t stage_slot[2 * STAGES]; /* hash of stages: index + 1 */
} * tables;
static uint32_t object_count;
static uint64_t roots;	  /* iterators so far: makes each root's key unique */
static uint32_t made = 1; /* generation: changes when a root is removed */
static bool crowded;	  /* the process has used so many ids that new pipelines share them */
/* A thread that cannot get the lock soon goes without a name this time. */
static uint32_t lock TFH_LOCK_WORD;

/* Word index in the object, -1: unknown. */
static int id_word = -1, parent_word = -1, prefix_word = -1;

struct cached {
	const void *object;
	uint64_t key;
	uint32_t made;
	uint32_t journal;
	struct tfh_tf_stage stage;
};
_Static_assert(CACHE * sizeof(struct cached) <= sizeof(((struct tfh_room *)0)->stages), "room");

static struct cached *cached_at(struct tfh_self *self, const void *object)
{
	return (struct cached *)self->room->stages +
	       tfh_hash_u64((uint64_t)(uintptr_t)object) % CACHE;
}

/* ---- the object ---- */

/* Whether the object's vtable refers to our get-next: every stage's slot is relocated against the
 * exported symbol. */
static bool is_iterator(uint64_t address, const void *own)
{
	uint64_t table, slots[SLOTS];

	if (!address || address % 8 || tfh_tf_peek((void *)address, &table, 8) != 8 || !table ||
	    table % 8)
		return false;
	size_t n = tfh_tf_peek((void *)table, slots, sizeof(slots)) / 8;
	for (size_t i = 0; i < n; i++) {
		if (slots[i] == (uint64_t)own)
			return true;
	}
	return false;
}

int tfh_tf_this_index(const struct tfh_tf_frame *frame, const void *own)
{
	static int tries;

	if (tfh_tf_this < 0 && __atomic_load_n(&tries, __ATOMIC_RELAXED) < TRIES) {
		__atomic_fetch_add(&tries, 1, __ATOMIC_RELAXED);
		bool first = is_iterator(frame->arg[0], own),
		     second = is_iterator(frame->arg[1], own);
		if (first != second)
			__atomic_store_n(&tfh_tf_this, second, __ATOMIC_RELAXED);
	}
	return tfh_tf_this;
}

static inline uint64_t word(const void *object, int index)
{
	return ((const uint64_t *)object)[index];
}

static inline uint64_t key_of(const void *object)
{
	int at = __atomic_load_n(&id_word, __ATOMIC_RELAXED);

	return at >= 0 ? word(object, at) : (uint64_t)(uintptr_t)object;
}

/* The number after `name` ("id=", "parent_id=") in a trace name; 0 if absent. */
static uint64_t number_in(const char *text, const char *name)
{
	for (const char *at = strstr(text, name); at; at = strstr(at + 1, name)) {
		if (at == text || at[-1] == ',' || at[-1] == '#')
			return strtoull(at + strlen(name), NULL, 10);
	}
	return 0;
}

/* Finds the offsets of the values that the trace name shows. The order of the last two stores does
 * not matter. */
static void learn(const void *object, const char *text)
{
	uint64_t words[WORDS], id = number_in(text, "id="), parent = number_in(text, "parent_id=");
	size_t n = tfh_tf_peek(object, words, sizeof(words)) / 8;
	size_t length = strcspn(text, "#");
	char prefix[256];

	for (size_t i = 1; i < n; i++) {
		if (id && id_word < 0 && words[i] == id)
			__atomic_store_n(&id_word, (int)i, __ATOMIC_RELAXED);
		if (parent && parent_word < 0 && words[i] == parent)
			__atomic_store_n(&parent_word, (int)i, __ATOMIC_RELEASE);
		if (prefix_word < 0 && length && length < sizeof(prefix) && i + 1 < n &&
		    words[i + 1] == length &&
		    tfh_tf_peek((void *)words[i], prefix, length) == length &&
		    !memcmp(prefix, text, length))
			__atomic_store_n(&prefix_word, (int)i, __ATOMIC_RELEASE);
	}
}

/* Hash of a prefix without the numbers of elements: all "Interleave[3]::TFRecord" are one place,
 * whatever the number. */
static uint64_t hash_prefix(const char *text, size_t length)
{
	uint64_t hash = length ? 1 : 0;
	bool inside = false;

	for (size_t i = 0; i < length; i++) {
		if (text[i] == '[')
			inside = !tfh_stage_branches(text, i);
		else if (text[i] == ']')
			inside = false;
		if (!inside)
			hash = (hash ^ (unsigned char)text[i]) * 0x100000001b3ull;
	}
	return tfh_hash_u64(hash);
}

/*
 * TensorFlow's name of the object, as its profiler would show it. The function returns a
 * std::string of libstdc++'s current layout {pointer, length, 16 bytes}, as "B5cxx11" in the symbol
 * indicates (2.9 and later).
 */
static size_t trace_name(const void *object, char *out, size_t size)
{
	static void *build;
	static void (*release)(void *);
	static int looked;
	struct {
		char *text;
		size_t length;
		char inside[16];
	} string = {0};

	if (!__atomic_load_n(&looked, __ATOMIC_ACQUIRE)) {
		build = tfh_tf_lookup(
			"_ZN10tensorflow4data19DatasetBaseIterator16BuildTraceMeNameB5cxx11Ev",
			NULL);
		release = (void (*)(void *))tfh_tf_lookup("_ZdlPv", NULL);
		__atomic_store_n(&looked, 1, __ATOMIC_RELEASE);
	}
	if (!build || !release)
		return 0;
	tfh_tf_returning(&string, object, build);
	size_t length = string.length < size - 1 ? string.length : size - 1;
	memcpy(out, string.text, length);
	out[length] = '\0';
	if (string.text != string.inside)
		release(string.text);
	return length;
}

/* ---- tables, under the lock ---- */

/* Slot of the object with this key, or the free slot for it. */
static uint32_t object_slot(uint64_t key)
{
	uint32_t i = (uint32_t)tfh_hash_u64(key) % OBJECTS;

	while (tables->object[i].key && tables->object[i].key != key)
		i = (i + 1) % OBJECTS;
	return i;
}

/* Open addressing without tombstones: later entries of the same run move up. */
static void object_remove(uint32_t hole)
{
	uint32_t i = hole;

	tables->object[hole].key = 0;
	object_count--;
	for (;;) {
		i = (i + 1) % OBJECTS;
		if (!tables->object[i].key)
			return;
		uint32_t home = (uint32_t)tfh_hash_u64(tables->object[i].key) % OBJECTS;
		if ((i - home + OBJECTS) % OBJECTS >= (i - hole + OBJECTS) % OBJECTS) {
			tables->object[hole] = tables->object[i];
			tables->object[i].key = 0;
			hole = i;
		}
	}
}

static uint32_t stage_find(uint64_t key, uint32_t *slot)
{
	uint32_t i = (uint32_t)key % (2 * STAGES);

	while (tables->stage_slot[i] && tables->stage[tables->stage_slot[i] - 1].key != key)
		i = (i + 1) % (2 * STAGES);
	*slot = i;
	return tables->stage_slot[i];
}

/* See enum tfh_tf_place. Text: "ReduceIterator::Root::Prefetch::Scan::MapAndBatch#...". */
static uint8_t place_of(const char *text)
{
	static const char root[] = "ReduceIterator::", scan[] = "::Scan";
	const char *end = text + strcspn(text, "#"), *at = strstr(text, scan);

	if (strncmp(text, root, sizeof(root) - 1) || !at || at >= end)
		return TFH_PLACE_PIPELINE;
	at += sizeof(scan) - 1;
	if (at == end)
		return TFH_PLACE_LOOP;
	if (at[0] != ':')
		return TFH_PLACE_PIPELINE;
	at = strstr(at + 2, "::");
	return !at || at >= end ? TFH_PLACE_LOOP_SOURCE : TFH_PLACE_PIPELINE;
}

static uint32_t stage_add(uint64_t key, uint32_t slot, uint32_t parent, const char *text,
			  size_t length)
{
	static uint32_t next;
	uint32_t i = next, tried = 0;

	while (tables->stage[i].key && ++tried < STAGES)
		i = (i + 1) % STAGES;
	char *copy = tables->stage[i].key ? NULL : malloc(length + 1);
	if (!copy)
		return 0;
	memcpy(copy, text, length + 1);
	tables->stage[i] = (struct stage){
		.key = key, .parent = parent, .text = copy, .length = (uint32_t)length};
	tables->stage[i].place = place_of(copy);
	tables->stage[i].root = parent ? tables->stage[parent - 1].root : i + 1;
	next = (i + 1) % STAGES;
	return tables->stage_slot[slot] = i + 1;
}

/* Removes the stages of a destroyed pipeline: a job may make an iterator per step. */
static void stages_remove(uint32_t root)
{
	uint32_t slot;

	memset(tables->stage_slot, 0, sizeof(tables->stage_slot));
	for (uint32_t i = 0; i < STAGES; i++) {
		if (tables->stage[i].key && tables->stage[i].root == root) {
			tables->stage[i].key = 0; /* first: a fork may happen in between */
			free(tables->stage[i].text);
		}
		if (tables->stage[i].key) {
			stage_find(tables->stage[i].key, &slot);
			tables->stage_slot[slot] = i + 1;
		}
	}
}

/* Removes "id=N," and "parent_id=N," from a trace name: they differ with every object, and the
 * record has better ids. */
static size_t without_ids(char *text)
{
	static const char *const fields[] = {",parent_id=", ",id=", "#id="};

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		char *at = strstr(text, fields[i]);
		if (!at)
			continue;
		at += fields[i][0] == '#';
		char *rest = at + 1 + strcspn(at + 1, ",#");
		memmove(at, rest, strlen(rest) + 1);
	}
	return strlen(text);
}

/* Prefix and parent, read from an object. */
struct identity {
	const char *prefix;
	size_t length;
	uint64_t parent;
	char text[TEXT]; /* its trace name, "" if not requested */
};

static bool identify(const void *object, struct identity *who)
{
	who->text[0] = '\0';
	if (id_word >= 0 && prefix_word >= 0 && parent_word >= 0) {
		who->parent = word(object, parent_word);
		who->prefix = (const char *)word(object, prefix_word);
		who->length = word(object, prefix_word + 1);
		return who->length <= PREFIX;
	}
	if (!trace_name(object, who->text, sizeof(who->text)))
		return false;
	learn(object, who->text);
	who->parent = number_in(who->text, "parent_id=");
	who->prefix = who->text;
	who->length = strcspn(who->text, "#");
	return true;
}

/* The text that is recorded for a new stage. */
static size_t stage_text(const void *object, struct identity *who)
{
	if (crowded) {
		size_t length = who->length < TEXT - 2 ? who->length : TEXT - 2;
		memmove(who->text, who->prefix, length);
		memcpy(who->text + length, "#", 2);
		return length + 1;
	}
	if (!who->text[0])
		trace_name(object, who->text, sizeof(who->text));
	return without_ids(who->text);
}

static uint32_t add_object(const void *object)
{
	struct identity who;
	uint32_t parent = 0, index, slot, at;
	uint64_t key, hash;

	if (!identify(object, &who))
		return 0;
	at = object_slot(who.parent);
	if (who.parent && tables->object[at].key)
		parent = tables->object[at].stage;
	hash = hash_prefix(who.prefix, who.length);
	if (parent)
		key = tfh_hash_add(tables->stage[parent - 1].key, hash);
	else
		key = tfh_hash_add(hash, crowded ? 0 : who.parent ? who.parent : ++roots);
	key |= 2; /* never 0 or 1 */
	index = stage_find(key, &slot);
	if (!index)
		index = stage_add(key, slot, parent, who.text, stage_text(object, &who));
	if (index && object_count < OBJECTS * 3 / 4) {
		key = key_of(object);
		at = object_slot(key);
		object_count += tables->object[at].key == 0;
		tables->object[at] = (struct object){
			.key = key, .stage = index, .root = !who.parent && !crowded};
	}
	return index;
}

/* ---- for the hooks ---- */

static struct tfh_tf_stage stage_slow(struct tfh_self *self, const void *object)
{
	int saved_errno = errno;
	uint32_t generation = __atomic_load_n(&made, __ATOMIC_ACQUIRE);
	uint32_t id = 0, index, at;
	struct stage stage = {0}, parent = {0};

	if (!tfh_memory(&tables, sizeof(*tables), "the stages of pipelines") || !tfh_lock(&lock))
		return tfh_tf_stage_unnamed(self);
	at = object_slot(key_of(object));
	index = tables->object[at].key ? tables->object[at].stage : add_object(object);
	if (index) {
		stage = tables->stage[index - 1];
		if (stage.parent)
			parent = tables->stage[stage.parent - 1];
	}
	tfh_unlock(&lock);
	if (index) { /* while the object lives, so do its pipeline and these texts */
		uint64_t lost = self->ring->dropped;
		id = tfh_handle_new(self, TFT_NAME_STAGE, stage.key,
				    (parent.journal ^ self->seen.generation) <= 1 ? parent.id : 0,
				    stage.text, stage.length);
		tables->stage[index - 1].id = id;
		tables->stage[index - 1].journal = self->seen.generation;
		if (id > MANY_IDS)
			crowded = true;
		/* Where the name was lost, the next call tries again. */
		if (id && self->ring->dropped == lost)
			*cached_at(self, object) = (struct cached){object,
								   key_of(object),
								   generation,
								   self->seen.generation,
								   {id, stage.place}};
	}
	errno = saved_errno;
	return id ? (struct tfh_tf_stage){id, stage.place} : tfh_tf_stage_unnamed(self);
}

struct tfh_tf_stage tfh_tf_stage(struct tfh_self *self, const void *object)
{
	const struct cached *c = cached_at(self, object);

	if (tfh_likely(c->object == object && c->key == key_of(object) &&
		       c->made == __atomic_load_n(&made, __ATOMIC_RELAXED) &&
		       c->journal == self->seen.generation))
		return c->stage;
	return stage_slow(self, object);
}

struct tfh_tf_stage tfh_tf_stage_unnamed(struct tfh_self *self)
{
	static const char text[] = "Iterator::unnamed#";
	uint32_t id = tfh_handle_known(self, TFT_NAME_STAGE, 1);

	if (!id)
		id = tfh_handle_new(self, TFT_NAME_STAGE, 1, 0, text, sizeof(text) - 1);
	return (struct tfh_tf_stage){id, TFH_PLACE_PIPELINE};
}

void tfh_tf_stage_gone(const void *object)
{
	if (!__atomic_load_n(&object_count, __ATOMIC_RELAXED) || !tfh_lock(&lock))
		return;
	uint32_t at = object_slot(key_of(object));
	if (tables->object[at].key) {
		/* A new iterator at the same address would get the same id and be confused with
		 * this one. */
		if (tables->object[at].root) {
			__atomic_fetch_add(&made, 1, __ATOMIC_RELEASE);
			stages_remove(tables->object[at].stage);
		}
		object_remove(at);
	}
	tfh_unlock(&lock);
}
