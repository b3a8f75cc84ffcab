/* One run of a chunk on its way into the time line: its records in order of their ends, a few dozen
 * decoded ahead. interleave.c merges all series. */
#ifndef TFH_MODEL_TIMELINE_SERIES_H
#define TFH_MODEL_TIMELINE_SERIES_H

#include "format/decode.h"

#include "model/ahead.h"
#include "model/timeline/interleave.h"
#include "model/timeline/ticks.h"

/* Fields shared by the events of one shape, made once per chunk: most of a launch-heavy recording
 * has a few hundred shapes. */
struct tfh_stencil {
	struct tfh_event ev;
	bool plain;  /* the event has nothing besides this, its times, number and thread */
	bool launch; /* tfh_is_plain_launch() */
};

struct tfh_stencils {
	struct tfh_stencils *next;
	uint32_t cap;
	struct tfh_stencil v[];
};

struct tfh_open_chunk {
	struct tfh_open_chunk *next; /* list of chunks that a block may still point into */
	struct tft_events *events;
	struct tfh_chunk *chunk;
	struct tfh_stencils *stencils;
	uint32_t runs;		 /* runs that have records left */
	struct tfh_row_sum *row; /* of all groups of all runs */
	bool rows_known;	 /* from an earlier pass */
};

/* How many groups the records of a run make. */
static inline uint32_t tfh_groups_of(uint32_t records)
{
	return (records + TFT_MANY - 1) / TFT_MANY;
}

/* How many groups the records of a chunk make at most. */
static inline uint32_t tfh_most_groups(const struct tft_events *ev)
{
	return ev->events / TFT_MANY + ev->n_runs;
}

/* State of a process during a pass. */
struct tfh_model_side {
	uint32_t next_chunk;
	uint64_t *next_number; /* by thread: number of the first record not yet seen */
	uint64_t looked;       /* time of the last sample (ticks), and its thread */
	uint32_t looked_at;
	uint8_t *naming; /* by thread: whether a name's text may continue */
	struct tfh_memory memory;
	struct tfh_tick_line line;
};

struct tfh_model_series {
	struct tfh_model_series *next; /* list of series that a block may still point into */
	int64_t t1;		       /* end of the next record, ns */
	uint64_t number;
	uint32_t at, n;		  /* in the columns: index of the next record, and their number */
	bool plain;		  /* its shape's stencil has all other fields */
	bool decoded;		  /* the columns hold the group; otherwise only its row is known */
	struct tfh_row_sum *row;  /* of the group */
	uint64_t before;	  /* end of the record before the group, ticks */
	struct tfh_rec rec;	  /* complete, unless it is plain */
	uint32_t thread, process; /* of the run */
	uint32_t index;		  /* index of the thread in the process */
	const struct tfh_file *file;
	uint64_t *next_number; /* NULL: record numbers restart in every file */
	struct tfh_model_side *side;
	int64_t shift;
	struct tfh_open_chunk *chunk;
	struct tfh_stencil *stencil; /* stencils of the chunk */
	struct tft_cursor cursor;
	/* The records decoded ahead, as columns of `room` elements. */
	uint32_t room;
	uint64_t *begin, *end; /* ticks */
	int64_t *t0_ns, *t1_ns;
	uint16_t *shape;
	uint64_t column[];
};

void tfh_new_line(const struct tfh_model_series *s, uint64_t block);

static inline int64_t tfh_series_ns(const struct tfh_model_series *s, uint64_t ticks)
{
	const struct tfh_tick_line *l = &s->side->line;

	if (__builtin_expect(l->block != ticks >> TFH_LINE_BITS, 0))
		tfh_new_line(s, ticks >> TFH_LINE_BITS);
	return tfh_tick_ns(l, ticks);
}

/* How many of the n > 0 shapes equal the first one before another follows. */
static inline uint32_t tfh_same_shapes(const uint16_t *shape, uint32_t n)
{
	const uint64_t four = shape[0] * 0x0001000100010001ull;
	uint32_t i = 0;

	for (uint64_t v; i + 4 <= n && (memcpy(&v, &shape[i], sizeof(v)), v == four); i += 4)
		;
	while (i < n && shape[i] == shape[0])
		i++;
	return i;
}

/* The new series is positioned before its first record. `row`: the element before that of its first
 * group. NULL when out of memory. */
struct tfh_model_series *tfh_series_new(struct tfh_run *run, struct tfh_model_side *side,
					uint32_t process, uint32_t file,
					struct tfh_open_chunk *chunk, uint32_t number,
					struct tfh_row_sum *row);
/* When no record is left, moves to the next group, and decodes it unless its row is known. False at
 * the end. */
bool tfh_series_look(struct tfh_model_series *s);
/* Decodes a group of which only the row is known. */
void tfh_series_decode(struct tfh_model_series *s);
/* Skips from the start of a group that is a row to its last record. */
static inline void tfh_series_pass(struct tfh_model_series *s)
{
	if (!s->decoded) {
		s->cursor.pos += s->n;
		s->cursor.number += s->n;
		s->cursor.t = s->row->last;
	}
	s->at += s->n - 1;
	s->number += s->n - 1;
}
/* Times (ns) and shapes of n records from `pos` on; `before`: end of the preceding record. */
void tfh_series_times(const struct tfh_model_series *s, uint32_t pos, uint64_t before, uint32_t n,
		      int64_t *t0, int64_t *t1, uint16_t *shape);
/* Completes the next record, which is not plain. */
void tfh_series_complete(struct tfh_model_series *s);

/* Advances to the next record; false at the end. */
static inline bool tfh_series_next(struct tfh_model_series *s)
{
	s->number++;
	if (++s->at >= s->n && !tfh_series_look(s))
		return false;
	s->t1 = s->t1_ns[s->at];
	s->plain = s->stencil[s->shape[s->at]].plain;
	if (!s->plain)
		tfh_series_complete(s);
	return true;
}

const struct tfh_fn_info *tfh_series_fn(const struct tfh_file *f, uint32_t fn);

/* Fills an event from its record, except times, number and thread. */
static inline void tfh_series_event(struct tfh_event *ev, const struct tfh_rec *rec,
				    const struct tfh_fn_info *fn, uint32_t process)
{
	ev->fn = fn;
	ev->process = process;
	ev->kind = rec->kind;
	ev->flags = rec->flags;
	ev->depth = rec->depth;
	ev->result = rec->result;
	ev->stream = rec->stream;
	ev->ctx = rec->ctx;
	ev->stack = rec->stack;
	memcpy(ev->w, rec->w, sizeof(ev->w));
	ev->dir = 0;
	ev->pageable = false;
	ev->loops = NULL;
}

/* For the shapes of a chunk, reusing the memory of `t` if possible; NULL when out of memory. */
struct tfh_stencils *tfh_stencils_make(struct tfh_stencils *t, const struct tfh_file *f,
				       const struct tft_events *events);

/* Chunks of one process, decompressed ahead by threads. The handed-over data is little larger than
 * the chunk on disk; finished events are ten times as large, and moving them between cores costs
 * more than building them. */
struct tfh_unpack;
/* 0 or -ENOMEM. */
int tfh_unpack_open(struct tfh_run *run, uint32_t process, struct tfh_unpack **out);
void tfh_unpack_close(struct tfh_unpack *u);
/* From now on, the threads also decode chunks to summarise their rows. */
void tfh_unpack_sums(struct tfh_unpack *u);
/* The next chunk, and its rows in *row if they are known. NULL if it is damaged (*lost: its
 * contents) or memory is exhausted (*rc). */
struct tft_events *tfh_unpack_next(struct tfh_unpack *u, struct tfh_row_sum **row, int *rc,
				   struct tfh_lost *lost);
/* Returns an event chunk and its rows. The first ones of a process are kept for the next pass, up
 * to a limit in bytes: in a run of a few million calls, decompression takes longer than the rest of
 * a pass. */
void tfh_unpack_keep(struct tfh_unpack *u, struct tfh_chunk *c, struct tft_events *events,
		     struct tfh_row_sum *row);
/* Decompresses one chunk immediately; *rc and *lost as above. */
struct tft_events *tfh_unpack_one(struct tfh_run *run, const struct tfh_chunk *c, int *rc,
				  struct tfh_lost *lost);

#endif
