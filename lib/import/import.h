/*
 * Traces that other tools recorded: PyTorch's profiler (Kineto JSON, plain or gzip) and
 * TensorFlow's or JAX's (XPlane, or the log directory that TensorBoard reads).
 */
#ifndef TFH_IMPORT_IMPORT_H
#define TFH_IMPORT_IMPORT_H

#include "model/built/build.h"

/* As tfh_run_open, for run directories, .tft files and foreign traces alike. Several foreign files
 * are the ranks of one job; they cannot be mixed with .tft files. A file that is none of these:
 * -ENOMSG; a broken one: -EBADMSG. */
int tfh_import_open(const char *const *paths, uint32_t n, struct tfh_run **out,
		    struct tfh_err *err);

/* What a file is that tfhook does not read, in words that say what to do; NULL: nothing tells. */
const char *tfh_import_other(const char *path);

/* Whether tfh_import_open would import PATH. */
bool tfh_import_is_foreign(const char *path);

/* Reads one file into the builder, as a process of its own (XPlane: one per host plane). */
int tfh_import_kineto(struct tfh_builder *b, const char *path, struct tfh_err *err);
int tfh_import_xplane(struct tfh_builder *b, const char *path, struct tfh_err *err);

/* The same of a pipe whose first bytes were read; takes the descriptor over. */
int tfh_import_kineto_stream(struct tfh_builder *b, int fd, const void *head, size_t n,
			     const char *path, struct tfh_err *err);

/* The same of bytes in memory; `path` is for messages. */
int tfh_import_kineto_bytes(struct tfh_builder *b, const void *data, size_t n, const char *path,
			    struct tfh_err *err);
int tfh_import_xplane_bytes(struct tfh_builder *b, const void *data, size_t n, const char *path,
			    struct tfh_err *err);

/* foreign_names.c: what a call of CUDA's runtime (or HIP's) or driver is about: the row of the driver
 * function that does the same. NULL: nothing that the analysis knows. */
const struct tfh_fn_info *tfh_import_call(const char *name);

/* foreign_names.c: the same of a runtime that is neither; only for names that are known to be calls. */
const struct tfh_fn_info *tfh_import_other_call(const char *name);

/* foreign_names.c: reads what a copy's name tells ("Memcpy HtoD (Pageable -> Device)", "MemcpyH2D"). */
void tfh_import_copy_name(const char *name, struct tfh_op *op);

/* More threads of a process than any has are counted as one. */
#define TFH_IMPORT_THREADS (1u << 16)

/* Grid and block as the words of a launch have them. */
static inline uint64_t tfh_import_grid(const uint32_t v[3])
{
	return tft_launch_w1(v[0], v[1], v[2]);
}
static inline uint64_t tfh_import_block(const uint32_t v[3], uint32_t shared)
{
	return tft_launch_w2(v[0], v[1], v[2], shared);
}

#endif
