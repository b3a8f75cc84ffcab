/*
 * What the recorder knows of each thread, and what changes for all threads at once. record.h has
 * the functions.
 */
#ifndef TFH_RECORD_THREAD_SELF_H
#define TFH_RECORD_THREAD_SELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arch.h"
#include "format/layout.h"

/* With the lower probability that __builtin_expect() supposes, the compiler lets the usual path
 * wait for work of the unusual ones. */
#define tfh_likely(x) __builtin_expect_with_probability(!!(x), 1, 0.99999)
#define tfh_unlikely(x) __builtin_expect_with_probability(!!(x), 0, 0.99999)

/* Without this, the compiler moves the path of every call out of line, which costs 8 ns. */
#define tfh_hot inline __attribute__((always_inline))

/* Plain loads and stores on the processor. They mark a word that another thread may access at the
 * same time. */
#define tfh_peek(p) __atomic_load_n(p, __ATOMIC_RELAXED)
#define tfh_poke(p, v) __atomic_store_n(p, v, __ATOMIC_RELAXED)

/* Global switch, read once per hooked call. */
enum tfh_mode {
	/* the process is ending: other threads wait briefly, then pass through */
	TFH_MODE_HOLD = 0,
	/* nothing recorded yet in this process: every hook takes the slow path */
	TFH_MODE_COLD = 1,
	TFH_MODE_ON = 2, /* recording */
	/* stopped by control word, window or rank filter: only ALWAYS functions record */
	TFH_MODE_OFF = 3,
	/* TFHOOK=0, failed set-up, or a forked child that may not record: pass through */
	TFH_MODE_DEAD = 4,
};
#pragma GCC visibility push(hidden)
extern uint32_t tfh_mode;

/* tfh_self.guard: the low bits count how often our own code is active on this thread. APPEND: a
 * record is being filled, for the frame in tfh_self.filling. CALL: the same for the record of an
 * outermost call, whose frame is in room->place[0]. CONFINED: the thread must not read the clock or
 * make a system call. */
#define TFH_GUARD_APPEND 0x80000000u
#define TFH_GUARD_CONFINED 0x40000000u
#define TFH_GUARD_CALL 0x20000000u
#define TFH_GUARD_FILLING (TFH_GUARD_APPEND | TFH_GUARD_CALL)

#define TFH_DEEP_SLOTS                                                                             \
	48 /* calls nested deeper than the ring's open slots; a tf.data pipeline may have 30       \
	      stages */
#define TFH_OPEN_MOST (TFT_OPEN_SLOTS + TFH_DEEP_SLOTS)

/* Frame of an open call. Its return address is right below `at`; if `at` is 0, it is not
 * checked. */
struct tfh_record_frame {
	uint64_t at, back;
};

/*
 * Per-thread state besides struct tfh_self, mapped with the thread's first ring and kept as long as
 * the thread has one. It is not in static TLS because that is taken from the stack of every thread
 * of the job. With LD_AUDIT set, the loader has only 1.7 KB of static TLS for all preloads, and a
 * library that needs more keeps the program from starting.
 */
struct tfh_room {
	/* handle and kind -> id; direct mapped; emptied when the number of handles in the epoch
	 * changes */
	uint64_t handle_cache[64][2];
	/* the same for functions, by handle alone: every launch looks into it */
	struct tfh_function {
		uint64_t handle, id;
	} functions[64];
	struct tfh_record_frame place[TFH_OPEN_MOST];
	uint64_t deep[TFH_DEEP_SLOTS]; /* begin times of calls beyond the open slots */
	/* For the hooks; zero at first. record/ does not know the layout. */
	uint64_t ranges[128], op_names[384], stages[256], tf_calls[192];
};

/* What changes for all threads at once. A fork wipes the page that it is in,
 * so an inherited ring is never written. */
struct tfh_epoch {
	union {
		struct {
			uint32_t generation; /* of the journal */
			uint32_t handles;    /* starts at 1; every tfh_handles_forget() adds 1 */
		};
		uint64_t word;
	};
};

/* The calling thread's side of its ring. One static-TLS object per thread. The initial-exec model
 * is 4 ns cheaper than general-dynamic and never takes the loader's lock. */
#define TFH_NO_RING UINT32_MAX

struct tfh_self {
	struct tft_ring *ring; /* NULL until the thread's first record */
	struct tfh_rec *records;
	uint64_t head;	     /* private copy of ring->head */
	uint64_t tail_cache; /* last seen ring->tail */
	uint64_t half;	     /* from this head on, more than half of the ring may be in use */
	uint64_t last_end;   /* t_end of the last hooked call, for CPUTIME after a gap */
	uint64_t placed;     /* likewise, of the last short call that got a place (stacks.c) */
	/* generation: of the journal this ring belongs to (fork), TFH_NO_RING without one; handles:
	 * the caches of ids are valid while this is the process's number */
	struct tfh_epoch seen;
	union {
		struct {
			uint32_t depth; /* hooked calls open on this thread */
			uint32_t guard; /* TFH_GUARD_* and a count of our own code */
		};
		/* both; to be written as a whole where it is soon read as a whole, since the load
		 * would wait until two smaller stores have reached the cache */
		uint64_t state;
	};
	uint32_t mask;
	uint32_t stage;	   /* innermost open stage id, for open slots; 0 outside of calls */
	uint64_t guard_at; /* stack address where our own code began */
	struct tfh_record_frame filling; /* with TFH_GUARD_APPEND: whose record is being filled */
	uint64_t since;			 /* ticks: earlier calls belong to a parent process */
	uint32_t ctx;	  /* current context id as last seen by the CUDA hooks, 0 = unknown */
	uint32_t rearmed; /* how often the thread recorded again after its destructor ran */
	uint32_t in_agg;  /* entries in use in the ring's AGG table */
	/* this thread ends the process: the exit handler does not hold it up */
	bool exits;
	uint64_t agg_since;  /* begin time of the oldest entry */
	uint64_t retry;	     /* ticks before which no larger or first ring is requested again */
	uint64_t walks_paid; /* until then, backtraces of pauses have used their part of the time */
	uint64_t *named; /* bit per id: this thread has published its NAME; mapped on first use */
	uint64_t stream; /* the last one whose id was wanted, and its id; as handle_cache */
	uint32_t stream_id;
	struct tfh_room *room; /* not NULL while `ring` is not NULL */
};
extern __thread struct tfh_self tfh_self __attribute__((tls_model("initial-exec")));

extern struct tfh_epoch *tfh_epoch;

static inline uint32_t tfh_generation(void)
{
	return tfh_peek(&tfh_peek(&tfh_epoch)->generation);
}

/* Whether the thread's ring belongs to this process. The two generations of a process are 2k (calls
 * kept in memory) and 2k + 1 (recording); a forked child reads 0 until it has its own. */
static inline bool tfh_own_ring(const struct tfh_self *self)
{
	return self->ring && (self->seen.generation ^ tfh_generation()) <= 1;
}

/* The calling thread's tfh_self. Compilers cache &tfh_self for a whole function, but a coroutine
 * may move to another thread within one. */
static tfh_hot struct tfh_self *tfh_here(void)
{
	struct tfh_self *self;

	TFH_ARCH_THREADS_OWN(tfh_self, self);
	return self;
}

static tfh_hot uint64_t tfh_state(uint32_t depth, uint32_t guard)
{
	return depth | (uint64_t)guard << 32;
}

/* Whether the thread has seen the current epoch: its ring and the ids that it has cached are
 * valid. */
static tfh_hot bool tfh_up_to_date(const struct tfh_self *self)
{
	return self->seen.word == tfh_peek(&tfh_peek(&tfh_epoch)->word);
}
#pragma GCC visibility pop

#endif
