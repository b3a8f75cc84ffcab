/*
 * Reading tfhook's trace files (*.tft) from other programs: link with libtft (-ltft).
 *
 *	struct tft_file *f = tft_file_open("r0.host.4711.0.tft", error, sizeof(error));
 *	struct tft_record r;
 *	while (tft_file_next(f, &r) == 1)
 *		printf("%s %llu ns\n", tft_file_function(f, r.fn),
 *		       (unsigned long long)tft_file_monotonic_ns(f, r.t_end));
 *	tft_file_close(f);
 *
 * Files are read chunk by chunk, with about 2 MiB of memory whatever their size. Only one thread
 * may use a file at a time. FORMAT.md, part 2, says what the fields mean. Functions and fields are
 * only added, never changed.
 */
#ifndef TFHOOK_TFT_H
#define TFHOOK_TFT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tft_file;

/* One record, with the thread that it belongs to. Times are in ticks. */
struct tft_record {
	uint64_t t_begin, t_end;
	uint64_t word[3];
	uint64_t number; /* of the record in its thread */
	uint32_t thread; /* index, unique in the life of the process; 0 = tfhook's own records */
	uint32_t tid;
	uint32_t stream, ctx, stack;
	uint16_t fn, result;
	uint8_t kind, flags, depth, flags2;
};

/* Opens a file. Returns NULL on failure, with one line in `error` (may be NULL) that names the
 * remedy. */
struct tft_file *tft_file_open(const char *path, char *error, size_t size);
void tft_file_close(struct tft_file *f);

/* Reads the next record in file order: chunks in the order in which they were written, in a chunk
 * one thread after another, in a thread by t_end. Returns 1 for a record, 0 at the end, or a
 * negative errno if reading failed. Damaged chunks are skipped and counted. */
int tft_file_next(struct tft_file *f, struct tft_record *record);

/* Returns to the first record. */
void tft_file_rewind(struct tft_file *f);

/* Name of a function of this file, "" if unknown. Owned by the file. */
const char *tft_file_function(const struct tft_file *f, uint16_t fn);

/* Convert ticks to nanoseconds of the recording machine's CLOCK_MONOTONIC and CLOCK_REALTIME. */
uint64_t tft_file_monotonic_ns(const struct tft_file *f, uint64_t ticks);
uint64_t tft_file_realtime_ns(const struct tft_file *f, uint64_t ticks);

/* Facts about the process, by name: "host", "exe", "command", "boot_id", "job", "tfhook_version".
 * "": unknown. */
const char *tft_file_text(const struct tft_file *f, const char *key);

/* "pid", "ppid", "rank", "world", "local_rank", "segment", "start_realtime_ns"; and of the file
 * itself "events", "dropped" (by the process up to here), "bad_chunks", "tail_bytes", "clean_end".
 * -1: unknown. */
int64_t tft_file_number(const struct tft_file *f, const char *key);

#ifdef __cplusplus
}
#endif

#endif
