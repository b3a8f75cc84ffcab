#include "format/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/access.h"
#include "base/crc32c.h"
#include "base/fd.h"
#include "format/encode.h"
#include "format/reader.h"

#define DEFAULT_LEVEL 1

struct tft_writer {
	int fd;
	dev_t dev; /* dev and inode of the file that fd was opened for */
	ino_t ino;
	uint64_t size; /* bytes up to the end of the last complete chunk */
	uint64_t chunks;
	struct tft_encoder *encoder;
	struct tft_index_entry *index;
	uint32_t n_index, index_cap;
};

static bool fd_is_ours(const struct tft_writer *w)
{
	struct stat st;

	return w->fd >= 0 && tfh_fstat(w->fd, &st) == 0 && st.st_dev == w->dev &&
	       st.st_ino == w->ino;
}

static void writer_free(struct tft_writer *w)
{
	if (fd_is_ours(w))
		tfh_close(w->fd);
	tft_encoder_free(w->encoder);
	free(w->index);
	free(w);
}

/* ---- appending ---- */

static int write_all(int fd, const void *data, size_t len)
{
	const char *p = data;

	while (len) {
		ssize_t n = tfh_write(fd, p, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

/* Reserves an index entry before the chunk is written, so that no written chunk can be missing from
 * the index. */
static int reserve_entry(struct tft_writer *w)
{
	if (w->n_index < w->index_cap)
		return 0;
	uint32_t cap = w->index_cap ? w->index_cap * 2 : 256;
	struct tft_index_entry *grown = realloc(w->index, cap * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	w->index = grown;
	w->index_cap = cap;
	return 0;
}

int tft_write_raw(struct tft_writer *w, const void *chunk, size_t len)
{
	struct tft_chunk_head h;

	memcpy(&h, chunk, sizeof(h));
	int err = reserve_entry(w);
	if (err == 0)
		err = fd_is_ours(w) ? write_all(w->fd, chunk, len) : -EBADF;
	if (err < 0)
		return err;
	w->index[w->n_index++] = (struct tft_index_entry){.offset = w->size,
							  .type = h.type,
							  .events = h.events,
							  .raw_bytes = h.raw_bytes,
							  .packed_bytes = h.packed_bytes,
							  .t_first = h.t_first,
							  .t_last = h.t_last,
							  .dropped = h.dropped,
							  .header_bytes = h.zstd_length + 8};
	w->size += len;
	w->chunks++;
	return 0;
}

static int write_chunk(struct tft_writer *w, const struct tft_chunk_head *head, const void *payload,
		       size_t size)
{
	const void *chunk;
	size_t len;

	int err = tft_encode_chunk(w->encoder, head, payload, size, &chunk, &len);
	return err < 0 ? err : tft_write_raw(w, chunk, len);
}

int tft_write_chunk(struct tft_writer *w, uint32_t type, const void *payload, uint32_t len)
{
	struct tft_chunk_head head = {.type = type, .number = w->chunks};

	return write_chunk(w, &head, payload, len);
}

int tft_write_chunk_at(struct tft_writer *w, uint32_t type, const void *payload, uint32_t len,
		       uint64_t t_first, uint64_t t_last)
{
	struct tft_chunk_head head = {
		.type = type, .number = w->chunks, .t_first = t_first, .t_last = t_last};

	return write_chunk(w, &head, payload, len);
}

int tft_write_events(struct tft_writer *w, const struct tft_batch *batches, uint32_t n,
		     uint64_t dropped)
{
	const void *chunk;
	size_t len;

	int err = tft_encode_events(w->encoder, batches, n, dropped, w->chunks, &chunk, &len);
	return err < 0 ? err : tft_write_raw(w, chunk, len);
}

int tft_write_clocks(struct tft_writer *w, const struct tft_clock_triple *t, uint32_t n)
{
	struct tft_chunk_head head = {.type = TFT_CLKS, .number = w->chunks};

	if (n == 0)
		return 0;
	head.t_first = t[0].ticks;
	head.t_last = t[n - 1].ticks;
	return write_chunk(w, &head, t, n * sizeof(*t));
}

int tft_write_loss(struct tft_writer *w, const struct tft_loss *l, uint32_t n, uint64_t dropped)
{
	struct tft_chunk_head head = {.type = TFT_LOSS, .number = w->chunks, .dropped = dropped};

	if (n == 0)
		return 0;
	head.t_first = l[0].t_first;
	for (uint32_t i = 0; i < n; i++) {
		if (l[i].t_first < head.t_first)
			head.t_first = l[i].t_first;
		if (l[i].t_last > head.t_last)
			head.t_last = l[i].t_last;
	}
	return write_chunk(w, &head, l, n * sizeof(*l));
}

static int write_one_digest(struct tft_writer *w, const void *header, size_t len)
{
	struct tft_chunk_head *h = malloc(len);

	if (!h)
		return -ENOMEM;
	memcpy(h, header, len);
	h->type = TFT_DGST;
	h->number = w->chunks;
	h->raw_bytes = 0;
	tft_chunk_seal(h, len, 0);
	int err = tft_write_raw(w, h, len);
	free(h);
	return err;
}

int tft_write_digest(struct tft_writer *w, struct tft_reader *from)
{
	const void *header;
	size_t len;

	for (uint32_t i = 0; i < tft_chunk_count(from); i++) {
		uint32_t type = tft_chunk(from, i)->type;
		if (type != TFT_EVNT && type != TFT_DGST)
			continue;
		int err = tft_chunk_raw(from, i, false, &header, &len, NULL);
		if (err == 0)
			err = write_one_digest(w, header, len);
		if (err < 0 && err != -EBADMSG)
			return err;
	}
	return 0;
}

/* ---- opening and closing ---- */

/* Takes ownership of the descriptor, also on failure. */
static int writer_new(int fd, const struct tfh_fn_info *fn, uint32_t fn_count,
		      struct tft_writer **out)
{
	struct tft_writer *w = calloc(1, sizeof(*w));
	struct stat st;

	*out = NULL;
	if (!w || tfh_fstat(fd, &st) < 0) {
		int err = w ? -errno : -ENOMEM;
		free(w);
		tfh_close(fd);
		return err;
	}
	w->fd = fd;
	w->dev = st.st_dev;
	w->ino = st.st_ino;
	w->encoder = tft_encoder_new(fn, fn_count, DEFAULT_LEVEL);
	if (!w->encoder) {
		writer_free(w);
		return -ENOMEM;
	}
	*out = w;
	return 0;
}

int tft_writer_create_bare(const char *path, const struct tfh_access *access,
			   struct tft_writer **out)
{
	int fd = tfh_make_file(AT_FDCWD, path, access);

	*out = NULL;
	return fd < 0 ? fd : writer_new(fd, NULL, 0, out);
}

int tft_writer_on(int fd, const struct tft_head *head, struct tft_writer **out)
{
	struct tft_writer *w;

	int err = writer_new(fd, head->fn, head->fn_count, &w);
	*out = NULL;
	if (err < 0)
		return err;
	size_t len = tft_head_pack(head, NULL, 0);
	void *payload = malloc(len);
	if (payload) {
		tft_head_pack(head, payload, len);
		err = tft_write_chunk(w, TFT_HEAD, payload, (uint32_t)len);
		free(payload);
	} else {
		err = -ENOMEM;
	}
	if (err < 0) {
		writer_free(w);
		return err;
	}
	*out = w;
	return 0;
}

int tft_writer_create(const char *path, const struct tfh_access *access,
		      const struct tft_head *head, struct tft_writer **out)
{
	const struct tfh_access owner_alone = {0};
	int fd = tfh_make_file(AT_FDCWD, path, access ? access : &owner_alone);

	*out = NULL;
	if (fd < 0)
		return fd;
	int err = tft_writer_on(fd, head, out);
	if (err < 0)
		unlink(path);
	return err;
}

int tft_writer_level(struct tft_writer *w, int level)
{
	return tft_encoder_level(w->encoder, level);
}

uint64_t tft_writer_bytes(const struct tft_writer *w)
{
	return w->size;
}

int tft_writer_rewind(struct tft_writer *w)
{
	if (!fd_is_ours(w))
		return -EBADF;
	if (tfh_ftruncate(w->fd, (off_t)w->size) < 0 ||
	    tfh_lseek(w->fd, (off_t)w->size, SEEK_SET) < 0)
		return -errno;
	return 0;
}

void tft_writer_abandon(struct tft_writer *w)
{
	/* The memory is not freed: another thread may have held the heap's lock at the fork. */
	if (fd_is_ours(w))
		tfh_close(w->fd);
}

static int write_index(struct tft_writer *w, bool clean)
{
	struct tft_chunk_head head = {.type = TFT_INDX, .number = w->chunks};
	struct tft_footer footer = {.zstd_magic = TFT_ZSTD_SKIPPABLE,
				    .zstd_length = sizeof(footer) - 8,
				    .index_offset = w->size,
				    .version = TFT_VERSION,
				    .flags = clean ? TFT_FOOTER_CLEAN : 0};

	int err = write_chunk(w, &head, w->index, w->n_index * sizeof(*w->index));
	if (err < 0)
		return err;
	footer.crc = tfh_crc32c(0, &footer, offsetof(struct tft_footer, crc));
	return write_all(w->fd, &footer, sizeof(footer));
}

int tft_writer_finish(struct tft_writer *w, bool clean)
{
	uint64_t chunks_end = w->size;
	int err = write_index(w, clean);

	if (err < 0) {
		/* a file without an index is valid, one with a partial index is not */
		w->size = chunks_end;
		tft_writer_rewind(w);
	}
	if (fd_is_ours(w) && tfh_close(w->fd) < 0 && err == 0)
		err = -errno;
	w->fd = -1;
	writer_free(w);
	return err;
}
