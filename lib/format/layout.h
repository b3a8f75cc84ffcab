/*
 * Byte layout shared by the library (rings, journal) and every reader. Normative text:
 * format/FORMAT.md.
 *
 * Little endian. Times are clock ticks of the recording machine; CLKS chunks relate them to
 * CLOCK_MONOTONIC and CLOCK_REALTIME.
 */
#ifndef TFH_FORMAT_LAYOUT_H
#define TFH_FORMAT_LAYOUT_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

/* ---- record: 64 bytes, one cache line ---- */

/* Values are in trace files: only append. */
enum tft_kind {
	TFT_CALL = 1, /* one finished host call */
	/* n short stage calls of one thread: stream=stage, ctx=n, words = total | self | max
	 * ticks */
	TFT_AGG = 2,
	TFT_EXT = 3, /* continuation bytes of the preceding record */
	/* call running for 100 ms or longer; t_end = when it was seen; written by the flusher into
	 * its own series: stream = innermost stage, ctx = thread index of the caller, words =
	 * argument | tid of the caller | 0 */
	TFT_OPEN = 4,
	TFT_MARK = 5,	 /* user mark: step begin..end; words = step number | name id | 0 */
	TFT_RANGE = 6,	 /* user range: words = name id | enum tft_range | 0, depth = nesting */
	TFT_CPUTIME = 7, /* thread CPU clock at t_end: words = ns | 0 | 0 */
	/* Names a handle: fn = enum tft_name, stream = id, words = handle | extra | text bytes. */
	TFT_NAME = 8,
	TFT_ALLOC = 9,	/* like CALL, of an allocation or free: words = bytes | address | flags */
	TFT_GRAPH = 10, /* totals of one graph version: words per direction, see FORMAT.md */
	/* sampled state of a thread; written by the flusher into its own series: ctx = thread
	 * index, result = enum tft_state, stream = string naming what it waits for, words = see
	 * FORMAT.md */
	TFT_STATE = 11,
	/* Sampled state of a child process's main thread: ctx = its pid; or of another thread of
	 * the process. */
	TFT_CHILD = 12,
};

/* Sampled state of a thread. Values are in trace files: only append. */
enum tft_state {
	TFT_STATE_RUNNING = 1, /* or runnable */
	/* Waits for Python's global interpreter lock; all below are waits, too. */
	TFT_STATE_GIL = 2,
	TFT_STATE_LOCK = 3,
	TFT_STATE_SLEEP = 4,
	TFT_STATE_READ = 5,  /* a file */
	TFT_STATE_WRITE = 6, /* a file, or for fsync */
	TFT_STATE_NAMES = 7, /* opening, listing, renaming files */
	TFT_STATE_PIPE = 8,
	TFT_STATE_PIPE_FULL = 9,
	TFT_STATE_SOCKET = 10,
	TFT_STATE_SOCKET_FULL = 11,
	TFT_STATE_DEVICE = 12,
	TFT_STATE_CHILD = 13,
	TFT_STATE_POLL = 14,  /* one of several descriptors */
	TFT_STATE_EVENT = 15, /* eventfd, signal: for another thread */
	TFT_STATE_PAGE = 16,
	TFT_STATE_MEMORY = 17, /* changes mappings */
	TFT_STATE_OTHER = 18,
	TFT_STATE_TERMINAL = 19,
	TFT_STATE_TERMINAL_OUT = 20,
	TFT_STATE_COUNT
};

/* Whether a running thread held Python's global interpreter lock. Values are in trace files: only
 * append. */
enum tft_gil { TFT_GIL_UNKNOWN = 0, TFT_GIL_HELD = 1, TFT_GIL_RELEASED = 2 };

/* What a RANGE marks. Values are in trace files: only append. */
enum tft_range {
	TFT_RANGE_NOTE = 0,	   /* the program's own mark, or unknown */
	TFT_RANGE_OP = 1,	   /* a framework's op on the host */
	TFT_RANGE_PYTHON = 2,	   /* a function of Python */
	TFT_RANGE_EXCHANGE = 3,	   /* data sent to other ranks, by the host */
	TFT_RANGE_EXCHANGE_OP = 4, /* an op that requests or performs this, as the job names it */
};

/* What a NAME record names (its `fn` field). Values are in trace files: only append. */
enum tft_name {
	TFT_NAME_STREAM = 1,   /* extra = context id */
	TFT_NAME_CONTEXT = 2,  /* extra = device ordinal */
	TFT_NAME_FUNCTION = 3, /* text = kernel name, extra = module handle */
	/* text = TensorFlow's trace name of the stage: prefix#key=value,..#, extra = id of the
	 * stage it delivers to, 0 = root. */
	TFT_NAME_STAGE = 4,
	TFT_NAME_ITERATOR = 5, /* extra = id of its root stage */
	TFT_NAME_OP = 6, /* text = op or function name given to TFE_Execute, or session target */
	TFT_NAME_STRING = 7, /* mark and range names */
	TFT_NAME_GRAPH = 8,  /* graph exec */
	TFT_NAME_MODULE = 9,
	TFT_NAME_THREAD = 10, /* text = thread name; stream = thread index, handle = tid */
};

/* tfh_rec.flags */
enum {
	TFT_F_EXT = 1,	     /* EXT records of the same thread follow immediately */
	TFT_F_CAPTURED = 2,  /* recorded into a stream capture: nothing was moved */
	TFT_F_REPEAT = 4,    /* state repeated at the start of a segment, not a new event */
	TFT_F_PTDS = 8,	     /* stream 0 is the thread's default stream */
	TFT_F_OPTIONAL = 16, /* get-next returned "end of sequence", where known */
	TFT_F_FAILED = 32,   /* result is an error (result holds the code, truncated to 16 bits) */
};

struct tfh_rec {
	uint64_t t_begin;
	uint64_t t_end;
	uint16_t fn;	 /* enum tfh_fn of the writing build; EXT: index of the part */
	uint8_t kind;	 /* enum tft_kind */
	uint8_t flags;	 /* TFT_F_* */
	uint16_t result; /* CUresult; EXT: bytes of text still to come, this part included */
	uint8_t depth;	 /* hooked calls of this thread that enclose this one */
	uint8_t flags2;
	uint32_t seq;	 /* low 32 bits of the thread's record number, as a check */
	uint32_t stream; /* stream id, or stage id */
	uint32_t ctx;
	uint32_t stack; /* backtrace id, 0 = none */
	uint64_t w[3];
};

static_assert(sizeof(struct tfh_rec) == 64, "one cache line");
static_assert(offsetof(struct tfh_rec, fn) == 16, "on disk");
static_assert(offsetof(struct tfh_rec, kind) == 18, "on disk");
static_assert(offsetof(struct tfh_rec, flags) == 19, "on disk");
static_assert(offsetof(struct tfh_rec, result) == 20, "on disk");
static_assert(offsetof(struct tfh_rec, depth) == 22, "on disk");
static_assert(offsetof(struct tfh_rec, seq) == 24, "on disk");
static_assert(offsetof(struct tfh_rec, stream) == 28, "on disk");
static_assert(offsetof(struct tfh_rec, ctx) == 32, "on disk");
static_assert(offsetof(struct tfh_rec, stack) == 36, "on disk");
static_assert(offsetof(struct tfh_rec, w) == 40, "on disk");

/* Run-table thread of OPEN records written by a salvage. Thread 0 is the flusher's own series. */
#define TFT_THREAD_SALVAGE 0xffffffffu

/* An EXT record carries 36 bytes of its parent's text or arguments in stream..w[2] (offsets
 * 28..63). */
#define TFT_EXT_BYTES 36

/* Launch words: w[0] function id:32 | cluster x:8 y:8 z:8 | attributes:8; w[1] grid x:32 y:16 z:16;
 * w[2] block x:11 y:11 z:7 | (3 unused) | dynamic shared bytes:32. */
static inline uint64_t tft_launch_w0(uint32_t function, uint8_t cx, uint8_t cy, uint8_t cz,
				     uint8_t attrs)
{
	return (uint64_t)function | (uint64_t)cx << 32 | (uint64_t)cy << 40 | (uint64_t)cz << 48 |
	       (uint64_t)attrs << 56;
}
static inline uint64_t tft_launch_w1(uint32_t gx, uint32_t gy, uint32_t gz)
{
	return gx | (uint64_t)((gy & 0xffff) | gz << 16) << 32;
}
static inline uint64_t tft_launch_w2(uint32_t bx, uint32_t by, uint32_t bz, uint32_t shared)
{
	return ((bx & 0x7ff) | (by & 0x7ff) << 11 | (bz & 0x7f) << 22) | (uint64_t)shared << 32;
}

/* The attributes byte of a launch. */
enum {
	TFT_LAUNCH_COOPERATIVE = 1,
	TFT_LAUNCH_CLUSTER = 2,	     /* cluster dimensions were given */
	TFT_LAUNCH_PROGRAMMATIC = 4, /* may start before the previous kernel has ended */
};

/* What the EXT record of a copy (one part, TFT_EXT_BYTES) adds to bytes | dst | src. */
enum tft_ext_form {
	TFT_EXT_2D = 1,
	TFT_EXT_3D = 2,
	TFT_EXT_PEER = 3,
	TFT_EXT_PEER_3D = 4,
	TFT_EXT_BATCH = 5, /* words of the record: total bytes, dst and src of the first pair */
	/* Of an imported trace: no addresses, only the types of both sides, and contexts that
	 * differ for a copy between devices. */
	TFT_EXT_SIDES = 6,
};
/* A batch lists its first pairs after its struct tft_ext_copy. Further pairs are only in the total.
 */
#define TFT_EXT_PAIRS 63 /* 43 full parts */
struct tft_ext_pair {
	uint32_t dst[2], src[2]; /* low, high */
	uint32_t bytes[2];	 /* 56 bits, then the types of dst and src, 4 bits each */
};
enum tft_side { TFT_SIDE_HOST = 1, TFT_SIDE_DEVICE = 2, TFT_SIDE_PINNED = 5 };
struct tft_ext_copy {
	uint8_t form; /* enum tft_ext_form */
	/* 1 host, 2 device, 3 array, 4 unified, 5 page-locked host (only TFT_EXT_SIDES); 0 =
	 * unknown. */
	uint8_t src_type, dst_type;
	uint8_t reserved;
	uint32_t src_ctx, dst_ctx; /* context ids of a peer copy */
	uint32_t count;		   /* depth of a 3D copy, pairs of a batch */
	uint32_t width[2];	   /* bytes per row: low, high */
	uint32_t height;
	uint32_t src_pitch, dst_pitch; /* bytes between rows, 0 = none */
};
static_assert(sizeof(struct tft_ext_copy) == TFT_EXT_BYTES, "on disk");
static_assert(sizeof(struct tft_ext_pair) == 24, "on disk");

/* A GRAPH record: stream = id of the executable graph, ctx = version, words = bytes that one launch
 * moves H2D | D2H | within devices. Its EXT holds node counts, including child graphs. */
struct tft_ext_graph {
	uint32_t kernels, copies, memsets, hosts, children;
	uint32_t conditionals; /* their bodies run an unknown number of times and are not counted */
	uint32_t others;
	uint32_t incomplete; /* 1: some node could not be read */
	uint32_t reserved;
};
static_assert(sizeof(struct tft_ext_graph) == TFT_EXT_BYTES, "on disk");

/* ---- journal: rings, open calls, staging; one file per process ---- */

#define TFT_JOURNAL_MAGIC 0x0000004a54465431ull	      /* "1TFJ" */
#define TFT_JOURNAL_SETUP_MAGIC 0x0000004a54465430ull /* "0TFJ": before that */
#define TFT_OPEN_SLOTS 16
#define TFT_AGG_SLOTS 64

/* One call in progress; fn == 0: free. Written by the thread before the real call. */
struct tft_open_slot {
	uint64_t t_begin;
	uint64_t arg;
	union {
		struct {
			uint32_t stage; /* innermost stage id, 0 = none */
			uint16_t fn;
			uint16_t pad;
		};
		uint64_t stage_fn; /* both, for one store */
	};
	uint64_t seen; /* flusher's: t_begin of the call whose OPEN record was written */
};
static_assert(sizeof(struct tft_open_slot) == 32, "journal");

/* Running totals of short get-next calls of one stage on one thread; stage == 0: free. */
struct tft_agg_slot {
	uint32_t stage;
	uint32_t n;
	uint64_t t_first; /* begin of the first counted call */
	uint64_t t_last;  /* end of the last */
	uint64_t total;
	uint64_t self;
	uint64_t max;
};
static_assert(sizeof(struct tft_agg_slot) == 48, "journal");

/* Ring header page (4096 bytes); the records follow in separate pages. Record number n is at n &
 * mask. */
struct tft_ring {
	/* line 0: constant after set-up */
	uint64_t records_off; /* from the start of the journal */
	uint64_t first;	      /* number of the first record that this ring held */
	uint32_t mask;	      /* records - 1 */
	uint32_t tid;
	uint32_t thread; /* thread index, unique during the process's life */
	uint32_t state;	 /* enum tft_ring_state */
	uint64_t t_created;
	uint64_t pthread; /* pthread_self() of the thread: CUPTI names threads by its low half */
	uint8_t pad0[16];
	/* line 1: producer */
	uint64_t head;	     /* number of the next record; release store */
	uint64_t dropped;    /* records lost because the ring was full */
	uint64_t drop_first; /* ticks of the first and last loss since the flusher's last visit */
	uint64_t drop_last;
	uint8_t pad1[32];
	/* line 2: flusher */
	uint64_t tail;	    /* number of the oldest record not yet in staging */
	uint64_t drop_seen; /* losses already written */
	/* Losses in the LOSS chunk that begins at drop_mark; drop_seen follows when it is
	 * complete. */
	uint64_t drop_writing;
	uint64_t drop_mark; /* tft_loss_mark() */
	uint8_t pad2[32];
	char name[64]; /* thread name, NUL-terminated */
	struct tft_open_slot open[TFT_OPEN_SLOTS];
	struct tft_agg_slot agg[TFT_AGG_SLOTS];
};
static_assert(offsetof(struct tft_ring, head) == 64, "journal");
static_assert(offsetof(struct tft_ring, tail) == 128, "journal");
static_assert(sizeof(struct tft_ring) <= 4096, "journal");

/* A position in the segments of a process. Marks grow in writing order. */
static inline uint64_t tft_loss_mark(uint32_t segment, uint64_t offset)
{
	return ((uint64_t)segment + 1) << 40 | offset;
}

enum tft_ring_state {
	TFT_RING_FREE = 0,
	TFT_RING_ACTIVE = 1,
	TFT_RING_RETIRED = 2, /* the thread ended or moved to a larger ring; drained, then FREE */
};

/* Control word of the journal: a set of bits, set by `tfhook ctl` and applied by the flusher within
 * 100 ms. */
enum {
	TFT_CTL_STOP = 1,   /* no calls recorded (ALWAYS functions still are) */
	TFT_CTL_FLUSH = 2,  /* seal and write now; the flusher clears it */
	TFT_CTL_GPU_ON = 4, /* device times wanted, whatever the settings say */
	TFT_CTL_GPU_OFF = 8,
	/* at step `at_step` of the journal; cleared when `at_answer` is set */
	TFT_CTL_GPU_ON_AT = 16,
	TFT_CTL_GPU_OFF_AT = 32, /* the same */
	/* bits 32..63: steps after which a start or gpu-on ends, 0 = no limit */
};

/* ---- chunks of a trace file ---- */

#define TFT_MAGIC 0x43544654u /* "TFTC" */
#define TFT_VERSION 1
#define TFT_MAX_EVENTS 65536u
#define TFT_MAX_CHUNK (64u << 20) /* bytes, compressed or not; a reader rejects larger ones */
#define TFT_MAX_HEADER (4u << 20)

#define TFT_TYPE(a, b, c, d)                                                                       \
	((uint32_t)(a) | (uint32_t)(b) << 8 | (uint32_t)(c) << 16 | (uint32_t)(d) << 24)
enum tft_type {
	TFT_HEAD = TFT_TYPE('H', 'E', 'A', 'D'), /* who, where, function table: tagged values */
	TFT_EVNT = TFT_TYPE('E', 'V', 'N', 'T'), /* records of all threads of the process */
	/* Live tables, repeated at the start of a segment. */
	TFT_NAMC = TFT_TYPE('N', 'A', 'M', 'E'),
	TFT_CLKS = TFT_TYPE('C', 'L', 'K', 'S'), /* (ticks, MONOTONIC, REALTIME) triples */
	TFT_LOSS = TFT_TYPE('L', 'O', 'S', 'S'), /* thread, count, first and last time, cause */
	TFT_INDX = TFT_TYPE('I', 'N', 'D', 'X'), /* at a clean end: position of every chunk */
	TFT_NOTE = TFT_TYPE('N', 'O', 'T', 'E'), /* text about the recording itself */
	/* Sketches of chunks whose events were discarded. */
	TFT_DGST = TFT_TYPE('D', 'G', 'S', 'T'),
	TFT_SAMP = TFT_TYPE('S', 'A', 'M', 'P'), /* machine samples, one per second */
	TFT_GPUS = TFT_TYPE('G', 'P', 'U', 'S'), /* device ops; columns fixed in FORMAT.md */
	TFT_DRVR = TFT_TYPE('D', 'R', 'V', 'R'), /* CUPTI driver records */
	TFT_RANG = TFT_TYPE('R', 'A', 'N', 'G'), /* ranges from NVTX */
	TFT_BTRC = TFT_TYPE('B', 'T', 'R', 'C'), /* backtraces */
	TFT_MODS = TFT_TYPE('M', 'O', 'D', 'S'), /* loaded modules */
	TFT_PYCO = TFT_TYPE('P', 'Y', 'C', 'O'), /* Python functions */
	TFT_PYFR = TFT_TYPE('P', 'Y', 'F', 'R'), /* Python call sites: places of backtraces */
	/* the tables of a digest (FORMAT.md, 2.9) */
	TFT_DKEY = TFT_TYPE('D', 'K', 'E', 'Y'), /* facts: name and text */
	TFT_DINP = TFT_TYPE('D', 'I', 'N', 'P'), /* the files that it was made from */
	TFT_DRNK = TFT_TYPE('D', 'R', 'N', 'K'), /* judged processes */
	TFT_DSTP = TFT_TYPE('D', 'S', 'T', 'P'), /* steps */
	TFT_DNOD = TFT_TYPE('D', 'N', 'O', 'D'), /* the run's tree */
	TFT_DPLC = TFT_TYPE('D', 'P', 'L', 'C'), /* Python lines */
	TFT_DKRN = TFT_TYPE('D', 'K', 'R', 'N'), /* kernels */
	TFT_DCPY = TFT_TYPE('D', 'C', 'P', 'Y'), /* copies */
	TFT_DMTR = TFT_TYPE('D', 'M', 'T', 'R'), /* meters of the machine */
	TFT_DGON = TFT_TYPE('D', 'G', 'O', 'N'), /* spans whose records were discarded */
	TFT_DCOL = TFT_TYPE('D', 'C', 'O', 'L'), /* anchors of collectives */
	TFT_DCOM = TFT_TYPE('D', 'C', 'O', 'M'), /* communicators */
	TFT_DOPN = TFT_TYPE('D', 'O', 'P', 'N'), /* calls open at the end */
	TFT_DRES = TFT_TYPE('D', 'R', 'E', 'S'), /* all findings of the judge */
};

/*
 * A chunk is one zstd skippable frame with struct tft_chunk_head, the run table and the packed
 * sketch, then one ordinary zstd frame (absent if packed_bytes is 0). The header has its own
 * checksum, so that a first pass can read headers alone, with one small pread each.
 */
#define TFT_ZSTD_SKIPPABLE 0x184d2a54u

struct tft_chunk_head {
	uint32_t zstd_magic;  /* TFT_ZSTD_SKIPPABLE */
	uint32_t zstd_length; /* bytes of the header after these first 8 */
	uint32_t magic;	      /* TFT_MAGIC */
	/* CRC-32C of the zstd_length + 8 header bytes, this field taken as 0. */
	uint32_t header_crc;
	uint32_t payload_crc; /* CRC-32C of the packed_bytes after the header */
	uint32_t type;	      /* enum tft_type */
	uint16_t version;     /* major version of the format */
	uint16_t flags;	      /* TFT_CHUNK_* */
	/* Offset of the run table: sizeof(struct tft_chunk_head) in version 1.0. */
	uint32_t fixed_bytes;
	uint64_t packed_bytes; /* of the ordinary frame */
	uint64_t raw_bytes;    /* its decompressed size */
	/* Ticks: smallest and largest t_end of the events; for other chunks 0 or a time. */
	uint64_t t_first;
	uint64_t t_last;
	uint64_t dropped; /* records lost by this process so far */
	uint64_t number;  /* of the chunk in its file, from 0 */
	uint32_t events;
	uint32_t runs;
	uint32_t sketch_bytes;
	uint32_t reserved;
};
static_assert(sizeof(struct tft_chunk_head) == 96, "on disk");
static_assert(offsetof(struct tft_chunk_head, packed_bytes) == 32, "on disk");
static_assert(offsetof(struct tft_chunk_head, events) == 80, "on disk");

enum {
	TFT_CHUNK_MUST = 1, /* a reader that does not know this type must reject the file */
};

/* One entry of the run table: consecutive records of one thread. */
struct tft_chunk_run {
	uint32_t thread, tid;
	uint64_t first;	 /* number of the run's first record in its thread */
	uint64_t t_base; /* t_begin of that record: base of the time columns */
	uint32_t count;
	uint32_t reserved;
};
static_assert(sizeof(struct tft_chunk_run) == 32, "on disk");

/* One entry of the INDX payload. */
struct tft_index_entry {
	uint64_t offset; /* of the skippable frame */
	uint32_t type, events;
	uint64_t raw_bytes, packed_bytes, t_first, t_last, dropped;
	uint32_t header_bytes; /* zstd_length + 8 */
	uint32_t reserved;
};
static_assert(sizeof(struct tft_index_entry) == 64, "on disk");

/* The last 32 bytes of a file that was closed, a separate skippable frame. */
struct tft_footer {
	uint32_t zstd_magic, zstd_length; /* TFT_ZSTD_SKIPPABLE, 24 */
	uint64_t index_offset;		  /* of the INDX chunk */
	uint64_t reserved;
	uint16_t version, flags; /* TFT_FOOTER_* */
	uint32_t crc;		 /* CRC-32C of the preceding 28 bytes, which identifies a footer */
};
static_assert(sizeof(struct tft_footer) == 32, "on disk");

enum {
	TFT_FOOTER_CLEAN = 1, /* the process ended normally with this segment */
};

#endif
