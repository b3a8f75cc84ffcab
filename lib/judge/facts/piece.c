/* Converts a recorded call for the time line. */
#include <string.h>

#include "judge/facts/facts.h"

static const uint8_t activity_of_family[64] = {
	[TFH_FAM_MEMSET] = TFH_ACTIVITY_LAUNCH,	      [TFH_FAM_LAUNCH] = TFH_ACTIVITY_LAUNCH,
	[TFH_FAM_GRAPH_LAUNCH] = TFH_ACTIVITY_LAUNCH, [TFH_FAM_GRAPH] = TFH_ACTIVITY_OTHER,
	[TFH_FAM_CAPTURE] = TFH_ACTIVITY_OTHER,	      [TFH_FAM_SYNC] = TFH_ACTIVITY_SYNC,
	[TFH_FAM_QUERY] = TFH_ACTIVITY_SYNC,	      [TFH_FAM_EVENT] = TFH_ACTIVITY_OTHER,
	[TFH_FAM_STREAM_WAIT] = TFH_ACTIVITY_OTHER,   [TFH_FAM_STREAM] = TFH_ACTIVITY_OTHER,
	[TFH_FAM_HOST_FUNC] = TFH_ACTIVITY_OTHER,     [TFH_FAM_ALLOC] = TFH_ACTIVITY_ALLOC,
	[TFH_FAM_FREE] = TFH_ACTIVITY_ALLOC,	      [TFH_FAM_MANAGED] = TFH_ACTIVITY_OTHER,
	[TFH_FAM_MODULE] = TFH_ACTIVITY_MODULE,	      [TFH_FAM_LOOKUP] = TFH_ACTIVITY_OTHER,
	[TFH_FAM_CONTEXT] = TFH_ACTIVITY_OTHER,	      [TFH_FAM_PROFILER] = TFH_ACTIVITY_OTHER,
	[TFH_FAM_COMMUNICATION] = TFH_ACTIVITY_OTHER, [TFH_FAM_CONSUMER] = TFH_ACTIVITY_INPUT,
	[TFH_FAM_EXECUTE] = TFH_ACTIVITY_EXEC,	      [TFH_FAM_SESSION] = TFH_ACTIVITY_EXEC,
};

/* A copy blocks the caller unless it is the asynchronous form with only pinned host memory.
 * Device-to-device copies never block (CUDA driver API, synchronisation behaviour). */
static uint8_t copy_activity(const struct tfh_event *ev)
{
	if (ev->dir == TFH_DIR_D2D || ev->dir == TFH_DIR_P2P)
		return TFH_ACTIVITY_LAUNCH;
	return (ev->fn->props & TFH_FN_SYNC_COPY) || ev->pageable ? TFH_ACTIVITY_COPY
								  : TFH_ACTIVITY_LAUNCH;
}

/* The address in host memory of a copy between host and device, 0: unknown. */
static uint64_t host_address(const struct tfh_event *ev)
{
	if (ev->fn->args != TFH_ARGS_COPY)
		return 0;
	return ev->dir == TFH_DIR_H2D ? ev->w[2] : ev->dir == TFH_DIR_D2H ? ev->w[1] : 0;
}

bool tfh_piece_of(const struct tfh_event *ev, struct tfh_piece *p)
{
	uint8_t family = ev->fn->family;

	if (ev->kind != TFT_CALL && ev->kind != TFT_ALLOC && ev->kind != TFT_AGG)
		return false;
	*p = (struct tfh_piece){
		.t0 = ev->t0, .t1 = ev->t1, .thread = ev->thread, .family = family, .density = 1};
	if (family == TFH_FAM_STAGE) {
		p->passive = true;
		p->stage = ev->kind == TFT_AGG ? ev->stream : (uint32_t)ev->w[1];
		if (!p->stage)
			p->stage = ev->stream;
		if (ev->kind == TFT_AGG && ev->t1 > ev->t0)
			p->density = (float)((double)ev->w[0] / (double)(ev->t1 - ev->t0));
		return true;
	}
	if (ev->kind == TFT_AGG || family >= 64)
		return false;
	if (ev->flags & TFT_F_CAPTURED) { /* it adds a node to a graph, and nothing runs */
		p->family = TFH_FAM_GRAPH;
		p->activity = TFH_ACTIVITY_OTHER;
		return true;
	}
	p->activity = family == TFH_FAM_COPY ? copy_activity(ev) : activity_of_family[family];
	p->stream = ev->stream;
	p->dir = ev->dir;
	p->pageable = ev->pageable;
	p->failed = ev->result != 0;
	p->bytes = family == TFH_FAM_COPY || family == TFH_FAM_MEMSET ? ev->w[0] : 0;
	/* Of the event functions, only records name an event; cuEventElapsedTime records
	 * nothing. */
	bool names = family != TFH_FAM_EVENT || strstr(ev->fn->name, "Record");
	p->handle = names && ev->fn->args == TFH_ARGS_HANDLE ? ev->w[0] : host_address(ev);
	p->writes = family == TFH_FAM_STREAM_WAIT && strstr(ev->fn->name, "Write");
	return p->activity != TFH_ACTIVITY_GAP;
}

bool tfh_piece_records(const struct tfh_piece *p)
{
	return p->handle && (p->family == TFH_FAM_EVENT || p->writes);
}

static bool may_load(const struct tfh_piece *p)
{
	return TFH_DETECT_LOADING && p->family == TFH_FAM_LAUNCH &&
	       p->t1 - p->t0 >= TFH_FACTS_LOADING_NS;
}

int tfh_note_loading(struct tfh_facts *facts, struct tfh_piece *p, bool first)
{
	if (!first || !may_load(p))
		return 0;
	p->activity = TFH_ACTIVITY_MODULE;
	return TFH_PUSH(facts->loading, p->t0);
}

void tfh_loading_piece(const struct tfh_facts *facts, struct tfh_piece *p)
{
	for (size_t i = 0; may_load(p) && i < facts->loading.n; i++)
		if (facts->loading.v[i] == p->t0)
			p->activity = TFH_ACTIVITY_MODULE;
}

bool tfh_exec_piece(const struct tfh_facts *facts, const struct tfh_event *ev, struct tfh_piece *p)
{
	uint32_t name = (uint32_t)ev->w[0];

	if (p->activity != TFH_ACTIVITY_EXEC || p->passive)
		return true;
	if (ev->depth)
		return false;
	const struct tfh_tag *tag =
		&facts->tag.v[facts->tag_of.v[name < facts->tag_of.n ? name : 0]];
	p->iterator = tag->iterator;
	p->activity = tag->getnext || (tag->iterator && facts->restarts) ? TFH_ACTIVITY_INPUT
									 : TFH_ACTIVITY_EXEC;
	p->saves = tag->save;
	p->eager = !tag->function && !tag->updates && !tag->getnext;
	p->logs = tag->log || tfh_is_logged(facts, p);
	p->makes = tag->pipeline || (tag->retraced && !tag->batches && ev->t0 == tag->first);
	return true;
}

bool tfh_line_piece(const struct tfh_facts *facts, struct tfh_piece *p)
{
	if (!p->passive)
		return facts->thread[p->thread].drives || p->activity == TFH_ACTIVITY_INPUT;
	int32_t stage = tfh_stage_index(facts, p->stage);
	if (stage < 0)
		return false;
	if (tfh_stage_is_loop_child(facts, p->stage)) {
		p->passive = false;
		p->activity = TFH_ACTIVITY_INPUT;
		return true;
	}
	p->stage = (uint32_t)stage;
	/* Only the work of an asynchronous stage's threads shows which side waits for the other. */
	int32_t up = facts->stage.v[stage].parent;
	return up >= 0 && facts->stage.v[up].async;
}

uint8_t tfh_work_of(const struct tfh_op *op)
{
	static const uint8_t of_dir[] = {
		[TFH_DIR_NONE] = TFH_W_D2D, [TFH_DIR_H2D] = TFH_W_H2D, [TFH_DIR_D2H] = TFH_W_D2H,
		[TFH_DIR_D2D] = TFH_W_D2D,  [TFH_DIR_H2H] = TFH_W_D2D, [TFH_DIR_P2P] = TFH_W_P2P,
		[TFH_DIR_ANY] = TFH_W_D2D};

	if (op->managed)
		return TFH_W_MANAGED;
	switch (op->kind) {
	case TFH_OP_KERNEL:
		return op->communication ? TFH_W_COMM : TFH_W_COMPUTE;
	case TFH_OP_GRAPH:
		return TFH_W_COMPUTE;
	case TFH_OP_COPY:
		return op->dir <= TFH_DIR_ANY ? of_dir[op->dir] : TFH_W_D2D;
	case TFH_OP_MEMSET:
		return TFH_W_D2D;
	default:
		return TFH_W_COUNT;
	}
}
