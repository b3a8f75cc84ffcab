/*
 * The ops of a process in compact form, each with the call that issued it, as the first pass found
 * them. Later passes then need neither CUPTI's records of calls nor the host's, and the first pass
 * of the accounts needs no rows either. Times are stored as differences from the previous op's,
 * about eleven bytes per op. A small part of them is in memory, the rest in an unlinked temporary
 * file. The lengths of the numbers precede them, so that reading needs no unpredictable branches.
 * If there is no room for the file, every pass joins again.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "format/codec.h"
#include "model/big.h"
#include "model/ops/device_ops.h"

#define IN_MEMORY (256u << 10)
/* Upper bound of one op's bytes: two flag bytes, its place and kind, the size of a copy, a thread,
 * and five numbers. The last number is read and written as eight bytes. */
#define OP_BYTES 80
/* Each file holds a descriptor as long as the run is open. */
#define MOST_FILES 64
/* Combinations of device and stream that get a number of one byte. */
#define MANY_PLACES 255u

struct op_place {
	uint32_t device, ctx, stream;
};

struct tfh_issued {
	uint8_t *v; /* writing: the newest part; reading: the next byte is v + at */
	size_t n, at, cap;
	int fd; /* -1: everything is in v */
	uint64_t filed, read;
	bool lost;
	struct tfh_issue last;
	/* Of the previous op: begin, kind and place. */
	int64_t t0;
	uint16_t what;
	uint8_t at_place;
	struct op_place place[MANY_PLACES]; /* places in the order in which they first occurred */
	uint32_t places;
};

static _Atomic uint32_t files;

struct tfh_issued *tfh_issued_new(void)
{
	struct tfh_issued *s = calloc(1, sizeof(*s));

	if (s)
		s->fd = -1;
	return s;
}

void tfh_issued_free(struct tfh_issued *s)
{
	if (!s)
		return;
	if (s->fd >= 0) {
		close(s->fd);
		atomic_fetch_sub(&files, 1);
	}
	free(s->v);
	free(s);
}

static bool open_file(struct tfh_issued *s)
{
	if (atomic_fetch_add(&files, 1) < MOST_FILES)
		s->fd = tfh_big_file();
	if (s->fd < 0)
		atomic_fetch_sub(&files, 1);
	return s->fd >= 0;
}

static bool write_out(struct tfh_issued *s)
{
	size_t done = 0;

	if (s->fd < 0 && !open_file(s))
		return false;
	while (done < s->n) {
		ssize_t k = write(s->fd, s->v + done, s->n - done);
		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			return false;
		done += (size_t)k;
	}
	s->filed += s->n;
	s->n = 0;
	return true;
}

static bool make_room(struct tfh_issued *s)
{
	if (s->cap == IN_MEMORY)
		return write_out(s);
	size_t cap = s->cap ? s->cap * 4 : IN_MEMORY / 64;
	uint8_t *v = realloc(s->v, cap + sizeof(uint64_t));
	if (!v)
		return false;
	s->v = v;
	s->cap = cap;
	return true;
}

/* Layout of the two bytes that precede the numbers of an op and those of its call: flags, then the
 * position of each length code. */
enum { OTHER_PLACE = 1, OTHER_KIND = 2, BYTES = 4, OP_T0 = 3, OP_NS = 5 };
enum { KNOWN = 1, OTHER_THREAD = 2, NS = 2, T0 = 4, CALL = 6 };

/* Length code of a number, which is stored in 1 << code bytes. */
static inline unsigned code_of(uint64_t x)
{
	return x >> 32 ? 3 : x >> 16 ? 2 : x >> 8 ? 1 : 0;
}

static inline uint8_t *put(uint8_t *p, uint64_t x, unsigned code)
{
	memcpy(p, &x, sizeof(x));
	return p + (1u << code);
}

static inline uint64_t get(const uint8_t **p, unsigned code)
{
	uint64_t x;

	memcpy(&x, *p, sizeof(x));
	*p += 1u << code;
	return x & UINT64_MAX >> (64 - (8u << code));
}

/* a - b and a + x, with wrap-around instead of overflow. */
static int64_t less(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a - (uint64_t)b);
}

static int64_t plus(int64_t a, uint64_t zigzag)
{
	return (int64_t)((uint64_t)a + tft_unzigzag(zigzag));
}

/* The fields of an op's kind in 15 bits. */
static uint16_t what_is(const struct tfh_op *op)
{
	return (uint16_t)(op->kind | op->dir << 8 | op->communication << 12 | op->pageable << 13 |
			  op->managed << 14);
}

static void say_what(struct tfh_op *op, uint16_t what)
{
	op->kind = (uint8_t)what;
	op->dir = what >> 8 & 15;
	op->communication = what >> 12 & 1;
	op->pageable = what >> 13 & 1;
	op->managed = what >> 14 & 1;
}

static bool is_at(const struct op_place *p, const struct tfh_op *op)
{
	return p->stream == op->stream && p->ctx == op->ctx && p->device == op->device;
}

/* Number of an op's place; MANY_PLACES if it has none. */
static uint8_t place_of(struct tfh_issued *s, const struct tfh_op *op)
{
	uint32_t i = 0;

	if (s->at_place < s->places && is_at(&s->place[s->at_place], op))
		return s->at_place;
	while (i < s->places && !is_at(&s->place[i], op))
		i++;
	return (uint8_t)i;
}

/* Writes an op's place in full when it first occurs, and only its number afterwards. */
static uint8_t *put_place(struct tfh_issued *s, uint8_t *p, uint8_t number, const struct tfh_op *op)
{
	struct op_place at = {op->device, op->ctx, op->stream};

	*p++ = number;
	s->at_place = number;
	if (number < s->places)
		return p;
	if (number < MANY_PLACES)
		s->place[s->places++] = at;
	memcpy(p, &at, sizeof(at));
	return p + sizeof(at);
}

static const uint8_t *get_place(struct tfh_issued *s, const uint8_t *p, struct tfh_op *op)
{
	struct op_place at;

	s->at_place = *p++;
	if (s->at_place < s->places) {
		at = s->place[s->at_place];
	} else {
		memcpy(&at, p, sizeof(at));
		p += sizeof(at);
		if (s->at_place < MANY_PLACES)
			s->place[s->places++] = at;
	}
	op->device = at.device;
	op->ctx = at.ctx;
	op->stream = at.stream;
	return p;
}

/* Writes an op; `head` points to its first byte. */
static uint8_t *put_op(struct tfh_issued *s, uint8_t *head, uint8_t *p, const struct tfh_op *op)
{
	uint64_t t0 = (uint64_t)less(op->t0, s->t0), ns = (uint64_t)less(op->t1, op->t0);
	uint8_t number = place_of(s, op);
	uint16_t what = what_is(op);
	bool other = number != s->at_place || number >= s->places;
	bool copy = op->kind == TFH_OP_COPY;

	*head = (uint8_t)(other * OTHER_PLACE | (what != s->what) * OTHER_KIND | copy * BYTES |
			  code_of(t0) << OP_T0 | code_of(ns) << OP_NS);
	if (other)
		p = put_place(s, p, number, op);
	if (what != s->what)
		p = put(p, what, 1);
	if (copy)
		p = put(p, op->bytes, 3);
	p = put(p, t0, code_of(t0));
	s->t0 = op->t0;
	s->what = what;
	return put(p, ns, code_of(ns));
}

static uint8_t *put_call(struct tfh_issued *s, uint8_t *head, uint8_t *p,
			 const struct tfh_issue *issue)
{
	bool other = issue->thread != s->last.thread;
	uint64_t ns = tft_zigzag((uint64_t)less(issue->t1, issue->t0));
	uint64_t t0 = tft_zigzag((uint64_t)less(issue->t0, s->last.t0));
	uint64_t call = tft_zigzag(issue->call - s->last.call);

	*head = (uint8_t)(KNOWN | other * OTHER_THREAD | code_of(ns) << NS | code_of(t0) << T0 |
			  code_of(call) << CALL);
	if (other)
		p = put(p, issue->thread, 2);
	p = put(p, ns, code_of(ns));
	p = put(p, t0, code_of(t0));
	s->last = *issue;
	return put(p, call, code_of(call));
}

void tfh_issued_add(struct tfh_issued *s, const struct tfh_op *op, const struct tfh_issue *issue)
{
	if (!s || s->lost)
		return;
	s->lost = s->cap - s->n < OP_BYTES && !make_room(s);
	if (s->lost)
		return;
	uint8_t *head = s->v + s->n, *p = put_op(s, head, head + 2, op);
	head[1] = 0;
	if (issue)
		p = put_call(s, head + 1, p, issue);
	s->n = (size_t)(p - s->v);
}

bool tfh_issued_rewind(struct tfh_issued *s)
{
	if (s->fd >= 0 && !s->read && !s->lost)
		s->lost = !write_out(s);
	s->last = (struct tfh_issue){0};
	s->t0 = 0;
	s->what = 0;
	s->at_place = 0;
	s->places = 0;
	s->at = s->read = 0;
	if (s->fd >= 0)
		s->n = 0;
	return !s->lost;
}

/* Moves the unread rest to the front and reads more after it. */
static int read_on(struct tfh_issued *s)
{
	memmove(s->v, s->v + s->at, s->n - s->at);
	s->n -= s->at;
	s->at = 0;
	while (s->n < s->cap && s->read < s->filed) {
		ssize_t k = pread(s->fd, s->v + s->n, s->cap - s->n, (off_t)s->read);
		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			return k ? -errno : -EIO;
		s->n += (size_t)k;
		s->read += (uint64_t)k;
	}
	return 0;
}

/* Reads an op. Fields equal to the previous op's are left unchanged. */
static const uint8_t *get_op(struct tfh_issued *s, unsigned head, const uint8_t *p,
			     struct tfh_op *op)
{
	if (head & OTHER_PLACE)
		p = get_place(s, p, op);
	if (head & OTHER_KIND)
		say_what(op, (uint16_t)get(&p, 1));
	op->bytes = head & BYTES ? get(&p, 3) : 0;
	op->t0 = s->t0 = (int64_t)((uint64_t)s->t0 + get(&p, head >> OP_T0 & 3));
	op->t1 = (int64_t)((uint64_t)op->t0 + get(&p, head >> OP_NS & 3));
	return p;
}

static const uint8_t *get_call(struct tfh_issued *s, unsigned head, const uint8_t *p,
			       struct tfh_issue *out)
{
	if (head & OTHER_THREAD)
		s->last.thread = (uint32_t)get(&p, 2);
	uint64_t ns = get(&p, head >> NS & 3);
	int64_t t0 = plus(s->last.t0, get(&p, head >> T0 & 3));
	uint64_t call = s->last.call + tft_unzigzag(get(&p, head >> CALL & 3));
	/* Assigned one by one: copying the whole struct in pieces of 16 bytes would wait for the
	 * stores just before. */
	out->t0 = s->last.t0 = t0;
	out->t1 = plus(t0, ns);
	out->thread = s->last.thread;
	out->call = s->last.call = call;
	return p;
}

int tfh_issued_next(struct tfh_issued *s, struct tfh_op *op, struct tfh_issue *out, bool *known)
{
	int rc = 0;

	if (s->n - s->at < OP_BYTES && s->read < s->filed)
		rc = read_on(s);
	if (rc || s->at == s->n)
		return rc ? rc : -EIO;
	const uint8_t *head = s->v + s->at, *p = get_op(s, head[0], head + 2, op);
	*known = head[1] & KNOWN;
	if (*known)
		p = get_call(s, head[1], p, out);
	s->at = (size_t)(p - s->v);
	return 0;
}

bool tfh_issued_end(const struct tfh_issued *s)
{
	return s->at == s->n && s->read == s->filed;
}
