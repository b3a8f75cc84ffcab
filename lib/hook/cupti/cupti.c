/*
 * Device times from CUPTI's activity records. CUPTI is turned on once, either on the thread that
 * makes the first recorded call in a context or on the flusher. The flusher flushes it every
 * second, and once more by force in the exit handler that runs before the driver's. We never
 * finalize CUPTI, and disable kinds only from 13.0U1 on: in earlier releases that could deadlock
 * (NVIDIA 5350647).
 */
#include "hook/cupti/cupti.h"

#include <errno.h>

#include "hook/driver/note.h"
#include "record/gpu/gpu.h"
#include "record/process/apart.h"
#include "record/record.h"
#include "record/process/settings.h"

#define FLUSH_FORCED 1u
#define DISABLE_FROM 130001u /* 13.0U1 */

enum { ATTR_POOL_LIMIT = 2, ATTR_ZEROED_OUT = 5 };
/* each takes 3.2 MB of device memory: CUPTI's own limit of 250 would take 800 MB from the job */
#define POOL_LIMIT 32u

/* Numbers of cupti_driver_cbid.h, which are stable: launches, copies, memsets and graph launches in
 * all variants. Inclusive ranges. */
static const uint16_t calls[][2] = {
	{43, 43},   {45, 45},	{47, 47},   {49, 49},	{51, 51},   {53, 58},	{60, 60},
	{62, 62},   {64, 64},	{66, 69},   {71, 71},	{73, 73},   {75, 75},	{77, 77},
	{79, 79},   {81, 81},	{115, 117}, {216, 216}, {218, 218}, {220, 220}, {222, 222},
	{224, 224}, {226, 226}, {248, 254}, {276, 293}, {305, 307}, {318, 321}, {397, 416},
	{418, 433}, {442, 442}, {467, 468}, {477, 478}, {480, 480}, {514, 515}, {652, 653},
	{716, 717}, {776, 779}};

static const uint8_t kinds[] = {TFH_ACT_CONCURRENT_KERNEL, TFH_ACT_MEMCPY, TFH_ACT_MEMCPY2,
				TFH_ACT_MEMSET, TFH_ACT_OVERHEAD};

enum cupti_state { NOT, BUSY, ON, RESTING, NEVER };
static uint32_t state; /* atomic, enum cupti_state */
/* GRAPH_TRACE is on. Only from the start: once graphs have been instantiated without it, turning it
 * on makes the next graph launch crash inside CUPTI (13.0, H200, every time: bench/GPU.md). */
static bool graphs_whole;

static uint64_t wanted(void)
{
	uint64_t all = graphs_whole ? 1ull << TFH_ACT_GRAPH_TRACE : 0;

	for (unsigned i = 0; i < sizeof(kinds); i++)
		all |= 1ull << kinds[i];
	return all;
}

/* ---- turning on ---- */

static void refused(CUptiResult result, const char *what)
{
	if (result == TFH_CUPTI_INSUFFICIENT_PRIVILEGES)
		tfh_gpu_why(
			"the driver gives device times only to administrators (CUPTI error 35): "
			"load it with NVreg_RestrictProfilingToAdminUsers=0");
	else if (result == TFH_CUPTI_MULTIPLE_SUBSCRIBERS || result == TFH_CUPTI_MAX_LIMIT_REACHED)
		tfh_gpu_why("another profiler has taken CUPTI in this process (CUPTI error %d)",
			    result);
	else
		tfh_gpu_why("CUPTI refused %s (error %d)", what, result);
}

static void set_attributes(void)
{
	tfh_cupti_SET_ATTRIBUTE set = TFH_CUPTI(SET_ATTRIBUTE);
	size_t limit = POOL_LIMIT, size = sizeof(limit);
	uint8_t zeroed = 1;

	if (!set)
		return;
	set(ATTR_POOL_LIMIT, &size, &limit);
	size = sizeof(zeroed);
	/* The flusher zeroes buffers, so CUPTI need not do it on a thread of the job. A release
	 * that does not know the attribute still does. */
	set(ATTR_ZEROED_OUT, &size, &zeroed);
}

static void enable_calls(void)
{
	tfh_cupti_DRIVER_API enable = TFH_CUPTI(DRIVER_API);
	CUptiResult result = 0;

	for (unsigned i = 0; enable && i < sizeof(calls) / sizeof(*calls); i++)
		for (uint32_t c = calls[i][0]; c <= calls[i][1]; c++)
			result |= enable(c, 1);
	tfh_gpu_fact("gpu.calls=%s", enable && !result ? "driver records" : "none");
}

static bool enable_kinds(void)
{
	CUptiResult result = TFH_CUPTI(ENABLE)(TFH_ACT_CONCURRENT_KERNEL);

	if (result) {
		refused(result, "records of kernels");
		return false;
	}
	for (unsigned i = 1; i < sizeof(kinds); i++) {
		result = TFH_CUPTI(ENABLE)(kinds[i]);
		if (result)
			tfh_gpu_fact("gpu.without_kind=%u error %d", kinds[i], result);
	}
	if (graphs_whole && TFH_CUPTI(ENABLE)(TFH_ACT_GRAPH_TRACE))
		graphs_whole = false;
	if (graphs_whole)
		tfh_gpu_no_nodes();
	enable_calls();
	return true;
}

static int turn_on(void)
{
	CUptiResult result;
	int err = tfh_cupti_loaded();

	if (err)
		return err;
	tfh_cupti_claim();
	graphs_whole = !tfh_setting(TFH_OPT_GRAPH_NODES) && !tfh_graphs_made();
	set_attributes();
	result = TFH_CUPTI(REGISTER)(tfh_share_requested, tfh_share_completed);
	/* A CUPTI that accepts only the first client's callbacks may have those of the job's
	 * profiler. */
	if (result && !tfh_cupti_registered()) {
		refused(result, "our buffers");
		return -EBUSY;
	}
	tfh_cupti_has_ours();
	if (!enable_kinds())
		return -EACCES;
	tfh_gpu_fact("gpu.cupti=%u", tfh_cupti_version());
	tfh_cupti_tell_devices();
	if (tfh_cupti_is_injected())
		tfh_gpu_fact("gpu.door=injection");
	return 0;
}

/* Whether kinds may be disabled: by us (in releases where that is safe), or meanwhile by the job's
 * profiler. */
static bool rested(void)
{
	return tfh_cupti_version() >= DISABLE_FROM || tfh_profiler_round();
}

/* Not called on the flusher, which has no context: a profiler that traces calls would see the
 * query. */
static bool context_here(void)
{
	tfh_ask_CTX_CURRENT ask = tfh_on_flusher() ? NULL : TFH_ASK(CTX_CURRENT);
	CUcontext context = NULL;

	return ask && !ask(&context) && context;
}

static bool possible(void)
{
	return tfh_cupti_is_injected() || tfh_cupti_has_context();
}

static bool read_clock(uint64_t *ns)
{
	return tfh_cupti_here() && TFH_CUPTI(TIMESTAMP) && !TFH_CUPTI(TIMESTAMP)(ns);
}

int tfh_cupti_start(void)
{
	uint64_t now;
	uint32_t was = __atomic_load_n(&state, __ATOMIC_ACQUIRE);
	int err = 0;

	if (!tfh_cupti_here())
		return -ECHILD;
	if (was == NEVER)
		return -ENOENT;
	if (tfh_share_yields())
		return -EAGAIN;
	if (was == ON)
		return 0;
	if (!possible() && !context_here())
		return -EAGAIN;
	if (was == BUSY || !__atomic_compare_exchange_n(&state, &was, BUSY, false, __ATOMIC_ACQ_REL,
							__ATOMIC_RELAXED))
		return -EAGAIN;
	if (was == NOT)
		err = turn_on();
	else if (rested() && !enable_kinds())
		err = -EACCES;
	if (!err && read_clock(&now))
		tfh_rows_since(now);
	__atomic_store_n(&state, err == -EAGAIN ? NOT : err ? NEVER : ON, __ATOMIC_RELEASE);
	tfh_cupti_want(err ? 0 : wanted());
	return err;
}

static void rest(void)
{
	if (__atomic_load_n(&state, __ATOMIC_ACQUIRE) != ON)
		return;
	tfh_cupti_want(0);
	__atomic_store_n(&state, RESTING, __ATOMIC_RELEASE);
	tfh_memory_rest();
	tfh_rows_forget();
	if (tfh_cupti_version() < DISABLE_FROM || !tfh_cupti_here())
		return;
	for (unsigned i = 0; i < sizeof(kinds); i++)
		if (!tfh_profiler_has(kinds[i]))
			TFH_CUPTI(DISABLE)(kinds[i]);
	/* GRAPH_TRACE stays on: graphs may be instantiated meanwhile. */
	for (unsigned i = 0; TFH_CUPTI(DRIVER_API) && i < sizeof(calls) / sizeof(*calls); i++)
		for (uint32_t c = calls[i][0];
		     c <= calls[i][1] && !tfh_profiler_has(TFH_ACT_DRIVER); c++)
			TFH_CUPTI(DRIVER_API)(c, 0);
}

/* ---- requests of the flusher ---- */

static bool flush(bool last)
{
	/* An active profiler flushes by itself. It may be Python whose memory is gone when exit
	 * handlers run, and CUPTI would write to it. */
	if (tfh_profiler_works() || (last && tfh_buffers_foreign()))
		return false;
	return __atomic_load_n(&state, __ATOMIC_ACQUIRE) == ON && tfh_cupti_here() &&
	       !tfh_cupti_is_gone() && !TFH_CUPTI(FLUSH_ALL)(last ? FLUSH_FORCED : 0);
}

/* Records of every node of large graphs may cost more time and device memory than they are worth.
 * They are then recorded in windows only. */
static void watch_nodes(uint64_t now_ns)
{
	static uint64_t nodes_before, ns_before;
	static unsigned over;
	uint64_t most = (uint64_t)tfh_setting(TFH_OPT_GRAPH_NODES);
	uint64_t room = (uint64_t)tfh_setting(TFH_OPT_GRAPH_MEMORY);
	uint64_t nodes = tfh_rows_count()->nodes, ns = now_ns - ns_before, grown;
	double rate = ns_before && ns ? (double)(nodes - nodes_before) * 1e9 / (double)ns : 0;

	nodes_before = nodes;
	ns_before = now_ns;
	over = rate > (double)most ? over + 1 : 0;
	if (graphs_whole || tfh_gpu_windowed())
		return;
	grown = nodes ? tfh_memory_grown() : 0;
	if (over >= 3)
		tfh_gpu_fact("gpu.graphs=%.0f nodes a second are more than "
			     "TFHOOK_GRAPH_NODES=%llu",
			     rate, (unsigned long long)most);
	else if (grown > room)
		tfh_gpu_fact("gpu.graphs=%.0f MB of device memory went while they were recorded, "
			     "more than TFHOOK_GRAPH_MEMORY=%lluM",
			     (double)grown * 1e-6, (unsigned long long)room >> 20);
	if (over >= 3 || grown > room)
		tfh_gpu_windows();
}

static void second(uint64_t now_ns)
{
	if (!tfh_cupti_here())
		return;
	if (tfh_cupti_was_gone() && __atomic_load_n(&state, __ATOMIC_ACQUIRE) == ON) {
		tfh_buffers_forget();
		tfh_rows_forget();
		TFH_CUPTI(REGISTER)(tfh_share_requested, tfh_share_completed);
		enable_kinds();
		tfh_gpu_resumed();
	}
	watch_nodes(now_ns);
}

static void collect(void)
{
	tfh_buffers_collect(tfh_rows_of);
	tfh_gpu_overhead(tfh_rows_count()->overhead_ns);
}

static uint64_t complete_until(uint64_t now)
{
	/* An op that runs longer than this is represented by its call, if calls are recorded. */
	uint64_t least = now - tfh_peek(&tfh_long_ticks) * (TFH_CUPTI(DRIVER_API) ? 500 : 5000);
	uint64_t held = tfh_buffers_oldest(now), pending = tfh_rows_pending(now);

	least = held < least ? held : least;
	return pending < least ? pending : least;
}

static const struct tfh_gpu_source source = {.start = tfh_cupti_start,
					     .possible = possible,
					     .rest = rest,
					     .flush = flush,
					     .second = second,
					     .yields = tfh_share_yields,
					     .collect = collect,
					     .complete_until = complete_until,
					     .clock = read_clock};

__attribute__((constructor)) static void on_load(void)
{
	tfh_gpu_attach(&source);
}
