/*
 * Perfetto's trace format (perfetto/trace/perfetto_trace.proto): packets, tracks and slices. A file
 * is a sequence of packets, each a field of one message, so it can be streamed.
 */
#ifndef TFH_EXPORT_PERFETTO_H
#define TFH_EXPORT_PERFETTO_H

#include "base/key_table.h"
#include "export/slice_lanes.h"
#include "export/proto.h"
#include "export/naming.h"
#include "export/walk.h"
#include "model/vec.h"

enum perfetto_row_kind { ROW_THREAD, ROW_STREAM, ROW_STEPS, ROW_CLASSES, ROW_COUNTER };

/* Becomes one track, or several if slices overlap. */
struct perfetto_row {
	enum perfetto_row_kind kind;
	uint64_t of; /* thread; device and stream; counter */
	uint64_t uuid[TFH_LANES];
	struct tfh_row_lanes lanes;
};

struct perfetto {
	const struct tfh_export *x;
	const struct tfh_thread_info *thread;
	FILE *out;
	struct tfh_proto p;
	struct tfh_map names; /* (field of interned data, text) -> number */
	uint32_t process;
	uint64_t process_uuid;
	bool device;	       /* there are device ops as targets of flows */
	struct tfh_map row_of; /* kind and number -> index + 1 */
	TFH_VEC(struct perfetto_row) row;
	struct perfetto_row *current; /* while a lane is being chosen */
};

/* Writes the first packet of a file. All of these functions return 0 or -errno. */
int tfh_perfetto_begin(struct perfetto *f);
/* Writes the track of a process. The rows that follow belong to it until they are closed. */
int tfh_perfetto_process(struct perfetto *f, uint32_t process, const char *name);
int tfh_perfetto_close_rows(struct perfetto *f);
/* NULL when out of memory. Valid until the next row is requested. */
struct perfetto_row *tfh_perfetto_row(struct perfetto *f, enum perfetto_row_kind kind, uint64_t of);
void tfh_perfetto_free(struct perfetto *f);

/* A slice, whose event stays open for its fields; 1: it is left out. */
struct perfetto_event {
	size_t begin;
};
int tfh_perfetto_slice(struct perfetto *f, struct perfetto_row *r, int64_t t0, int64_t t1,
		       const char *category, const char *name, struct perfetto_event *out);
void tfh_perfetto_uint(struct perfetto *f, const char *name, uint64_t value);
void tfh_perfetto_double(struct perfetto *f, const char *name, double value);
void tfh_perfetto_text(struct perfetto *f, const char *name, const char *value);
void tfh_perfetto_flow(struct perfetto *f, uint64_t call, bool last);
int tfh_perfetto_done(struct perfetto *f, const struct perfetto_event *e);

/* Writes a value of a counter, whose track is created with its first value. */
int tfh_perfetto_value(struct perfetto *f, const char *name, const char *unit, int64_t t,
		       double value);

#endif
