/*
 * A profiler inside the job (Kineto, XLA's, TensorFlow's) uses CUPTI, too, and CUPTI before 13.3
 * serves one client: the last one that registers callbacks gets every record. So the functions for
 * that are hooked (exported, and returned by dlsym):
 *
 * - tee: CUPTI only knows our callbacks. While the job's profiler has kinds enabled, the buffers
 *   are the profiler's, and their records are copied before it gets them; records still in our
 *   buffers are copied into some of the profiler's. They include kinds that it did not enable. The
 *   profiler's functions run on threads of the job, never on ours (deferred.c).
 * - own: the profiler gets an error: another client exists.
 * - off: there are no device times while it has kinds enabled; a current span of device times ends.
 */
#include "hook/cupti/cupti.h"

#include <string.h>

#include "hook/driver/driver.h"
#include "record/gpu/gpu.h"
#include "record/process/apart.h"
#include "record/record.h"
#include "record/process/settings.h"

#define EXPORT __attribute__((visibility("default")))

enum policy { TEE, OWN, OFF }; /* the choices of TFHOOK_CUPTI_SHARE, in order */

static enum policy policy(void)
{
	return (enum policy)tfh_setting(TFH_OPT_CUPTI_SHARE);
}

bool tfh_share_yields(void)
{
	return policy() == OFF && tfh_profiler_works();
}

/* ---- callbacks ---- */

/* Bytes of whole records, from `at` on, that fit into `room`. */
static size_t whole(uint8_t *at, size_t valid, size_t room)
{
	uint8_t *record = NULL;
	size_t fits = 0;

	if (valid <= room)
		return valid;
	while (!TFH_CUPTI(NEXT_RECORD)(at, valid, &record) && (size_t)(record - at) <= room)
		fits = (size_t)(record - at);
	return fits;
}

/* Copies records that were delivered in a buffer of ours into buffers of the job's profiler. */
static void pass_on(CUcontext ctx, uint32_t stream, uint8_t *from, size_t valid)
{
	tfh_cupti_requested requested = __atomic_load_n(&tfh_profiler.requested, __ATOMIC_ACQUIRE);
	tfh_cupti_completed completed = __atomic_load_n(&tfh_profiler.completed, __ATOMIC_ACQUIRE);

	while (valid && requested && completed) {
		uint8_t *to = NULL;
		size_t size = 0, most = 0, part;

		requested(&to, &size, &most);
		part = to ? whole(from, valid, size) : 0;
		if (part)
			memcpy(to, from, part);
		if (to)
			completed(ctx, stream, to, size, part);
		if (!part)
			return;
		from += part;
		valid -= part;
	}
}

/* Called on a thread of the job. */
static void deliver(const struct tfh_deferred *o)
{
	tfh_cupti_completed completed = __atomic_load_n(&tfh_profiler.completed, __ATOMIC_ACQUIRE);

	if (o->copied)
		pass_on(o->ctx, o->stream, o->buffer, o->valid);
	else if (completed)
		completed(o->ctx, o->stream, o->buffer, o->size, o->valid);
}

/* Delivers to the profiler now or, if this is the flusher, later. */
static void give(const struct tfh_deferred *o, bool copied)
{
	uint8_t *record = NULL;
	size_t lost = 0;

	if (!tfh_on_flusher()) {
		struct tfh_deferred now = *o;

		now.copied = copied;
		deliver(&now);
	} else if (!tfh_deferred_add(o, copied)) {
		while (!TFH_CUPTI(NEXT_RECORD)(o->buffer, o->valid, &record))
			lost++;
		__atomic_fetch_add(&tfh_profiler.dropped, lost, __ATOMIC_RELAXED);
	}
}

void tfh_share_requested(uint8_t **buffer, size_t *size, size_t *most)
{
	tfh_cupti_requested requested = __atomic_load_n(&tfh_profiler.requested, __ATOMIC_ACQUIRE);

	tfh_deferred_deliver(deliver);
	if (!requested || !tfh_profiler_works() || tfh_on_flusher()) {
		tfh_buffers_requested(buffer, size, most);
		return;
	}
	requested(buffer, size, most);
	if (*buffer && *size)
		tfh_buffers_foreign_out(*buffer);
	else /* the profiler loses records, but we need not */
		tfh_buffers_requested(buffer, size, most);
}

void tfh_share_completed(CUcontext ctx, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
	tfh_cupti_completed completed = __atomic_load_n(&tfh_profiler.completed, __ATOMIC_ACQUIRE);
	struct tfh_deferred what = {
		.ctx = ctx, .stream = stream, .buffer = buffer, .size = size, .valid = valid};
	uint32_t round = 0;

	tfh_deferred_deliver(deliver);
	if (tfh_buffers_ours(buffer, &round)) {
		/* The profiler was active at some time while CUPTI had the buffer. */
		if (valid && completed && (tfh_profiler_works() || round != tfh_profiler_round()))
			give(&what, true);
		tfh_buffers_completed(ctx, stream, buffer, size, valid);
	} else if (completed && buffer) {
		tfh_buffers_foreign_back(buffer, valid);
		give(&what, false);
	} else {
		tfh_buffers_completed(ctx, stream, buffer, size, valid);
	}
}

/* ---- the hooked functions ---- */

/* The real function behind an exported name: that of the job's libcupti, else the definition that
 * the caller would bind to without tfhook (TensorFlow has functions of these names that load the
 * library). */
static void *behind(enum tfh_cupti_fn fn, const char *name, const void *caller)
{
	return tfh_cupti_known() ? tfh_cupti_real[fn] : tfh_without_us(name, caller);
}

#define REAL(id, name) ((tfh_cupti_##id)behind(TFH_CUPTI_##id, name, __builtin_return_address(0)))
#define CUPTI_NOT_INITIALIZED 15

/* CUPTI has our callbacks. Checked even if device times are left to the profiler: CUPTI may still
 * hold buffers of ours, which the job's profiler would treat as its own. */
static bool shared(void)
{
	return (policy() != OFF || tfh_cupti_registered()) &&
	       tfh_setting(TFH_OPT_CUPTI) != TFH_CUPTI_OFF && tfh_cupti_here() &&
	       __atomic_load_n(&tfh_mode, __ATOMIC_RELAXED) != TFH_MODE_DEAD &&
	       __atomic_load_n(&tfh_mode, __ATOMIC_RELAXED) != TFH_MODE_HOLD;
}

static CUptiResult hook_register(tfh_cupti_requested requested, tfh_cupti_completed completed)
{
	tfh_cupti_REGISTER real = REAL(REGISTER, "cuptiActivityRegisterCallbacks");
	tfh_cupti_requested requested_before;
	tfh_cupti_completed completed_before;
	CUptiResult result;
	bool share;

	if (!real)
		return CUPTI_NOT_INITIALIZED;
	if (!tfh_cupti_known()) /* through TensorFlow's function, which calls us again */
		return real(requested, completed);
	if (shared() && policy() == OWN && tfh_cupti_wants(TFH_ACT_CONCURRENT_KERNEL))
		return TFH_CUPTI_MULTIPLE_SUBSCRIBERS;
	requested_before =
		__atomic_exchange_n(&tfh_profiler.requested, requested, __ATOMIC_ACQ_REL);
	completed_before =
		__atomic_exchange_n(&tfh_profiler.completed, completed, __ATOMIC_ACQ_REL);
	share = shared() && requested && completed;
	result =
		share ? real(tfh_share_requested, tfh_share_completed) : real(requested, completed);
	if (share && !result)
		tfh_cupti_has_ours();
	if (result) {
		__atomic_store_n(&tfh_profiler.requested, requested_before, __ATOMIC_RELEASE);
		__atomic_store_n(&tfh_profiler.completed, completed_before, __ATOMIC_RELEASE);
	}
	return result;
}

static CUptiResult hook_enable(int kind)
{
	tfh_cupti_ENABLE real = REAL(ENABLE, "cuptiActivityEnable");
	CUptiResult result;

	if (!real)
		return CUPTI_NOT_INITIALIZED;
	if (!tfh_cupti_known() || kind < 0 || kind >= TFH_ACT_KINDS)
		return real(kind);
	if (shared() && policy() == OWN && tfh_cupti_wants(TFH_ACT_CONCURRENT_KERNEL))
		return TFH_CUPTI_MULTIPLE_SUBSCRIBERS;
	/* Earlier ops are not the profiler's: they are flushed while all buffers are ours. */
	if (shared() && !__atomic_load_n(&tfh_profiler.count, __ATOMIC_ACQUIRE) &&
	    tfh_cupti_wants(TFH_ACT_CONCURRENT_KERNEL)) {
		tfh_guard_begin(&tfh_self);
		TFH_CUPTI(FLUSH_ALL)(0);
		tfh_guard_end(&tfh_self);
	}
	/* Done before the first record arrives, so that none of the profiler's records goes into a
	 * buffer of ours. */
	if (!__atomic_exchange_n(&tfh_profiler.kinds[kind], 1, __ATOMIC_ACQ_REL) &&
	    __atomic_fetch_add(&tfh_profiler.count, 1, __ATOMIC_ACQ_REL) == 0)
		__atomic_fetch_add(&tfh_profiler.rounds, 1, __ATOMIC_ACQ_REL);
	result = real(kind);
	if (result && __atomic_exchange_n(&tfh_profiler.kinds[kind], 0, __ATOMIC_ACQ_REL))
		__atomic_fetch_sub(&tfh_profiler.count, 1, __ATOMIC_ACQ_REL);
	return result;
}

static CUptiResult hook_disable(int kind)
{
	tfh_cupti_DISABLE real = REAL(DISABLE, "cuptiActivityDisable");

	if (!real)
		return CUPTI_NOT_INITIALIZED;
	if (!tfh_cupti_known() || kind < 0 || kind >= TFH_ACT_KINDS)
		return real(kind);
	if (__atomic_exchange_n(&tfh_profiler.kinds[kind], 0, __ATOMIC_ACQ_REL))
		__atomic_fetch_sub(&tfh_profiler.count, 1, __ATOMIC_ACQ_REL);
	return shared() && tfh_cupti_wants(kind) ? TFH_CUPTI_OK : real(kind);
}

/* A caller of flush has all records afterwards. */
static CUptiResult hook_flush(uint32_t flags)
{
	tfh_cupti_FLUSH_ALL real = REAL(FLUSH_ALL, "cuptiActivityFlushAll");
	CUptiResult result;

	tfh_deferred_deliver(deliver);
	result = real ? real(flags) : CUPTI_NOT_INITIALIZED;
	tfh_deferred_deliver(deliver); /* buffers that the flusher received meanwhile */
	return result;
}

static CUptiResult hook_finalize(void)
{
	tfh_cupti_FINALIZE real = REAL(FINALIZE, "cuptiFinalize");
	CUptiResult result;

	tfh_deferred_deliver(deliver);
	result = real ? real() : CUPTI_NOT_INITIALIZED;

	if (!result && tfh_cupti_known()) {
		for (unsigned i = 0; i < TFH_ACT_KINDS; i++)
			__atomic_store_n(&tfh_profiler.kinds[i], 0, __ATOMIC_RELEASE);
		__atomic_store_n(&tfh_profiler.count, 0, __ATOMIC_RELEASE);
		tfh_cupti_gone();
	}
	return result;
}

static CUptiResult hook_dropped(CUcontext ctx, uint32_t stream, size_t *n)
{
	tfh_cupti_DROPPED real = REAL(DROPPED, "cuptiActivityGetNumDroppedRecords");
	CUptiResult result = real ? real(ctx, stream, n) : CUPTI_NOT_INITIALIZED;

	if (!result && n)
		*n += __atomic_exchange_n(&tfh_profiler.dropped, 0, __ATOMIC_RELAXED);
	return result;
}

static CUptiResult hook_clock(uint64_t (*now)(void))
{
	tfh_cupti_CLOCK_CALLBACK real =
		REAL(CLOCK_CALLBACK, "cuptiActivityRegisterTimestampCallback");
	CUptiResult result = real ? real(now) : CUPTI_NOT_INITIALIZED;

	if (!result)
		tfh_gpu_new_clock();
	return result;
}

EXPORT CUptiResult cuptiActivityRegisterCallbacks(tfh_cupti_requested, tfh_cupti_completed)
	__attribute__((alias("hook_register")));
EXPORT CUptiResult cuptiActivityEnable(int) __attribute__((alias("hook_enable")));
EXPORT CUptiResult cuptiActivityDisable(int) __attribute__((alias("hook_disable")));
EXPORT CUptiResult cuptiActivityFlushAll(uint32_t) __attribute__((alias("hook_flush")));
EXPORT CUptiResult cuptiFinalize(void) __attribute__((alias("hook_finalize")));
EXPORT CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext, uint32_t, size_t *)
	__attribute__((alias("hook_dropped")));
EXPORT CUptiResult cuptiActivityRegisterTimestampCallback(uint64_t (*)(void))
	__attribute__((alias("hook_clock")));

void *tfh_share_hook(const char *name, void *found)
{
	static const struct {
		const char *name;
		void *hook;
		enum tfh_cupti_fn fn;
	} hooks[] = {{"cuptiActivityRegisterCallbacks", (void *)hook_register, TFH_CUPTI_REGISTER},
		     {"cuptiActivityEnable", (void *)hook_enable, TFH_CUPTI_ENABLE},
		     {"cuptiActivityDisable", (void *)hook_disable, TFH_CUPTI_DISABLE},
		     {"cuptiActivityFlushAll", (void *)hook_flush, TFH_CUPTI_FLUSH_ALL},
		     {"cuptiFinalize", (void *)hook_finalize, TFH_CUPTI_FINALIZE},
		     {"cuptiActivityGetNumDroppedRecords", (void *)hook_dropped, TFH_CUPTI_DROPPED},
		     {"cuptiActivityRegisterTimestampCallback", (void *)hook_clock,
		      TFH_CUPTI_CLOCK_CALLBACK}};

	/* A second libcupti in the process has buffers of its own, without our hooks. */
	for (unsigned i = 0; i < sizeof(hooks) / sizeof(*hooks); i++)
		if (!strcmp(hooks[i].name, name))
			return tfh_in_cupti(found) && tfh_cupti_known() &&
					       tfh_cupti_real[hooks[i].fn] == found
				       ? hooks[i].hook
				       : NULL;
	return NULL;
}
