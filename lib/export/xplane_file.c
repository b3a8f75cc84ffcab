/*
 * XPlane, the format of TensorFlow's and JAX's profilers, for XProf: `/host:CPU` with a line per
 * thread, `/device:GPU:N` with one per stream, and a line of steps in each. Steps are events named
 * "train N"; events in a step have its number in the stat `group_id`, so that XProf does not group
 * them itself.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/text.h"
#include "export/naming.h"
#include "export/walk.h"
#include "export/writers.h"
#include "export/xplane_planes.h"

#define DEVICES 64u /* planes; the last one also holds the ops of further devices */
/* XProf identifies a device's line of steps by this number: 0xdeadbeef as an int. */
#define STEPS_LINE (-559038737ll)

struct xplane_out {
	const struct tfh_export *x;
	const struct tfh_thread_info *thread;
	const struct tfh_export_rank *rank; /* NULL: there are no steps */
	FILE *out;
	struct tfh_plane host, *device[DEVICES];
};

/* The number of the step that contains a moment; -1: none. */
static int64_t step_at(const struct xplane_out *o, int64_t t)
{
	const struct tfh_step *s = tfh_export_step_at(o->rank, t);

	return s ? (int64_t)s->index : -1;
}

static int end_event(struct tfh_plane *p, struct tfh_plane_line *l, size_t event, int64_t group,
		     uint64_t call)
{
	if (group >= 0)
		tfh_plane_int(l, TFH_STAT_GROUP, group);
	if (call)
		tfh_plane_int(l, TFH_STAT_CORRELATION, (int64_t)call);
	return tfh_plane_event_end(p, l, event);
}

/* ---- the host ---- */

static int start_process(void *arg, uint32_t process, const struct tfh_process *p)
{
	struct xplane_out *o = arg;

	(void)p;
	o->rank = tfh_export_rank_of(o->x, process);
	return tfh_plane_open(&o->host, "/host:CPU", tfh_export_start_ns(o->x));
}

/* XProf treats names with this prefix as waits for input. */
static const char *call_name(char room[256], const struct tfh_walk_call *call)
{
	const struct tfh_event *ev = call->ev;

	if (ev->kind != TFT_CALL || ev->fn->family != TFH_FAM_CONSUMER)
		return call->name;
	snprintf(room, 256, "IteratorGetNext::%.200s", call->name);
	return room;
}

static int put_call(void *arg, const struct tfh_walk_call *call)
{
	struct xplane_out *o = arg;
	const struct tfh_event *ev = call->ev;
	const char *thread = tfh_export_thread(o->x, ev->thread);
	struct tfh_plane_line *l;
	char room[256];

	if (ev->kind == TFT_MARK || ev->kind == TFT_AGG)
		return 0;
	l = tfh_plane_line_of(&o->host, tfh_export_tid(o->x, ev->thread),
			      thread ? thread : "thread");
	if (!l)
		return -ENOMEM;
	size_t event = tfh_plane_event(&o->host, l, call_name(room, call), ev->t0, ev->t1);
	return end_event(&o->host, l, event, step_at(o, ev->t0),
			 tfh_export_issues(ev) ? call->id : 0);
}

/* ---- devices ---- */

static struct tfh_plane *plane_of(struct xplane_out *o, uint32_t device, int *rc)
{
	uint32_t at = device < DEVICES ? device : DEVICES - 1;
	char name[32];

	*rc = 0;
	if (o->device[at])
		return o->device[at];
	o->device[at] = malloc(sizeof(*o->device[at]));
	if (!o->device[at]) {
		*rc = -ENOMEM;
		return NULL;
	}
	snprintf(name, sizeof(name), "/device:GPU:%u", at);
	*rc = tfh_plane_open(o->device[at], name, tfh_export_start_ns(o->x));
	if (!*rc)
		tfh_plane_vendor(o->device[at], "Nvidia");
	return o->device[at];
}

/* XProf's form of the name, "MemcpyHtoD": CUPTI's without the memory kinds. */
static const char *op_name(char room[TFH_EXPORT_NAME], const struct tfh_op *op)
{
	const char *name = tfh_export_op_name(op);

	if (op->kind == TFH_OP_COPY && tfh_starts_with(name, "Memcpy ")) {
		snprintf(room, TFH_EXPORT_NAME, "Memcpy%.4s", name + 7);
		return room;
	}
	return op->kind == TFH_OP_MEMSET ? "Memset" : tfh_export_full_name(room, name);
}

static void put_details(struct tfh_plane_line *l, const struct tfh_op *op)
{
	struct tfh_export_shape s = tfh_export_shape_of(op);
	const char *host = op->pageable ? "pageable" : "pinned";
	bool from = op->dir == TFH_DIR_H2D || op->dir == TFH_DIR_H2H,
	     to = op->dir == TFH_DIR_D2H || op->dir == TFH_DIR_H2H;
	char text[192];

	if (op->kind == TFH_OP_KERNEL)
		snprintf(text, sizeof(text), "regs:0 shm:%u grid:%u,%u,%u block:%u,%u,%u", s.shared,
			 s.grid[0], s.grid[1], s.grid[2], s.block[0], s.block[1], s.block[2]);
	else
		snprintf(text, sizeof(text), "kind_src:%s kind_dst:%s size:%llu dest:%u async:1",
			 from ? host : "device", to ? host : "device",
			 (unsigned long long)op->bytes, op->device);
	tfh_plane_text(l,
		       op->kind == TFH_OP_KERNEL ? TFH_STAT_KERNEL
		       : op->kind == TFH_OP_COPY ? TFH_STAT_COPY
						 : TFH_STAT_SET,
		       text);
}

static int put_op(void *arg, const struct tfh_op *op, uint64_t call)
{
	struct xplane_out *o = arg;
	char name[64], room[TFH_EXPORT_NAME];
	int rc;
	struct tfh_plane *p = plane_of(o, op->device, &rc);

	if (rc || op->kind == TFH_OP_SYNC)
		return rc;
	snprintf(name, sizeof(name), "Stream #%u", op->stream);
	struct tfh_plane_line *l = tfh_plane_line_of(p, op->stream, name);
	if (!l)
		return -ENOMEM;
	size_t event = tfh_plane_event(p, l, op_name(room, op), op->t0, op->t1);
	put_details(l, op);
	return end_event(p, l, event, step_at(o, op->t0), call);
}

/* ---- the file ---- */

static int put_steps(struct xplane_out *o, struct tfh_plane *p)
{
	int rc = 0;

	for (size_t i = 0; o->rank && i < o->rank->n && !rc; i++) {
		const struct tfh_step *s = &o->rank->step[i];
		struct tfh_plane_line *l = tfh_plane_line_of(p, STEPS_LINE, "Steps");
		char name[40];
		if (!l)
			return -ENOMEM;
		if (!tfh_export_has(o->x, s))
			continue;
		snprintf(name, sizeof(name), "train %llu", (unsigned long long)s->index);
		size_t event =
			tfh_plane_event(p, l, name, tfh_step_begin_ns(s), tfh_step_end_ns(s));
		rc = end_event(p, l, event, (int64_t)s->index, 0);
	}
	return rc;
}

static int write_plane(struct xplane_out *o, struct tfh_plane *p, int64_t id)
{
	int rc = put_steps(o, p);

	return rc ? rc : tfh_plane_write(p, id, o->out);
}

static int end_process(void *arg, uint32_t process)
{
	struct xplane_out *o = arg;
	struct tfh_proto host = {.v = NULL};
	const char *name = tfh_export_host(o->x, process);
	int rc = write_plane(o, &o->host, 0);

	for (uint32_t i = 0; i < DEVICES && !rc; i++)
		if (o->device[i])
			rc = write_plane(o, o->device[i], i + 1);
	tfh_proto_text(&host, 4, *name ? name : "host");
	if (!rc)
		rc = tfh_proto_flush_bytes(&host, o->out);
	tfh_proto_free(&host);
	return rc;
}

int tfh_write_xplane(const struct tfh_export *x, FILE *out, struct tfh_err *err)
{
	static const struct tfh_walker walker = {
		.process = start_process, .call = put_call, .op = put_op, .end = end_process};
	struct xplane_out o = {.x = x, .out = out};

	tfh_run_threads(x->run, &o.thread);
	int rc = tfh_walk(x, &walker, &o, err);
	tfh_plane_free(&o.host);
	for (uint32_t i = 0; i < DEVICES; i++)
		if (o.device[i]) {
			tfh_plane_free(o.device[i]);
			free(o.device[i]);
		}
	return rc;
}
