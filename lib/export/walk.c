#include "export/walk.h"

#include "export/by_begin.h"
#include "model/big.h"

/* ---- calls ---- */

static const char *text_of(struct tfh_run *run, const struct tfh_event *ev, enum tft_name kind,
			   uint64_t id)
{
	return id < UINT32_MAX ? tfh_run_name(run, ev->process, kind, (uint32_t)id, NULL, NULL)
			       : "";
}

static const char *name_of(const struct tfh_export *x, const struct tfh_event *ev)
{
	struct tfh_run *run = x->run;
	const char *text = "";

	if (ev->kind == TFT_RANGE)
		text = text_of(run, ev, TFT_NAME_STRING, ev->w[0]);
	else if (ev->kind == TFT_MARK)
		text = text_of(run, ev, TFT_NAME_STRING, ev->w[1]);
	else if (ev->kind == TFT_AGG)
		text = text_of(run, ev, TFT_NAME_STAGE, ev->stream);
	else if (ev->fn->family == TFH_FAM_STAGE)
		text = text_of(run, ev, TFT_NAME_STAGE, ev->w[1]);
	else if (ev->fn->args == TFH_ARGS_EXECUTE)
		text = text_of(run, ev, TFT_NAME_OP, ev->w[0]);
	if (*text)
		return tfh_pseudonym(x->hidden, TFH_NAMED_RANGE, text);
	/* Names of runtimes' functions are theirs, whatever trace they are from. */
	return ev->fn->family < TFH_FAM_CONSUMER
		       ? ev->fn->name
		       : tfh_pseudonym(x->hidden, TFH_NAMED_CALL, ev->fn->name);
}

static struct tfh_walk_call describe(const struct tfh_export *x, const struct tfh_by_begin *calls,
				     const struct tfh_event *ev)
{
	bool launch = ev->kind == TFT_CALL && ev->fn->args == TFH_ARGS_LAUNCH;
	const char *kernel =
		launch ? text_of(x->run, ev, TFT_NAME_FUNCTION, (uint32_t)ev->w[0]) : "";

	return (struct tfh_walk_call){.ev = ev,
				      .name = name_of(x, ev),
				      .kernel = tfh_pseudonym(x->hidden, TFH_NAMED_KERNEL, kernel),
				      .id = tfh_by_begin_id(calls, ev->thread, ev->number),
				      .count = ev->kind == TFT_AGG ? ev->ctx : 1};
}

static int walk_calls(const struct tfh_export *x, struct tfh_by_begin *calls,
		      const struct tfh_walker *w, void *arg, struct tfh_err *err)
{
	const struct tfh_event *ev;
	int rc = 0;

	while (!rc && (ev = tfh_by_begin_next(calls))) {
		struct tfh_walk_call call = describe(x, calls, ev);
		rc = w->call(arg, &call);
	}
	return rc ? rc : tfh_by_begin_error(calls, err);
}

/* ---- a process ---- */

static int walk_steps(const struct tfh_export *x, uint32_t process, const struct tfh_walker *w,
		      void *arg)
{
	const struct tfh_export_rank *rank = tfh_export_rank_of(x, process);
	int rc = 0;

	for (size_t i = 0; rank && i < rank->n && !rc; tfh_big_pass(++i))
		if (tfh_export_has(x, &rank->step[i]))
			rc = w->step(arg, rank, &rank->step[i]);
	return rc;
}

/* `calls` assigns ids to calls, whether or not it is read. */
static int walk_ops(const struct tfh_export *x, uint32_t process, struct tfh_by_begin *calls,
		    const struct tfh_walker *w, void *arg, struct tfh_err *err)
{
	struct tfh_ops *ops;
	struct tfh_op op;
	int64_t t0, t1;
	int rc = tfh_ops_open(x->run, process, &ops, err);

	if (rc)
		return rc;
	tfh_export_span(x, process, &t0, &t1);
	while (!rc && tfh_ops_next(ops, &op)) {
		if (op.t1 < t0 || op.t0 >= t1)
			continue;
		op.name = tfh_pseudonym(x->hidden, TFH_NAMED_KERNEL, op.name);
		bool known = op.thread != UINT32_MAX && op.call != UINT64_MAX;
		rc = w->op(arg, &op, known ? tfh_by_begin_id(calls, op.thread, op.call) : 0);
	}
	if (!rc)
		rc = tfh_ops_error(ops, err);
	tfh_ops_close(ops);
	return rc;
}

static int walk_process(const struct tfh_export *x, uint32_t process, const struct tfh_walker *w,
			void *arg, struct tfh_err *err)
{
	const struct tfh_process *p;
	struct tfh_by_begin *calls = NULL;
	int64_t t0, t1;
	int rc = 0;

	tfh_run_processes(x->run, &p);
	tfh_export_span(x, process, &t0, &t1);
	if (w->process)
		rc = w->process(arg, process, &p[process]);
	if (!rc && w->step)
		rc = walk_steps(x, process, w, arg);
	if (!rc && (w->call || w->op))
		rc = tfh_by_begin_open(x->run, process, t0, t1, &calls, err);
	if (!rc && w->call)
		rc = walk_calls(x, calls, w, arg, err);
	if (!rc && w->op)
		rc = walk_ops(x, process, calls, w, arg, err);
	tfh_by_begin_close(calls);
	return !rc && w->end ? w->end(arg, process) : rc;
}

int tfh_walk(const struct tfh_export *x, const struct tfh_walker *w, void *arg, struct tfh_err *err)
{
	const struct tfh_process *p;
	uint32_t n = tfh_run_processes(x->run, &p);
	int rc = 0;

	for (uint32_t i = 0; i < n && !rc; i++)
		if (p[i].events && (x->only == UINT32_MAX || x->only == i))
			rc = walk_process(x, i, w, arg, err);
	return rc;
}
