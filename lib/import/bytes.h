/*
 * Reads a file block by block, and decompresses gzip. A thread reads and decompresses a few blocks
 * ahead.
 */
#ifndef TFH_IMPORT_BYTES_H
#define TFH_IMPORT_BYTES_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct tfh_bytes;

/* upper bound of the bytes of a pipe that the caller may have read before */
#define TFH_BYTES_HEAD (64u << 10)

/* Opens a regular file without blocking. Returns the descriptor or -errno, -ENOMSG if it is not
 * regular. */
int tfh_open_regular(const char *path, struct tfh_err *err);
/* 0 or -errno. */
int tfh_bytes_open(const char *path, struct tfh_bytes **out, struct tfh_err *err);
/* The same for a pipe whose first bytes were already read. Takes ownership of the descriptor,
 * except on failure. */
int tfh_bytes_stream(int fd, const void *head, size_t n, struct tfh_bytes **out,
		     struct tfh_err *err);
/* The same for bytes in memory, which must remain valid until tfh_bytes_close(). No thread. */
int tfh_bytes_of(const void *data, size_t n, struct tfh_bytes **out, struct tfh_err *err);
/* The next block, valid until the next call; NULL at the end or on an error. */
const uint8_t *tfh_bytes_next(struct tfh_bytes *b, size_t *n);
/* After NULL: 0 at the normal end, else -errno and its text. */
int tfh_bytes_error(const struct tfh_bytes *b, struct tfh_err *err);
void tfh_bytes_close(struct tfh_bytes *b);

#endif
