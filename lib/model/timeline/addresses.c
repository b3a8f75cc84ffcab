/*
 * Classifies addresses. Allocations and registrations add intervals, frees remove them; a host
 * address in none of them is pageable.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bisect.h"
#include "base/text.h"
#include "model/opened.h"

struct tfh_span {
	uint64_t begin, end;
	uint64_t since; /* end of the call that allocated it, on the recording's clock */
	enum tfh_place_kind kind;
};

static enum tfh_place_kind kind_of(const char *name)
{
	static const struct {
		const char *prefix;
		enum tfh_place_kind kind;
	} table[] = {
		{"cuMemAllocHost", TFH_PLACE_PINNED},
		{"cuMemHostAlloc", TFH_PLACE_PINNED},
		{"cuMemHostRegister", TFH_PLACE_PINNED},
		{"cuMemAllocManaged", TFH_PLACE_MANAGED},
		{"cuLibraryGetManaged", TFH_PLACE_MANAGED},
		{"cuMemAlloc", TFH_PLACE_DEVICE},
		{"cuMemMap", TFH_PLACE_DEVICE},
		{"cuModuleGetGlobal", TFH_PLACE_DEVICE},
		{"cuLibraryGetGlobal", TFH_PLACE_DEVICE},
		{"cuIpcOpenMemHandle", TFH_PLACE_DEVICE},
		{"cuMemPoolImportPointer", TFH_PLACE_DEVICE},
		{"cuExternalMemoryGetMappedBuffer", TFH_PLACE_DEVICE},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		if (tfh_starts_with(name, table[i].prefix))
			return table[i].kind;
	return TFH_PLACE_UNKNOWN;
}

/* The first span that ends after the address. */
static uint32_t find(const struct tfh_memory *m, uint64_t address)
{
	return (uint32_t)TFH_BISECT(i, 0, m->n, m->v[i].end <= address);
}

/* Removes the spans that overlap the range and were there at that time. */
static void drop(struct tfh_memory *m, uint64_t begin, uint64_t end, uint64_t time)
{
	uint32_t to = find(m, begin), i = to;

	for (; i < m->n && m->v[i].begin < end; i++)
		if (m->v[i].since > time)
			m->v[to++] = m->v[i];
	if (to == i)
		return; /* there may be no array yet */
	memmove(m->v + to, m->v + i, (m->n - i) * sizeof(*m->v));
	m->n -= i - to;
}

static int put(struct tfh_memory *m, const struct tfh_rec *rec, enum tfh_place_kind kind)
{
	uint64_t begin = rec->w[1], bytes = rec->w[0];
	struct tfh_span span = {begin, begin + (bytes ? bytes : 1), rec->t_end, kind};

	if (span.end <= begin)
		return 0;
	drop(m, begin, span.end, UINT64_MAX);
	if (tfh_room_for((void **)&m->v, &m->cap, m->n, sizeof(*m->v)))
		return -ENOMEM;
	uint32_t at = find(m, begin);
	memmove(m->v + at + 1, m->v + at, (m->n - at) * sizeof(*m->v));
	m->v[at] = span;
	m->n++;
	return 0;
}

int tfh_memory_event(struct tfh_memory *m, const struct tfh_fn_info *fn, const struct tfh_rec *rec)
{
	uint64_t address = rec->w[1];

	if (rec->result || !address)
		return 0;
	if (fn->family == TFH_FAM_FREE) {
		/*
		 * The byte count is known for an unmapped range, which may hold several mappings.
		 * Events come in order of their end, so before this call returned, another thread
		 * may already have been given the address. Only memory allocated before the call
		 * began is freed.
		 */
		drop(m, address, address + (rec->w[0] ? rec->w[0] : 1), rec->t_begin);
		return 0;
	}
	enum tfh_place_kind kind = fn->family == TFH_FAM_ALLOC && fn->args == TFH_ARGS_ALLOC
					   ? kind_of(fn->name)
					   : TFH_PLACE_UNKNOWN;
	return kind == TFH_PLACE_UNKNOWN ? 0 : put(m, rec, kind);
}

static enum tfh_place_kind memory_at(const struct tfh_memory *m, uint64_t address)
{
	uint32_t i = find(m, address);

	return i < m->n && m->v[i].begin <= address ? m->v[i].kind : TFH_PLACE_UNKNOWN;
}

static bool on_device(enum tfh_place_kind k)
{
	return k == TFH_PLACE_DEVICE || k == TFH_PLACE_MANAGED;
}

/* CUmemorytype of 2D and 3D copies: 1 host, 2 device, 3 array, 4 unified (the address decides). */
static bool side_on_device(uint8_t type, enum tfh_place_kind kind)
{
	return type == 2 || type == 3 || (type != 1 && on_device(kind));
}

static uint8_t direction(bool from, bool to)
{
	return to && from ? TFH_DIR_D2D : to ? TFH_DIR_H2D : from ? TFH_DIR_D2H : TFH_DIR_H2H;
}

static bool is_pageable(uint8_t dir, enum tfh_place_kind dst, enum tfh_place_kind src)
{
	return (dir == TFH_DIR_H2D && src == TFH_PLACE_UNKNOWN) ||
	       (dir == TFH_DIR_D2H && dst == TFH_PLACE_UNKNOWN) ||
	       (dir == TFH_DIR_H2H && (src == TFH_PLACE_UNKNOWN || dst == TFH_PLACE_UNKNOWN));
}

/* For an imported trace: it records the kind of both sides of a copy, and no addresses. */
static void recorded_sides(const struct tft_ext_copy *ext, uint8_t *dir, bool *pageable)
{
	bool from = side_on_device(ext->src_type, TFH_PLACE_UNKNOWN);
	bool to = side_on_device(ext->dst_type, TFH_PLACE_UNKNOWN);

	*dir = direction(from, to);
	if (from && to && ext->src_ctx != ext->dst_ctx)
		*dir = TFH_DIR_P2P;
	*pageable = (!from && ext->src_type == TFT_SIDE_HOST) ||
		    (!to && ext->dst_type == TFT_SIDE_HOST);
}

void tfh_memory_copy(const struct tfh_memory *m, const struct tfh_fn_info *fn,
		     const struct tfh_rec *rec, const struct tft_ext_copy *ext, uint8_t *dir,
		     bool *pageable)
{
	enum tfh_place_kind dst = memory_at(m, rec->w[1]), src = memory_at(m, rec->w[2]);

	if (ext && ext->form == TFT_EXT_SIDES) {
		recorded_sides(ext, dir, pageable);
		return;
	}
	*dir = fn->dir;
	if (fn->dir == TFH_DIR_ANY)
		*dir = direction(side_on_device(ext ? ext->src_type : 0, src),
				 side_on_device(ext ? ext->dst_type : 0, dst));
	*pageable = is_pageable(*dir, dst, src);
}

void tfh_memory_batch(const struct tfh_memory *m, const struct tft_ext_pair *pair, uint32_t n,
		      uint8_t *dir, bool *pageable)
{
	uint64_t bytes[TFH_DIR_ANY] = {0}, paged[TFH_DIR_ANY] = {0};
	uint8_t most = TFH_DIR_H2H;

	for (uint32_t i = 0; i < n; i++) {
		const struct tft_ext_pair *p = &pair[i];
		uint64_t size = p->bytes[0] | (uint64_t)(p->bytes[1] & 0xffffff) << 32;
		enum tfh_place_kind dst = memory_at(m, p->dst[0] | (uint64_t)p->dst[1] << 32);
		enum tfh_place_kind src = memory_at(m, p->src[0] | (uint64_t)p->src[1] << 32);
		uint8_t way = direction(side_on_device(p->bytes[1] >> 24 & 15, src),
					side_on_device(p->bytes[1] >> 28, dst));
		bytes[way] += size;
		paged[way] += is_pageable(way, dst, src) ? size : 0;
		if (bytes[way] > bytes[most])
			most = way;
	}
	*dir = most;
	*pageable = paged[most] * 2 > bytes[most];
}

void tfh_memory_free(struct tfh_memory *m)
{
	free(m->v);
	memset(m, 0, sizeof(*m));
}
