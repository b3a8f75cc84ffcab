/*
 * A mutator that knows the trace file: it changes what lies behind the seals and seals again, so
 * that the fuzzer's changes reach the decoders.
 *
 * The file is taken apart into chunks (header bytes, unpacked payload); what is no chunk stays as
 * it is, in a part of its own. Chunks that were not changed keep their packed bytes.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/crc32c.h"
#include "format/codec.h"
#include "format/table.h"
#include "fuzz.h"

#define MAX_PARTS 48
#define MAX_RAW (1u << 20)

struct part {
	uint8_t *header, *payload; /* header NULL: bytes that are no chunk, in payload */
	size_t header_bytes, bytes;
	bool packed; /* payload is the frame as it was in the file */
	bool broken; /* seals stay wrong */
};

struct file {
	struct part part[MAX_PARTS];
	uint32_t n;
	size_t max;
	uint64_t seed;
};

static uint32_t draw(struct file *f, uint32_t below)
{
	f->seed ^= f->seed << 13;
	f->seed ^= f->seed >> 7;
	f->seed ^= f->seed << 17;
	return below ? (uint32_t)(f->seed >> 16) % below : 0;
}

/* ---- apart and together ---- */

static void *copy_of(const void *data, size_t n, size_t room)
{
	uint8_t *copy = calloc(1, n + room + 1);

	if (copy && n)
		memcpy(copy, data, n);
	return copy;
}

static void drop(struct part *p)
{
	free(p->header);
	free(p->payload);
}

/* Bytes of the chunk at `data`; 0: none begins there. */
static size_t take_chunk(struct part *p, const uint8_t *data, size_t left)
{
	struct tft_chunk_head h;

	if (left < sizeof(h))
		return 0;
	memcpy(&h, data, sizeof(h));
	size_t header = h.zstd_length + 8ull;
	if (h.magic != TFT_MAGIC || header < sizeof(h) || header > left ||
	    h.packed_bytes > left - header)
		return 0;
	const uint8_t *frame = data + header;
	unsigned long long raw = ZSTD_getFrameContentSize(frame, h.packed_bytes);
	*p = (struct part){.header = copy_of(data, header, 0), .header_bytes = header};
	if (h.packed_bytes && raw <= MAX_RAW) {
		p->payload = calloc(1, raw + 1);
		p->bytes = ZSTD_decompress(p->payload, raw, frame, h.packed_bytes);
		if (!ZSTD_isError(p->bytes))
			return header + h.packed_bytes;
		free(p->payload);
	}
	p->payload = copy_of(frame, h.packed_bytes, 0);
	p->bytes = h.packed_bytes;
	p->packed = true;
	return header + h.packed_bytes;
}

static void split(struct file *f, const uint8_t *data, size_t size)
{
	for (size_t at = 0; at < size && f->n < MAX_PARTS;) {
		struct part *p = &f->part[f->n];
		size_t n = take_chunk(p, data + at, size - at);
		if (!n) {
			*p = (struct part){.payload = copy_of(data + at, size - at, 0),
					   .bytes = size - at};
			n = size - at;
		}
		at += n;
		f->n++;
	}
}

static uint32_t type_of(const struct part *p)
{
	struct tft_chunk_head h = {0};

	if (p->header)
		memcpy(&h, p->header, sizeof(h));
	return h.type;
}

/* Header and frame with their checksums at `out`; 0: no room. */
static size_t seal(const struct part *p, uint8_t *out, size_t room)
{
	struct tft_chunk_head h;
	size_t packed = p->bytes;

	if (p->header_bytes > room)
		return 0;
	memcpy(&h, p->header, sizeof(h));
	if (p->packed || !p->bytes) {
		if (packed > room - p->header_bytes)
			return 0;
		memcpy(out + p->header_bytes, p->payload, packed);
	} else {
		packed = ZSTD_compress(out + p->header_bytes, room - p->header_bytes, p->payload,
				       p->bytes, 1);
		if (ZSTD_isError(packed))
			return 0;
	}
	if (!p->broken) {
		h.zstd_length = (uint32_t)p->header_bytes - 8;
		h.packed_bytes = packed;
		h.raw_bytes = p->packed ? h.raw_bytes : p->bytes;
		h.payload_crc = tfh_crc32c(0, out + p->header_bytes, packed);
		h.header_crc = 0;
	}
	memcpy(out, p->header, p->header_bytes);
	memcpy(out, &h, sizeof(h));
	if (!p->broken) {
		h.header_crc = tfh_crc32c(0, out, p->header_bytes);
		memcpy(out, &h, sizeof(h));
	}
	return p->header_bytes + packed;
}

/* An INDX chunk and a footer that tell the truth about the chunks in `out`. */
static size_t put_index(uint8_t *out, size_t at, size_t room, uint16_t flags)
{
	struct tft_chunk_head h, index = {.zstd_magic = TFT_ZSTD_SKIPPABLE,
					  .magic = TFT_MAGIC,
					  .type = TFT_INDX,
					  .version = TFT_VERSION,
					  .fixed_bytes = sizeof(h)};
	struct tft_footer footer = {.zstd_magic = TFT_ZSTD_SKIPPABLE,
				    .zstd_length = sizeof(footer) - 8,
				    .index_offset = at,
				    .version = TFT_VERSION,
				    .flags = flags};
	struct tft_index_entry entry[MAX_PARTS];
	size_t n = 0;

	for (size_t o = 0; o < at && n < MAX_PARTS; n++) {
		memcpy(&h, out + o, sizeof(h));
		entry[n] = (struct tft_index_entry){
			o,	   h.type,   h.events,	h.raw_bytes,	    h.packed_bytes,
			h.t_first, h.t_last, h.dropped, h.zstd_length + 8u, 0};
		o += h.zstd_length + 8ull + h.packed_bytes;
	}
	struct part p = {.header = (uint8_t *)&index,
			 .header_bytes = sizeof(index),
			 .payload = (uint8_t *)entry,
			 .bytes = n * sizeof(*entry)};
	size_t len = n ? seal(&p, out + at, room - at) : 0;
	if (!len || room - at - len < sizeof(footer))
		return at;
	footer.crc = tfh_crc32c(0, &footer, offsetof(struct tft_footer, crc));
	memcpy(out + at + len, &footer, sizeof(footer));
	return at + len + sizeof(footer);
}

static size_t join(struct file *f, uint8_t *out, bool indexed)
{
	size_t at = 0;
	bool chunks = true;

	for (uint32_t i = 0; i < f->n; i++) {
		const struct part *p = &f->part[i];
		if (!p->header) {
			if (indexed)
				continue;
			chunks = false;
			size_t n = p->bytes < f->max - at ? p->bytes : f->max - at;
			memcpy(out + at, p->payload, n);
			at += n;
		} else if (type_of(p) != TFT_INDX || !indexed) {
			at += seal(p, out + at, f->max - at);
		}
	}
	return indexed && chunks ? put_index(out, at, f->max, draw(f, 2)) : at;
}

/* ---- changes ---- */

static bool resize(struct part *p, size_t bytes)
{
	uint8_t *grown = realloc(p->payload, bytes + 1);

	if (!grown)
		return false;
	if (bytes > p->bytes)
		memset(grown + p->bytes, 0, bytes - p->bytes);
	p->payload = grown;
	p->bytes = bytes;
	return true;
}

/* Opens or closes a gap of `by` bytes at `at`. */
static bool shift(struct part *p, size_t at, long by)
{
	size_t rest = p->bytes - at, bytes = p->bytes + (size_t)by;

	if (by > 0 && (bytes > MAX_RAW || !resize(p, bytes)))
		return false;
	if (by < 0 && (size_t)-by > rest)
		return false;
	memmove(p->payload + at + (by > 0 ? by : 0), p->payload + at + (by < 0 ? -by : 0),
		by < 0 ? rest - (size_t)-by : rest);
	if (by > 0)
		memset(p->payload + at, 0, (size_t)by);
	return by >= 0 || resize(p, bytes);
}

static void mutate_payload(struct file *f, struct part *p)
{
	size_t room = 64 + draw(f, 512), before = p->bytes;

	if (!resize(p, before + room))
		return;
	p->bytes = LLVMFuzzerMutate(p->payload, before, before + room);
}

static uint64_t odd_number(struct file *f)
{
	static const uint64_t odd[] = {0,	   1,	       2,	  7,	      0x7f,
				       0xff,	   0xffff,     0x10000,	  0x7fffffff, 0xffffffff,
				       1000000000, 1ull << 40, INT64_MAX, 1ull << 63, UINT64_MAX};
	uint64_t v = odd[draw(f, sizeof(odd) / sizeof(*odd))];

	return draw(f, 4) ? v : v + draw(f, 64) - 32;
}

static void mutate_header(struct file *f, struct part *p)
{
	static const uint8_t at[] = {24, 26, 28, 32, 40, 48, 56, 64, 72, 80, 84, 88};
	uint64_t v = odd_number(f);
	uint32_t i = draw(f, sizeof(at));

	if (!draw(f, 3) && p->header_bytes > sizeof(struct tft_chunk_head)) {
		size_t fixed = sizeof(struct tft_chunk_head);
		LLVMFuzzerMutate(p->header + fixed, p->header_bytes - fixed,
				 p->header_bytes - fixed);
		return;
	}
	memcpy(p->header + at[i], &v, at[i] >= 32 && at[i] < 80 ? 8 : at[i] < 28 ? 2 : 4);
}

static void mutate_type(struct file *f, struct part *p)
{
	static const uint32_t all[] = {TFT_HEAD, TFT_EVNT, TFT_NAMC, TFT_CLKS, TFT_LOSS, TFT_INDX,
				       TFT_NOTE, TFT_DGST, TFT_SAMP, TFT_GPUS, TFT_DRVR, TFT_RANG,
				       TFT_BTRC, TFT_MODS, TFT_PYCO, TFT_PYFR, TFT_DKEY, TFT_DINP,
				       TFT_DRNK, TFT_DSTP, TFT_DNOD, TFT_DPLC, TFT_DKRN, TFT_DCPY,
				       TFT_DMTR, TFT_DCOL, TFT_DGON};

	memcpy(p->header + offsetof(struct tft_chunk_head, type),
	       &all[draw(f, sizeof(all) / sizeof(*all))], 4);
}

/* A run more, or one changed. */
static void mutate_runs(struct file *f, struct part *p)
{
	struct tft_chunk_head h;
	struct tft_chunk_run run;

	memcpy(&h, p->header, sizeof(h));
	if (!h.runs || h.fixed_bytes + (uint64_t)h.runs * sizeof(run) > p->header_bytes)
		return;
	uint8_t *at = p->header + h.fixed_bytes + draw(f, h.runs) * sizeof(run);
	memcpy(&run, at, sizeof(run));
	if (draw(f, 2) && run.count > 1) { /* two of one */
		uint8_t *grown = calloc(1, p->header_bytes + sizeof(run));
		size_t head = (size_t)(at - p->header);
		if (!grown)
			return;
		memcpy(grown, p->header, head + sizeof(run));
		memcpy(grown + head + sizeof(run), at, p->header_bytes - head);
		uint32_t second = 1 + draw(f, run.count - 1);
		run.count -= second;
		memcpy(grown + head, &run, sizeof(run));
		run.count = second;
		run.first += draw(f, 2) ? run.count : 0;
		run.thread += draw(f, 3);
		memcpy(grown + head + sizeof(run), &run, sizeof(run));
		free(p->header);
		p->header = grown;
		p->header_bytes += sizeof(run);
		h.runs++;
		memcpy(p->header, &h, sizeof(h));
		return;
	}
	switch (draw(f, 4)) {
	case 0:
		run.thread = (uint32_t)odd_number(f);
		break;
	case 1:
		run.first = odd_number(f);
		break;
	case 2:
		run.t_base = odd_number(f);
		break;
	default:
		run.t_base += odd_number(f);
	}
	memcpy(at, &run, sizeof(run));
}

/* Sections of EVNT and of tables: a value or a plane of one, with the lengths that follow. */
static void mutate_section(struct file *f, struct part *p)
{
	struct tft_events_head head;
	struct tft_section s;

	if (p->bytes < sizeof(head))
		return;
	memcpy(&head, p->payload, sizeof(head));
	size_t at = sizeof(head) + (size_t)head.sections * sizeof(s);
	if (!head.sections || head.sections > 256 || at > p->bytes)
		return;
	uint32_t chosen = draw(f, head.sections);
	uint8_t *entry = p->payload + sizeof(head) + chosen * sizeof(s);
	for (uint32_t i = 0; i < chosen; i++) {
		memcpy(&s, p->payload + sizeof(head) + i * sizeof(s), sizeof(s));
		at += s.bytes;
	}
	memcpy(&s, entry, sizeof(s));
	if (at > p->bytes || s.bytes > p->bytes - at)
		return;
	switch (draw(f, 5)) {
	case 0: /* its data */
		LLVMFuzzerMutate(p->payload + at, s.bytes, s.bytes);
		return;
	case 1: /* one element through all planes */
		if (s.planes && s.count && (uint64_t)s.planes * s.count == s.bytes) {
			uint64_t v = odd_number(f);
			uint32_t from = draw(f, s.count), n = 1 + draw(f, s.count - from);
			for (uint32_t k = 0; k < s.planes; k++)
				memset(p->payload + at + (size_t)k * s.count + from,
				       (int)(k < 8 ? v >> 8 * k : 0), draw(f, 2) ? n : 1);
		}
		return;
	case 2: /* more or fewer planes */
		if (s.count && s.bytes == (uint64_t)s.planes * s.count) {
			long by = draw(f, 2) ? (long)s.count : -(long)s.count;
			if ((by < 0 && !s.planes) || !shift(p, at, by))
				return;
			entry = p->payload + sizeof(head) + chosen * sizeof(s);
			s.planes = (uint8_t)(s.planes + (by > 0 ? 1 : -1));
			s.bytes = (uint32_t)((long)s.bytes + by);
		}
		break;
	case 3:
		s.transform = (uint8_t)draw(f, 4);
		break;
	default:
		s.id = (uint8_t)(draw(f, 2) ? 1 + draw(f, 24) : 253 + draw(f, 3));
		s.arg = (uint8_t)draw(f, 70);
	}
	memcpy(entry, &s, sizeof(s));
}

/* One tagged value of HEAD: u16 tag, u16 0, u32 length, the value padded to 8. */
static void mutate_entry(struct file *f, struct part *p)
{
	size_t at = 0, chosen = SIZE_MAX;
	uint32_t seen = 0, length;

	while (at + 8 <= p->bytes) {
		memcpy(&length, p->payload + at + 4, 4);
		if (length > p->bytes - at - 8)
			break;
		if (!draw(f, ++seen))
			chosen = at;
		at += 8 + ((length + 7ull) & ~7ull);
	}
	if (chosen == SIZE_MAX)
		return;
	memcpy(&length, p->payload + chosen + 4, 4);
	size_t padded = (length + 7u) & ~7u, more = 8 * draw(f, 4);
	if (!draw(f, 6)) {
		uint16_t tag = (uint16_t)(1 + draw(f, 24));
		memcpy(p->payload + chosen, &tag, 2);
	}
	if (length == 8 && draw(f, 2)) {
		uint64_t v = odd_number(f);
		memcpy(p->payload + chosen + 8, &v, 8);
		return;
	}
	if (!(padded + more) || chosen + 8 + padded > p->bytes ||
	    !shift(p, chosen + 8 + padded, (long)more))
		return;
	size_t n = LLVMFuzzerMutate(p->payload + chosen + 8, length, padded + more);
	size_t left = (n + 7) & ~(size_t)7;
	length = (uint32_t)n;
	memcpy(p->payload + chosen + 4, &length, 4);
	shift(p, chosen + 8 + left, -(long)(padded + more - left));
}

/* The order and number of chunks. */
static void mutate_order(struct file *f)
{
	uint32_t a = draw(f, f->n), b = draw(f, f->n);
	struct part t = f->part[a];

	switch (draw(f, 3)) {
	case 0:
		f->part[a] = f->part[b];
		f->part[b] = t;
		break;
	case 1:
		if (f->n > 1) {
			drop(&t);
			memmove(&f->part[a], &f->part[a + 1], (f->n - a - 1) * sizeof(t));
			f->n--;
		}
		break;
	default:
		if (f->n == MAX_PARTS)
			break;
		memmove(&f->part[b + 1], &f->part[b], (f->n - b) * sizeof(t));
		t.header = t.header ? copy_of(t.header, t.header_bytes, 0) : NULL;
		t.payload = copy_of(t.payload, t.bytes, 0);
		f->part[b] = t;
		f->n++;
	}
}

static void mutate_part(struct file *f, struct part *p)
{
	if (!p->header) {
		mutate_payload(f, p);
		return;
	}
	switch (draw(f, 16)) {
	case 0:
		mutate_type(f, p);
		return;
	case 1:
	case 2:
		mutate_header(f, p);
		return;
	case 3:
	case 4:
		mutate_runs(f, p);
		return;
	case 5:
		p->broken = !draw(f, 4);
		return;
	default:
		break;
	}
	switch (p->packed ? 0 : type_of(p)) {
	case TFT_EVNT:
	case TFT_GPUS:
	case TFT_DRVR:
	case TFT_BTRC:
	case TFT_MODS:
	case TFT_PYCO:
	case TFT_PYFR:
	case TFT_DKEY:
	case TFT_DINP:
	case TFT_DRNK:
	case TFT_DSTP:
	case TFT_DNOD:
	case TFT_DPLC:
	case TFT_DKRN:
	case TFT_DCPY:
	case TFT_DMTR:
	case TFT_DCOL:
	case TFT_DGON:
		if (draw(f, 5)) {
			mutate_section(f, p);
			return;
		}
		break;
	case TFT_HEAD:
		if (draw(f, 5)) {
			mutate_entry(f, p);
			return;
		}
		break;
	default:
		break;
	}
	mutate_payload(f, p);
}

size_t tfh_fuzz_mutate_tft(uint8_t *data, size_t size, size_t max, unsigned seed)
{
	struct file f = {.max = max, .seed = seed * 0x9e3779b97f4a7c15ull + 1};

	draw(&f, 0);
	if (!draw(&f, 16))
		return LLVMFuzzerMutate(data, size, max);
	split(&f, data, size);
	if (!f.n)
		return LLVMFuzzerMutate(data, size, max);
	for (uint32_t i = 1 + draw(&f, 3); i; i--)
		if (draw(&f, 8))
			mutate_part(&f, &f.part[draw(&f, f.n)]);
		else
			mutate_order(&f);
	size = join(&f, data, draw(&f, 3) == 0);
	for (uint32_t i = 0; i < f.n; i++)
		drop(&f.part[i]);
	return size;
}
