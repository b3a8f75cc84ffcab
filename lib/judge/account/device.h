/*
 * Device times in the analysis (tiers A and B). Two looks at the ops of one process:
 *
 *	engines   the first: when each window's work was complete, latencies
 *	device    the second: which windows are judged together, and what comes of it
 *	busy      engines' busy time, kernels, copies
 *	chunk     ops and host time of a few windows at a time, in memory
 *	depend    what each op had to wait for
 *	blame     every moment without computing is charged to what caused its end
 *	replay    the same windows timed anew without a class of costs
 *
 * An op belongs to the window in which it was issued, never to the one during which it ran; a
 * window lasts from the completion of the one before to its own completion, so that windows tile
 * the time however far the host runs ahead. Between a window with device times and one without,
 * both end at the cut of the host's windows: neighbours share one cut everywhere.
 */
#ifndef TFH_JUDGE_DEVICE_H
#define TFH_JUDGE_DEVICE_H

#include "judge/account/account.h"
#include "judge/facts/matches.h"
#include "judge/stats.h"

#define TFH_NO UINT32_MAX

/* A window as the device saw it. */
struct tfh_dwin {
	int64_t done;	  /* completion: end of its last op on the critical device */
	int64_t from, to; /* what is judged: from completion to completion where the neighbour has
			     device times, too; else to the cut of the host's windows */
	uint32_t ops;
	float fetched; /* bytes copied to the host */
};

/* Kernels that run side by side, as they come. */
struct tfh_side {
	int64_t end[TFH_ACCOUNT_SIDE];	  /* of those that run */
	int64_t ns[TFH_ACCOUNT_SIDE + 1]; /* time that so many ran at once */
	uint32_t n;
};

/* A stream of a device. */
struct tfh_lane {
	uint32_t ctx, stream;
	uint8_t device;	  /* index */
	int64_t past_end; /* of the last op that left memory */
	int64_t computed; /* ns in training windows */
	/* while dependencies are found */
	uint32_t last;	   /* op issued last */
	uint32_t wait;	   /* op that the next one waits for */
	uint32_t waitc;	   /* of these the last that computes */
	int64_t end, cend; /* of the op started last; of the last compute op */
	uint64_t early;	   /* ops whose call is not known, until one with a known call comes */
	bool issued, outside;
};

struct tfh_dop {
	int64_t t0, t1, issue0, issue1;
	int64_t ready;	/* earliest start by all that is known */
	int64_t shared; /* communication: how long its shortest participant took, -1 unknown */
	uint32_t lane, thread, window, graph, correlation;
	uint32_t prev, dep; /* ops it follows: in its stream; by event or by inference */
	uint32_t depc;	    /* by event: the last that computes */
	uint32_t seg;	    /* host time that issued it */
	uint32_t function;  /* of the host, for which it waited; TFH_NO: none */
	uint8_t work;	    /* enum tfh_work */
	uint8_t device;
	bool copy, pageable, inferred;
	bool inner;   /* of a graph that runs already */
	bool outside; /* its stream waits for a value, or for an event of others */
};

/* Host time of one thread: the innermost call, or a pause. Per thread they tile the time. */
struct tfh_seg {
	int64_t t0, t1;
	uint64_t handle, bytes;
	uint32_t thread, stream;
	uint32_t from; /* pauses: time of another thread that this one waited for, TFH_NO: own */
	uint32_t op;   /* waits: the op that ended it, TFH_NO none */
	uint8_t label, family, dir;
	bool pageable, failed, saves, makes, async; /* async: get-next fed by another thread */
	bool full, spin;			    /* launch into a full queue; polling */
	bool value;	/* fetch of a value that had to be computed first */
	bool fallback;	/* between a fetch and the copy back of its result */
	bool end;	/* the last of its call */
	bool copying;	/* short pause between two copies */
	bool launching; /* pause that is part of launching, though long */
	bool feeding;	/* pause that is mostly waiting for a batch */
};

/* A host function ran in a stream. */
struct tfh_run_of_function {
	int64_t t0, t1;
};

struct tfh_kernel_time {
	const char *name;
	uint64_t calls;
	int64_t ns;
	struct tfh_hist hist;
};

/* Where the times of a name are; texts mostly have one address each. */
struct tfh_near_kernel {
	const char *name;
	size_t at;
};

/* A stream as the host's calls name it. */
struct tfh_stream_name {
	uint32_t host, lane;
};

struct tfh_device {
	struct tfh_accounts *accounts;
	struct tfh_gpu_info gpu;
	TFH_VEC(struct tfh_dwin) win; /* by window */
	TFH_VEC(struct tfh_lane) lane;
	uint32_t id[TFH_ACCOUNT_DEVICES], n_device;
	/* start after the stream's last op; after the launch's begin, and its end */
	struct tfh_hist gap, latency, start;
	/* from an op's end to the return of a call that slept until then; of others that wait */
	struct tfh_hist wake, after;
	int64_t tau, next;   /* p95 and median of gap */
	int64_t floor, slow; /* p5 and p95 of latency */
	uint8_t critical;    /* index of the device that computes most */
	int64_t busy[TFH_ACCOUNT_DEVICES][TFH_W_COUNT], busy_end[TFH_ACCOUNT_DEVICES][TFH_W_COUNT];
	struct tfh_side side[TFH_ACCOUNT_DEVICES]; /* of training windows */
	int64_t underfilled, compute_ns;	   /* of kernels with too few blocks; of all */
	uint64_t ops, unissued;
	int64_t last; /* start of the last op that a window issued */
	struct {
		uint64_t bytes, small; /* small: number of those under TFH_ACCOUNT_SMALL_COPY */
		int64_t ns, large_ns;
	} copied[TFH_ACCOUNT_DIRS][2]; /* by direction, pageable */
	TFH_VEC(struct tfh_kernel_time) kernel;
	struct tfh_near_kernel near_kernel[TFH_ACCOUNT_NEAR_KERNELS];
	/* the windows in memory */
	size_t w0, w1;
	TFH_VEC(struct tfh_dop) op;	 /* by start */
	TFH_VEC(struct tfh_piece) call;	 /* by thread and begin once loaded */
	TFH_VEC(struct tfh_piece) later; /* calls read that begin behind the horizon */
	int64_t horizon;
	int64_t *behind; /* by thread: begin of the first of `call` that does */
	TFH_VEC(struct tfh_run_of_function) function; /* by end */
	TFH_VEC(struct tfh_seg) seg;		      /* by thread and begin */
	TFH_VEC(uint32_t) ends;			      /* segments of calls by end */
	/* by place in ends: how many end before all just before it that are of its thread */
	TFH_VEC(uint32_t) others;
	TFH_VEC(uint32_t) op_ends; /* ops by end */
	TFH_VEC(int64_t) issued;   /* by window from w0 - 1: when its main work had been */
	uint64_t families;	   /* that segments are of, a bit each */
	uint32_t *thread_seg;	   /* by thread: first segment; one more than threads */
	TFH_VEC(struct tfh_stream_name) stream;
	TFH_VEC(uint32_t) near; /* by thread: segment found last */
	size_t first_op;	/* ops before it ended before the window */
	size_t near_window;	/* of the op read last */
	/* read ahead, NULL: none is left; and a place for feeds that have none */
	struct tfh_call_feed *calls;
	const struct tfh_op *next_op;
	const struct tfh_event *next_ev;
	struct tfh_op op_room;
	uint64_t met[TFH_ACCOUNT_DEVICES]; /* collectives read so far */
	size_t next_long;
	bool async;	/* the input is prepared by other threads */
	int64_t own;	/* of every pause: the recorder's own time, 0 for others' traces */
	int64_t loaded; /* host calls are complete from here */
	int64_t until;	/* what the windows in memory issued and ran is over by then */
	/* results */
	uint64_t windows_a, windows_b, steps_ab;
	int64_t called; /* of what is charged to callbacks: host functions that streams ran */
	int64_t lead;	/* sum over judged windows */
};

/* calls.c: the host's calls for all accounts, in order of their ends. */
struct tfh_call_feed {
	struct tfh_accounts *accounts;
	struct tfh_host_line *line; /* has taken all calls read so far */
	struct tfh_event room;
	size_t n;
	int rc;
};
/* The next call; good until the one after it is asked for. NULL at the end or on error. */
const struct tfh_event *tfh_call_feed_next(struct tfh_call_feed *c);
int tfh_call_feed_error(const struct tfh_call_feed *c, struct tfh_err *err);

/* device.c: which windows have device times, where there are any. 0 or a negative errno. */
int tfh_device_find(struct tfh_accounts *accounts, struct tfh_err *err);
/* Judges those windows; reads `calls` on as far as that needs. `sample` is called with some chunks
 * of them in memory, spread over the run; 0 or a negative errno ends it. */
typedef int (*tfh_sample_fn)(void *arg, const struct tfh_device *d);
int tfh_device_judge(struct tfh_device *d, struct tfh_call_feed *calls, tfh_sample_fn sample,
		     void *arg, struct tfh_err *err);
/* Of what kind the computing is: too few blocks to fill the device, one kernel that is most of it
 * while there are others, or neither. */
enum tfh_cause tfh_compute_cause(const struct tfh_device *d);
/* What most of the judged time was judged from: 'A' 'B' 'C' */
char tfh_tier(const struct tfh_accounts *accounts);
void tfh_device_free(struct tfh_device *d);

/* engines.c */
int tfh_device_survey(struct tfh_device *d, struct tfh_err *err);
uint32_t tfh_lane_of(struct tfh_device *d, const struct tfh_op *op); /* TFH_NO: no memory */

/* busy.c: an op of the second look, whose window, lane and kind of work x tells. -ENOMEM */
int tfh_busy_add(struct tfh_device *d, const struct tfh_op *op, const struct tfh_dop *x);

/* span.c: which calls and ops windows [w0, w1) need, as times, and whether they fit into memory. */
int64_t tfh_needed_from(const struct tfh_device *d, size_t w0);
int64_t tfh_needed_until(const struct tfh_device *d, size_t w1);
bool tfh_chunk_fits(const struct tfh_device *d, size_t w0, size_t w1);

/* window_chunk.c: loads windows [w0, w1) */
int tfh_chunk_start(struct tfh_device *d, struct tfh_call_feed *calls, struct tfh_err *err);
int tfh_chunk_load(struct tfh_device *d, size_t w0, size_t w1, struct tfh_err *err);
/* Counts the ops behind the last windows. */
int tfh_chunk_end(struct tfh_device *d, struct tfh_err *err);

/* hosttime.c: calls into segments, and who waited for whom */
int tfh_host_time(struct tfh_device *d);
int64_t tfh_own_pause(const struct tfh_device *d, const struct tfh_seg *s);
uint32_t tfh_seg_at(const struct tfh_device *d, uint32_t thread, int64_t t); /* holds t-1 */
uint32_t tfh_last_call(const struct tfh_device *d, int64_t t, uint32_t not_thread);

/* depend.c */
int tfh_depend(struct tfh_device *d);
uint32_t tfh_op_ended(const struct tfh_device *d, int64_t t); /* place in op_ends, last <= t */
/* The host function that ended last before t, if that was just before; TFH_NO. */
uint32_t tfh_function_before(const struct tfh_device *d, int64_t t);

/* blame.c */
int tfh_blame_start(struct tfh_device *d);
void tfh_blame_window(struct tfh_device *d, size_t window, struct tfh_account *a);

/* account.c: where the time of each window went, from facts, loops, cover and matches, which *accounts names
 * already. The caller frees what was found, also after an error. */
int tfh_find_accounts(struct tfh_accounts *accounts, tfh_sample_fn sample, void *arg,
		      struct tfh_err *err);
void tfh_accounts_free(struct tfh_accounts *accounts);

#endif
