/* Finding chunks in a file. */
#ifndef TFT_CHUNK_H
#define TFT_CHUNK_H

#include "format/tft_read.h"

/* Where a chunk is and what its header says. */
struct tft_place {
	struct tft_chunk_info info;
	uint32_t header_bytes;
	uint16_t flags;
};

struct tft_places {
	struct tft_place *v;
	uint32_t n, cap;
	uint64_t bad;  /* damaged stretches stepped over */
	uint64_t tail; /* bytes after the last whole chunk */
	bool closed, clean;
};

/* All of them, from the index or by walking the headers. 0, -ENOMEM, -EIO..., -EPROTO (newer
 * format). */
int tft_places_find(int fd, uint64_t size, struct tft_places *places);

/* Reads exactly len bytes. 0, -EBADMSG at the file's end, or -errno. */
int tft_pread(int fd, void *buf, size_t len, uint64_t offset);

/* Is this a whole, undamaged chunk header? 0, -EBADMSG, -EPROTO. `len` bytes are there, the header
 * may say fewer. */
int tft_header_check(const uint8_t *header, size_t len);

#endif
