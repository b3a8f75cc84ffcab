/*
 * Ids of contexts, streams and functions. This runs once per handle and thread. Later launches and
 * copies find the id in the thread's cache (record/record.h).
 */
#include "hook/driver/note.h"

#include "hook/cupti/cupti.h"
#include "base/map.h"
#include "record/watch/nvml_thread.h"
#include "record/process/lock.h"

#include <string.h>

uint32_t tfh_captures;
struct tfh_memory_calls tfh_memory_calls;

/* ---- contexts ---- */

uint32_t tfh_context_of(struct tfh_self *self, CUcontext context)
{
	uint32_t id = context ? tfh_handle_known(self, TFT_NAME_CONTEXT, U64(context)) : 0;
	tfh_ask_CTX_DEVICE ask_device = TFH_ASK(CTX_DEVICE);
	tfh_ask_CTX_CURRENT ask_current = TFH_ASK(CTX_CURRENT);
	CUcontext current = NULL;
	int device = -1;

	if (id || !context)
		return id;
	/* In every driver version, only the current context can be asked for its device. */
	if (!ask_current || ask_current(&current) || current != context || !ask_device ||
	    ask_device(&device))
		device = -1;
	id = tfh_handle_new(self, TFT_NAME_CONTEXT, U64(context), (uint64_t)(int64_t)device, NULL,
			    0);
	tfh_devices_used(device);
	tfh_cupti_context();
	return id;
}

uint32_t tfh_context_id(struct tfh_self *self)
{
	tfh_ask_CTX_CURRENT ask = TFH_ASK(CTX_CURRENT);
	CUcontext context = NULL;

	return ask && !ask(&context) ? tfh_context_of(self, context) : 0;
}

/* ---- streams ---- */

void tfh_stream_made(struct tfh_self *self, CUstream stream)
{
	if (!self->ctx)
		self->ctx = tfh_context_id(self);
	tfh_handle_new(self, TFT_NAME_STREAM, U64(stream), self->ctx, NULL, 0);
}

/* A stream first seen here: created on another thread, before recording, or by an unhooked
 * function. */
static uint32_t stream_id(struct tfh_self *self, CUstream stream)
{
	tfh_ask_STREAM_CTX ask = TFH_ASK(STREAM_CTX);
	CUcontext context = NULL;
	uint32_t ctx = self->ctx;

	/* A query about a stream under capture could invalidate the capture. */
	if (ask && !__atomic_load_n(&tfh_captures, __ATOMIC_RELAXED) && !ask(stream, &context) &&
	    context)
		ctx = tfh_context_of(self, context);
	return tfh_handle_new(self, TFT_NAME_STREAM, U64(stream), ctx, NULL, 0);
}

/* ---- names by which functions were looked up ---- */

/* Frameworks load some thousands of kernels. Names are stored in sequence in one mapping, whose
 * pages are allocated on use. */
#define SLOTS 16384u
#define NAME_BYTES (4u << 20)

struct function {
	uint64_t handle; /* 0: never used; names of destroyed handles stay, with owner 0 */
	uint64_t owner;
	const char *name;
};

static struct function *functions; /* followed by the names */
static uint32_t names_used;
static uint32_t lock TFH_LOCK_WORD; /* one writer at a time */

static struct function *slot_of(struct function *t, uint64_t handle, bool fresh)
{
	uint32_t at = (uint32_t)((handle >> 4) * 0x9e3779b1u) % SLOTS;

	for (uint32_t i = 0; i < 64; i++, at = (at + 1) % SLOTS) {
		uint64_t there = __atomic_load_n(&t[at].handle, __ATOMIC_ACQUIRE);
		if (there == handle || (fresh && !there))
			return &t[at];
		if (!there)
			break;
	}
	return NULL;
}

static void keep_name(uint64_t handle, uint64_t owner, const char *name, size_t length)
{
	struct function *t = tfh_map_once(&functions, SLOTS * sizeof(*t) + NAME_BYTES);

	if (!t || !tfh_lock(&lock))
		return;
	struct function *f = slot_of(t, handle, true);
	bool same = f && f->name && !strcmp(f->name, name);
	if (f && !same && names_used + length + 1 <= NAME_BYTES) {
		char *copy = (char *)(t + SLOTS) + names_used;
		memcpy(copy, name, length);
		names_used += (uint32_t)length + 1;
		__atomic_store_n(&f->name, copy, __ATOMIC_RELEASE);
		same = true;
	}
	if (same) {
		__atomic_store_n(&f->owner, owner, __ATOMIC_RELEASE);
		__atomic_store_n(&f->handle, handle, __ATOMIC_RELEASE);
	}
	tfh_unlock(&lock);
}

void tfh_function_found(struct tfh_self *self, void *function, void *owner, const char *name)
{
	size_t length = strnlen(name, 8191);

	tfh_memory_unknown(); /* the function, or its module, may be loaded now */
	if (tfh_handle_known(self, TFT_NAME_FUNCTION, U64(function)))
		return;
	keep_name(U64(function), U64(owner), name, length);
	tfh_handle_new(self, TFT_NAME_FUNCTION, U64(function), U64(owner), name, length);
}

void tfh_functions_gone(void *owner)
{
	struct function *t = __atomic_load_n(&functions, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; t && i < SLOTS; i++)
		if (__atomic_load_n(&t[i].handle, __ATOMIC_RELAXED) &&
		    __atomic_load_n(&t[i].owner, __ATOMIC_RELAXED) == U64(owner))
			__atomic_store_n(&t[i].owner, 0, __ATOMIC_RELAXED);
}

const char *tfh_function_name(void *function, uint64_t *owner)
{
	struct function *t = __atomic_load_n(&functions, __ATOMIC_ACQUIRE);
	struct function *f = t && function ? slot_of(t, U64(function), false) : NULL;

	*owner = f ? __atomic_load_n(&f->owner, __ATOMIC_ACQUIRE) : 0;
	return *owner ? __atomic_load_n(&f->name, __ATOMIC_ACQUIRE) : NULL;
}

uint32_t tfh_stream_of(struct tfh_self *self, CUstream stream, CUresult result)
{
	uint32_t id = tfh_stream_find(self, U64(stream));

	/* A call may have failed because the handle is invalid, so the driver is not asked about
	 * it. */
	return id || result != TFH_CUDA_SUCCESS ? id : stream_id(self, stream);
}

static uint32_t function_id(struct tfh_self *self, CUfunction function)
{
	uint64_t owner;
	const char *name = tfh_function_name(function, &owner);
	tfh_ask_FUNC_NAME ask = name || !function ? NULL : TFH_ASK(FUNC_NAME);
	tfh_ask_KERNEL_NAME ask_kernel = ask ? TFH_ASK(KERNEL_NAME) : NULL;

	tfh_memory_unknown(); /* the kernel's first launch loads it */
	if (ask && ask(&name, function))
		name = NULL;
	if (!name && ask_kernel && ask_kernel(&name, function))
		name = NULL;
	return tfh_handle_new(self, TFT_NAME_FUNCTION, U64(function), owner, name,
			      name ? strnlen(name, 8191) : 0);
}

uint32_t tfh_function_of(struct tfh_self *self, CUfunction function, CUresult result)
{
	uint32_t id = tfh_handle_known(self, TFT_NAME_FUNCTION, U64(function));

	if (!id && result == TFH_CUDA_SUCCESS)
		id = function_id(self, function);
	if (id)
		*tfh_function_slot(self, U64(function)) = (struct tfh_function){U64(function), id};
	return id;
}

/* ---- stream capture ---- */

void tfh_capture_begun(void)
{
	__atomic_fetch_add(&tfh_captures, 1, __ATOMIC_RELAXED);
}

void tfh_capture_ended(void)
{
	uint32_t open = __atomic_load_n(&tfh_captures, __ATOMIC_RELAXED);

	while (open && !__atomic_compare_exchange_n(&tfh_captures, &open, open - 1, true,
						    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

bool tfh_captured(CUstream stream, bool per_thread)
{
	tfh_ask_CAPTURING ask = TFH_ASK(CAPTURING);
	int status = 0;

	/* The legacy stream cannot be captured. */
	if (!ask || ((!stream || stream == TFH_STREAM_LEGACY) && !per_thread))
		return false;
	return !ask(per_thread ? TFH_STREAM_PER_THREAD : stream, &status) && status != 0;
}
