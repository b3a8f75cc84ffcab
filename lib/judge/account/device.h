/*
 * Device times in the analysis (tiers A and B). Two passes over the ops of one process:
 *
 *	engines   first pass: when each window's work was complete; latencies
 *	device    second pass: which windows are judged together, as a slice
 *	busy      busy time of engines, kernels, copies
 *	chunk     loads a slice: ops and calls of a few windows
 *	slices    judges slices in parallel, using:
 *	hosttime  what the threads did
 *	depend    what each op had to wait for
 *	blame     charges every moment without computing to what caused its end
 *	replay    times the same windows again without a class of costs
 *
 * An op belongs to the window in which it was issued, not to the one in which it ran. A window
 * lasts from the completion of the previous one to its own completion, so windows tile the time
 * however far the host runs ahead. Between a window with device times and one without, both end at
 * the cut of the host's windows: neighbours share one cut everywhere.
 */
#ifndef TFH_JUDGE_ACCOUNT_DEVICE_H
#define TFH_JUDGE_ACCOUNT_DEVICE_H

#include "base/key_table.h"
#include "judge/account/account.h"
#include "judge/facts/matches.h"
#include "judge/stats.h"

#define TFH_NO UINT32_MAX

/* A window as seen from the device. */
struct tfh_device_window {
	int64_t done; /* completion: end of its last op on the critical device */
	/* time that is judged: from completion to completion; if a neighbour has no device times,
	 * to the cut of the host's windows */
	int64_t from, to;
	uint32_t ops;
	float fetched; /* most bytes copied to the host without computing in between */
};

/* How many kernels run at once, counted as ops are read. */
struct tfh_side {
	int64_t end[TFH_ACCOUNT_SIDE];	  /* ends of the running ones */
	int64_t ns[TFH_ACCOUNT_SIDE + 1]; /* time during which that many ran at once */
	uint32_t n;
};

/* A stream of a device. */
struct tfh_lane {
	uint32_t ctx, stream;
	uint8_t device;	  /* index */
	int64_t past_end; /* end of the last op that is no longer in memory */
	int64_t computed; /* ns in training windows */
	uint32_t thread;  /* launched what it computed; `mixed`: one of several */
	bool mixed;
	/* used while dependencies are found */
	uint32_t last;	/* op issued last */
	uint32_t wait;	/* op that the next op waits for */
	uint32_t waitc; /* last op that computes among those */
	int64_t end;	/* end of the op started last */
	/* Number of ops without a known call, until the first op with a known call. */
	uint64_t early;
	bool issued, outside;
};

struct tfh_device_op {
	int64_t t0, t1, issue0, issue1;
	int64_t ready;	/* earliest possible start by all known constraints */
	int64_t shared; /* collectives: duration of the shortest participant, -1 unknown */
	uint32_t lane, thread, window, graph, correlation;
	/* ops that it follows: prev in its stream, dep by an event or by inference */
	uint32_t prev, dep;
	uint32_t depc;	   /* by event: the last op that computes */
	uint32_t span;	   /* span of the call that issued it */
	uint32_t function; /* host function that it waited for; TFH_NO: none */
	uint8_t work;	   /* enum tfh_work */
	uint8_t device;
	bool copy, pageable, inferred;
	bool inner;   /* node of a graph that runs already */
	bool outside; /* its stream waits for a value, or for another process' event */
};

/* Host time of one thread: the innermost call, or a pause. A thread's spans tile its time. */
struct tfh_host_span {
	int64_t t0, t1;
	uint64_t handle, bytes; /* as of struct tfh_piece */
	uint32_t thread, stream;
	/* Pauses: span of another thread that this one waited for; TFH_NO: none. */
	uint32_t from;
	/* Pauses of a library's thread: the pause of the thread that requested its work; TFH_NO:
	 * none. */
	uint32_t asked;
	uint32_t op; /* waits: the op that ended it, TFH_NO: none */
	uint8_t activity, family, dir;
	bool pageable, failed, saves, makes, logs,
		async; /* async: get-next fed by another thread */
	/* full: launch into a full queue; spin: polling. */
	bool full, spin;
	bool value;	/* fetch of a value that had to be computed first */
	bool fallback;	/* between a fetch and the copy back of its result */
	bool end;	/* last span of its call */
	bool copying;	/* short pause between two copies */
	bool launching; /* pause that belongs to launching, although long */
	/* Longer pauses: in 255ths, which parts samples divide them into; all 0: no samples do. */
	uint8_t divided[TFH_PART_COUNT];
	/* What a library's thread did in a pause for the thread that requested its work
	 * (staged_copies.c), enum tfh_cause; TFH_CAUSE_NONE: it is not such a pause. */
	int8_t library;
};

/* A host function that ran in a stream. */
struct tfh_run_of_function {
	int64_t t0, t1;
	uint32_t stream; /* the host's name of it */
};

struct tfh_kernel_time {
	const char *name;
	uint64_t calls;
	int64_t ns;
	struct tfh_hist hist;
};

/* Cache for finding a name's times; equal texts mostly have equal addresses. */
struct tfh_near_kernel {
	const char *name;
	size_t at;
};

/* The handle of a stream in host calls, and its lane. */
struct tfh_stream_name {
	uint32_t host, lane;
	uint8_t device; /* of the lane: each device has a name of its own for a handle */
};
/* Whether a device's stream has a name already. */
static inline bool tfh_stream_known(const struct tfh_stream_name *v, size_t n,
				    const struct tfh_stream_name *name)
{
	for (size_t i = 0; i < n; i++)
		if (v[i].host == name->host && v[i].device == name->device)
			return true;
	return false;
}

/* A window of a slice: its account, and what later phases need while the slice is in memory. */
struct tfh_slice_window {
	struct tfh_account account;
	bool counts; /* tfh_window_counts(), and it was no stall */
	bool known;  /* its launches have ops */
};

/* Windows that are judged together, with all data that this needs. They have their own copies of
 * what the loader keeps changing, so that several slices can be judged at the same time
 * (slices.c). */
struct tfh_slices;
struct tfh_slice {
	struct tfh_slices *of;
	const struct tfh_device *device;
	const struct tfh_accounts *accounts;
	uint64_t number; /* slices come in order of time */
	size_t w0, w1;
	TFH_VEC(struct tfh_slice_window) window; /* from w0 */
	/* loaded */
	TFH_VEC(struct tfh_device_op) op;	      /* by start */
	TFH_VEC(struct tfh_piece) call;		      /* by thread and begin */
	TFH_VEC(struct tfh_run_of_function) function; /* by end */
	TFH_VEC(struct tfh_lane) lane;
	int64_t until; /* the ops of these windows ended by then */
	/* computed from these, in memory lent by the judging thread */
	TFH_VEC(struct tfh_host_span) span; /* by thread and begin */
	TFH_VEC(uint32_t) ends;		    /* spans of calls by end */
	/* by index in `ends`: how many calls directly before end on the same thread */
	TFH_VEC(uint32_t) others;
	TFH_VEC(uint32_t) op_ends; /* ops by end */
	TFH_VEC(int64_t) issued;   /* by window from w0 - 1: when its main work had been issued */
	uint64_t families;	   /* families of the calls in `span`, one bit each */
	/* By thread: first span; has an element more than there are threads. */
	uint32_t *thread_span;
	TFH_VEC(uint32_t) near; /* by thread: the span found last */
	size_t first_op;	/* earlier ops ended before the window */
	/* The slice's own names of streams and wake-up times and, after its turn (slices.c), also
	 * those of all slices before. Wake-up times are from an op's end to the return of the call
	 * that waited for it: wake if the thread slept, after if it hardly waited; on a crowded
	 * machine, prompt: of waits and copies whose thread did not wait for a CPU then. */
	TFH_VEC(struct tfh_stream_name) stream;
	struct tfh_hist wake, after, prompt;
	struct tfh_pauses *pauses;
	int64_t called; /* host functions that streams ran, as part of callbacks */
	int64_t turns;	/* part of host.sync: the devices took turns */
	int64_t held;	/* of copies from pinned memory: an event let them wait for kernels */
	bool sampled;	/* the sampler takes a sample of it */
	void *sample;	/* the sample, NULL: none */
	bool judged;
	int rc;
};

struct tfh_device {
	struct tfh_accounts *accounts;
	struct tfh_gpu_info gpu;
	TFH_VEC(struct tfh_device_window) win; /* by window */
	TFH_VEC(struct tfh_lane) lane;
	struct tfh_map lane_at; /* by context, stream and device: index + 1 */
	uint32_t id[TFH_ACCOUNT_DEVICES], n_device;
	/* gap: start after the previous op of the stream; latency: start after the launch's begin;
	 * start: after the launch's end */
	struct tfh_hist gap, latency, start;
	int64_t tau, next;   /* p95 and median of gap */
	int64_t floor, slow; /* p5 and p95 of latency */
	uint8_t critical;    /* index of the device that computes most */
	int64_t busy[TFH_ACCOUNT_DEVICES][TFH_W_COUNT], busy_end[TFH_ACCOUNT_DEVICES][TFH_W_COUNT];
	struct tfh_side side[TFH_ACCOUNT_DEVICES]; /* of training windows */
	/* Kernel time with too few blocks to fill the device; all kernel time. */
	int64_t underfilled, compute_ns;
	uint64_t ops, unissued;
	int64_t ran_until[TFH_ACCOUNT_DEVICES]; /* first pass: end of the ops read so far */
	/* of training windows: a device was idle and did not start an op that nothing delayed */
	int64_t held_ns;
	bool contended; /* held_ns is so large that other processes must have used the device */
	int64_t last;	/* start of the last op that a window issued */
	struct {
		uint64_t bytes, small; /* small: number of copies below TFH_ACCOUNT_SMALL_COPY */
		int64_t ns, large_ns;
	} copied[TFH_ACCOUNT_DIRS][2]; /* [direction][pageable] */
	TFH_VEC(struct tfh_kernel_time) kernel;
	struct tfh_map kernel_at; /* by name: index + 1 */
	struct tfh_near_kernel near_kernel[TFH_ACCOUNT_NEAR_KERNELS];
	/* read for the next slice, and kept from the slices before */
	TFH_VEC(struct tfh_device_op) op; /* by start */
	TFH_VEC(struct tfh_piece) call;
	TFH_VEC(struct tfh_piece) later; /* calls already read that begin after the horizon */
	int64_t horizon;
	/* By thread: begin of the first call in `call` that lies after the horizon. */
	int64_t *first_later;
	TFH_VEC(struct tfh_run_of_function) function; /* by end */
	size_t near_window;			      /* window of the op read last */
	/* feed of calls, read ahead; NULL: none is left. And an empty feed for processes without
	 * calls. */
	struct tfh_call_feed *calls;
	const struct tfh_op *next_op;
	const struct tfh_event *next_ev;
	struct tfh_op op_room;
	uint64_t met[TFH_ACCOUNT_DEVICES]; /* number of collectives read so far */
	size_t next_long;
	bool async;	/* other threads prepare the input */
	int64_t made;	/* all their work for a batch, ns; INT64_MAX: not known */
	int64_t own;	/* the recorder's own time in every pause; 0 for other tools' traces */
	int64_t loaded; /* host calls are complete from here on */
	/* results */
	uint64_t windows_a, windows_b;
	int64_t called; /* host functions that streams ran, as part of callbacks */
	int64_t turns;	/* part of host.sync: the devices took turns */
	int64_t held;	/* of copies from pinned memory: an event let them wait for kernels */
	int64_t lead;	/* how far the host was ahead: sum over judged windows */
};

/* calls.c: the host's calls for all accounts, in order of their ends. */
struct tfh_call_feed {
	struct tfh_accounts *accounts;
	struct tfh_host_line *line; /* has taken all calls read so far */
	struct tfh_event room;
	size_t n;
	int rc;
};
/* The next call, valid until the next request. NULL at the end or on error. */
const struct tfh_event *tfh_call_feed_next(struct tfh_call_feed *c);
int tfh_call_feed_error(const struct tfh_call_feed *c, struct tfh_err *err);

/* device.c: finds windows with device times. 0 or a negative errno. */
int tfh_device_find(struct tfh_accounts *accounts, struct tfh_err *err);
/* Takes samples of some slices, spread over the run, for a later phase, while they are in
 * memory. */
struct tfh_sampler {
	void *arg;
	/* Samples of one slice, NULL when out of memory; several threads call it. Released by
	 * `add`. */
	void *(*take)(const void *arg, const struct tfh_slice *sl);
	/* Adds a sample to the others, in order of the slices, unless `drop`. 0 or -ENOMEM. */
	int (*add)(void *arg, void *sample, bool drop);
};
/* Judges those windows, reading `calls` as far as needed. 0 or a negative errno. */
int tfh_device_judge(struct tfh_device *d, struct tfh_call_feed *calls,
		     const struct tfh_sampler *sampler, struct tfh_err *err);
/* What limits the computing: too few blocks to fill the device, one kernel that takes most of the
 * time (if there are several kernels), or neither. */
enum tfh_cause tfh_compute_cause(const struct tfh_device *d);
/* The tier of most of the judged time: 'A', 'B' or 'C'. */
char tfh_tier(const struct tfh_accounts *accounts);
/* Number of steps whose device ops were counted: training steps with device times, and stalls,
 * which are recognised only when a step's account is closed, after its ops. NAN: none. */
double tfh_timed_steps(const struct tfh_device *d);
void tfh_device_free(struct tfh_device *d);

/* engines.c */
int tfh_device_survey(struct tfh_device *d, struct tfh_err *err);
/* lane of an op's stream; TFH_NO: out of memory */
uint32_t tfh_lane_of(struct tfh_device *d, const struct tfh_op *op);

/* busy.c: counts an op in the second pass; x has its window, lane and kind of work. 0 or
 * -ENOMEM. */
int tfh_busy_add(struct tfh_device *d, const struct tfh_op *op, const struct tfh_device_op *x);

/* span.c: from and until when windows [w0, w1) need calls and ops, and whether they fit into
 * memory. */
int64_t tfh_needed_from(const struct tfh_device *d, size_t w0);
int64_t tfh_needed_until(const struct tfh_device *d, size_t w1);
bool tfh_chunk_fits(const struct tfh_device *d, size_t w0, size_t w1);

/* window_chunk.c: loads windows [w0, w1) into a slice, and keeps what the next one needs, which
 * begins with window `next`, SIZE_MAX: there is none */
int tfh_chunk_start(struct tfh_device *d, struct tfh_call_feed *calls, struct tfh_err *err);
int tfh_chunk_load(struct tfh_device *d, struct tfh_slice *sl, size_t w0, size_t w1, size_t next,
		   struct tfh_err *err);
/* Counts the ops after the last windows. */
int tfh_chunk_end(struct tfh_device *d, struct tfh_err *err);

/* slices.c: judges slices in parallel. NULL when out of memory. */
struct tfh_slices;
struct tfh_slices *tfh_slices_new(struct tfh_device *d, const struct tfh_sampler *sampler);
/* An empty slice for windows [w0, w1), once there is memory for them. The caller loads it and gives
 * it back, in order of time, before the next request. NULL on an error of an earlier slice. */
struct tfh_slice *tfh_slices_room(struct tfh_slices *q, size_t w0, size_t w1);
void tfh_slices_give(struct tfh_slices *q, bool sample);
/* Waits until all are judged and their accounts closed. 0 or the first error. */
int tfh_slices_end(struct tfh_slices *q);
void tfh_slices_free(struct tfh_slices *q);

/* hosttime.c: makes spans of calls, and finds which threads waited for each other */
int tfh_host_time(struct tfh_slice *sl);
/* staged_copies.c: marks the pauses in which a library copied pageable memory. */
void tfh_mark_staging(struct tfh_slice *sl);
/* fallback.c: marks ops without an implementation for the device */
void tfh_mark_fallbacks(struct tfh_slice *sl);
/* The span that contains t - 1. */
uint32_t tfh_span_at(const struct tfh_slice *sl, uint32_t thread, int64_t t);
uint32_t tfh_last_call(const struct tfh_slice *sl, int64_t t, uint32_t not_thread);

/* depend.c */
int tfh_find_issuers(struct tfh_slice *sl); /* first: each op's call; names of streams */
int tfh_depend(struct tfh_slice *sl);
/* When a waiting call's thread began to be woken up, since what it waited for had ended; INT64_MAX:
 * it is not known to have waited. */
int64_t tfh_woken_from(const struct tfh_slice *sl, const struct tfh_host_span *s);
/* index in op_ends of the last op with end <= t */
uint32_t tfh_op_ended(const struct tfh_slice *sl, int64_t t);
/* The host function that ended last before t, if it ended just before; otherwise TFH_NO. */
uint32_t tfh_function_before(const struct tfh_slice *sl, int64_t t);

/* blame_causes.c: finds when the windows' main work had been issued;
 * before the first of them is charged. 0 or -ENOMEM. */
int tfh_blame_start(struct tfh_slice *sl);
/* blame.c: charges all moments of a window. */
void tfh_blame_window(struct tfh_slice *sl, size_t window, struct tfh_account *a);

/* account.c: where the time of each window went, from the facts, loops, cover and matches that
 * *accounts refers to. The caller frees the results, also after an error. */
int tfh_find_accounts(struct tfh_accounts *accounts, const struct tfh_sampler *sampler,
		      struct tfh_err *err);
void tfh_accounts_free(struct tfh_accounts *accounts);

static inline int64_t tfh_max_ns(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static inline int64_t tfh_min_ns(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

#endif
