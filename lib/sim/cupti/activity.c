/* Which kinds of records are enabled, external correlation ids, and the rest of the activity
 * interface. */
#include "sim/cupti/sim_cupti.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EXTERNAL_KINDS = 6, FLUSH_FORCED = 1 };

static bool kinds[KIND_COUNT], apis[CBID_COUNT];
static bool system_thread_ids;
static uint64_t graph_trace_since; /* an id: later objects have larger ones; 0: was never on */

/* External correlation ids pushed by this thread, the newest last. */
static __thread struct {
	uint64_t *ids;
	size_t n, size;
} externals[EXTERNAL_KINDS];

bool sim_kind_on(enum sim_cupti_kind kind)
{
	return kinds[kind];
}

bool sim_graph_before_trace(uint32_t exec)
{
	return exec && exec < graph_trace_since;
}

bool sim_api_on(int cbid)
{
	return apis[cbid];
}

uint32_t sim_thread_id(void)
{
	return system_thread_ids ? (uint32_t)gettid() : (uint32_t)pthread_self();
}

void sim_external_add(uint32_t correlation)
{
	if (!kinds[KIND_EXTERNAL_CORRELATION])
		return;
	for (uint32_t k = 0; k < EXTERNAL_KINDS; k++) {
		struct sim_record r = {.kind = KIND_EXTERNAL_CORRELATION};
		if (!externals[k].n)
			continue;
		r.host.id = k;
		r.host.external = externals[k].ids[externals[k].n - 1];
		r.host.correlation = correlation;
		sim_buffers_add_mine(&r);
	}
}

static CUptiResult enable(int kind, bool on)
{
	/* Other existing kinds (CUDA 13.1 has 57) are accepted and yield no records. */
	if (kind < 1 || kind > 57)
		return CUPTI_ERROR_INVALID_KIND;
	CUptiResult r = sim_cupti_attach();
	if (r)
		return r;
	if (kind == KIND_DRIVER)
		memset(apis + 1, on, sizeof(apis) - 1);
	if (kind == KIND_GRAPH_TRACE && on && !graph_trace_since)
		graph_trace_since = sim_cupti_driver()->new_id();
	kinds[kind] = on;
	return CUPTI_SUCCESS;
}

CUPTI_API(cuptiActivityEnable, (int kind), (kind))
{
	return enable(kind, true);
}

CUPTI_API(cuptiActivityEnableAndDump, (int kind), (kind))
{
	return enable(kind, true);
}

CUPTI_API(cuptiActivityDisable, (int kind), (kind))
{
	return enable(kind, false);
}

CUPTI_API(cuptiActivityEnableContext, (CUcontext ctx, int kind), (ctx, kind))
{
	(void)ctx;
	return enable(kind, true);
}

CUPTI_API(cuptiActivityDisableContext, (CUcontext ctx, int kind), (ctx, kind))
{
	(void)ctx;
	return enable(kind, false);
}

CUPTI_API(cuptiActivityEnableDriverApi, (uint32_t cbid, uint8_t on), (cbid, on))
{
	if (!cbid || cbid >= CBID_COUNT)
		return CUPTI_ERROR_INVALID_PARAMETER;
	CUptiResult r = sim_cupti_attach();
	if (!r)
		apis[cbid] = on;
	return r;
}

/* There is no simulated runtime library, so this has no effect. */
CUPTI_API(cuptiActivityEnableRuntimeApi, (uint32_t cbid, uint8_t on), (cbid, on))
{
	(void)cbid;
	(void)on;
	return CUPTI_SUCCESS;
}

CUPTI_API(cuptiActivityRegisterCallbacks, (sim_requested_fn requested, sim_completed_fn completed),
	  (requested, completed))
{
	return sim_buffers_register(requested, completed);
}

CUPTI_API(cuptiActivityFlushAll, (uint32_t flags), (flags))
{
	if (sim_cupti_forked()) {
		while (sim_cupti_config()->fork_hang)
			pause();
		return CUPTI_ERROR_UNKNOWN;
	}
	CUptiResult r = sim_cupti_attach();
	if (r)
		return r;
	if (flags & FLUSH_FORCED)
		sim_events_forced();
	sim_buffers_flush(false);
	return CUPTI_SUCCESS;
}

CUPTI_API(cuptiActivityFlush, (CUcontext ctx, uint32_t stream, uint32_t flags),
	  (ctx, stream, flags))
{
	(void)ctx;
	(void)stream;
	return do_cuptiActivityFlushAll(flags);
}

CUPTI_API(cuptiActivityFlushPeriod, (uint32_t ms), (ms))
{
	return sim_buffers_period(ms);
}

CUPTI_API(cuptiActivityGetNumDroppedRecords, (CUcontext ctx, uint32_t stream, size_t *dropped),
	  (ctx, stream, dropped))
{
	(void)ctx;
	(void)stream;
	if (!dropped)
		return CUPTI_ERROR_INVALID_PARAMETER;
	*dropped = sim_buffers_dropped();
	return CUPTI_SUCCESS;
}

CUPTI_API(cuptiActivityGetAttribute, (int a, size_t *size, void *value), (a, size, value))
{
	return sim_attribute(a, size, value, false);
}

CUPTI_API(cuptiActivitySetAttribute, (int a, size_t *size, void *value), (a, size, value))
{
	return sim_attribute(a, size, value, true);
}

CUPTI_API(cuptiActivityPushExternalCorrelationId, (int kind, uint64_t id), (kind, id))
{
	if (kind < 1 || kind >= EXTERNAL_KINDS)
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (externals[kind].n == externals[kind].size) {
		externals[kind].size = externals[kind].size * 2 + 16;
		externals[kind].ids =
			realloc(externals[kind].ids, externals[kind].size * sizeof(uint64_t));
	}
	externals[kind].ids[externals[kind].n++] = id;
	return CUPTI_SUCCESS;
}

CUPTI_API(cuptiActivityPopExternalCorrelationId, (int kind, uint64_t *last), (kind, last))
{
	if (kind < 1 || kind >= EXTERNAL_KINDS)
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (!externals[kind].n)
		return CUPTI_ERROR_QUEUE_EMPTY;
	externals[kind].n--;
	if (last)
		*last = externals[kind].ids[externals[kind].n];
	return CUPTI_SUCCESS;
}

CUPTI_API(cuptiFinalize, (void), ())
{
	if (sim_cupti_forked())
		return CUPTI_ERROR_UNKNOWN;
	memset(kinds, 0, sizeof(kinds));
	memset(apis, 0, sizeof(apis));
	sim_buffers_period(0);
	sim_buffers_flush(true);
	sim_subscribers_clear();
	sim_cupti_detach();
	return CUPTI_SUCCESS;
}

CUPTI_API(cuptiSetThreadIdType, (int type), (type))
{
	if (type < 0 || type > 1)
		return CUPTI_ERROR_INVALID_PARAMETER;
	system_thread_ids = type;
	return CUPTI_SUCCESS;
}

CUPTI_API(cuptiGetThreadIdType, (int *type), (type))
{
	if (!type)
		return CUPTI_ERROR_INVALID_PARAMETER;
	*type = system_thread_ids;
	return CUPTI_SUCCESS;
}

CUPTI_API(cuptiGetLastError, (void), ())
{
	return CUPTI_SUCCESS;
}
