#include "export/pseudonyms.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/fn.h"
#include "base/hash.h"
#include "base/key_table.h"
#include "model/symbols/kernel_family.h"
#include "model/symbols/kernel_name.h"

struct tfh_pseudonyms {
	struct tfh_map of; /* kind and name -> the pseudonym's address */
	struct tfh_arena arena;
	uint32_t count[TFH_NAMED_KINDS];
};

/* Beginnings of ranges' names that libraries give. The rest of the name stays if it is a word of
 * theirs, too; otherwise it may be a class of the program, and gets a pseudonym. */
static const struct {
	const char *begin;
	bool whole;
} public_names[] = {
	{"ProfilerStep", true},
	{"aten::", true},
	{"c10d::", true},
	{"nccl:", true},
	{"gloo:", true},
	{"Iterator", true},
	{"enumerate(DataLoader)#", false},
	{"Optimizer.step#", false},
	{"Optimizer.zero_grad#", false},
};

static bool is_word(const char *text)
{
	while (isalnum((unsigned char)*text) || (*text && strchr("_:#[].", *text)))
		text++;
	return !*text;
}

/* How much of a name is public. */
static size_t public_part(enum tfh_named kind, const char *name)
{
	for (uint32_t i = 0; kind == TFH_NAMED_CALL && i < TFH_FN_COUNT; i++)
		if (!strcmp(tfh_fn_table[i].name, name))
			return strlen(name);
	if (kind != TFH_NAMED_RANGE && kind != TFH_NAMED_CALL)
		return 0;
	for (size_t i = 0; i < sizeof(public_names) / sizeof(*public_names); i++) {
		size_t n = strlen(public_names[i].begin);
		if (!strncmp(name, public_names[i].begin, n))
			return public_names[i].whole && is_word(name + n) ? strlen(name) : n;
	}
	return 0;
}

struct tfh_pseudonyms *tfh_pseudonyms_new(void)
{
	struct tfh_pseudonyms *p = calloc(1, sizeof(*p));

	if (p)
		tfh_arena_init(&p->arena, 0);
	return p;
}

void tfh_pseudonyms_free(struct tfh_pseudonyms *p)
{
	if (!p)
		return;
	tfh_map_free(&p->of);
	tfh_arena_free(&p->arena);
	free(p);
}

/* Kernels keep their family, and those that communicate a beginning by which every tool recognises
 * them. */
static const char *make(struct tfh_pseudonyms *p, enum tfh_named kind, const char *name)
{
	static const char *const words[] = {[TFH_NAMED_RANGE] = "range",
					    [TFH_NAMED_CALL] = "call",
					    [TFH_NAMED_THREAD] = "thread",
					    [TFH_NAMED_HOST] = "host",
					    [TFH_NAMED_PROGRAM] = "program"};
	size_t shown = public_part(kind, name);

	if (shown == strlen(name))
		return tfh_arena_strdup(&p->arena, name);
	uint32_t number = ++p->count[kind];
	if (kind != TFH_NAMED_KERNEL)
		return tfh_arena_text(&p->arena, "%.*s%s %u", (int)shown, name, words[kind],
				      number);
	if (tfh_kernel_communicates(name))
		return tfh_arena_text(&p->arena, "ncclKernel_%u", number);
	return tfh_arena_text(&p->arena, "kernel_%u_%s", number,
			      tfh_family_name(tfh_kernel_family(name)));
}

const char *tfh_pseudonym(struct tfh_pseudonyms *p, enum tfh_named kind, const char *name)
{
	bool fresh;

	if (!p || !name || !*name)
		return name;
	uint64_t *of = tfh_map_put(&p->of, tfh_hash_add(tfh_hash_str(name), kind), &fresh);
	if (of && fresh)
		*of = (uintptr_t)make(p, kind, name);
	return of && *of ? (const char *)(uintptr_t)*of : "(no memory for a name)";
}
