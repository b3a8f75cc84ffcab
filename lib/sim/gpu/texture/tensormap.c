/*
 * Tensor maps: descriptors of 128 bytes that the client passes to kernels. Here they hold the
 * address and then the other arguments; no kernel reads them.
 */
#include "sim/gpu/objects.h"

#include <string.h>

enum { BYTES = 128, ALIGN = 64, MAX_RANK = 5, MAX_BOX = 256, MAX_STEP = 8 };
enum { LAST_TYPE = 15, LAST_INTERLEAVE = 2, LAST_SWIZZLE = 6, LAST_PROMOTION = 3 };

struct map {
	uint64_t address;
	uint32_t mode, type, rank, interleave, swizzle, promotion, fill;
	uint32_t box[MAX_RANK], pad;
	uint64_t dim[MAX_RANK], first_stride;
};
_Static_assert(sizeof(struct map) <= BYTES, "fits");
enum { TILED = 1, IM2COL, IM2COL_WIDE };

static bool tensor_fits(const struct map *m, void *out, const void *address, const uint64_t *dim,
			const uint64_t *strides, const uint32_t *steps)
{
	if (!out || (uintptr_t)out % ALIGN || (uintptr_t)address % 16 || !dim || !steps)
		return false;
	if (m->type > LAST_TYPE || !m->rank || m->rank > MAX_RANK ||
	    m->interleave > LAST_INTERLEAVE || m->swizzle > LAST_SWIZZLE ||
	    m->promotion > LAST_PROMOTION || m->fill > 1)
		return false;
	if ((m->interleave || m->mode != TILED) && m->rank < 3)
		return false;
	if (m->rank > 1 && !strides)
		return false;
	for (uint32_t i = 0; i < m->rank; i++) {
		if (!dim[i] || dim[i] > 1ull << 32 || !steps[i] || steps[i] > MAX_STEP)
			return false;
		if (i && (strides[i - 1] % 16 || strides[i - 1] >= 1ull << 40))
			return false;
	}
	return true;
}

static CUresult put(struct map *m, void *out, void *address, const uint64_t *dim,
		    const uint64_t *strides, const uint32_t *steps)
{
	if (!tensor_fits(m, out, address, dim, strides, steps))
		return CUDA_ERROR_INVALID_VALUE;
	m->address = (uintptr_t)address;
	memcpy(m->dim, dim, m->rank * sizeof(*dim));
	m->first_stride = m->rank > 1 ? strides[0] : 0;
	memset(out, 0, BYTES);
	memcpy(out, m, sizeof(*m));
	return CUDA_SUCCESS;
}

static CUresult tiled(struct sim_call *c, void *out, unsigned type, uint32_t rank, void *address,
		      const uint64_t *dim, const uint64_t *strides, const uint32_t *box,
		      const uint32_t *steps, unsigned interleave, unsigned swizzle,
		      unsigned promotion, unsigned fill)
{
	struct map m = {.mode = TILED,
			.type = type,
			.rank = rank,
			.interleave = interleave,
			.swizzle = swizzle,
			.promotion = promotion,
			.fill = fill};
	(void)c;
	if (!box)
		return CUDA_ERROR_INVALID_VALUE;
	for (uint32_t i = 0; i < rank && i < MAX_RANK; i++) {
		if (!box[i] || box[i] > MAX_BOX)
			return CUDA_ERROR_INVALID_VALUE;
		m.box[i] = box[i];
	}
	return put(&m, out, address, dim, strides, steps);
}

static CUresult im2col(struct sim_call *c, void *out, unsigned type, uint32_t rank, void *address,
		       const uint64_t *dim, const uint64_t *strides, const int *lower,
		       const int *upper, uint32_t channels, uint32_t columns, const uint32_t *steps,
		       unsigned interleave, unsigned swizzle, unsigned promotion, unsigned fill)
{
	struct map m = {.mode = IM2COL,
			.type = type,
			.rank = rank,
			.interleave = interleave,
			.swizzle = swizzle,
			.promotion = promotion,
			.fill = fill,
			.box = {channels, columns}};
	(void)c;
	if (!lower || !upper || !channels || channels > MAX_BOX || !columns || columns > 1024)
		return CUDA_ERROR_INVALID_VALUE;
	return put(&m, out, address, dim, strides, steps);
}

static CUresult im2col_wide(struct sim_call *c, void *out, unsigned type, uint32_t rank,
			    void *address, const uint64_t *dim, const uint64_t *strides, int lower,
			    int upper, uint32_t channels, uint32_t columns, const uint32_t *steps,
			    unsigned interleave, unsigned mode, unsigned swizzle,
			    unsigned promotion, unsigned fill)
{
	struct map m = {.mode = IM2COL_WIDE,
			.type = type,
			.rank = rank,
			.interleave = interleave,
			.swizzle = swizzle,
			.promotion = promotion,
			.fill = fill,
			.box = {channels, columns, (uint32_t)lower, (uint32_t)upper, mode}};
	(void)c;
	if (!channels || channels > MAX_BOX || !columns || columns > 1024 || mode > 1)
		return CUDA_ERROR_INVALID_VALUE;
	return put(&m, out, address, dim, strides, steps);
}

static CUresult replace(struct sim_call *c, void *map, void *address)
{
	uint64_t a = (uintptr_t)address;
	(void)c;
	if (!map || (uintptr_t)map % ALIGN || a % 16)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(map, &a, sizeof(a));
	return CUDA_SUCCESS;
}

SIM_API(cuTensorMapEncodeTiled, SIM_NEED_INIT, tiled,
	(void *out, unsigned type, uint32_t rank, void *address, const uint64_t *dim,
	 const uint64_t *strides, const uint32_t *box, const uint32_t *steps, unsigned interleave,
	 unsigned swizzle, unsigned promotion, unsigned fill),
	(out, type, rank, address, dim, strides, box, steps, interleave, swizzle, promotion, fill))
SIM_API(cuTensorMapEncodeIm2col, SIM_NEED_INIT, im2col,
	(void *out, unsigned type, uint32_t rank, void *address, const uint64_t *dim,
	 const uint64_t *strides, const int *lower, const int *upper, uint32_t channels,
	 uint32_t columns, const uint32_t *steps, unsigned interleave, unsigned swizzle,
	 unsigned promotion, unsigned fill),
	(out, type, rank, address, dim, strides, lower, upper, channels, columns, steps, interleave,
	 swizzle, promotion, fill))
SIM_API(cuTensorMapEncodeIm2colWide, SIM_NEED_INIT, im2col_wide,
	(void *out, unsigned type, uint32_t rank, void *address, const uint64_t *dim,
	 const uint64_t *strides, int lower, int upper, uint32_t channels, uint32_t columns,
	 const uint32_t *steps, unsigned interleave, unsigned mode, unsigned swizzle,
	 unsigned promotion, unsigned fill),
	(out, type, rank, address, dim, strides, lower, upper, channels, columns, steps, interleave,
	 mode, swizzle, promotion, fill))
SIM_API(cuTensorMapReplaceAddress, SIM_NEED_INIT, replace, (void *map, void *address),
	(map, address))
