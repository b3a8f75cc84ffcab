/* Records of calls that need more than three words, or that change the hooks' state. */
#include "hook/driver/note.h"

#include <string.h>

/* Of a call that took at least tfh_notable_ticks, which has ended: the number of its backtrace,
 * or 0. */
static uint32_t notable(struct tfh_self *self, uint16_t fn, uint64_t t_begin, uint64_t t_end)
{
	uint64_t ticks = t_end - t_begin;

	if (ticks > tfh_peek(&tfh_long_ticks)) {
		if (self->depth == 0)
			tfh_cputime(self, t_end);
		/* private tables can switch contexts unseen: query it again after long calls */
		self->ctx = 0;
	}
	return ticks >= tfh_peek(&tfh_stack_ticks) ? tfh_stack_of(self, fn, ticks) : 0;
}

/* Ends a call that returned on `call->self` and reserves n records, with the first one filled; NULL
 * if the ring is full. */
static struct tfh_rec *close_call(const struct tfh_call *call, CUstream stream, uint32_t n)
{
	struct tfh_self *self = call->self;
	uint8_t flags = 0;
	uint32_t id = 0, stack = 0;
	bool per_thread = stream == TFH_STREAM_PER_THREAD || (!stream && call->props & TFH_FN_PTDS);
	struct tfh_rec *rec;
	uint64_t end;

	if (!tfh_left(self, call->begin, &end))
		return NULL;
	if (end - call->begin >= tfh_peek(&tfh_notable_ticks))
		stack = notable(self, call->fn, call->begin, end);
	if (!self->ctx && call->result == TFH_CUDA_SUCCESS)
		self->ctx = tfh_context_id(self);
	if (U64(stream) > U64(TFH_STREAM_PER_THREAD))
		id = tfh_stream_of(self, stream, call->result);
	if (per_thread)
		flags |= TFT_F_PTDS;
	if (call->result != TFH_CUDA_SUCCESS)
		flags |= TFT_F_FAILED;
	else if (tfh_peek(&tfh_captures) && tfh_captured(stream, per_thread))
		flags |= TFT_F_CAPTURED;
	rec = tfh_reserve(self, n);
	if (!rec)
		return NULL;
	tfh_fill(self, rec, 0, call->fn, call->kind, call->begin, end);
	rec->flags = flags;
	rec->result = (uint16_t)call->result;
	rec->stream = id;
	rec->stack = stack;
	return rec;
}

void tfh_words_unusual(struct tfh_self *self, uint64_t begin, uint64_t what, CUresult result,
		       CUstream stream, uint64_t a, uint64_t b, uint64_t c)
{
	struct tfh_call call = {.self = self,
				.begin = begin,
				.fn = (uint16_t)what,
				.kind = (uint8_t)(what >> 16),
				.props = (uint8_t)(what >> TFH_WHAT_FLAGS),
				.result = result};

	if (!tfh_returned(&call))
		return;
	struct tfh_rec *rec = close_call(&call, stream, 1);

	if (call.kind == TFT_ALLOC && tfh_peek(&tfh_memory_watched) && result == TFH_CUDA_SUCCESS) {
		__atomic_fetch_add(&tfh_memory_calls.taken, a, __ATOMIC_RELAXED);
		__atomic_fetch_add(&tfh_memory_calls.changes, 1, __ATOMIC_RELAXED);
	}
	if (!rec)
		return;
	rec->w[0] = a;
	rec->w[1] = b;
	rec->w[2] = c;
	tfh_publish(call.self, 1);
}

void tfh_launch_unusual(struct tfh_self *self, uint64_t begin, uint64_t what, CUresult result,
			CUstream stream, CUfunction function, uint64_t w0, uint64_t w1, uint64_t w2)
{
	self = tfh_back(self, (enum tfh_fn)(uint16_t)what, begin);
	if (!self)
		return;
	w0 |= tfh_function_of(self, function, result);
	if (result != TFH_CUDA_SUCCESS)
		w1 = w2 = 0;
	tfh_words_unusual(self, begin, what, result, stream, w0, w1, w2);
}

/* Appends the EXT records of a copy, reserved by close_call(), and publishes all records. */
static void publish_copy(const struct tfh_call *call, struct tfh_rec *rec, const void *details,
			 uint32_t length)
{
	struct tfh_self *self = call->self;
	uint32_t n = 1;

	for (uint32_t at = 0; at < length; at += TFT_EXT_BYTES, n++) {
		struct tfh_rec *part = tfh_reserved(self, n);
		uint32_t left = length - at;
		tfh_fill(self, part, n, (uint16_t)(n - 1), TFT_EXT, rec->t_end, rec->t_end);
		part->result = (uint16_t)left;
		memcpy((char *)part + offsetof(struct tfh_rec, stream), (const char *)details + at,
		       left < TFT_EXT_BYTES ? left : TFT_EXT_BYTES);
	}
	rec->flags |= TFT_F_EXT;
	tfh_publish(self, n);
}

static void close_copy(const struct tfh_call *call, CUstream stream, uint64_t bytes, uint64_t dst,
		       uint64_t src, const struct tft_ext_copy *details)
{
	struct tfh_rec *rec = close_call(call, stream, 2);

	if (!rec)
		return;
	rec->w[0] = bytes;
	rec->w[1] = dst;
	rec->w[2] = src;
	publish_copy(call, rec, details, sizeof(*details));
}

void tfh_note_peer(const struct tfh_call *call, uint64_t bytes, uint64_t dst, uint64_t src,
		   CUcontext dst_ctx, CUcontext src_ctx, CUstream stream)
{
	struct tft_ext_copy details = {
		.form = TFT_EXT_PEER, .src_type = TFH_MEMORY_DEVICE, .dst_type = TFH_MEMORY_DEVICE};

	details.src_ctx = tfh_context_of(call->self, src_ctx);
	details.dst_ctx = tfh_context_of(call->self, dst_ctx);
	close_copy(call, stream, bytes, dst, src, &details);
}

/* A pitched copy, of any API version. */
struct shape {
	uint64_t width, height, depth, src_pitch, dst_pitch;
	uint64_t src, dst;
	int src_type, dst_type;
	CUcontext src_ctx, dst_ctx;
	uint8_t form;
};

static void note_shape(const struct tfh_call *call, const struct shape *s, CUstream stream)
{
	struct tft_ext_copy details = {
		.form = s->form,
		.src_type = (uint8_t)s->src_type,
		.dst_type = (uint8_t)s->dst_type,
		.count = (uint32_t)s->depth,
		.width = {(uint32_t)s->width, (uint32_t)(s->width >> 32)},
		.height = (uint32_t)s->height,
		.src_pitch = (uint32_t)s->src_pitch,
		.dst_pitch = (uint32_t)s->dst_pitch,
	};

	details.src_ctx = s->src_ctx ? tfh_context_of(call->self, s->src_ctx) : 0;
	details.dst_ctx = s->dst_ctx ? tfh_context_of(call->self, s->dst_ctx) : 0;
	close_copy(call, stream, s->width * s->height * s->depth, s->dst, s->src, &details);
}

static uint64_t address_of(int type, const void *host, uint64_t device, CUarray array)
{
	if (type == TFH_MEMORY_HOST)
		return U64(host);
	return type == TFH_MEMORY_ARRAY ? U64(array) : device;
}

#define END(end) address_of((end).type, (end).host, (end).device, (end).array)

/* Arguments of a failed call may be invalid: only its result is recorded. */
static bool failed(const struct tfh_call *call, const void *copy, CUstream stream)
{
	if (call->result == TFH_CUDA_SUCCESS && copy)
		return false;
	tfh_words(call, stream, 0, 0, 0);
	return true;
}

/* Fields common to the structs of all versions except the oldest. */
#define SHAPE(copy, rows, src_context, dst_context, how)                                           \
	{                                                                                          \
		.width = (copy)->width, .height = (copy)->height, .depth = (rows),                 \
		.src_pitch = (copy)->src.pitch, .dst_pitch = (copy)->dst.pitch,                    \
		.src = END((copy)->src), .dst = END((copy)->dst), .src_type = (copy)->src.type,    \
		.dst_type = (copy)->dst.type, .src_ctx = (src_context), .dst_ctx = (dst_context),  \
		.form = (how)                                                                      \
	}

void tfh_note_2d_v1(const struct tfh_call *call, const CUDA_MEMCPY2D_v1 *copy, CUstream stream)
{
	if (failed(call, copy, stream))
		return;
	struct shape s = {.width = copy->width,
			  .height = copy->height,
			  .depth = 1,
			  .src_pitch = copy->src_pitch,
			  .dst_pitch = copy->dst_pitch,
			  .src_type = copy->src_type,
			  .dst_type = copy->dst_type,
			  .form = TFT_EXT_2D};
	s.src = address_of(copy->src_type, copy->src_host, copy->src_device, copy->src_array);
	s.dst = address_of(copy->dst_type, copy->dst_host, copy->dst_device, copy->dst_array);
	note_shape(call, &s, stream);
}

void tfh_note_2d(const struct tfh_call *call, const CUDA_MEMCPY2D *copy, CUstream stream)
{
	if (failed(call, copy, stream))
		return;
	struct shape s = SHAPE(copy, 1, NULL, NULL, TFT_EXT_2D);
	note_shape(call, &s, stream);
}

void tfh_note_3d_v1(const struct tfh_call *call, const CUDA_MEMCPY3D_v1 *copy, CUstream stream)
{
	if (failed(call, copy, stream))
		return;
	struct shape s = SHAPE(copy, copy->depth, NULL, NULL, TFT_EXT_3D);
	note_shape(call, &s, stream);
}

void tfh_note_3d(const struct tfh_call *call, const CUDA_MEMCPY3D *copy, CUstream stream)
{
	if (failed(call, copy, stream))
		return;
	struct shape s = SHAPE(copy, copy->depth, NULL, NULL, TFT_EXT_3D);
	note_shape(call, &s, stream);
}

void tfh_note_3d_peer(const struct tfh_call *call, const CUDA_MEMCPY3D_PEER *copy, CUstream stream)
{
	if (failed(call, copy, stream))
		return;
	struct shape s =
		SHAPE(copy, copy->depth, copy->src.context, copy->dst.context, TFT_EXT_PEER_3D);
	note_shape(call, &s, stream);
}

/* ---- batches ---- */

struct batch {
	struct tft_ext_copy head;
	struct tft_ext_pair pair[TFT_EXT_PAIRS];
	uint64_t total, dst, src; /* of all pairs; of the first pair */
};

/* Types as in struct tft_ext_copy; 0 = given by the address. */
static void add_pair(struct batch *b, uint64_t dst, unsigned dst_type, uint64_t src,
		     unsigned src_type, uint64_t bytes)
{
	struct tft_ext_pair *p = &b->pair[b->head.count];
	uint32_t types = (dst_type & 15) << 4 | (src_type & 15);

	if (!b->head.count) {
		b->dst = dst;
		b->src = src;
	}
	b->total += bytes;
	if (b->head.count++ >= TFT_EXT_PAIRS)
		return;
	p->dst[0] = (uint32_t)dst;
	p->dst[1] = (uint32_t)(dst >> 32);
	p->src[0] = (uint32_t)src;
	p->src[1] = (uint32_t)(src >> 32);
	p->bytes[0] = (uint32_t)bytes;
	p->bytes[1] = (uint32_t)(bytes >> 32 & 0xffffff) | types << 24;
}

static void close_batch(const struct tfh_call *call, const struct batch *b, CUstream stream)
{
	uint32_t pairs = b->head.count < TFT_EXT_PAIRS ? b->head.count : TFT_EXT_PAIRS;
	uint32_t length = (uint32_t)(sizeof(b->head) + pairs * sizeof(b->pair[0]));
	struct tfh_rec *rec =
		close_call(call, stream, 1 + (length + TFT_EXT_BYTES - 1) / TFT_EXT_BYTES);

	if (!rec)
		return;
	rec->w[0] = b->total;
	rec->w[1] = b->dst;
	rec->w[2] = b->src;
	publish_copy(call, rec, b, length);
}

void tfh_note_batch(const struct tfh_call *call, size_t count, const CUdeviceptr *dst,
		    const CUdeviceptr *src, const size_t *bytes, CUstream stream)
{
	struct batch b;

	if (failed(call, bytes, stream))
		return;
	b.head = (struct tft_ext_copy){.form = TFT_EXT_BATCH};
	b.total = b.dst = b.src = 0;
	for (size_t i = 0; i < count; i++)
		add_pair(&b, dst ? dst[i] : 0, 0, src ? src[i] : 0, 0, bytes[i]);
	close_batch(call, &b, stream);
}

static uint64_t operand(const tfh_copy_operand *o)
{
	return o->type == 2 ? U64(o->at.array.array) : o->at.pointer.address;
}

static unsigned operand_type(const tfh_copy_operand *o)
{
	return o->type == 2 ? TFH_MEMORY_ARRAY : 0;
}

/* Sizes of operations between arrays are in elements, whose size is not known here. */
void tfh_note_3d_batch(const struct tfh_call *call, size_t count, const CUDA_MEMCPY3D_BATCH_OP *ops,
		       CUstream stream)
{
	struct batch b;

	if (failed(call, ops, stream))
		return;
	b.head = (struct tft_ext_copy){.form = TFT_EXT_BATCH};
	b.total = b.dst = b.src = 0;
	for (size_t i = 0; i < count; i++)
		add_pair(&b, operand(&ops[i].dst), operand_type(&ops[i].dst), operand(&ops[i].src),
			 operand_type(&ops[i].src),
			 (uint64_t)ops[i].width * ops[i].height * ops[i].depth);
	close_batch(call, &b, stream);
}

void tfh_note_decompress(const struct tfh_call *call, size_t count,
			 const CUmemDecompressParams *parts, CUstream stream)
{
	struct batch b;

	if (failed(call, parts, stream))
		return;
	b.head = (struct tft_ext_copy){.form = TFT_EXT_BATCH};
	b.total = b.dst = b.src = 0;
	for (size_t i = 0; i < count; i++)
		add_pair(&b, U64(parts[i].dst), TFH_MEMORY_DEVICE, U64(parts[i].src), 0,
			 parts[i].src_bytes);
	close_batch(call, &b, stream);
}

/* places[k] applies from range number first[k] on. */
void tfh_note_prefetch_batch(const struct tfh_call *call, size_t count, const CUdeviceptr *address,
			     const size_t *bytes, const CUmemLocation *places, const size_t *first,
			     size_t n_places, CUstream stream)
{
	struct batch b;
	size_t k = 0;

	if (failed(call, bytes, stream) || !address || !places || !first || !n_places)
		return;
	b.head = (struct tft_ext_copy){.form = TFT_EXT_BATCH};
	b.total = b.dst = b.src = 0;
	for (size_t i = 0; i < count; i++) {
		while (k + 1 < n_places && first[k + 1] <= i)
			k++;
		add_pair(&b, address[i], 0, tfh_place(places[k]), 0, bytes[i]);
	}
	close_batch(call, &b, stream);
}

/* ---- memory ---- */

/* 0 for block-compressed and video formats, whose size the driver decides. */
uint64_t tfh_array_bytes(uint64_t width, uint64_t height, uint64_t depth, int format,
			 unsigned channels, unsigned levels)
{
	unsigned size = format == 1 || format == 8			  ? 1
			: format == 2 || format == 9 || format == 0x10	  ? 2
			: format == 3 || format == 0x0a || format == 0x20 ? 4
									  : 0;
	uint64_t sum = 0;

	for (unsigned i = 0; i < levels && i < 64; i++) {
		sum += (width ? width : 1) * (height ? height : 1) * (depth ? depth : 1) * size *
		       channels;
		width /= 2;
		height /= 2;
		depth /= 2;
	}
	return sum;
}

uint64_t tfh_range_bytes(CUdeviceptr address)
{
	tfh_ask_RANGE ask = address ? TFH_ASK(RANGE) : NULL;
	CUdeviceptr base = 0;
	size_t size = 0;

	return ask && !ask(&base, &size, address) ? base + size - address : 0;
}

/* ---- changes of the hooks' state ---- */

void tfh_note_initialised(const struct tfh_call *call, unsigned flags)
{
	/* Registered now, our exit handler runs before the driver's, which was registered during
	 * this call. */
	if (call->result == TFH_CUDA_SUCCESS)
		tfh_register_exit(TFH_EXIT_AFTER_DRIVER);
	tfh_words(call, NULL, flags, 0, 0);
}

void tfh_note_function(const struct tfh_call *call, void **out, void *owner, const char *name)
{
	void *function = call->result == TFH_CUDA_SUCCESS && out ? *out : NULL;

	if (function && name)
		tfh_function_found(call->self, function, owner, name);
	tfh_words(call, NULL, U64(function), U64(owner), 0);
}

/* A kernel's function in the current context has the kernel's name. */
void tfh_note_kernel_function(const struct tfh_call *call, CUfunction *out, CUkernel kernel)
{
	CUfunction function = call->result == TFH_CUDA_SUCCESS && out ? *out : NULL;
	uint64_t owner = 0;
	const char *name = function ? tfh_function_name(kernel, &owner) : NULL;

	if (name)
		tfh_function_found(call->self, function, (void *)(uintptr_t)owner, name);
	tfh_words(call, NULL, U64(function), U64(kernel), 0);
}

void tfh_note_stream_made(const struct tfh_call *call, CUstream *out, unsigned flags, int priority)
{
	CUstream stream = call->result == TFH_CUDA_SUCCESS && out ? *out : NULL;

	if (stream)
		tfh_stream_made(call->self, stream);
	tfh_words(call, stream, U64(stream), flags, (uint64_t)(int64_t)priority);
}

void tfh_note_capture(const struct tfh_call *call, CUstream stream, int mode)
{
	tfh_words(call, stream, U64(stream), (uint64_t)mode, 0);
	if (call->result == TFH_CUDA_SUCCESS)
		tfh_capture_begun();
}

void tfh_note_capture_end(const struct tfh_call *call, CUstream stream, CUgraph *out)
{
	CUgraph graph = call->result == TFH_CUDA_SUCCESS && out ? *out : NULL;

	/* These two failures end the capture, too. */
	if (call->result == TFH_CUDA_SUCCESS || call->result == TFH_CUDA_CAPTURE_INVALIDATED ||
	    call->result == TFH_CUDA_CAPTURE_UNJOINED)
		tfh_capture_ended();
	tfh_words(call, stream, U64(stream), U64(graph), 0);
}

/* The totals are read after the call has ended, since our driver queries are not the job's time. */
static void close_graph(const struct tfh_call *call, CUgraphExec exec, CUgraph graph, bool update)
{
	struct tfh_self *self = call->self;
	uint64_t word[2];

	tfh_memory_unknown();
	tfh_graph_words(exec, word);
	tfh_words(call, NULL, U64(exec), word[0], word[1]);
	if (exec && graph)
		tfh_graph_totals(self, call->fn, exec, graph, update);
}

void tfh_note_graph_made(const struct tfh_call *call, CUgraphExec *out, CUgraph graph)
{
	close_graph(call, call->result == TFH_CUDA_SUCCESS && out ? *out : NULL, graph, false);
}

void tfh_note_graph_updated(const struct tfh_call *call, CUgraphExec exec, CUgraph graph)
{
	close_graph(call, exec, call->result == TFH_CUDA_SUCCESS ? graph : NULL, true);
}

/* Records a call that changes a node of an executable graph. True if it succeeded. */
static bool close_node(const struct tfh_call *call, CUgraphExec exec, CUgraphNode node,
		       const void *given)
{
	tfh_words(call, NULL, U64(exec), U64(node), 0);
	return call->result == TFH_CUDA_SUCCESS && given;
}

void tfh_note_node_copy(const struct tfh_call *call, CUgraphExec exec, CUgraphNode node,
			const CUDA_MEMCPY3D *copy)
{
	if (close_node(call, exec, node, copy))
		tfh_graph_copy_changed(call->self, call->fn, exec, node, copy);
}

void tfh_note_node_child(const struct tfh_call *call, CUgraphExec exec, CUgraphNode node,
			 CUgraph child)
{
	if (close_node(call, exec, node, child))
		tfh_graph_child_changed(call->self, call->fn, exec, node, child);
}

void tfh_note_node(const struct tfh_call *call, CUgraphExec exec, CUgraphNode node,
		   const CUgraphNodeParams *params)
{
	if (close_node(call, exec, node, params))
		tfh_graph_node_changed(call->self, call->fn, exec, node, params);
}

void tfh_note_node_switched(const struct tfh_call *call, CUgraphExec exec, CUgraphNode node,
			    bool on)
{
	if (close_node(call, exec, node, exec))
		tfh_graph_node_switched(call->self, call->fn, exec, node, on);
}
