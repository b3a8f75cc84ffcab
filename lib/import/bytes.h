/*
 * A file's bytes, block by block, whether it is compressed with gzip or not. Reading and unpacking
 * run on a thread of their own, a few blocks ahead.
 */
#ifndef TFH_IMPORT_BYTES_H
#define TFH_IMPORT_BYTES_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct tfh_bytes;

#define TFH_BYTES_HEAD (64u << 10) /* most of a pipe that may have been read before */

/* A file that is no pipe and no device: nothing is waited for. The descriptor, or -errno, -ENOMSG
 * for what is not regular. */
int tfh_open_regular(const char *path, struct tfh_err *err);
/* 0 or -errno. */
int tfh_bytes_open(const char *path, struct tfh_bytes **out, struct tfh_err *err);
/* The same of a pipe of which the first bytes were read already. The descriptor is the reader's
 * from here on, unless it fails. */
int tfh_bytes_stream(int fd, const void *head, size_t n, struct tfh_bytes **out,
		     struct tfh_err *err);
/* The same of bytes in memory, which must outlive it; without a thread. */
int tfh_bytes_of(const void *data, size_t n, struct tfh_bytes **out, struct tfh_err *err);
/* The next block, valid until the next call; NULL at the end or on an error. */
const uint8_t *tfh_bytes_next(struct tfh_bytes *b, size_t *n);
/* After NULL: 0 at the regular end, else -errno with its text. */
int tfh_bytes_error(const struct tfh_bytes *b, struct tfh_err *err);
void tfh_bytes_close(struct tfh_bytes *b);

#endif
