#include "format/chunk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/fd.h"

#include <zstd.h>

#define PEEK 4096u	  /* one small read covers every header but those with many threads */
#define SCAN (256u << 10) /* step of the search for the next chunk after damage */
/* Limit of that search per file: seconds of work, and sixty chunks of the largest size. */
#define SCAN_MOST (4ull << 30)

int tft_pread(int fd, void *buf, size_t len, uint64_t offset)
{
	uint8_t *p = buf;

	while (len) {
		ssize_t n = tfh_pread(fd, p, len, (off_t)offset);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -EBADMSG;
		p += n;
		offset += (uint64_t)n;
		len -= (size_t)n;
	}
	return 0;
}

/* ---- reading one header ---- */

/* Whether these bytes of struct tft_chunk_head could begin a header. If so, its length is
 * plausible, too. */
static bool plausible(const struct tft_chunk_head *h)
{
	return h->zstd_magic == TFT_ZSTD_SKIPPABLE && h->magic == TFT_MAGIC &&
	       h->zstd_length + 8ull >= sizeof(*h) && h->zstd_length + 8ull <= TFT_MAX_HEADER;
}

int tft_header_check(const uint8_t *header, size_t len)
{
	struct tft_chunk_head h;
	const size_t crc_at = offsetof(struct tft_chunk_head, header_crc);

	if (len < sizeof(h))
		return -EBADMSG;
	memcpy(&h, header, sizeof(h));
	if (!plausible(&h) || h.zstd_length + 8ull > len)
		return -EBADMSG;
	size_t bytes = h.zstd_length + 8;
	if (tfh_crc32c_around(header, bytes, crc_at) != h.header_crc)
		return -EBADMSG;
	if (h.version > TFT_VERSION)
		return -EPROTO;
	if (h.fixed_bytes < sizeof(h) || h.fixed_bytes > bytes || h.packed_bytes > TFT_MAX_CHUNK ||
	    h.raw_bytes > TFT_MAX_CHUNK ||
	    (uint64_t)h.runs * sizeof(struct tft_chunk_run) + h.sketch_bytes >
		    bytes - h.fixed_bytes)
		return -EBADMSG;
	return 0;
}

static void fill_place(struct tft_place *p, const struct tft_chunk_head *h, uint64_t offset)
{
	*p = (struct tft_place){.info = {.offset = offset,
					 .type = h->type,
					 .events = h->events,
					 .raw_bytes = h->raw_bytes,
					 .packed_bytes = h->packed_bytes,
					 .t_first = h->t_first,
					 .t_last = h->t_last,
					 .dropped = h->dropped,
					 .crc_ok = true},
				.header_bytes = h->zstd_length + 8,
				.flags = h->flags};
}

static uint64_t place_end(const struct tft_place *p)
{
	return p->info.offset + p->header_bytes + p->info.packed_bytes;
}

/* Reads and checks the header at offset. Returns 0, 1 (complete, but the payload is cut off),
 * -EBADMSG, -EPROTO, -ENOMEM or another -errno. */
static int read_place(int fd, uint64_t size, uint64_t offset, struct tft_place *place)
{
	uint8_t peek[PEEK], *header = peek, *large = NULL;
	struct tft_chunk_head h;
	size_t len = size - offset < PEEK ? (size_t)(size - offset) : PEEK;

	if (len < sizeof(h))
		return -EBADMSG;
	int err = tft_pread(fd, peek, len, offset);
	if (err < 0)
		return err;
	memcpy(&h, peek, sizeof(h));
	if (!plausible(&h) || h.zstd_length + 8ull > size - offset)
		return -EBADMSG;
	if (h.zstd_length + 8ull > len) {
		len = h.zstd_length + 8;
		header = large = malloc(len);
		if (!large)
			return -ENOMEM;
		err = tft_pread(fd, large, len, offset);
	}
	if (err == 0)
		err = tft_header_check(header, len);
	free(large);
	if (err < 0)
		return err;
	fill_place(place, &h, offset);
	return place_end(place) > size ? 1 : 0;
}

static int add_place(struct tft_places *places, const struct tft_place *p)
{
	if (places->n == places->cap) {
		uint32_t cap = places->cap ? places->cap * 2 : 64;
		struct tft_place *grown = realloc(places->v, cap * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		places->v = grown;
		places->cap = cap;
	}
	places->v[places->n++] = *p;
	return 0;
}

/* ---- index ---- */

static bool read_footer(int fd, uint64_t size, struct tft_footer *f)
{
	if (size < sizeof(*f) || tft_pread(fd, f, sizeof(*f), size - sizeof(*f)) < 0)
		return false;
	return f->zstd_magic == TFT_ZSTD_SKIPPABLE && f->zstd_length == sizeof(*f) - 8 &&
	       f->crc == tfh_crc32c(0, f, offsetof(struct tft_footer, crc)) &&
	       f->index_offset < size;
}

/* Takes the chunks from the index entries, if these cover the file from offset 0 to the index
 * without gaps. */
static int take_entries(struct tft_places *places, const uint8_t *raw, uint64_t n,
			uint64_t index_offset)
{
	struct tft_index_entry e;
	uint64_t at = 0;

	for (uint64_t i = 0; i < n; i++) {
		memcpy(&e, raw + i * sizeof(e), sizeof(e));
		if (e.offset != at || e.packed_bytes > TFT_MAX_CHUNK ||
		    e.raw_bytes > TFT_MAX_CHUNK || e.header_bytes > TFT_MAX_HEADER ||
		    e.header_bytes < sizeof(struct tft_chunk_head))
			return -EBADMSG;
		struct tft_place p = {.info = {.offset = e.offset,
					       .type = e.type,
					       .events = e.events,
					       .raw_bytes = e.raw_bytes,
					       .packed_bytes = e.packed_bytes,
					       .t_first = e.t_first,
					       .t_last = e.t_last,
					       .dropped = e.dropped,
					       .crc_ok = true},
				      .header_bytes = e.header_bytes};
		at = place_end(&p);
		if (add_place(places, &p) < 0)
			return -ENOMEM;
	}
	return at == index_offset ? 0 : -EBADMSG;
}

/* Returns 0 if the index was used, -EBADMSG if the headers must be walked. */
static int from_index(int fd, uint64_t size, const struct tft_footer *footer,
		      struct tft_places *places)
{
	struct tft_place index;
	int err = read_place(fd, size, footer->index_offset, &index);

	if (err)
		return err < 0 ? err : -EBADMSG;
	if (index.info.type != TFT_INDX || place_end(&index) + sizeof(*footer) != size)
		return -EBADMSG;
	size_t packed = index.info.packed_bytes, raw = index.info.raw_bytes;
	if (raw % sizeof(struct tft_index_entry) || raw / sizeof(struct tft_chunk_head) > size)
		return -EBADMSG;
	uint8_t *buf = malloc(index.header_bytes + packed + raw + 1);
	if (!buf)
		return -ENOMEM;
	err = tft_pread(fd, buf, index.header_bytes + packed, index.info.offset);
	if (err == 0) {
		struct tft_chunk_head h;
		uint8_t *frame = buf + index.header_bytes;
		memcpy(&h, buf, sizeof(h));
		if (h.payload_crc != tfh_crc32c(0, frame, packed) ||
		    (raw && ZSTD_decompress(frame + packed, raw, frame, packed) != raw))
			err = -EBADMSG;
		else
			err = take_entries(places, frame + packed,
					   raw / sizeof(struct tft_index_entry), index.info.offset);
	}
	free(buf);
	return err ? err : add_place(places, &index);
}

/* ---- walking the headers, without an index ---- */

/* Start of the next data at or after `from`, `size` if none. A file may be mostly a hole, where no
 * header can begin; file systems without holes report everything as data. */
static uint64_t next_data(int fd, uint64_t size, uint64_t from)
{
	off_t at = tfh_lseek(fd, (off_t)from, SEEK_DATA);

	if (at < 0)
		return errno == ENXIO ? size : from;
	return (uint64_t)at < size ? (uint64_t)at : size;
}

/* Offset of the next valid header at or after `from`; `size` if there is none within the `left`
 * bytes that may still be searched. */
static int next_header(int fd, uint64_t size, uint64_t from, uint64_t *left, uint64_t *found)
{
	uint8_t *buf = malloc(SCAN);
	struct tft_place place;
	int err = 0;

	if (!buf)
		return -ENOMEM;
	*found = size;
	while ((from = next_data(fd, size, from)) + sizeof(struct tft_chunk_head) <= size &&
	       *found == size && *left >= SCAN) {
		size_t len = size - from < SCAN ? (size_t)(size - from) : SCAN;
		err = tft_pread(fd, buf, len, from);
		if (err < 0)
			break;
		for (size_t i = 0; i + 12 <= len; i++) {
			const uint8_t *p = memchr(buf + i, TFT_ZSTD_SKIPPABLE & 0xff, len - 11 - i);
			uint32_t magic, own;
			if (!p)
				break;
			i = (size_t)(p - buf);
			memcpy(&magic, p, 4);
			memcpy(&own, p + 8, 4);
			if (magic != TFT_ZSTD_SKIPPABLE || own != TFT_MAGIC)
				continue;
			err = read_place(fd, size, from + i, &place);
			if (err == -EBADMSG)
				continue;
			*found = from + i;
			break;
		}
		if (err == -EBADMSG || err == 1)
			err = 0;
		if (err < 0)
			break;
		from += len - 11; /* a magic may span two reads */
		*left -= *found == size ? len : 0;
	}
	free(buf);
	return err < 0 && err != -EPROTO ? err : 0;
}

static int walk(int fd, uint64_t size, struct tft_places *places)
{
	struct tft_place place;
	uint64_t at = 0, left = SCAN_MOST;

	while (at < size) {
		int err = read_place(fd, size, at, &place);
		if (err == 0) {
			err = add_place(places, &place);
			at = place_end(&place);
			if (err < 0)
				return err;
			continue;
		}
		if (err < 0 && err != -EBADMSG)
			return err;
		/* Damaged or cut off: that depends on whether chunks follow. */
		uint64_t next;
		err = next_header(fd, size, at + 1, &left, &next);
		if (err < 0)
			return err;
		if (next == size) {
			places->tail = size - at;
			return 0;
		}
		places->bad++;
		at = next;
	}
	return 0;
}

int tft_places_find(int fd, uint64_t size, struct tft_places *places)
{
	struct tft_footer footer;
	uint64_t end = size;

	if (read_footer(fd, size, &footer)) {
		places->closed = true;
		places->clean = footer.flags & TFT_FOOTER_CLEAN;
		int err = from_index(fd, size, &footer, places);
		if (err != -EBADMSG)
			return err;
		places->n = 0;
		end -= sizeof(footer);
	}
	int err = walk(fd, end, places);
	if (err == 0 && places->closed && places->tail) {
		/* Bytes before a valid footer are damaged, not cut off. */
		places->bad++;
		places->tail = 0;
	}
	return err;
}
