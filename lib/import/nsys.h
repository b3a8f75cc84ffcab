/* Internal interface between the halves of the importer of Nsight Systems' SQLite export: nsys.c
 * reads the tables, nsys_rows.c interprets a row. */
#ifndef TFH_IMPORT_NSYS_H
#define TFH_IMPORT_NSYS_H

#include "base/arena.h"
#include "import/import.h"
#include "model/vec.h"
#include "sqlite/table_reader.h"

#define TFH_NSYS_TEXT 8192u /* longer texts are cut */

struct tfh_nsys_process {
	uint64_t id; /* machine and process, as in globalPid without its lowest 24 bits */
	uint32_t index;
	uint32_t threads;
	int64_t last_thread, device; /* device: number of the first one, -1 until known */
	const char *name;
	int32_t rank, world; /* as tfhook's own export has them, -1 unknown */
	bool called;	     /* a call of CUDA's runtime was read */
	bool works;	     /* one that allocates or gives the device work */
	bool communicates;   /* with other ranks, by the names of its kernels */
	bool several;	     /* it used more than one device */
};

/* What a wait waited for, or what an event represents. */
struct tfh_nsys_wait {
	int64_t device, stream, event;
};

struct tfh_nsys {
	struct tfh_builder *b;
	struct tfh_arena arena;
	const char *host;
	struct tfh_map text;	/* id -> const char * */
	struct tfh_map domain;	/* process and NVTX domain -> const char * */
	struct tfh_map process; /* id -> index in `processes` + 1 */
	struct tfh_map thread;	/* globalTid -> thread + 1 */
	struct tfh_map fn;	/* see tfh_import_fn() */
	struct tfh_map wait;	/* process and correlation id -> index in `waits` + 1 */
	TFH_VEC(struct tfh_nsys_process) processes;
	TFH_VEC(struct tfh_nsys_wait) waits;
	bool work;		  /* a launch, a copy or an op was seen */
	uint32_t multiprocessors; /* of the largest device, 0 unknown */
	int64_t shift;		  /* ns, from the times of the events to Unix time */
	bool events; /* which event a call recorded is known, so that waits for it can be joined */
};

/* The rows of one table: its columns, in the order in which `row` expects them. `row` returns 0,
 * -ENOMEM, or -E2BIG if there are too many processes. */
struct tfh_nsys_table {
	const char *name;
	const char *column[TFH_TABLE_COLUMNS];
	const char *where;
	int (*row)(void *arg, const struct tfh_table_row *row);
};
extern const struct tfh_nsys_table
	tfh_nsys_tables[]; /* in the order in which they are to be read; name NULL: the end */

/* Reads tables; `arg` is the first argument of their rows. 0 or a negative errno with err. */
int tfh_nsys_read(const struct tfh_nsys_table *table, struct tfh_tables *t, void *arg,
		  struct tfh_err *err);

/* rocpd.c: reads rocprofv3's database. */
int tfh_import_rocpd(struct tfh_builder *b, struct tfh_tables *t, const char *path,
		     struct tfh_err *err);

#endif
