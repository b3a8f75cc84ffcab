#include "format/tft_read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zstd.h>

#include "base/arena.h"
#include "base/crc32c.h"
#include "format/chunk.h"
#include "format/clocks.h"
#include "format/decode.h"
#include "format/descriptor.h"
#include "format/head.h"
#include "format/read_buffers.h"
#include "format/reader.h"
#include "format/sketch_build.h"

#define HEAD_ARENA (16u << 20)
/* Limit on the decompressed size of all payloads of a file: many times the ratio of records (5 to
 * 50), so that a small file cannot cause hours of work. */
#define RAW_FREE (1ull << 30)
#define RAW_RATIO 512u

struct tft_reader {
	struct tft_descriptor file;
	char *path;
	struct tft_places places;
	struct tft_head head;
	struct tfh_arena arena;
	struct tft_clocks clocks, joint; /* joint: of all segments of the process together */
	const struct tft_clocks *clock;	 /* the one used for conversion */
	struct tft_buffer packed, payload;
	struct tft_sketch sketch;
	struct tft_run *runs;
	uint32_t runs_cap;
};

static int reserve(struct tft_buffer *b, size_t bytes)
{
	if (bytes <= b->cap)
		return 0;
	free(b->data);
	b->cap = 0;
	b->data = malloc(bytes);
	if (!b->data)
		return -ENOMEM;
	b->cap = bytes;
	return 0;
}

/* ---- one chunk ---- */

static int damaged(struct tft_reader *r, struct tft_place *p, struct tfh_err *err)
{
	if (p->info.crc_ok) {
		p->info.crc_ok = false;
		__atomic_fetch_add(&r->places.bad, 1, __ATOMIC_RELAXED);
	}
	return tfh_err_set(err, -EBADMSG,
			   "%s: the chunk at byte %llu is damaged; everything else can be read "
			   "(`tfhook repair` makes a copy without it)",
			   r->path, (unsigned long long)p->info.offset);
}

static int failed(const struct tft_reader *r, int code, struct tfh_err *err)
{
	if (code == -ENOMEM)
		return tfh_err_set(err, code, "%s: not enough memory to read it", r->path);
	return tfh_err_set(err, code, "%s: reading failed: %s", r->path, strerror(-code));
}

/* Reads the header, and the payload if `whole`, and verifies their checksums. */
static int load_into(struct tft_buffer *b, struct tft_reader *r, struct tft_place *p, bool whole,
		     struct tfh_err *err)
{
	struct tft_chunk_head h;
	size_t len = p->header_bytes + (whole ? p->info.packed_bytes : 0);

	int code = reserve(b, len);
	int fd = code < 0 ? code : tft_descriptor_use(&r->file);
	if (fd >= 0) {
		code = tft_pread(fd, b->data, len, p->info.offset);
		tft_descriptor_done(&r->file);
	} else {
		code = fd;
	}
	if (code < 0 && code != -EBADMSG)
		return failed(r, code, err);
	if (code < 0 || tft_header_check(b->data, p->header_bytes) < 0)
		return damaged(r, p, err);
	memcpy(&h, b->data, sizeof(h));
	/* the index may contradict the header */
	if (h.zstd_length + 8ull != p->header_bytes || h.packed_bytes != p->info.packed_bytes ||
	    h.raw_bytes != p->info.raw_bytes || h.type != p->info.type ||
	    h.events != p->info.events)
		return damaged(r, p, err);
	if (whole && tfh_crc32c(0, b->data + p->header_bytes, h.packed_bytes) != h.payload_crc)
		return damaged(r, p, err);
	return 0;
}

static int load(struct tft_reader *r, struct tft_place *p, bool whole, struct tfh_err *err)
{
	return load_into(&r->packed, r, p, whole, err);
}

/* Decompresses the payload that load_into() read. */
static int unpack(const struct tft_buffer *b, struct tft_reader *r, struct tft_place *p, void *out,
		  struct tfh_err *err)
{
	const uint8_t *frame = b->data + p->header_bytes;
	size_t raw = p->info.raw_bytes;

	if (raw == 0)
		return 0;
	/* The frame declares its size, so it cannot exceed the allocated buffer. */
	if (ZSTD_getFrameContentSize(frame, p->info.packed_bytes) != raw)
		return damaged(r, p, err);
	ZSTD_DCtx *zstd = tft_borrow_zstd();
	if (!zstd)
		return failed(r, -ENOMEM, err);
	size_t n = ZSTD_decompressDCtx(zstd, out, raw, frame, p->info.packed_bytes);
	tft_return_zstd(zstd);
	return n == raw ? 0 : damaged(r, p, err);
}

int tft_chunk_payload(struct tft_reader *r, uint32_t i, const void **data, size_t *len,
		      struct tfh_err *err)
{
	struct tft_place *p = &r->places.v[i];

	int code = load(r, p, true, err);
	if (code < 0)
		return code;
	if (reserve(&r->payload, p->info.raw_bytes + 1) < 0)
		return failed(r, -ENOMEM, err);
	code = unpack(&r->packed, r, p, r->payload.data, err);
	if (code < 0)
		return code;
	*data = r->payload.data;
	*len = p->info.raw_bytes;
	return 0;
}

int tft_chunk_raw(struct tft_reader *r, uint32_t i, bool whole, const void **data, size_t *len,
		  struct tfh_err *err)
{
	struct tft_place *p = &r->places.v[i];

	int code = load(r, p, whole, err);
	if (code < 0)
		return code;
	*data = r->packed.data;
	*len = p->header_bytes + (whole ? p->info.packed_bytes : 0);
	return 0;
}

int tft_chunk_sketch(struct tft_reader *r, uint32_t i, const struct tft_sketch **out,
		     struct tfh_err *err)
{
	struct tft_place *p = &r->places.v[i];
	struct tft_chunk_head h;

	int code = load(r, p, false, err);
	if (code < 0)
		return code;
	memcpy(&h, r->packed.data, sizeof(h));
	if (tft_sketch_unpack(&r->sketch,
			      r->packed.data + h.fixed_bytes +
				      h.runs * sizeof(struct tft_chunk_run),
			      h.sketch_bytes) < 0)
		return damaged(r, p, err);
	*out = &r->sketch;
	return 0;
}

int tft_chunk_runs(struct tft_reader *r, uint32_t i, const struct tft_run **runs, uint32_t *n,
		   struct tfh_err *err)
{
	struct tft_place *p = &r->places.v[i];
	struct tft_chunk_head h;
	uint32_t start = 0;

	int code = load(r, p, false, err);
	if (code < 0)
		return code;
	memcpy(&h, r->packed.data, sizeof(h));
	if (h.runs > r->runs_cap) {
		free(r->runs);
		r->runs_cap = 0;
		r->runs = malloc(h.runs * sizeof(*r->runs));
		if (!r->runs)
			return failed(r, -ENOMEM, err);
		r->runs_cap = h.runs;
	}
	for (uint32_t k = 0; k < h.runs; k++) {
		struct tft_chunk_run run;
		memcpy(&run, r->packed.data + h.fixed_bytes + k * sizeof(run), sizeof(run));
		r->runs[k] = (struct tft_run){run.thread, run.tid, run.first, run.count, start};
		start += run.count;
	}
	*runs = r->runs;
	*n = h.runs;
	return 0;
}

/* Decodes the chunk that was read into `b`. */
static int open_events(const struct tft_buffer *b, struct tft_reader *r, struct tft_place *p,
		       struct tft_events **out, struct tfh_err *err)
{
	struct tft_events *ev = tft_borrow_events();
	int code;

	if (!ev || tft_events_reserve(ev, p->info.raw_bytes + 1) < 0) {
		tft_events_free(ev);
		return failed(r, -ENOMEM, err);
	}
	code = unpack(b, r, p, ev->payload, err);
	if (code == 0) {
		code = tft_events_parse(ev, b->data, p->header_bytes, p->info.raw_bytes);
		if (code == -EBADMSG)
			damaged(r, p, err);
		else if (code < 0)
			failed(r, code, err);
	}
	if (code < 0) {
		tft_events_close(ev);
		return code;
	}
	*out = ev;
	return 0;
}

int tft_events_open(struct tft_reader *r, uint32_t chunk, struct tft_events **out,
		    struct tfh_err *err)
{
	struct tft_place *p = &r->places.v[chunk];

	if (p->info.type != TFT_EVNT)
		return tfh_err_set(err, -EINVAL, "%s: chunk %u holds no events", r->path, chunk);
	/* Several threads may open chunks of a file. */
	struct tft_buffer b = tft_borrow_packed();
	int code = load_into(&b, r, p, true, err);
	if (code == 0)
		code = open_events(&b, r, p, out, err);
	tft_return_packed(b);
	return code;
}

long tft_verify(struct tft_reader *r, struct tfh_err *err)
{
	for (uint32_t i = 0; i < r->places.n; i++) {
		int code = load(r, &r->places.v[i], true, err);
		if (code < 0 && code != -EBADMSG)
			return code;
	}
	return (long)r->places.bad;
}

/* ---- opening ---- */

static int load_head(struct tft_reader *r, struct tfh_err *err)
{
	const void *data;
	size_t len;

	for (uint32_t i = 0; i < r->places.n; i++) {
		if (r->places.v[i].info.type != TFT_HEAD)
			continue;
		int code = tft_chunk_payload(r, i, &data, &len, err);
		if (code == 0)
			code = tft_head_unpack(&r->head, &r->arena, data, len);
		if (code == 0)
			return 0;
		if (code != -EBADMSG)
			return failed(r, code, err);
	}
	/* Without HEAD, records are still readable, but their functions have no names. */
	tft_head_clear(&r->head);
	r->head.version = TFT_VERSION;
	return 0;
}

static int load_clocks(struct tft_reader *r, struct tfh_err *err)
{
	const void *data;
	size_t len;

	r->clock = &r->clocks;
	r->clocks.tick_hz = r->head.tick_hz;
	r->clocks.ticks_are_ns = r->head.ticks_are_ns;
	for (uint32_t i = 0; i < r->places.n; i++) {
		if (r->places.v[i].info.type != TFT_CLKS)
			continue;
		int code = tft_chunk_payload(r, i, &data, &len, err);
		if (code == 0)
			code = tft_clocks_add(&r->clocks, data,
					      (uint32_t)(len / sizeof(struct tft_clock_triple)));
		if (code < 0 && code != -EBADMSG)
			return failed(r, code, err);
	}
	tft_clocks_finish(&r->clocks);
	return 0;
}

/* Explains why a file has no complete chunk. */
static int foreign(const struct tft_reader *r, int fd, uint64_t size, struct tfh_err *err)
{
	struct tft_chunk_head h = {0};

	if (size == 0)
		return tfh_err_set(
			err, -ENOMSG,
			"%s: the file is empty: nothing was recorded, or the disk was full; "
			"see `tfhook info` on its directory",
			r->path);
	tft_pread(fd, &h, size < sizeof(h) ? size : sizeof(h), 0);
	if (h.zstd_magic == TFT_ZSTD_SKIPPABLE && (size < 12 || h.magic == TFT_MAGIC))
		return tfh_err_set(
			err, -EBADMSG,
			"%s: truncated or damaged within its first chunk: nothing can be recovered "
			"from it; other files of the same run directory may still be whole",
			r->path);
	return tfh_err_set(err, -ENOMSG,
			   "%s: not a tfhook trace; name a run directory or one of its .tft files",
			   r->path);
}

static int unknown_must(const struct tft_reader *r)
{
	static const uint32_t known[] = {
		TFT_HEAD, TFT_EVNT, TFT_NAMC, TFT_CLKS, TFT_LOSS, TFT_INDX, TFT_NOTE, TFT_DGST,
		TFT_SAMP, TFT_GPUS, TFT_DRVR, TFT_RANG, TFT_BTRC, TFT_MODS, TFT_PYCO, TFT_PYFR,
		TFT_DKEY, TFT_DINP, TFT_DRNK, TFT_DSTP, TFT_DNOD, TFT_DPLC, TFT_DKRN, TFT_DCPY,
		TFT_DMTR, TFT_DCOL, TFT_DGON, TFT_DCOM, TFT_DOPN, TFT_DRES};

	for (uint32_t i = 0; i < r->places.n; i++) {
		bool is_known = false;
		for (size_t k = 0; k < sizeof(known) / sizeof(*known); k++)
			is_known |= r->places.v[i].info.type == known[k];
		if (!is_known && r->places.v[i].flags & TFT_CHUNK_MUST)
			return -EPROTO;
	}
	return 0;
}

static bool swollen(const struct tft_reader *r, uint64_t size)
{
	uint64_t raw = 0;

	for (uint32_t i = 0; i < r->places.n; i++)
		raw += r->places.v[i].info.raw_bytes;
	return raw > RAW_FREE && raw / RAW_RATIO > size;
}

static int find_chunks_in(struct tft_reader *r, int fd, struct tfh_err *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return failed(r, -errno, err);
	if (!S_ISREG(st.st_mode))
		return tfh_err_set(err, S_ISDIR(st.st_mode) ? -EISDIR : -ENOMSG,
				   "%s: not a regular file", r->path);
	int code = tft_places_find(fd, (uint64_t)st.st_size, &r->places);
	if (code == 0)
		code = unknown_must(r);
	if (code == -EPROTO)
		return tfh_err_set(
			err, code,
			"%s: written by a newer tfhook (its format is newer than version %u); "
			"read it with that tfhook or a later one",
			r->path, TFT_VERSION);
	if (code < 0)
		return failed(r, code, err);
	if (swollen(r, (uint64_t)st.st_size))
		return tfh_err_set(
			err, -EBADMSG,
			"%s: unpacks to more than %u times its size, as no recording does", r->path,
			RAW_RATIO);
	return r->places.n ? 0 : foreign(r, fd, (uint64_t)st.st_size, err);
}

static int find_chunks(struct tft_reader *r, struct tfh_err *err)
{
	int fd = tft_descriptor_use(&r->file);

	if (fd < 0)
		return failed(r, fd, err);
	int code = find_chunks_in(r, fd, err);
	tft_descriptor_done(&r->file);
	return code;
}

/* Opens the file at `path`, or the file of another reader again. */
static int open_as(const char *path, struct tft_reader *of, struct tft_reader **out,
		   struct tfh_err *err)
{
	struct tft_reader *r = calloc(1, sizeof(*r));

	*out = NULL;
	tfh_err_clear(err);
	if (!r || !(r->path = strdup(path))) {
		free(r);
		return tfh_err_set(err, -ENOMEM, "%s: not enough memory to read it", path);
	}
	tfh_arena_init(&r->arena, HEAD_ARENA);
	tft_head_clear(&r->head);
	int code = of ? tft_descriptor_copy(&r->file, &of->file)
		      : tft_descriptor_open(&r->file, r->path);
	r->file.path = r->path;
	if (code < 0)
		tfh_err_set(err, code, "%s: %s", path, strerror(-code));
	else
		code = find_chunks(r, err);
	if (code == 0)
		code = load_head(r, err);
	if (code == 0)
		code = load_clocks(r, err);
	if (code < 0) {
		tft_close(r);
		return code;
	}
	tfh_err_clear(err);
	*out = r;
	return 0;
}

int tft_open(const char *path, struct tft_reader **out, struct tfh_err *err)
{
	return open_as(path, NULL, out, err);
}

int tft_open_again(struct tft_reader *of, struct tft_reader **out, struct tfh_err *err)
{
	return open_as(of->path, of, out, err);
}

void tft_close(struct tft_reader *r)
{
	if (!r)
		return;
	tft_descriptor_close(&r->file);
	tft_clocks_free(&r->clocks);
	tft_clocks_free(&r->joint);
	tfh_arena_free(&r->arena);
	free(r->places.v);
	free(r->packed.data);
	free(r->payload.data);
	free(r->runs);
	free(r->path);
	free(r);
}

/* ---- queries ---- */

const struct tft_head *tft_head(const struct tft_reader *r)
{
	return &r->head;
}

uid_t tft_owner(const struct tft_reader *r)
{
	return r->file.owner;
}

uint32_t tft_chunk_count(const struct tft_reader *r)
{
	return r->places.n;
}

const struct tft_chunk_info *tft_chunk(const struct tft_reader *r, uint32_t i)
{
	return &r->places.v[i].info;
}

bool tft_is_digest(const struct tft_reader *r)
{
	for (uint32_t i = 0; i < r->places.n; i++)
		if (r->places.v[i].info.type == TFT_DKEY || r->places.v[i].info.type == TFT_DSTP)
			return true;
	return false;
}

bool tft_clean_end(const struct tft_reader *r)
{
	return r->places.clean;
}

bool tft_closed(const struct tft_reader *r)
{
	return r->places.closed;
}

uint64_t tft_bad_chunks(const struct tft_reader *r)
{
	return r->places.bad;
}

uint64_t tft_tail_bytes(const struct tft_reader *r)
{
	return r->places.tail;
}

uint64_t tft_monotonic_ns(const struct tft_reader *r, uint64_t ticks)
{
	return tft_clocks_monotonic(r->clock, ticks);
}

uint64_t tft_realtime_ns(const struct tft_reader *r, uint64_t ticks)
{
	return tft_clocks_realtime(r->clock, ticks);
}

int tft_clocks_join(struct tft_reader *const *r, uint32_t n)
{
	int rc = 0;

	if (n < 2)
		return 0;
	struct tft_clocks *all = &r[0]->joint;
	tft_clocks_free(all);
	all->tick_hz = r[0]->clocks.tick_hz;
	all->ticks_are_ns = r[0]->clocks.ticks_are_ns;
	for (uint32_t i = 0; i < n && !rc; i++)
		rc = tft_clocks_add(all, r[i]->clocks.t, r[i]->clocks.n);
	tft_clocks_finish(all);
	for (uint32_t i = 0; i < n && !rc; i++)
		r[i]->clock = all;
	return rc;
}

uint64_t tft_clock_residual_ns(const struct tft_reader *r)
{
	return tft_clocks_residual_ns(&r->clocks);
}
