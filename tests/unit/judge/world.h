/* Several processes of one job, each made with devgen.h, and judged together. */
#ifndef TFH_TEST_WORLD_H
#define TFH_TEST_WORLD_H

#include "devgen.h"

#define WORLD_MOST 4

struct world {
	struct dg *d[WORLD_MOST];
	struct tfh_process process[WORLD_MOST];
	struct tfh_thread_info thread[WORLD_MOST * GEN_THREADS];
	struct tfh_feed feed;
	uint32_t n, current;
};

static inline int w_rewind(void *arg, uint32_t p, struct tfh_err *err)
{
	struct world *w = arg;

	w->current = p;
	return dg_rewind(w->d[p], 0, err);
}

static inline bool w_next(void *arg, struct tfh_event *ev)
{
	struct world *w = arg;

	if (!dg_next(w->d[w->current], ev))
		return false;
	ev->process = w->current;
	ev->thread += w->current * GEN_THREADS;
	return true;
}

static inline const char *w_name(void *arg, uint32_t p, enum tft_name kind, uint32_t id,
				 uint64_t *handle, uint64_t *extra)
{
	return dg_name(((struct world *)arg)->d[p], 0, kind, id, handle, extra);
}

static inline int w_rewind_ops(void *arg, uint32_t p, struct tfh_err *err)
{
	struct world *w = arg;

	w->current = p;
	return dg_rewind_ops(w->d[p], 0, err);
}

static inline bool w_next_op(void *arg, struct tfh_op *op)
{
	struct world *w = arg;

	if (!dg_next_op(w->d[w->current], op))
		return false;
	op->process = w->current;
	if (op->thread != UINT32_MAX)
		op->thread += w->current * GEN_THREADS;
	return true;
}

static inline int no_error(void *arg, struct tfh_err *err)
{
	(void)arg;
	(void)err;
	return 0;
}

static inline void w_gpu(void *arg, uint32_t p, struct tfh_gpu_info *out)
{
	*out = ((struct world *)arg)->d[p]->gpu;
}

/* `ranks`: whether a launcher numbers the processes. */
static inline struct tfh_result *judge_some(struct world *w, bool ranks)
{
	struct tfh_result *r = NULL;
	struct tfh_err err = {0};

	for (uint32_t i = 0; i < w->n; i++) {
		struct tfh_feed *f = dg_feed(w->d[i]);
		w->process[i] = f->processes[0];
		w->process[i].rank = ranks ? (int32_t)i : -1;
		w->process[i].pid = GEN_PID + 1000 * i;
		for (uint32_t t = 0; t < GEN_THREADS; t++) {
			w->thread[i * GEN_THREADS + t] = f->threads[t];
			w->thread[i * GEN_THREADS + t].process = i;
		}
		if (f->wall_ns > w->feed.wall_ns)
			w->feed.wall_ns = f->wall_ns;
	}
	w->feed.arg = w;
	w->feed.rewind = w_rewind;
	w->feed.next = w_next;
	w->feed.error = w->feed.ops_error = no_error;
	w->feed.name = w_name;
	w->feed.rewind_ops = w_rewind_ops;
	w->feed.next_op = w_next_op;
	w->feed.gpu = w_gpu;
	w->feed.processes = w->process;
	w->feed.n_processes = w->n;
	w->feed.threads = w->thread;
	w->feed.n_threads = w->n * GEN_THREADS;
	if (tfh_analyze_feed(&w->feed, &r, &err))
		print_error("%s\n", err.text);
	for (uint32_t i = 0; i < w->n; i++)
		dg_free(w->d[i]);
	assert_non_null(r);
	return r;
}

static inline struct tfh_result *judge_all(struct world *w)
{
	return judge_some(w, true);
}

#endif
