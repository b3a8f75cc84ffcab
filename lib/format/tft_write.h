/*
 * Writing trace files: used by the flusher, by `tfhook repair` and by importers. Appends with
 * write(2); nothing is mapped. All functions return 0 or -errno.
 */
#ifndef TFT_WRITE_H
#define TFT_WRITE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/access.h"
#include "format/journal_layout.h"
#include "format/layout.h"
#include "format/tft_read.h"

struct tft_writer;

/* Working memory is allocated here once (about 8 MiB), nothing later. O_EXCL: an existing file is
 * never touched. `access`: whose it is to be, NULL the owner's alone. */
int tft_writer_create(const char *path, const struct tfh_access *access,
		      const struct tft_head *head, struct tft_writer **out);

/* The same on an empty file that was made for it. The writer closes it, also when it fails. */
int tft_writer_on(int fd, const struct tft_head *head, struct tft_writer **out);

/* One batch: consecutive records of one thread. */
struct tft_batch {
	const struct tfh_rec *records;
	uint32_t count;
	uint32_t thread;
	uint32_t tid;
	uint64_t first;
};

/* zstd level, 1 by default. Negative levels lose on this data, 3 gains 0.3 % for 20 % of the speed.
 */
int tft_writer_level(struct tft_writer *w, int level);

/* The HEAD payload of `head`: what a journal keeps a copy of. Returns its length, also when `cap`
 * was too small (then `buf` is incomplete). */
size_t tft_head_pack(const struct tft_head *head, void *buf, size_t cap);

/* Encodes and appends one EVNT chunk (at most TFT_MAX_EVENTS records in all) with one write(2).
 * -EBADF, as from every write: the program that hosts the writer has closed its descriptor. */
int tft_write_events(struct tft_writer *w, const struct tft_batch *batches, uint32_t n,
		     uint64_t dropped);

/* Any other chunk. */
int tft_write_chunk(struct tft_writer *w, uint32_t type, const void *payload, uint32_t len);

/* The same with times in its header. */
int tft_write_chunk_at(struct tft_writer *w, uint32_t type, const void *payload, uint32_t len,
		       uint64_t t_first, uint64_t t_last);

int tft_write_clocks(struct tft_writer *w, const struct tft_clock_triple *t, uint32_t n);

/* Why records were lost. Values are in trace files: only append. */
enum tft_loss_cause {
	TFT_LOSS_RING = 1,   /* the ring was full */
	TFT_LOSS_THREAD = 2, /* the thread found no ring */
	TFT_LOSS_DISK = 3,   /* the ring was full because writing had paused */
	TFT_LOSS_CUPTI = 4,
};
struct tft_loss {
	uint32_t thread, cause;
	uint64_t count, t_first, t_last;
};
/* `dropped`: as in tft_write_events, these included (but for those of CUPTI). */
int tft_write_loss(struct tft_writer *w, const struct tft_loss *l, uint32_t n, uint64_t dropped);

uint64_t tft_writer_bytes(const struct tft_writer *w);

/* After a failed write: cut back to the last whole chunk so that a retry appends at a sound place.
 */
int tft_writer_rewind(struct tft_writer *w);

/* A segment that is given up: the headers of its event chunks (with sketch and run table) stay as
 * DGST chunks of this file, and so do the DGST chunks it holds itself. Damaged chunks are left out.
 */
int tft_write_digest(struct tft_writer *w, struct tft_reader *from);

/* Forgets the writer without another byte of output: in a forked child, whose parent goes on
 * writing. Only closes the descriptor. */
void tft_writer_abandon(struct tft_writer *w);

/* Index and footer, close, free. `clean`: the process ended regularly with this segment; false for
 * a segment that is followed by another one. The writer is gone even when an error is returned. */
int tft_writer_finish(struct tft_writer *w, bool clean);

#endif
