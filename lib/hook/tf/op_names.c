/*
 * Names of eager calls and session runs, through TensorFlow's C API.
 *
 * An eager job executes tens of thousands of small ops a second, so name ids are cached per thread
 * by the hash of the text; the op objects are reused for other ops.
 */
#include "hook/tf/tf.h"

#include <stdio.h>
#include <string.h>

#include "base/hash.h"

#define CACHE 128     /* a training step has tens to a hundred distinct ops */
#define NAME_MAX_ 255 /* longest stored name */
#define FETCHES 4     /* operations in a session run's name */

static struct {
	const char *(*op_name)(void *op, void *status); /* TFE_OpGetName */
	void *(*new_status)(void);			/* TF_NewStatus */
	const char *(*operation_name)(const void *);	/* TF_OperationName */
	int looked;
} api;

struct cached_name {
	uint64_t hash;
	uint32_t journal;
	struct tfh_tf_op op;
};

_Static_assert(CACHE * sizeof(struct cached_name) <= sizeof(((struct tfh_room *)0)->op_names),
	       "room");

/* TFE_OpGetName needs a status, and the call's own must not be touched. A thread that ends leaks
 * its 16 bytes. */
static __thread void *own_status __attribute__((tls_model("initial-exec")));

static void look_up(void)
{
	api.op_name = (const char *(*)(void *, void *))tfh_tf_lookup("TFE_OpGetName", NULL);
	api.new_status = (void *(*)(void))tfh_tf_lookup("TF_NewStatus", NULL);
	api.operation_name = (const char *(*)(const void *))tfh_tf_lookup("TF_OperationName", NULL);
	__atomic_store_n(&api.looked, 1, __ATOMIC_RELEASE);
}

static inline bool ready(void)
{
	if (tfh_unlikely(!__atomic_load_n(&api.looked, __ATOMIC_ACQUIRE)))
		look_up();
	return api.op_name && api.new_status;
}

/* The id of a text, cached unless the ring had no room for its NAME record. */
static uint32_t intern(struct tfh_self *self, struct cached_name *c, const char *text,
		       size_t length)
{
	uint64_t lost = self->ring->dropped;
	uint32_t id = tfh_text_id(self, TFT_NAME_OP, text, length);

	if (self->ring->dropped == lost)
		c->op.id = id;
	return id;
}

/* Ops that make a stage of a pipeline: RangeDataset, ParallelMapDatasetV2. */
static bool makes_stage(const char *text, size_t length)
{
	static const char word[] = "Dataset";
	size_t n = sizeof(word) - 1;

	if (length > 2 && text[length - 2] == 'V')
		length -= 2;
	return length >= n && !memcmp(text + length - n, word, n);
}

static inline struct cached_name *slot_of(struct tfh_self *self, uint64_t hash)
{
	struct cached_name *c = (struct cached_name *)self->room->op_names + hash % CACHE;

	if (c->hash != hash || c->journal != self->seen.generation)
		*c = (struct cached_name){.hash = hash, .journal = self->seen.generation};
	return c;
}

struct tfh_tf_op tfh_tf_op(struct tfh_self *self, const uint64_t *arg)
{
	struct tfh_tf_op unknown = {.id = 0};

	if (tfh_unlikely(!ready()))
		return unknown;
	if (tfh_unlikely(!own_status))
		own_status = api.new_status();
	const char *text = api.op_name((void *)arg[0], own_status);
	if (!text)
		return unknown;
	size_t length = strnlen(text, NAME_MAX_);
	struct cached_name *c = slot_of(self, tfh_hash_bytes(text, length));
	if (tfh_likely(c->op.id))
		return c->op;
	c->op.makes_stage = makes_stage(text, length);
	return (struct tfh_tf_op){intern(self, c, text, length), c->op.makes_stage};
}

/* TF_Output of TensorFlow's C API. */
struct output {
	const void *operation;
	int index;
};

static size_t append(char *text, size_t used, const void *operation)
{
	const char *name = operation ? api.operation_name(operation) : NULL;
	int n = snprintf(text + used, NAME_MAX_ + 1 - used, "%s%s", used ? "," : "",
			 name ? name : "?");

	return n < 0 ? used : used + (size_t)n > NAME_MAX_ ? NAME_MAX_ : used + (size_t)n;
}

/*
 * TF_SessionRun(session, options, inputs, input_values, ninputs, outputs | output_values, noutputs,
 * targets, ntargets, metadata, status): the first operations run and fetched distinguish a training
 * step from an evaluation.
 */
uint32_t tfh_tf_session_name(struct tfh_self *self, const struct tfh_tf_frame *frame)
{
	const struct output *outputs = (const struct output *)tfh_tf_argument(frame, 5);
	const void *const *targets = (const void *const *)tfh_tf_argument(frame, 8);
	int output_count = (int)tfh_tf_argument(frame, 7),
	    target_count = (int)tfh_tf_argument(frame, 9);
	uint64_t hash = (uint64_t)(uint32_t)output_count << 32 | (uint32_t)target_count;
	char text[NAME_MAX_ + 1];
	size_t used = 0;

	if (!__atomic_load_n(&api.looked, __ATOMIC_ACQUIRE))
		look_up();
	if (!api.operation_name)
		return 0;
	for (int i = 0; i < target_count && i < FETCHES; i++)
		hash = tfh_hash_add(hash, (uint64_t)(uintptr_t)targets[i]);
	for (int i = 0; i < output_count && i < FETCHES; i++)
		hash = tfh_hash_add(hash, (uint64_t)(uintptr_t)outputs[i].operation);
	struct cached_name *c = slot_of(self, hash);
	if (c->op.id)
		return c->op.id;
	for (int i = 0; i < target_count && i < FETCHES; i++)
		used = append(text, used, targets[i]);
	for (int i = 0; i < output_count && i < FETCHES; i++)
		used = append(text, used, outputs[i].operation);
	return used ? intern(self, c, text, used) : 0;
}
