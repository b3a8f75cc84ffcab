/*
 * Which calls issued the ops of a process, as the first pass over them found out: the later ones
 * need neither CUPTI's records of calls nor the host's. Times are written as distances to those of
 * the op before, about six bytes an op: a little of it in memory, what is more in a temporary file
 * without a name. Where there is no room for it, every pass joins anew.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "format/codec.h"
#include "model/big.h"
#include "model/device.h"

#define IN_MEMORY (256u << 10)
/* Of one op: four numbers of at most ten bytes. */
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
	uint8_t *v = realloc(s->v, cap);
	if (!v)
		return false;
	s->v = v;
	s->cap = cap;
	return true;
}

static inline size_t put(uint8_t *p, uint64_t x)
{
	size_t n = 0;

	for (; x >= 0x80; x >>= 7)
		p[n++] = (uint8_t)(x | 0x80);
	p[n++] = (uint8_t)x;
	return n;
}

static inline uint64_t get(struct tfh_issued *s)
{
	uint64_t x = 0;
	uint8_t b;

	for (unsigned shift = 0; shift < 64; shift += 7) {
		b = s->v[s->at++];
		x |= (uint64_t)(b & 0x7f) << shift;
		if (b < 0x80)
			break;
	}
	return x;
}

/* a - b, and a + what the next number says; whatever they are. */
static int64_t less(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a - (uint64_t)b);
}

static int64_t next_from(struct tfh_issued *s, int64_t a)
{
	return (int64_t)((uint64_t)a + (uint64_t)tft_unzigzag(get(s)));
}

void tfh_issued_add(struct tfh_issued *s, const struct tfh_issue *issue)
{
	uint64_t ns = issue ? tft_zigzag(less(issue->t1, issue->t0)) : 0;

	if (!s || s->lost)
		return;
	s->lost = ns >> 62 || (s->cap - s->n < OP_BYTES && !make_room(s));
	if (s->lost)
		return;
	uint8_t *p = s->v + s->n;
	if (!issue) {
		s->n += put(p, 0);
		return;
	}
	bool other = issue->thread != s->last.thread;
	p += put(p, ns << 2 | (uint64_t)other << 1 | 1);
	if (other)
		p += put(p, issue->thread);
	p += put(p, tft_zigzag(less(issue->t0, s->last.t0)));
	p += put(p, tft_zigzag(less((int64_t)issue->call, (int64_t)s->last.call)));
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
	uint64_t ns = get(s);
	*known = ns & 1;
	if (!*known)
		return 0;
	if (ns & 2)
		s->last.thread = (uint32_t)get(s);
	s->last.t0 = next_from(s, s->last.t0);
	s->last.t1 = (int64_t)((uint64_t)s->last.t0 + (uint64_t)tft_unzigzag(ns >> 2));
	s->last.call = (uint64_t)next_from(s, (int64_t)s->last.call);
	*out = s->last;
	return 0;
}
