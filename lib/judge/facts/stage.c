/*
 * Stages of tf.data pipelines by their path. TensorFlow's trace name of a stage is
 * "Iterator::Root::Prefetch::BatchV2::FlatMap[0]::Generator", then "#key=value,..#". Objects with
 * the same path (every epoch creates new ones) are one stage here.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/stage_path.h"
#include "base/text.h"
#include "judge/facts/survey.h"

/* Stages with threads between them and their input (XProf's asynchronous set, all versions of a
 * name). */
static const char *const async_types[] = {
	"Prefetch",	     "ParallelInterleave", "ParallelMap",
	"MapAndBatch",	     "DataService",	   "ParallelBatch",
	"ParallelFilter",    "ParseExample",	   "LegacyParallelInterleave",
	"MapAndBatchFusion", "ParallelFlatMap"};

static bool type_is(const char *type, const char *name)
{
	size_t n = strlen(name);

	if (strncmp(type, name, n))
		return false;
	/* a version number may follow: ParallelMapV2, ParallelInterleaveV4, BatchV2 */
	return !type[n] || (type[n] == 'V' && isdigit((unsigned char)type[n + 1]));
}

static uint32_t number_after(const char *text, const char *key)
{
	const char *at = strchr(text, '#');
	size_t n = strlen(key);

	for (; at; at = strpbrk(at + 1, ",#"))
		if (!strncmp(at + 1, key, n) && at[n + 1] == '=')
			return (uint32_t)strtoul(at + n + 2, NULL, 10);
	return 0;
}

/* Length of an element number at the start of the text: "[3]", or "/_3" for files of a saved
 * dataset. */
static size_t number_length(const char *text)
{
	if (*text == '[') {
		size_t n = strcspn(text, "]");
		return n + (text[n] == ']');
	}
	return text[0] == '/' && text[1] == '_' ? 2 + strspn(text + 2, "0123456789") : 0;
}

/* Copies the path without the numbers of elements, and without the text after it. */
static size_t clean_path(const char *text, char *out, size_t cap)
{
	size_t n = 0;

	while (*text && *text != '#' && n + 1 < cap) {
		size_t skip = tfh_stage_branches(out, n) ? 0 : number_length(text);
		if (!skip)
			out[n++] = *text++;
		text += skip;
	}
	out[n] = 0;
	return n;
}

static int32_t by_path(struct tfh_facts *facts, const char *path, size_t n)
{
	struct tfh_stage_use s = {.parent = -1};

	for (size_t i = 0; i < facts->stage.n; i++)
		if (strlen(facts->stage.v[i].prefix) == n &&
		    !memcmp(facts->stage.v[i].prefix, path, n))
			return (int32_t)i;
	char *copy = tfh_arena_strndup(facts->arena, path, n);
	if (!copy)
		return -1;
	char *last = NULL;
	for (char *p = copy; (p = strstr(p, "::")); p += 2)
		last = p;
	s.prefix = copy;
	s.type = last ? last + 2 : copy;
	for (size_t i = 0; i < sizeof(async_types) / sizeof(*async_types); i++)
		s.async |= type_is(s.type, async_types[i]);
	if (last) {
		size_t up = (size_t)(last - copy);
		while (up && copy[up - 1] == ']' && memrchr(copy, '[', up))
			up = (size_t)((char *)memrchr(copy, '[', up) - copy);
		s.parent = by_path(facts, path, up);
	}
	return TFH_PUSH(facts->stage, s) ? -1 : (int32_t)facts->stage.n - 1;
}

static bool is_below(const struct tfh_facts *facts, int32_t at, int32_t top)
{
	while (at >= 0 && at != top)
		at = facts->stage.v[at].parent;
	return at == top;
}

/* Sets the consumer of a stage from what its object reported to the recorder. The path alone does
 * not give it: in the path, the reading and writing halves of caches and snapshots
 * ("MemoryCacheImpl") are siblings of their stage. */
static void adopt(struct tfh_facts *facts, int32_t at, uint32_t consumer)
{
	int32_t up = consumer ? tfh_stage_learn(facts, consumer) : -1;

	if (up >= 0 && !is_below(facts, up, at))
		facts->stage.v[at].parent = up;
}

static int32_t place(struct tfh_facts *facts, uint32_t id, uint32_t *consumer)
{
	char path[1024];
	uint64_t delivers_to = 0;
	const struct tfh_feed *f = facts->feed;
	const char *text = f->name(f->arg, facts->process, TFT_NAME_STAGE, id, NULL, &delivers_to);
	size_t n = clean_path(text, path, sizeof(path));
	int32_t at = n ? by_path(facts, path, n) : -2;

	*consumer = (uint32_t)delivers_to;
	if (at >= 0) {
		tfh_note_maker(facts, &facts->stage.v[at], text);
		uint32_t k = number_after(text, "parallelism");
		if (!k)
			k = number_after(text, "cycle_length");
		if (k)
			facts->stage.v[at].parallelism = k;
	}
	return at;
}

int32_t tfh_stage_learn(struct tfh_facts *facts, uint32_t id)
{
	uint32_t consumer;
	int32_t at;

	if (!id || id >= TFH_FACTS_STAGE_IDS)
		return -1;
	while (facts->stage_of.n <= id)
		if (TFH_PUSH(facts->stage_of, -1))
			return -1;
	if (facts->stage_of.v[id] != -1)
		return facts->stage_of.v[id];
	at = place(facts, id, &consumer);
	facts->stage_of.v[id] = at;
	if (at >= 0)
		adopt(facts, at, consumer);
	return at;
}

int32_t tfh_stage_place(struct tfh_facts *facts, uint32_t id)
{
	int32_t at = tfh_stage_index(facts, id);
	uint32_t consumer;

	if (at != -1 || !id || id >= TFH_FACTS_STAGE_IDS)
		return at;
	at = place(facts, id, &consumer);
	if (at >= 0)
		adopt(facts, at, consumer);
	return at;
}

int32_t tfh_stage_index(const struct tfh_facts *facts, uint32_t id)
{
	return id && id < facts->stage_of.n ? facts->stage_of.v[id] : -1;
}

/* In a dataset loop inside a graph, the body runs in the outermost Scan stage, possibly below a
 * Prefetch that TensorFlow added. Scan's child delivers the batch. */
bool tfh_stage_is_loop_child(const struct tfh_facts *facts, uint32_t id)
{
	int32_t at = tfh_stage_index(facts, id);

	if (at < 0 || !tfh_starts_with(facts->stage.v[at].prefix, "ReduceIterator"))
		return false;
	at = facts->stage.v[at].parent;
	if (at < 0 || !type_is(facts->stage.v[at].type, "Scan"))
		return false;
	for (at = facts->stage.v[at].parent; at >= 0; at = facts->stage.v[at].parent)
		if (type_is(facts->stage.v[at].type, "Scan"))
			return false;
	return true;
}

void tfh_stage_count(struct tfh_stage_time *s, const struct tfh_event *ev)
{
	bool total = ev->kind == TFT_AGG;

	s->calls += total ? ev->ctx : 1;
	s->total += total ? (int64_t)ev->w[0] : ev->t1 - ev->t0;
	s->self += (int64_t)(total ? ev->w[1] : ev->w[2]);
}
