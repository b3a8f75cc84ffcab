/*
 * Traces recorded by other tools: PyTorch's profiler (Kineto JSON, plain or gzip), TensorFlow's or
 * JAX's (XPlane, TensorBoard's log directory, the JSON for a viewer, or TensorFlow 1's), Nsight
 * Systems (its SQLite export) and rocprof (results.json).
 */
#ifndef TFH_IMPORT_IMPORT_H
#define TFH_IMPORT_IMPORT_H

#include "base/key_table.h"
#include "model/built/build.h"

/* Like tfh_run_open(), for run directories, .tft files and foreign traces. Several foreign files
 * are the ranks of one job; they cannot be mixed with .tft files. Returns -ENOMSG for a file that
 * is none of these, -EBADMSG for a damaged one. */
int tfh_import_open(const char *const *paths, uint32_t n, struct tfh_run **out,
		    struct tfh_err *err);

/* Identifies a file that tfhook does not read, with advice; NULL if it is unknown. */
const char *tfh_import_other(const char *path);

/* Whether tfh_import_open would import PATH. */
bool tfh_import_is_foreign(const char *path);

/* Reads one file into the builder as a process of its own (XPlane: one per host plane; nsys: each
 * with calls or ops). */
int tfh_import_kineto(struct tfh_builder *b, const char *path, struct tfh_err *err);
int tfh_import_xplane(struct tfh_builder *b, const char *path, struct tfh_err *err);
int tfh_import_nsys(struct tfh_builder *b, const char *path, struct tfh_err *err);

/* viewer.c: reads the JSON that TensorFlow's or JAX's profiler writes for a viewer.
 * tfh_viewer_plane(): whether a process has the name of such a file's plane. */
struct tfh_bytes;
int tfh_import_viewer(struct tfh_builder *b, struct tfh_bytes *bytes, const char *path,
		      struct tfh_err *err);
bool tfh_viewer_plane(const char *name);
/* timeline.c: the same for the timeline of one call of TensorFlow 1's session. */
int tfh_import_timeline(struct tfh_builder *b, struct tfh_bytes *bytes, const char *path,
			struct tfh_err *err);
bool tfh_timeline_process(const char *name);

/* The same for a pipe whose first bytes were already read; takes ownership of the descriptor. */
int tfh_import_kineto_stream(struct tfh_builder *b, int fd, const void *head, size_t n,
			     const char *path, struct tfh_err *err);

/* The same for bytes in memory; `path` is for messages. */
int tfh_import_kineto_bytes(struct tfh_builder *b, const void *data, size_t n, const char *path,
			    struct tfh_err *err);
int tfh_import_xplane_bytes(struct tfh_builder *b, const void *data, size_t n, const char *path,
			    struct tfh_err *err);

/* foreign_names.c: the driver function that does the same as a call of CUDA's runtime (or HIP's) or
 * driver. NULL if the analysis does not know it. */
const struct tfh_fn_info *tfh_import_call(const char *name);

/* foreign_names.c: the same for other runtimes; only for names known to be calls. */
const struct tfh_fn_info *tfh_import_other_call(const char *name);

/* foreign_names.c: parses a copy's name ("Memcpy HtoD (Pageable -> Device)", "MemcpyH2D"). */
void tfh_import_copy_name(const char *name, struct tfh_op *op);

/* host_event.c: completes an event of the host, whose place and times are set: a step, a get-next
 * or, for any other name, a range. `kind`: the kind of a range according to the source; NOTE: the
 * source does not give it. 0 or -ENOMEM. */
int tfh_import_host_event(struct tfh_builder *b, const char *name, enum tft_range kind,
			  struct tfh_event *ev);
/* host_event.c: whether this is the name of a step of PyTorch's profiler; *number: which. */
bool tfh_import_step(const char *name, uint64_t *number);
/* host_event.c: the row of a call by its name, remembered in `known`;
 * NULL if the analysis does not know it. 0 or -ENOMEM. */
int tfh_import_fn(struct tfh_builder *b, struct tfh_map *known, const char *name,
		  const struct tfh_fn_info **fn);
/* host_event.c: numbers of streams may start again on each device, so those of any but the first
 * device have the device's number above them. `first` is the number of the first, -1 until it is
 * known. */
uint32_t tfh_import_stream(int64_t *first, int64_t device, int64_t stream);

/* Threads of a process beyond this number count as one. */
#define TFH_IMPORT_THREADS (1u << 16)
/* Files with more processes are refused: parts of a report take time by the square of them. */
#define TFH_IMPORT_PROCESSES 4096u
#define TFH_IMPORT_TIME 8000000000000000000ll /* ns, in the year 2223 */
#define TFH_IMPORT_LENGTH (1ll << 47)	      /* ns, 39 hours: sums of durations fit 64 bits */

/* Grid and block, encoded as in launch words. */
static inline uint64_t tfh_import_grid(const uint32_t v[3])
{
	return tft_launch_w1(v[0], v[1], v[2]);
}
static inline uint64_t tfh_import_block(const uint32_t v[3], uint32_t shared)
{
	return tft_launch_w2(v[0], v[1], v[2], shared);
}

#endif
