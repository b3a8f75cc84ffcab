/*
 * Input of the analysis: one process' events in order of end time, as often as needed, and names. A
 * run (feed.c) is one source; tests provide others, with events whose correct results are
 * known.
 */
#ifndef TFH_JUDGE_FEED_H
#define TFH_JUDGE_FEED_H

#include "judge/judge.h"
#include "model/model.h"
#include "model/ops/ops.h"
#include "model/start.h"
#include "model/symbols/pylines.h"

struct tfh_chain;
struct tfh_generations;

struct tfh_feed {
	void *arg;
	/* Starts a pass over the events of one process. 0 or -errno. */
	int (*rewind)(void *arg, uint32_t process, struct tfh_err *err);
	/* Next event in order of end time; false at the end or on error. */
	bool (*next)(void *arg, struct tfh_event *ev);
	/* The same without a copy: valid until the call after the next. NULL: only next()
	 * exists. */
	const struct tfh_event *(*borrow)(void *arg);
	/* Like tfh_merge_peek() and tfh_merge_advance(); NULL: only single events are available. */
	const struct tfh_entry *(*peek)(void *arg, uint32_t *n);
	void (*advance)(void *arg, uint32_t n);
	/* Like tfh_merge_row(), tfh_merge_row_times() and tfh_merge_take_row(); NULL: there are no
	 * rows. */
	const struct tfh_launch_row *(*row)(void *arg);
	void (*row_times)(void *arg, int64_t t0[TFH_LAUNCH_ROW], int64_t t1[TFH_LAUNCH_ROW]);
	void (*take_row)(void *arg);
	/* After next() returned false: 0, or the -errno that ended the pass early. */
	int (*error)(void *arg, struct tfh_err *err);
	/* Like tfh_run_discarded_spans() and tfh_run_digests(); NULL: no records were discarded. */
	const struct tfh_discarded_span *discarded;
	uint32_t n_discarded;
	int (*digests)(void *arg, uint32_t process, tfh_digest_cb cb, void *cb_arg);
	/* Like tfh_run_name(). */
	const char *(*name)(void *arg, uint32_t process, enum tft_name kind, uint32_t id,
			    uint64_t *handle, uint64_t *extra);
	/* Device ops of one process in order of their start, like tfh_ops_*; all NULL if there are
	 * none. An op's `name` lives as long as the feed. */
	int (*rewind_ops)(void *arg, uint32_t process, struct tfh_err *err);
	/* The same if the fields of tfh_ops_brief() are enough; NULL: use rewind_ops(). */
	int (*rewind_brief)(void *arg, uint32_t process, struct tfh_err *err);
	bool (*next_op)(void *arg, struct tfh_op *op);
	const struct tfh_op *(*borrow_op)(void *arg); /* to next_op() what borrow() is to next() */
	int (*ops_error)(void *arg, struct tfh_err *err);
	void (*gpu)(void *arg, uint32_t process, struct tfh_gpu_info *out);
	/* Like tfh_run_site(); NULL: call sites are unknown. */
	const char *(*site)(void *arg, uint32_t process, uint32_t stack);
	/* Like tfh_run_place(); NULL: lines are unknown. */
	uint32_t (*place)(void *arg, uint32_t process, uint32_t place, struct tfh_model_line *frame,
			  uint32_t most);
	/* Like tfh_run_python(); NULL: likewise. */
	uint32_t (*lines)(void *arg, uint32_t process, uint32_t stack, struct tfh_model_line *frame,
			  uint32_t most);
	/* Like tfh_run_functions(); NULL: functions are unknown. */
	uint32_t (*functions)(void *arg, uint32_t process, uint32_t stack,
			      struct tfh_model_line *frame, uint32_t most);
	/* Like tfh_run_function(); NULL: likewise. */
	bool (*function_at)(void *arg, uint32_t process, uint64_t address,
			    struct tfh_model_line *out);
	/* Like tfh_run_start(); NULL: there are no samples from before the recording. */
	const struct tfh_start *(*start)(void *arg, uint32_t process);
	/* Machine samples of a process, like tfh_run_samples(); NULL: there are none. */
	uint32_t (*samples)(void *arg, uint32_t process, const struct tfh_sample **out);
	const struct tfh_process *processes;
	uint32_t n_processes;
	const struct tfh_generations *generations; /* NULL: the ranks were started once */
	bool every_generation; /* `each` wants the ranks of those that are not judged, too */
	const struct tfh_thread_info *threads;
	uint32_t n_threads;
	const struct tfh_hole *holes;
	uint32_t n_holes;
	int64_t wall_ns, end_ns; /* like tfh_run_wall_ns and tfh_run_end_ns */
	bool imported;		 /* another profiler's trace */
	bool kineto;		 /* PyTorch's */
	bool failed;		 /* the job ended with an exit code other than 0 */
	tfh_rank_fn each;	 /* as in tfh_analyze_ranks(), NULL: not requested */
	void *each_arg;
	uint32_t judging;	 /* threads that judge; 0: as many as there are processors */
	struct tfh_chain *chain; /* chains to be filled for their steps (chain.h), NULL: none */
	/* The judge chooses the steps of these chains; NULL: the steps are known. */
	struct tfh_likely *likely;
};

/* The next event, stored in `room` if the feed has no storage for it; NULL at the end. */
static inline const struct tfh_event *tfh_feed_borrow(const struct tfh_feed *f,
						      struct tfh_event *room)
{
	if (f->borrow)
		return f->borrow(f->arg);
	return f->next(f->arg, room) ? room : NULL;
}

/* The entries available after the event returned last; none if the feed does not support this. */
static inline const struct tfh_entry *tfh_feed_peek(const struct tfh_feed *f, uint32_t *n)
{
	*n = 0;
	return f->peek ? f->peek(f->arg, n) : NULL;
}

static inline void tfh_feed_advance(const struct tfh_feed *f, uint32_t n)
{
	if (n)
		f->advance(f->arg, n);
}

/* The next row; NULL: none. */
static inline const struct tfh_launch_row *tfh_feed_row(const struct tfh_feed *f)
{
	return f->row ? f->row(f->arg) : NULL;
}

/* The next op; see tfh_feed_borrow(). */
static inline const struct tfh_op *tfh_feed_borrow_op(const struct tfh_feed *f, struct tfh_op *room)
{
	if (f->borrow_op)
		return f->borrow_op(f->arg);
	return f->next_op(f->arg, room) ? room : NULL;
}

static inline int tfh_feed_rewind_brief(const struct tfh_feed *f, uint32_t process,
					struct tfh_err *err)
{
	return (f->rewind_brief ? f->rewind_brief : f->rewind_ops)(f->arg, process, err);
}

/* Judges one process of a feed, like tfh_analyze(); the caller adds what only the run knows (end,
 * quality). */
int tfh_analyze_feed(const struct tfh_feed *feed, struct tfh_result **out, struct tfh_err *err);

#endif
