/*
 * Writes protocol buffers into a growing buffer: fields in sequence, and nested messages between
 * tfh_proto_begin() and _end(). (base/wire.h reads them.)
 */
#ifndef TFH_EXPORT_PROTO_H
#define TFH_EXPORT_PROTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct tfh_proto {
	uint8_t *v;
	size_t n, cap;
	bool failed; /* out of memory: nothing more is added */
};

void tfh_proto_free(struct tfh_proto *p);

void tfh_proto_uint(struct tfh_proto *p, uint32_t field,
		    uint64_t value); /* also bool, enum, int64 */
void tfh_proto_fixed64(struct tfh_proto *p, uint32_t field, uint64_t value);
void tfh_proto_double(struct tfh_proto *p, uint32_t field, double value);
/* Bytes that are not UTF-8 become U+FFFD: readers reject a whole file because of them. */
void tfh_proto_text(struct tfh_proto *p, uint32_t field, const char *text);
/* A nested message; `begin` returns the argument of `end`. */
size_t tfh_proto_begin(struct tfh_proto *p, uint32_t field);
void tfh_proto_end(struct tfh_proto *p, size_t begin);

/* Writes the message as a field of another one to a stream, and empties the buffer. 0 or -errno. */
int tfh_proto_flush(struct tfh_proto *p, uint32_t field, FILE *out);
/* Writes the head of a field that is a message of `bytes` bytes. */
int tfh_proto_flush_head(uint32_t field, size_t bytes, FILE *out);
/* Writes only the bytes. */
int tfh_proto_flush_bytes(struct tfh_proto *p, FILE *out);

#endif
