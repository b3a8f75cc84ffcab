/*
 * Writes trace files, for the flusher, `tfhook repair` and importers. Appends with write(2);
 * nothing is mapped. All functions return 0 or -errno.
 */
#ifndef TFH_FORMAT_TFT_WRITE_H
#define TFH_FORMAT_TFT_WRITE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/access.h"
#include "format/journal_layout.h"
#include "format/layout.h"
#include "format/tft_read.h"

struct tft_writer;

/* Allocates all working memory (about 8 MiB) here and none later. O_EXCL: an existing file is never
 * touched. `access`: the file's access rights; NULL: the owner alone. */
int tft_writer_create(const char *path, const struct tfh_access *access,
		      const struct tft_head *head, struct tft_writer **out);

/* Like tft_writer_create(), on an empty file that was created for it. The writer closes the
 * descriptor, also on failure. */
int tft_writer_on(int fd, const struct tft_head *head, struct tft_writer **out);

/* One batch: consecutive records of one thread. */
struct tft_batch {
	const struct tfh_rec *records;
	uint32_t count;
	uint32_t thread;
	uint32_t tid;
	uint64_t first;
};

/* Sets the zstd level, 1 by default. On this data, negative levels are worse, and level 3 saves 0.3
 * % of the size for 20 % of the speed. */
int tft_writer_level(struct tft_writer *w, int level);

/* Packs the HEAD payload of `head`, of which a journal keeps a copy. Returns its length, even if
 * `cap` was too small (then `buf` is incomplete). */
size_t tft_head_pack(const struct tft_head *head, void *buf, size_t cap);

/* Encodes and appends one EVNT chunk (at most TFT_MAX_EVENTS records in all) with one write(2). If
 * this or any other write returns -EBADF, the job closed the writer's descriptor. */
int tft_write_events(struct tft_writer *w, const struct tft_batch *batches, uint32_t n,
		     uint64_t dropped);

/* Writes any other chunk. */
int tft_write_chunk(struct tft_writer *w, uint32_t type, const void *payload, uint32_t len);

/* Likewise, with times in the header. */
int tft_write_chunk_at(struct tft_writer *w, uint32_t type, const void *payload, uint32_t len,
		       uint64_t t_first, uint64_t t_last);

int tft_write_clocks(struct tft_writer *w, const struct tft_clock_triple *t, uint32_t n);

/* Reason for lost records. Values are in trace files: only append. */
enum tft_loss_cause {
	TFT_LOSS_RING = 1,   /* the ring was full */
	TFT_LOSS_THREAD = 2, /* the thread got no ring */
	TFT_LOSS_DISK = 3,   /* the ring was full because writing had paused */
	TFT_LOSS_CUPTI = 4,
};
struct tft_loss {
	uint32_t thread, cause;
	uint64_t count, t_first, t_last;
};
/* `dropped`: as in tft_write_events, including these (except CUPTI's). */
int tft_write_loss(struct tft_writer *w, const struct tft_loss *l, uint32_t n, uint64_t dropped);

uint64_t tft_writer_bytes(const struct tft_writer *w);

/* After a failed write: truncates to the last complete chunk, so that a retry appends at a valid
 * position. */
int tft_writer_rewind(struct tft_writer *w);

/* Keeps a discarded segment's summary: the headers of its event chunks (with sketch and run table)
 * become DGST chunks of this file, and its own DGST chunks are copied. Damaged chunks are left out.
 */
int tft_write_digest(struct tft_writer *w, struct tft_reader *from);

/* In a forked child, whose parent goes on writing: only closes the descriptor. */
void tft_writer_abandon(struct tft_writer *w);

/* Writes index and footer, closes and frees, also on error. `clean`: the process ended normally
 * with this segment; false for a segment that is followed by another. */
int tft_writer_finish(struct tft_writer *w, bool clean);

#endif
