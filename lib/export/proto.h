/*
 * Writes protocol buffers into a growing buffer: fields one after the other, messages inside messages
 * between tfh_proto_begin() and _end(). (base/wire.h reads them.)
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
/* Text that is not UTF-8 gets U+FFFD for what is not: readers refuse a whole file for it. */
void tfh_proto_text(struct tfh_proto *p, uint32_t field, const char *text);
/* A message that is a field; `begin` returns what `end` needs. */
size_t tfh_proto_begin(struct tfh_proto *p, uint32_t field);
void tfh_proto_end(struct tfh_proto *p, size_t begin);

/* A message as a field of another one, to a stream; the buffer is empty afterwards. 0 or -errno. */
int tfh_proto_flush(struct tfh_proto *p, uint32_t field, FILE *out);
/* The beginning of a field that is a message of so many bytes. */
int tfh_proto_flush_head(uint32_t field, size_t bytes, FILE *out);
/* The bytes alone. */
int tfh_proto_flush_bytes(struct tfh_proto *p, FILE *out);

#endif
