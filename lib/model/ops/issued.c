/*
 * Which calls issued the ops of a process, as the first pass over them found out: the later ones
 * need neither CUPTI's records of calls nor the host's. Times are written as distances to those of
 * the op before, about six bytes an op: a little of it in memory, what is more in a temporary file
 * without a name. How long the numbers are stands before them, so that reading them takes no guess
 * of the processor's. Where there is no room for it, every pass joins anew.
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
/* Of one op: a byte, a thread, and three numbers of at most eight bytes; the last one is read and
 * written as eight. */
#define OP_BYTES 40
/* A descriptor each, as long as the run is open. */
#define MOST_FILES 64

struct tfh_issued {
	uint8_t *v; /* of the written: the newest; of the read: v + at is next */
	size_t n, at, cap;
	int fd; /* -1: all is in v */
	uint64_t filed, read;
	bool lost;
	struct tfh_issue last;
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

/* What stands before the numbers of an op. */
enum { KNOWN = 1, OTHER_THREAD = 2, NS = 2, T0 = 4, CALL = 6 };

/* A number has 1 << code bytes. */
static inline unsigned code_of(uint64_t x)
{
	return x >> 32 ? 3 : x >> 16 ? 2 : x >> 8 ? 1 : 0;
}

static inline uint8_t *put(uint8_t *p, uint64_t x, unsigned code)
{
	memcpy(p, &x, sizeof(x));
	return p + (1u << code);
}

static inline uint64_t get(struct tfh_issued *s, unsigned code)
{
	uint64_t x;

	memcpy(&x, s->v + s->at, sizeof(x));
	s->at += 1u << code;
	return x & UINT64_MAX >> (64 - (8u << code));
}

/* a - b, and a + what a number says; whatever they are. */
static int64_t less(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a - (uint64_t)b);
}

static int64_t plus(int64_t a, uint64_t zigzag)
{
	return (int64_t)((uint64_t)a + tft_unzigzag(zigzag));
}

void tfh_issued_add(struct tfh_issued *s, const struct tfh_issue *issue)
{
	if (!s || s->lost)
		return;
	s->lost = s->cap - s->n < OP_BYTES && !make_room(s);
	if (s->lost)
		return;
	uint8_t *p = s->v + s->n;
	if (!issue) {
		*p = 0;
		s->n++;
		return;
	}
	bool other = issue->thread != s->last.thread;
	uint64_t ns = tft_zigzag((uint64_t)less(issue->t1, issue->t0));
	uint64_t t0 = tft_zigzag((uint64_t)less(issue->t0, s->last.t0));
	uint64_t call = tft_zigzag(issue->call - s->last.call);
	*p++ = (uint8_t)(KNOWN | other * OTHER_THREAD | code_of(ns) << NS | code_of(t0) << T0 |
			 code_of(call) << CALL);
	if (other)
		p = put(p, issue->thread, 2);
	p = put(p, ns, code_of(ns));
	p = put(p, t0, code_of(t0));
	p = put(p, call, code_of(call));
	s->n = (size_t)(p - s->v);
	s->last = *issue;
}

bool tfh_issued_rewind(struct tfh_issued *s)
{
	if (s->fd >= 0 && !s->read && !s->lost)
		s->lost = !write_out(s);
	s->last = (struct tfh_issue){0};
	s->at = s->read = 0;
	if (s->fd >= 0)
		s->n = 0;
	return !s->lost;
}

/* What is left moves to the front, and more follows it. */
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

int tfh_issued_next(struct tfh_issued *s, struct tfh_issue *out, bool *known)
{
	int rc = 0;

	if (s->n - s->at < OP_BYTES && s->read < s->filed)
		rc = read_on(s);
	if (rc || s->at == s->n)
		return rc ? rc : -EIO;
	unsigned head = s->v[s->at++];
	*known = head & KNOWN;
	if (!*known)
		return 0;
	if (head & OTHER_THREAD)
		s->last.thread = (uint32_t)get(s, 2);
	uint64_t ns = get(s, head >> NS & 3);
	int64_t t0 = plus(s->last.t0, get(s, head >> T0 & 3));
	uint64_t call = s->last.call + tft_unzigzag(get(s, head >> CALL & 3));
	/* One by one: a copy of the whole in pieces of 16 bytes waits for the stores before it. */
	out->t0 = s->last.t0 = t0;
	out->t1 = plus(t0, ns);
	out->thread = s->last.thread;
	out->call = s->last.call = call;
	return 0;
}
