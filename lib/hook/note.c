/* Notes of calls whose details need more than three words, or that change what the hooks know. */
#include "hook/note.h"

#include <string.h>

/* Appends the one EXT record of a copy that tfh_close reserved room for, and publishes both. */
static void publish_copy(const struct tfh_call *call, struct tfh_rec *rec,
			 const struct tft_ext_copy *details)
{
	struct tfh_self *self = call->self;
	struct tfh_rec *part = tfh_reserved(self, 1);

	tfh_fill(self, part, 1, 0, TFT_EXT, rec->t_end, rec->t_end);
	part->result = sizeof(*details);
	memcpy((char *)part + offsetof(struct tfh_rec, stream), details, sizeof(*details));
	rec->flags |= TFT_F_EXT;
	tfh_publish(self, 2);
}

static void close_copy(const struct tfh_call *call, CUstream stream, uint64_t bytes, uint64_t dst,
		       uint64_t src, const struct tft_ext_copy *details)
{
	struct tfh_rec *rec = tfh_close(call, stream, 2);

	if (!rec)
		return;
	rec->w[0] = bytes;
	rec->w[1] = dst;
	rec->w[2] = src;
	publish_copy(call, rec, details);
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

/* A pitched copy of any version. */
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

/* What a failed call was given may be anything: only its result is kept. */
static bool failed(const struct tfh_call *call, const void *copy, CUstream stream)
{
	if (call->result == TFH_CUDA_SUCCESS && copy)
		return false;
	tfh_words(call, stream, 0, 0, 0);
	return true;
}

/* The fields that the structs of all versions but the oldest have in common. */
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

void tfh_note_batch(const struct tfh_call *call, size_t count, const CUdeviceptr *dst,
		    const CUdeviceptr *src, const size_t *bytes, CUstream stream)
{
	struct tft_ext_copy details = {.form = TFT_EXT_BATCH, .count = (uint32_t)count};
	uint64_t total = 0;

	if (failed(call, bytes, stream))
		return;
	for (size_t i = 0; i < count; i++)
		total += bytes[i];
	close_copy(call, stream, total, count && dst ? dst[0] : 0, count && src ? src[0] : 0,
		   &details);
}

static uint64_t operand(const tfh_copy_operand *o)
{
	return o->type == 2 ? U64(o->at.array.array) : o->at.pointer.address;
}

/* Bytes of operations between arrays are elements: the size of an element is not told here. */
void tfh_note_3d_batch(const struct tfh_call *call, size_t count, const CUDA_MEMCPY3D_BATCH_OP *ops,
		       CUstream stream)
{
	struct tft_ext_copy details = {.form = TFT_EXT_BATCH, .count = (uint32_t)count};
	uint64_t total = 0;

	if (failed(call, ops, stream))
		return;
	for (size_t i = 0; i < count; i++)
		total += (uint64_t)ops[i].width * ops[i].height * ops[i].depth;
	close_copy(call, stream, total, count ? operand(&ops[0].dst) : 0,
		   count ? operand(&ops[0].src) : 0, &details);
}

void tfh_note_initialised(const struct tfh_call *call, unsigned flags)
{
	/* Registered now, our exit handler runs before the one that the driver registered in this
	 * call. */
	if (call->result == TFH_CUDA_SUCCESS)
		tfh_register_exit();
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

	/* These two failures end the capture as well. */
	if (call->result == TFH_CUDA_SUCCESS || call->result == TFH_CUDA_CAPTURE_INVALIDATED ||
	    call->result == TFH_CUDA_CAPTURE_UNJOINED)
		tfh_capture_ended();
	tfh_words(call, stream, U64(stream), U64(graph), 0);
}

/* The totals are read after the call was closed: what we ask the driver is not the job's time. */
static void close_graph(const struct tfh_call *call, CUgraphExec exec, CUgraph graph)
{
	struct tfh_self *self = call->self;
	uint64_t word[2];

	tfh_graph_words(exec, word);
	tfh_words(call, NULL, U64(exec), word[0], word[1]);
	if (exec && graph)
		tfh_graph_totals(self, call->fn, exec, graph);
}

void tfh_note_graph_made(const struct tfh_call *call, CUgraphExec *out, CUgraph graph)
{
	close_graph(call, call->result == TFH_CUDA_SUCCESS && out ? *out : NULL, graph);
}

void tfh_note_graph_updated(const struct tfh_call *call, CUgraphExec exec, CUgraph graph)
{
	close_graph(call, exec, call->result == TFH_CUDA_SUCCESS ? graph : NULL);
}
