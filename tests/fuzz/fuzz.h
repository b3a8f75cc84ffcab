/*
 * What the fuzz targets share. Each target is one file, fuzz_<name>.c, with
 * LLVMFuzzerTestOneInput(): linked with libFuzzer by `make fuzz`, with replay.c into a program that
 * `make check` runs over the seeds and over every input that once did harm. docs/fuzzing.md
 */
#ifndef TFH_FUZZ_H
#define TFH_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tfh_result;
struct tfh_run;
struct tfh_builder;
struct tfh_err;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed);

/* libFuzzer's own mutation, for parts of an input. Without libFuzzer nothing mutates. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max);

/* ---- report.c ---- */

/* Reads all of a run, judges it and prints it in every form. Aborts when what was read breaks a
 * promise of model.h, when text output holds a control character or bytes that are no UTF-8, or
 * when JSON is none. Takes the run over. Of an input whose `size` is a multiple of four the page is
 * written, too. */
extern unsigned tfh_fuzz_reports; /* how many so far */
void tfh_fuzz_report(struct tfh_run *run, size_t size);
/* Whether this run is only to be read (FUZZ_EVERY). */
bool tfh_fuzz_leaves_out(void);
/* Prints a result in every form but the page, as above. */
void tfh_fuzz_forms(const struct tfh_result *result);
/* A refusal says why: aborts if not. */
void tfh_fuzz_refused(const struct tfh_err *err);
/* Takes over what an importer built, with its result: reports the run, or expects the refusal to say why. */
void tfh_fuzz_built(struct tfh_builder *b, int rc, struct tfh_err *err, size_t size);
/* What a command printed, and its exit status. */
void tfh_fuzz_said(const char *text, size_t size, int status);
void tfh_fuzz_is_text(const char *text, size_t size);
void tfh_fuzz_is_json(const char *text, size_t size);
/* Processor time of this process in seconds; an input of `size` bytes, begun at `begin`, may take a
 * second for each megabyte begun. Aborts beyond that. */
double tfh_fuzz_clock(void);
void tfh_fuzz_bound(double begin, size_t size);

/* ---- place.c ---- */

/* A directory of this process in memory, empty; NULL: none can be made. The same at every call. */
const char *tfh_fuzz_place(void);
/* Removes what lies in it. */
void tfh_fuzz_clear(void);
/* Writes `path`, relative to the place; folders on the way are made. What cannot be written is left
 * out: names are the fuzzer's. */
void tfh_fuzz_write(const char *path, const void *data, size_t size);

/* ---- mutate_tft.c ---- */

/* Changes a trace file in what its seals protect: payloads, run tables, sketches, sections, fields
 * of headers, the order of chunks. Checksums, frames and the index are made right again afterwards,
 * but for a few. Returns the new size, at most `max`. */
size_t tfh_fuzz_mutate_tft(uint8_t *data, size_t size, size_t max, unsigned seed);

/* ---- mutate_json.c, mutate_wire.c: whole values and fields; the new size, at most `max` ---- */

size_t tfh_fuzz_mutate_json(uint8_t *data, size_t size, size_t max, unsigned seed);
size_t tfh_fuzz_mutate_wire(uint8_t *data, size_t size, size_t max, unsigned seed);

#endif
