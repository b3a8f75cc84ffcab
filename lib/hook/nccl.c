/*
 * Wrappers of the NCCL functions in base/nccl_api.def. A record holds the bytes that a call moves,
 * the communicator, and the call's sequence number on that communicator. All ranks of a
 * communicator issue its collectives in the same order, so communicator and sequence number
 * identify a collective on every rank.
 *
 * Libraries reach the wrappers through the exported names (by linking to libnccl.so.2) or by dlsym.
 * An NCCL that is linked statically into another library with its names hidden is not seen; its
 * collectives appear as launches and, with device times, as kernels.
 */
#include "hook/nccl.h"

#include <dlfcn.h>

#include "base/hash.h"
#include "hook/driver/note.h"
#include "hook/within.h"
#include "record/process/steady.h"

typedef struct ncclComm *ncclComm_t;
typedef struct {
	char bytes[128];
} ncclUniqueId;

enum { SUCCESS = 0, INTERNAL_ERROR = 3, IN_PROGRESS = 7 };

#define FIRST_FN TFH_FN_ncclAllReduce
#define ROWS (TFH_FN_COUNT - FIRST_FN)

/* ---- communicators ---- */

#define COMMS 512u
#define FREED ((void *)1)

struct comm {
	void *handle; /* atomic; NULL: never used */
	uint64_t key; /* the same on all ranks */
	uint32_t collectives, messages, splits;
};
static struct comm known[COMMS];

static struct comm *find(const void *handle)
{
	for (uint32_t i = 0; i < COMMS; i++) {
		const void *h = __atomic_load_n(&known[i].handle, __ATOMIC_ACQUIRE);
		if (h == handle)
			return &known[i];
		if (!h)
			break;
	}
	return NULL;
}

static uint64_t key_of(const void *handle)
{
	const struct comm *c = handle ? find(handle) : NULL;
	return c ? c->key : 0;
}

/* Adds a communicator. Its handle may have belonged to another one before. */
static void add(void *handle, uint64_t key)
{
	struct comm *c = handle ? find(handle) : NULL;

	for (uint32_t i = 0; handle && !c && i < COMMS; i++) {
		void *h = __atomic_load_n(&known[i].handle, __ATOMIC_RELAXED);
		if ((!h || h == FREED) &&
		    __atomic_compare_exchange_n(&known[i].handle, &h, handle, false,
						__ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			c = &known[i];
	}
	if (!c)
		return;
	c->collectives = c->messages = c->splits = 0;
	c->key = key;
}

static void drop(const void *handle)
{
	struct comm *c = handle ? find(handle) : NULL;

	if (c)
		__atomic_store_n(&c->handle, FREED, __ATOMIC_RELEASE);
}

/* ---- after the call; call->self is NULL while recording is off ---- */

static uint64_t bytes_of(size_t count, int datatype)
{
	/* int8 uint8 int32 uint32 int64 uint64 half float double bfloat16, and two 8-bit float
	 * types */
	static const uint8_t size[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};

	return datatype >= 0 && (size_t)datatype < sizeof(size) ? count * size[datatype] : 0;
}

static void words(const struct tfh_call *call, CUstream stream, uint64_t a, uint64_t b, uint64_t c)
{
	if (call->self)
		tfh_words(call, stream, a, b, c);
}

/* Records a transfer. Calls are also counted while recording is off; otherwise sequence numbers
 * would not match between ranks that record at different times. */
static void note_transfer(const struct tfh_call *call, size_t count, int datatype, int peer,
			  ncclComm_t comm, CUstream stream, bool message)
{
	struct comm *c = comm ? find(comm) : NULL;
	uint32_t *counter = c ? (message ? &c->messages : &c->collectives) : NULL;
	uint64_t n = 0;

	if (counter && call->result == SUCCESS)
		n = __atomic_add_fetch(counter, 1, __ATOMIC_RELAXED);
	words(call, stream, bytes_of(count, datatype), c ? c->key : 0,
	      n | (uint64_t)(uint32_t)peer << 32);
}

static void note_made(const struct tfh_call *call, ncclComm_t *out, const ncclUniqueId *id, int ids,
		      int ranks, int rank)
{
	ncclComm_t comm = call->result == SUCCESS && out ? *out : NULL;
	uint64_t key = id && ids > 0 ? tfh_hash_bytes(id, (size_t)ids * sizeof(*id)) : 0;

	add(comm, key);
	words(call, NULL, U64(comm), key, (uint64_t)(uint32_t)rank | (uint64_t)ranks << 32);
}

static void note_all_made(const struct tfh_call *call, ncclComm_t *out, int n)
{
	uint64_t key = tfh_hash_add(tfh_ticks(), U64(out));

	for (int i = 0; call->result == SUCCESS && out && i < n; i++)
		add(out[i], key);
	words(call, NULL, U64(out && n > 0 ? *out : NULL), key, (uint64_t)n << 32);
}

/* Records a split, which all ranks of a communicator call together; ranks with the same colour form
 * a new one. */
static void note_split(const struct tfh_call *call, ncclComm_t comm, int color, ncclComm_t *out)
{
	struct comm *c = comm ? find(comm) : NULL;
	ncclComm_t made = call->result == SUCCESS && out ? *out : NULL;
	uint32_t n = c ? __atomic_add_fetch(&c->splits, 1, __ATOMIC_RELAXED) : 0;
	uint64_t key = c ? tfh_hash_add(tfh_hash_add(c->key, n), (uint32_t)color) : 0;

	add(made, key);
	words(call, NULL, U64(made), key, c ? c->key : 0);
}

/* ---- real functions ---- */

static void *real[ROWS];
/* Functions of this name in other objects. TensorFlow's wheels have functions that open NCCL at the
 * first call and look the name up; what they find is the real function. */
static void *other[ROWS];
static __thread tfh_within inside __attribute__((tls_model("initial-exec")));

static void *find_real(enum tfh_fn fn, const void *caller)
{
	unsigned row = fn - FIRST_FN;
	void *found = __atomic_load_n(&real[row], __ATOMIC_ACQUIRE), *handle;
	struct tfh_steady steady;

	if (tfh_likely(found != NULL))
		return found;
	found = __atomic_load_n(&other[row], __ATOMIC_ACQUIRE);
	if (found)
		return found;
	tfh_lookup_init();
	/* A cancellation or longjmp in the middle would leave the dynamic loader's lock held. */
	tfh_steady_begin(&steady);
	handle = dlopen("libnccl.so.2", RTLD_NOLOAD | RTLD_LAZY);
	found = handle ? tfh_next_dlsym(handle, tfh_fn_table[fn].name) : NULL;
	if (found) {
		__atomic_store_n(&real[row], found, __ATOMIC_RELEASE);
	} else {
		dlerror(); /* the job must not see this failure */
		found = tfh_without_us(tfh_fn_table[fn].name, caller);
		__atomic_store_n(&other[row], found, __ATOMIC_RELEASE);
	}
	tfh_steady_end(&steady);
	return found;
}

/* ---- the wrappers ---- */

#define NOTHING() words(&call, NULL, 0, 0, 0)
#define COLLECT(count, type, root, comm, stream)                                                   \
	note_transfer(&call, count, type, root, comm, stream, false)
#define MESSAGE(count, type, peer, comm, stream)                                                   \
	note_transfer(&call, count, type, peer, comm, stream, true)
#define COMM_MADE(out, id, ids, ranks, rank) note_made(&call, out, id, ids, ranks, rank)
#define COMMS_MADE(out, n) note_all_made(&call, out, n)
#define COMM_SPLIT(comm, color, out) note_split(&call, comm, color, out)
#define COMM(comm) words(&call, NULL, U64(comm), key_of(comm), 0)
#define COMM_GONE(comm) (COMM(comm), drop(comm))

/* NCCL calls some of its own exported functions; such calls are part of the outer one. */
#define NCCL_FN(name, args, properties, params, argv, open_arg, note)                              \
	int hook_##name params;                                                                    \
	int hook_##name params                                                                     \
	{                                                                                          \
		int(*next) params =                                                                \
			(int(*) params)find_real(TFH_FN_##name, __builtin_return_address(0));      \
		if (!next)                                                                         \
			return INTERNAL_ERROR;                                                     \
		if (tfh_is_within(inside, TFH_HERE))                                               \
			return next argv;                                                          \
		struct tfh_call call = {                                                           \
			.fn = TFH_FN_##name, .kind = TFT_CALL, .props = properties};               \
		call.self = tfh_enter_at(TFH_FN_##name, U64(open_arg),                             \
					 (struct tfh_record_frame){tfh_stack(), 0}, &call.begin);  \
		inside = TFH_HERE;                                                                 \
		int result = next argv;                                                            \
		inside = NULL;                                                                     \
		if (call.self)                                                                     \
			call.self = tfh_back(call.self, TFH_FN_##name, call.begin);                \
		call.result = result == IN_PROGRESS ? SUCCESS : result;                            \
		note;                                                                              \
		return result;                                                                     \
	}                                                                                          \
	__attribute__((visibility("default"), alias("hook_" #name))) int name params;

#pragma GCC visibility push(hidden)
#include "base/nccl_api.def"
#pragma GCC visibility pop
#undef NCCL_FN

/* ---- dlsym ---- */

static void *const hooks[ROWS] = {
#define NCCL_FN(name, ...) [TFH_FN_##name - FIRST_FN] = (void *)hook_##name,
#include "base/nccl_api.def"
#undef NCCL_FN
};

void *tfh_nccl_hook(const char *name, void *found)
{
	for (unsigned row = 0; row < ROWS; row++) {
		void *none = NULL;
		if (strcmp(tfh_fn_table[FIRST_FN + row].name, name))
			continue;
		if (found == hooks[row])
			return found;
		/* The first one found is used; calls of a second NCCL could not be distinguished
		 * from its calls. */
		if (__atomic_compare_exchange_n(&real[row], &none, found, false, __ATOMIC_ACQ_REL,
						__ATOMIC_ACQUIRE) ||
		    none == found)
			return hooks[row];
		tfh_unhooked(name);
		return NULL;
	}
	return NULL;
}
