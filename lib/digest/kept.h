/*
 * The judge's findings, kept whole in a digest: one Protocol Buffers message, written and read by
 * tables that name every member (kept_result.c). A member's number never changes its meaning, and
 * that of a removed member is not used again. New members get new numbers, and readers skip numbers
 * that they do not know. Members that are 0 or "" are not written.
 */
#ifndef TFH_DIGEST_KEPT_H
#define TFH_DIGEST_KEPT_H

#include <stddef.h>

#include "base/arena.h"
#include "base/wire.h"
#include "judge/result.h"
#include "model/known.h"

enum tfh_kept_form {
	TFH_KEPT_NUMBER, /* unsigned: a varint */
	TFH_KEPT_SIGNED, /* zigzag */
	TFH_KEPT_REAL,	 /* 8 or 4 bytes; NaN: not known */
	TFH_KEPT_TEXT,	 /* never NULL */
	TFH_KEPT_MAYBE,	 /* a text or NULL */
	TFH_KEPT_MEMBER, /* of a vocabulary: its position from 1, 0: none */
	TFH_KEPT_STRUCT, /* one message each */
	TFH_KEPT_LIST,	 /* the same, behind a pointer, with a member for the count */
	TFH_KEPT_TEXTS,	 /* a list of texts */
	TFH_KEPT_REALS,	 /* a list of floats, packed */
};

struct tfh_kept_field {
	uint32_t number, offset;
	uint8_t form, size;    /* size: of an element */
	bool maybe_none;       /* for a member: may be none */
	uint32_t count;	       /* elements in the struct itself */
	uint64_t most;	       /* of a number (0: any); for a member: the vocabulary's size */
	uint32_t count_offset; /* of a list */
	const struct tfh_kept_type *of;
};

struct tfh_kept_type {
	const struct tfh_kept_field *field;
	uint32_t n;
	size_t size;
};

/* What the outputs read: the result without its steps, which are a table, and what they query of
 * the run. */
struct tfh_kept {
	struct tfh_result r;
	enum tfh_source source;
	bool built;
	const char *path, *host;
	const char **argv;
	uint32_t argc;
	int64_t start_realtime, wall, end_ns;
	struct tfh_process *process;
	uint32_t n_process;
	struct tfh_thread_info *thread;
	uint32_t n_thread;
	struct tfh_in_flight *flight;
	uint32_t n_flight;
	struct tfh_meter_line *meter; /* of the judged process */
	uint32_t n_meter;
	const char **unreadable;
	uint32_t n_unreadable;
	struct tfh_known known;
};
extern const struct tfh_kept_type tfh_kept_type;

/* Packs a struct as a message, in memory that the caller frees. 0 or -ENOMEM. */
int tfh_kept_pack(const struct tfh_kept_type *type, const void *from, void **out, size_t *n);
/* Reads a message into a struct; texts and lists go into the arena. 0, -ENOMEM, or -EBADMSG for a
 * message that no writer produces. */
int tfh_kept_unpack(const struct tfh_kept_type *type, const void *data, size_t n, void *to,
		    struct tfh_arena *arena);

#endif
