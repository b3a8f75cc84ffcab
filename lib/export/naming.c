#include "export/naming.h"

#include "base/text.h"
#include "model/symbols/demangle.h"

bool tfh_export_issues(const struct tfh_event *ev)
{
	return ev->kind == TFT_CALL && !(ev->flags & TFT_F_CAPTURED) &&
	       tfh_family_issues(ev->fn->family);
}

int64_t tfh_export_call_bytes(const struct tfh_event *ev)
{
	bool bytes = ev->kind == TFT_CALL &&
		     (ev->fn->args == TFH_ARGS_COPY || ev->fn->args == TFH_ARGS_ALLOC ||
		      ev->fn->args == TFH_ARGS_MEMSET);

	return bytes ? (int64_t)ev->w[0] : -1;
}

const char *tfh_export_op_kind(const struct tfh_op *op)
{
	static const char *const kind[] = {[TFH_OP_KERNEL] = "kernel",
					   [TFH_OP_COPY] = "copy",
					   [TFH_OP_MEMSET] = "memset",
					   [TFH_OP_SYNC] = "sync",
					   [TFH_OP_GRAPH] = "graph"};

	return op->kind < sizeof(kind) / sizeof(*kind) ? kind[op->kind] : NULL;
}

static const char *copy_name(const struct tfh_op *op)
{
	static const char *const pinned[] = {[TFH_DIR_H2D] = "Memcpy HtoD (Pinned -> Device)",
					     [TFH_DIR_D2H] = "Memcpy DtoH (Device -> Pinned)",
					     [TFH_DIR_D2D] = "Memcpy DtoD (Device -> Device)",
					     [TFH_DIR_H2H] = "Memcpy HtoH (Pinned -> Pinned)",
					     [TFH_DIR_P2P] = "Memcpy PtoP (Device -> Device)"};

	if (op->managed)
		return op->dir == TFH_DIR_D2H ? "Memcpy DtoH (Unified)" : "Memcpy HtoD (Unified)";
	if (op->pageable && op->dir == TFH_DIR_H2D)
		return "Memcpy HtoD (Pageable -> Device)";
	if (op->pageable && op->dir == TFH_DIR_D2H)
		return "Memcpy DtoH (Device -> Pageable)";
	if (op->pageable && op->dir == TFH_DIR_H2H)
		return "Memcpy HtoH (Pageable -> Pageable)";
	return op->dir < sizeof(pinned) / sizeof(*pinned) && pinned[op->dir] ? pinned[op->dir]
									     : "Memcpy";
}

const char *tfh_export_op_name(const struct tfh_op *op)
{
	switch (op->kind) {
	case TFH_OP_COPY:
		return copy_name(op);
	case TFH_OP_MEMSET:
		return "Memset (Device)";
	case TFH_OP_SYNC:
		return "Synchronisation";
	case TFH_OP_GRAPH:
		return "CUDA graph";
	default:
		return *op->name ? op->name : "kernel";
	}
}

void tfh_export_rank_name(const struct tfh_export *x, uint32_t process, char out[32])
{
	const struct tfh_process *p;

	tfh_run_processes(x->run, &p);
	if (p[process].rank >= 0)
		snprintf(out, 32, "r%d", p[process].rank);
	else
		snprintf(out, 32, "p%u", process);
}

const char *tfh_export_batch_name(char room[256], const char *name)
{
	if (tfh_starts_with(name, "enumerate(DataLoader)"))
		return name;
	snprintf(room, 256, "enumerate(DataLoader)#%.200s.__next__", name);
	return room;
}

uint32_t tfh_export_driving(const struct tfh_export *x, uint32_t process, const uint64_t *issued)
{
	const struct tfh_thread_info *t;
	uint32_t n = tfh_run_threads(x->run, &t), best = 0;

	for (uint32_t i = 0; i < n; i++)
		if (t[i].process == process &&
		    (t[best].process != process || issued[i] > issued[best]))
			best = i;
	return best;
}

#define MADE_UP 4194305u /* greater than any id that Linux assigns */

static bool own_pid(const struct tfh_export *x, uint32_t process)
{
	const struct tfh_process *p;
	uint32_t n = tfh_run_processes(x->run, &p), same = 0;

	for (uint32_t i = 0; i < n; i++)
		same += p[i].pid == p[process].pid;
	return p[process].pid && same == 1;
}

uint32_t tfh_export_pid(const struct tfh_export *x, uint32_t process)
{
	const struct tfh_process *p;

	tfh_run_processes(x->run, &p);
	return own_pid(x, process) ? p[process].pid : MADE_UP + process;
}

uint32_t tfh_export_tid(const struct tfh_export *x, uint32_t thread)
{
	const struct tfh_thread_info *t;

	tfh_run_threads(x->run, &t);
	return t[thread].tid && own_pid(x, t[thread].process) ? t[thread].tid : MADE_UP + thread;
}

const char *tfh_export_host(const struct tfh_export *x, uint32_t process)
{
	const struct tfh_process *p;

	tfh_run_processes(x->run, &p);
	return tfh_pseudonym(x->hidden, TFH_NAMED_HOST, p[process].host);
}

const char *tfh_export_exe(const struct tfh_export *x, uint32_t process)
{
	const struct tfh_process *p;

	tfh_run_processes(x->run, &p);
	return tfh_pseudonym(x->hidden, TFH_NAMED_PROGRAM, p[process].exe);
}

const char *tfh_export_thread(const struct tfh_export *x, uint32_t thread)
{
	const struct tfh_thread_info *t;

	tfh_run_threads(x->run, &t);
	return tfh_pseudonym(x->hidden, TFH_NAMED_THREAD, t[thread].name);
}

int64_t tfh_export_start_ns(const struct tfh_export *x)
{
	int64_t ns = tfh_run_start_realtime_ns(x->run);

	return ns > 0 ? ns : 0;
}

const char *tfh_export_full_name(char room[TFH_EXPORT_NAME], const char *name)
{
	return tfh_demangle(name, room, TFH_EXPORT_NAME) ? room : name;
}

struct tfh_export_shape tfh_export_shape_of(const struct tfh_op *op)
{
	return (struct tfh_export_shape){
		.grid = {(uint32_t)op->grid, op->grid >> 32 & 0xffff, op->grid >> 48},
		.block = {op->block & 0x7ff, op->block >> 11 & 0x7ff, op->block >> 22 & 0x7f},
		.shared = (uint32_t)(op->block >> 32)};
}
