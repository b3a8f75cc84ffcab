/*
 * Pairs begin and end entries (B and E) of Chrome's format. An end belongs to the last open begin
 * on its thread. Exporters write a thread's entries in time order.
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

#include "import/kineto.h"
#include "base/key_table.h"

/* Limit on open entries; further ones are dropped with their ends. */
#define MOST 1000000u

/* An open entry; only the bytes up to the end of its name are stored. */
struct begun {
	struct begun *below; /* on the same thread */
	size_t bytes;
	uint64_t left_out; /* number of dropped entries above it */
	char entry[];
};

struct tfh_kineto_open {
	struct tfh_map top; /* thread -> struct begun */
	uint32_t n;
};

struct tfh_kineto_open *tfh_kineto_open_new(void)
{
	return calloc(1, sizeof(struct tfh_kineto_open));
}

void tfh_kineto_open_free(struct tfh_kineto_open *o)
{
	for (uint32_t i = 0; o && i < o->top.size; i++)
		for (struct begun *b = (struct begun *)(uintptr_t)o->top.v[i].value, *below; b;
		     b = below) {
			below = b->below;
			free(b);
		}
	if (o)
		tfh_map_free(&o->top);
	free(o);
}

static int begin(struct tfh_kineto_open *o, const struct tfh_kineto_entry *e, uint64_t *top)
{
	struct begun *below = (struct begun *)(uintptr_t)*top, *b;
	size_t n = offsetof(struct tfh_kineto_entry, name) + strlen(e->name) + 1;

	if (o->n >= MOST) {
		if (below)
			below->left_out++;
		return 0;
	}
	b = malloc(sizeof(*b) + n);
	if (!b)
		return -ENOMEM;
	*b = (struct begun){.below = below, .bytes = n};
	memcpy(b->entry, e, n);
	*top = (uint64_t)(uintptr_t)b;
	o->n++;
	return 0;
}

/* Both halves may have arguments; takes those that are missing. */
static void take(int64_t *to, int64_t end)
{
	*to = end >= 0 ? end : *to;
}

static bool end(struct tfh_kineto_open *o, struct tfh_kineto_entry *e, uint64_t *top)
{
	struct begun *b = (struct begun *)(uintptr_t)*top;
	const int64_t t1 = e->ts, correlation = e->correlation, stream = e->stream,
		      device = e->device, context = e->context, bytes = e->bytes;

	if (!b)
		return false;
	if (b->left_out) {
		b->left_out--;
		return false;
	}
	memcpy(e, b->entry, b->bytes);
	e->phase = 'X';
	e->label[0] = '\0';
	e->dur = t1 > e->ts ? t1 - e->ts : 0;
	take(&e->correlation, correlation);
	take(&e->stream, stream);
	take(&e->device, device);
	take(&e->context, context);
	take(&e->bytes, bytes);
	*top = (uint64_t)(uintptr_t)b->below;
	o->n--;
	free(b);
	return true;
}

int tfh_kineto_pair(struct tfh_kineto_open *o, struct tfh_kineto_entry *e)
{
	uint64_t *top = tfh_map_put(
		&o->top, tfh_hash_add(tfh_hash_u64((uint64_t)e->pid), (uint64_t)e->tid), NULL);

	if (!top)
		return -ENOMEM;
	return e->phase == 'B' ? begin(o, e, top) : end(o, e, top);
}
