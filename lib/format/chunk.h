/* Finding chunks in a file. */
#ifndef TFH_FORMAT_CHUNK_H
#define TFH_FORMAT_CHUNK_H

#include "format/tft_read.h"

/* A chunk's position and header fields. */
struct tft_place {
	struct tft_chunk_info info;
	uint32_t header_bytes;
	uint16_t flags;
};

struct tft_places {
	struct tft_place *v;
	uint32_t n, cap;
	uint64_t bad;  /* damaged regions skipped */
	uint64_t tail; /* bytes after the last complete chunk */
	bool closed, clean;
};

/* All chunks, from the index or by walking the headers. Returns 0, -ENOMEM, -EPROTO (newer format)
 * or another -errno. */
int tft_places_find(int fd, uint64_t size, struct tft_places *places);

/* Reads exactly len bytes. Returns 0, -EBADMSG at the end of the file, or -errno. */
int tft_pread(int fd, void *buf, size_t len, uint64_t offset);

/* Checks for a complete, undamaged chunk header; `len` bytes are readable, the header may be
 * shorter. Returns 0, -EBADMSG or -EPROTO. */
int tft_header_check(const uint8_t *header, size_t len);

#endif
