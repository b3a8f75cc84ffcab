/*
 * Planes of XPlane's format (tsl/profiler/protobuf/xplane.proto): lines of events. A plane is one
 * message that begins with its length, so its lines are kept in an unnamed file until the plane
 * ends.
 */
#ifndef TFH_EXPORT_XPLANE_PLANES_H
#define TFH_EXPORT_XPLANE_PLANES_H

#include "base/key_table.h"
#include "export/proto.h"
#include "model/vec.h"

/* Texts of a plane have ids: names of events, and kinds of stats. */
enum {
	TFH_STAT_GROUP = 1,
	TFH_STAT_CORRELATION,
	TFH_STAT_KERNEL,
	TFH_STAT_COPY,
	TFH_STAT_SET,
	TFH_STAT_VENDOR
};

struct tfh_plane_line {
	int64_t id;
	char name[64];
	struct tfh_proto events; /* not yet in the file */
};

struct tfh_plane {
	char name[32];
	int64_t start_ns; /* Unix time of 0 */
	FILE *lines;
	size_t held;			 /* bytes added to lines since the last full flush */
	struct tfh_proto names;		 /* and stats of the plane */
	struct tfh_map name_of, line_of; /* text -> number; id -> index + 1 */
	TFH_VEC(struct tfh_plane_line) line;
};

/* All return 0 or -errno. */
int tfh_plane_open(struct tfh_plane *p, const char *name, int64_t start_ns);
/* The name by which XProf distinguishes GPUs from TPUs. */
void tfh_plane_vendor(struct tfh_plane *p, const char *vendor);
void tfh_plane_free(struct tfh_plane *p);
/* A line, created on first use; NULL when out of memory. Valid until the next line is requested. */
struct tfh_plane_line *tfh_plane_line_of(struct tfh_plane *p, int64_t id, const char *name);
/* Begins an event; stats are added to the line's buffer until it is ended. */
size_t tfh_plane_event(struct tfh_plane *p, struct tfh_plane_line *l, const char *name, int64_t t0,
		       int64_t t1);
void tfh_plane_int(struct tfh_plane_line *l, uint32_t stat, int64_t value);
void tfh_plane_text(struct tfh_plane_line *l, uint32_t stat, const char *text);
int tfh_plane_event_end(struct tfh_plane *p, struct tfh_plane_line *l, size_t event);
/* Writes the whole plane. */
int tfh_plane_write(struct tfh_plane *p, int64_t id, FILE *out);

#endif
