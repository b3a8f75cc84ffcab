/* Internal interface between the two halves of the XPlane importer: events with resolved names, and
 * their interpretation. */
#ifndef TFH_IMPORT_XPLANE_H
#define TFH_IMPORT_XPLANE_H

#include <string.h>

#include "import/import.h"
#include "base/key_table.h"
#include "base/wire.h"

#define TFH_XPLANE_NAME 2048

/* Stats of an event, by the names that TensorFlow and JAX have used. */
enum tfh_xstat {
	TFH_XSTAT_OTHER,
	TFH_XSTAT_CORRELATION,
	TFH_XSTAT_CONTEXT,
	TFH_XSTAT_KERNEL, /* "regs:38 shm:0 grid:160,1,1 block:1024,1,1" */
	TFH_XSTAT_COPY,	  /* "kind_src:.. kind_dst:.. size:8 dest:4 async:1" */
	TFH_XSTAT_MEMSET, /* "size:.. kind:.. async:1" */
	TFH_XSTAT_GROUP,
	TFH_XSTAT_STEP, /* step_num */
	TFH_XSTAT_GRAPH,
	TFH_XSTAT_NODE,
	TFH_XSTAT_HLO,	 /* hlo_op: an op of XLA's, which a host thread executes itself */
	TFH_XSTAT_CORES, /* of a plane: core_count */
	TFH_XSTAT_COUNT
};

/* One event with resolved names. The texts are NUL-terminated here, unlike in the file. */
struct tfh_xevent {
	int64_t t0, t1; /* ns */
	char name[TFH_XPLANE_NAME];
	char kernel[512], copy[512], memset[512]; /* the stats of these names, "" = none */
	int64_t number[TFH_XSTAT_COUNT];	  /* -1: missing */
};

enum tfh_xline { TFH_XLINE_HOST, TFH_XLINE_STREAM, TFH_XLINE_STEPS, TFH_XLINE_MODULES };

struct tfh_xplane; /* state of one process */

struct tfh_xplane *tfh_xplane_new(struct tfh_builder *b, const char *host);
void tfh_xplane_free(struct tfh_xplane *x);
/* xplane.c: the meaning of names. The number of a plane's device, or one of these: */
#define TFH_XPLANE_CPU (-1)
#define TFH_XPLANE_OTHER (-2)
int64_t tfh_xplane_device(const char *plane);
static inline bool tfh_xplane_is_tpu(const char *plane)
{
	return !strncmp(plane, "/device:TPU", 11);
}
/* The kind of a line. False: it is not to be read, such as one that is derived from the streams.
 * Sets *id where streams have no numbers. */
bool tfh_xplane_kind(const char *name, int64_t device, bool tpu, enum tfh_xline *what, int64_t *id);
enum tfh_xstat tfh_xplane_stat(const char *name);
/* A stat that is a text of n bytes, as a number: the digits of "$$5" and the like, or -1; for the
 * name of an op, whether there is one. */
int64_t tfh_xplane_number(enum tfh_xstat what, const char *text, size_t n);
/* Resets an event: no name, no stats. */
void tfh_xplane_clear(struct tfh_xevent *e);

/* Starts a line for the following events: a host thread or a device stream. */
int tfh_xplane_line(struct tfh_xplane *x, enum tfh_xline what, const char *name, int64_t id,
		    uint32_t device);
/* The current line of events; tfh_xplane_back() returns to an earlier one. */
struct tfh_xplace {
	enum tfh_xline what;
	uint32_t thread, device, stream;
};
struct tfh_xplace tfh_xplane_here(const struct tfh_xplane *x);
void tfh_xplane_back(struct tfh_xplane *x, struct tfh_xplace place);
void tfh_xplane_processors(struct tfh_xplane *x, uint32_t n);
/* 0, -ENOMEM or -E2BIG. */
int tfh_xplane_event(struct tfh_xplane *x, const struct tfh_xevent *e);
uint64_t tfh_xplane_count(const struct tfh_xplane *x);
int tfh_xplane_end(struct tfh_xplane *x);

#endif
