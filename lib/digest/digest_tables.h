/* The tables of a digest: rows in memory, and their columns on disk (FORMAT.md, section 2.9). */
#ifndef TFH_DIGEST_DIGEST_TABLES_H
#define TFH_DIGEST_DIGEST_TABLES_H

#include "base/vocabulary.h"
#include "format/table.h"

/* Texts are offsets in the table's heap. Members of vocabularies are stored plus one, 0 = none.
 * Real numbers are stored as the 8 bytes of a double. */

struct tfh_digest_key {
	uint32_t name, value; /* texts */
};

struct tfh_digest_input {
	uint64_t bytes;
	uint32_t name; /* text */
	uint32_t check;
};

struct tfh_digest_rank {
	uint64_t steps; /* rows of DSTP */
	uint64_t unit;	/* ns per unit of its steps' times */
	double share, late_s, held_s;
	uint64_t heard_ns;  /* last sign of life */
	uint64_t exchanges; /* collectives and messages that it began */
	uint32_t number, rank, pid, host;
	uint32_t local;	     /* rank on its host + 1, 0 = not known */
	uint32_t processes;  /* that had this rank one after another */
	int32_t code;	     /* of its end */
	uint64_t begin_ns;   /* first record */
	uint32_t world;	     /* ranks that there should be, 0 = not known */
	uint32_t generation; /* on its host, from 1; 0: its ranks were started once */
	uint32_t bus, pcie, nic,
		fabric; /* texts: where its first device is (struct tfh_device_at) */
	uint8_t links;	/* NVLinks that are up + 1, 0 = not known */
	uint8_t cls, cause, tier, confidence;
	uint8_t end;   /* exit or signal */
	uint8_t state; /* TFH_DIGEST_* bits */
};
#define TFH_DIGEST_CLOSED 1u	/* it ended by itself, and recorded everything */
#define TFH_DIGEST_RECORDING 2u /* it still recorded */

/* Times are in units of its rank. The step's length is the sum of all parts. */
struct tfh_digest_step {
	/* From the previous row's end to its start, zigzag; of a chunk's first row: its start. */
	uint64_t gap;
	uint64_t rest; /* unattributed, zigzag */
	uint64_t index;
	uint32_t part[TFH_CAUSE_COUNT]; /* by cause */
	uint32_t compute;
	uint32_t rank; /* number of DRNK */
	uint8_t segment, cls, cause, tier;
};

struct tfh_digest_node {
	uint64_t count, runs, begin_ns, wall_ns;
	uint64_t steps; /* of the judged process in it; the seconds are for these */
	double compute_s, rest_s, part_s[TFH_CAUSE_COUNT]; /* rest: unattributed */
	uint32_t parent, name;
	uint8_t kind;
};

/* Where a place was seen. The values are stored in files: only append. */
enum tfh_digest_where {
	TFH_DIGEST_STEP = 1, /* seen between the calls of judged steps */
	TFH_DIGEST_WORKER = 2,
	TFH_DIGEST_BEFORE = 3,	/* before the first recorded call */
	TFH_DIGEST_STARTUP = 4, /* calls before the first loop */
};

struct tfh_digest_place {
	double s, own_s; /* per step; of parts before the first step, in all */
	uint64_t samples;
	uint32_t parent; /* row + 1, 0 = none */
	uint32_t file, function, line;
	uint8_t where; /* enum tfh_digest_where */
};

struct tfh_digest_kernel {
	double calls, s, median_s; /* per step; NAN: no device times */
	uint32_t name;
};

struct tfh_digest_copy {
	double calls, bytes; /* per step */
	uint32_t name, place;
	uint8_t dir, pageable; /* pageable: 1 no, 2 yes, 0 unknown */
};

struct tfh_digest_anchor {
	uint64_t enter_ns, leave_ns; /* of the kernel if `device`, else of the call */
	uint64_t key;		     /* of the communicator, the same in all its ranks */
	uint32_t number;	     /* among its collectives */
	uint32_t rank;		     /* number of DRNK */
	uint8_t device;
};

/* A communicator of a rank. */
struct tfh_digest_comm {
	uint64_t key;
	uint64_t collectives, messages; /* that it began */
	uint32_t rank;			/* number of DRNK */
	uint32_t ranks, own; /* of the communicator, and the rank's own in it + 1; 0 = not known */
};

/* A call that was open when the recording ended. */
struct tfh_digest_open {
	uint64_t begin_ns, open_ns;
	uint64_t look_ns; /* its thread was last sampled then, 0 = never */
	uint32_t rank;	  /* number of DRNK */
	uint32_t name, detail, file, function,
		line;  /* line of Python that made it, 0 = not known */
	uint8_t state; /* of the thread then, enum tft_state */
};

/* An interval whose records were discarded. All of its time is unattributed. */
struct tfh_digest_gone {
	uint64_t begin_ns, end_ns;
	uint64_t steps, records, launches;
	double mean_s, median_s; /* of a step */
	uint32_t rank;		 /* number of DRNK */
	uint8_t counted; /* steps were counted by their clock, else estimated from launches */
};

struct tfh_digest_meter {
	uint64_t begin_ns, width_ns;
	double mean;
	uint32_t name, unit, device; /* device: ordinal + 1, 0 = the machine */
};

extern const struct tft_table tfh_digest_keys, tfh_digest_inputs, tfh_digest_ranks,
	tfh_digest_steps, tfh_digest_nodes, tfh_digest_places, tfh_digest_kernels,
	tfh_digest_copies, tfh_digest_anchors, tfh_digest_meters, tfh_digest_gones,
	tfh_digest_comms, tfh_digest_opens;

/* Steps per chunk: few enough for the memory of one table. */
#define TFH_DIGEST_STEPS_AT_ONCE 16384u
/* Rows of every other table. */
#define TFH_DIGEST_ROWS 16384u
/* Bytes of a text; longer ones are cut. */
#define TFH_DIGEST_TEXT 4095u

#endif
