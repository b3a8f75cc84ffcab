#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "import/bytes.h"

#define BLOCK (256u << 10)
#define BLOCKS 8
/* Limit on the ratio of decompressed to compressed bytes. Traces compress 10 to 40 times, gzip at
 * most 1,030 times. A file beyond this ratio is not read to its end. */
#define RATIO_MOST 256u
#define RATIO_FREE (64ull << 20) /* always decompressed */

struct file_block {
	size_t n;
	uint8_t data[BLOCK];
};

struct tfh_bytes {
	int fd;
	const uint8_t *from; /* in memory: the remaining bytes */
	size_t left;
	bool zipped, whole, stream_end; /* whole: no more input; stream_end: a gzip member ended */
	z_stream z;
	uint8_t in[TFH_BYTES_HEAD];
	/* head: length of the first bytes, in `in`; headed: how many of them were returned. */
	size_t head, headed;
	uint64_t packed, unpacked; /* bytes in and out of decompression so far */
	int code;		   /* the reason why no more blocks come */
	const char *why;
	/* shared by both threads; `made` and `read` count blocks */
	bool threaded, stop, end;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	uint64_t made, read;
	bool handed; /* the reader holds block `read` */
	struct file_block *ring;
};

/* ---- making blocks ---- */

/* Reads input into `to`; 0 at the end. */
static size_t take(struct tfh_bytes *b, uint8_t *to, size_t cap)
{
	ssize_t n;

	if (b->fd < 0) {
		size_t some = b->left < cap ? b->left : cap;
		memcpy(to, b->from, some);
		b->from += some;
		b->left -= some;
		return some;
	}
	do
		n = read(b->fd, to, cap);
	while (n < 0 && errno == EINTR);
	if (n < 0) {
		b->code = -errno;
		b->why = strerror(errno);
	}
	return n > 0 ? (size_t)n : 0;
}

static bool fail(struct tfh_bytes *b, const char *why)
{
	b->code = -EBADMSG;
	b->why = why;
	return false;
}

static void more_input(struct tfh_bytes *b)
{
	b->z.next_in = b->in;
	b->z.avail_in = (uInt)take(b, b->in, sizeof(b->in));
	b->packed += b->z.avail_in;
	b->whole = !b->z.avail_in;
}

/* Members of a gzip file follow each other; trailing bytes that are not a member are padding. */
static bool next_member(struct tfh_bytes *b)
{
	if (!b->z.avail_in && !b->whole)
		more_input(b);
	if (!b->z.avail_in || *b->z.next_in != 0x1f)
		return false;
	b->stream_end = false;
	return inflateReset(&b->z) == Z_OK;
}

static bool inflate_block(struct tfh_bytes *b, struct file_block *to)
{
	b->z.next_out = to->data;
	b->z.avail_out = BLOCK;
	while (b->z.avail_out) {
		if (b->stream_end && !next_member(b))
			break;
		if (!b->z.avail_in && !b->whole)
			more_input(b);
		int rc = inflate(&b->z, Z_NO_FLUSH);
		if (rc == Z_STREAM_END)
			b->stream_end = true;
		else if (rc == Z_BUF_ERROR && b->whole)
			return b->code ? false : fail(b, "the compressed file is truncated");
		else if (rc != Z_OK && rc != Z_BUF_ERROR)
			return fail(b, "the compressed data is damaged");
	}
	to->n = BLOCK - b->z.avail_out;
	b->unpacked += to->n;
	if (b->unpacked > RATIO_FREE && b->unpacked / RATIO_MOST > b->packed)
		return fail(b, "the compressed data unpacks to more than 256 times its size, as no "
			       "trace does");
	return to->n > 0;
}

static bool fill(struct tfh_bytes *b, struct file_block *to)
{
	if (b->zipped)
		return inflate_block(b, to);
	to->n = b->head - b->headed; /* the rest is smaller than a block */
	memcpy(to->data, b->in + b->headed, to->n);
	b->headed = b->head;
	while (to->n < BLOCK) {
		size_t n = take(b, to->data + to->n, BLOCK - to->n);
		if (!n)
			break;
		to->n += n;
	}
	return to->n > 0 && !b->code;
}

static void *read_ahead(void *arg)
{
	struct tfh_bytes *b = arg;
	bool more = true;

	while (more) {
		pthread_mutex_lock(&b->lock);
		while (b->made - b->read == BLOCKS && !b->stop)
			pthread_cond_wait(&b->changed, &b->lock);
		bool stop = b->stop;
		pthread_mutex_unlock(&b->lock);
		if (stop)
			break;
		more = fill(b, &b->ring[b->made % BLOCKS]);
		pthread_mutex_lock(&b->lock);
		b->made += more;
		b->end = !more;
		pthread_cond_signal(&b->changed);
		pthread_mutex_unlock(&b->lock);
	}
	return NULL;
}

/* ---- opening ---- */

/* gzip is recognised by its first two bytes. */
static int begin(struct tfh_bytes *b, const void *head, size_t n, struct tfh_err *err)
{
	if (n)
		memcpy(b->in, head, n);
	else
		n = take(b, b->in, sizeof(b->in));
	b->zipped = n >= 2 && b->in[0] == 0x1f && b->in[1] == 0x8b;
	b->ring = malloc((b->fd < 0 ? 1 : BLOCKS) * sizeof(*b->ring));
	if (!b->ring)
		return tfh_err_set(err, -ENOMEM, "out of memory");
	b->head = b->zipped ? 0 : n;
	if (!b->zipped)
		return b->code ? tfh_err_set(err, b->code, "%s", b->why) : 0;
	b->z.next_in = b->in;
	b->z.avail_in = (uInt)n;
	b->packed = n;
	if (inflateInit2(&b->z, 16 + MAX_WBITS) == Z_OK)
		return 0;
	b->zipped = false;
	return tfh_err_set(err, -ENOMEM, "out of memory");
}

/* `data`: bytes already read from a descriptor. */
static int open_bytes(int fd, const void *data, size_t n, struct tfh_bytes **out,
		      struct tfh_err *err)
{
	struct tfh_bytes *b = calloc(1, sizeof(*b));
	sigset_t all, old;
	int rc;

	*out = NULL;
	if (!b)
		return tfh_err_set(err, -ENOMEM, "out of memory");
	b->fd = fd;
	b->from = fd < 0 ? data : NULL;
	b->left = fd < 0 ? n : 0;
	pthread_mutex_init(&b->lock, NULL);
	pthread_cond_init(&b->changed, NULL);
	rc = fd < 0 ? begin(b, NULL, 0, err) : begin(b, data, n, err);
	if (rc) {
		b->fd = -1; /* the caller still owns it */
		tfh_bytes_close(b);
		return rc;
	}
	if (fd >= 0) {
		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, &old);
		b->threaded = !pthread_create(&b->thread, NULL, read_ahead, b);
		pthread_sigmask(SIG_SETMASK, &old, NULL);
	}
	*out = b;
	return 0;
}

int tfh_open_regular(const char *path, struct tfh_err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0 || fstat(fd, &st)) {
		int code = -errno;
		if (fd >= 0)
			close(fd);
		return tfh_err_set(err, code, "%s: %s", path, strerror(-code));
	}
	if (S_ISREG(st.st_mode))
		return fd;
	close(fd);
	return tfh_err_set(err, -ENOMSG, "%s: not a regular file", path);
}

int tfh_bytes_open(const char *path, struct tfh_bytes **out, struct tfh_err *err)
{
	int fd = tfh_open_regular(path, err);
	int rc;

	*out = NULL;
	if (fd < 0)
		return fd;
	rc = open_bytes(fd, NULL, 0, out, err);
	if (rc)
		close(fd);
	return rc;
}

int tfh_bytes_stream(int fd, const void *head, size_t n, struct tfh_bytes **out,
		     struct tfh_err *err)
{
	*out = NULL;
	return n > TFH_BYTES_HEAD ? tfh_err_set(err, -EINVAL, "too much was read before")
				  : open_bytes(fd, head, n, out, err);
}

int tfh_bytes_of(const void *data, size_t n, struct tfh_bytes **out, struct tfh_err *err)
{
	return open_bytes(-1, data, n, out, err);
}

/* ---- reading ---- */

const uint8_t *tfh_bytes_next(struct tfh_bytes *b, size_t *n)
{
	struct file_block *block;

	if (!b->threaded) {
		block = &b->ring[0];
		if (b->end || !fill(b, block)) {
			b->end = true;
			return NULL;
		}
		*n = block->n;
		return block->data;
	}
	pthread_mutex_lock(&b->lock);
	if (b->handed) {
		b->handed = false;
		b->read++;
		pthread_cond_signal(&b->changed);
	}
	while (b->made == b->read && !b->end)
		pthread_cond_wait(&b->changed, &b->lock);
	bool got = b->made > b->read;
	b->handed = got;
	pthread_mutex_unlock(&b->lock);
	if (!got)
		return NULL;
	block = &b->ring[b->read % BLOCKS];
	*n = block->n;
	return block->data;
}

int tfh_bytes_error(const struct tfh_bytes *b, struct tfh_err *err)
{
	return b->code ? tfh_err_set(err, b->code, "%s", b->why) : 0;
}

void tfh_bytes_close(struct tfh_bytes *b)
{
	if (!b)
		return;
	if (b->threaded) {
		pthread_mutex_lock(&b->lock);
		b->stop = true;
		pthread_cond_signal(&b->changed);
		pthread_mutex_unlock(&b->lock);
		pthread_join(b->thread, NULL);
	}
	if (b->zipped)
		inflateEnd(&b->z);
	if (b->fd >= 0)
		close(b->fd);
	pthread_cond_destroy(&b->changed);
	pthread_mutex_destroy(&b->lock);
	free(b->ring);
	free(b);
}
