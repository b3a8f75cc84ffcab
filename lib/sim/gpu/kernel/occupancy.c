/* Occupancy, limited by threads, blocks and shared memory; registers are unlimited. */
#include "sim/gpu/device/context.h"

#include <string.h>

enum { WARP = 32, BLOCKS_PER_SM = 32, RESERVED_SHARED = 1024, MAX_SHARED = 166912 };

static int blocks_per_sm(const struct sim_func *f, int block, size_t shared)
{
	int warps = (block + WARP - 1) / WARP;
	int n = SIM_THREADS_PER_SM / (warps * WARP);
	if (block > (int)f->max_threads || shared > MAX_SHARED)
		return 0;
	int fit = (int)(SIM_SHARED_PER_SM / (shared + RESERVED_SHARED));
	n = n < BLOCKS_PER_SM ? n : BLOCKS_PER_SM;
	return n < fit ? n : fit;
}

static CUresult blocks_flags(struct sim_call *c, int *n, CUfunction f, int block, size_t shared,
			     unsigned flags)
{
	(void)c;
	if (!n || block < 1 || flags > 1)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_func_is(f))
		return CUDA_ERROR_INVALID_HANDLE;
	*n = blocks_per_sm(f, block, shared);
	return CUDA_SUCCESS;
}

static CUresult blocks(struct sim_call *c, int *n, CUfunction f, int block, size_t shared)
{
	return blocks_flags(c, n, f, block, shared, 0);
}

/* The block size with the most resident threads; the largest of several. */
static CUresult best_block_flags(struct sim_call *c, int *grid, int *block, CUfunction f,
				 CUoccupancyB2DSize fn, size_t shared, int limit, unsigned flags)
{
	int most = 0, best = 0;
	(void)c;
	if (!grid || !block || flags > 1 || limit < 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_func_is(f))
		return CUDA_ERROR_INVALID_HANDLE;
	int size = (int)f->max_threads;
	if (limit && limit < size)
		size = limit;
	while (size > 0) {
		int threads = size * blocks_per_sm(f, size, fn ? fn(size) : shared);
		if (threads > most) {
			most = threads;
			best = size;
		}
		size = (size - 1) / WARP * WARP;
	}
	*block = best;
	*grid = best ? SIM_MULTIPROCESSORS * (most / best) : 0;
	return CUDA_SUCCESS;
}

static CUresult best_block(struct sim_call *c, int *grid, int *block, CUfunction f,
			   CUoccupancyB2DSize fn, size_t shared, int limit)
{
	return best_block_flags(c, grid, block, f, fn, shared, limit, 0);
}

static CUresult dynamic_shared(struct sim_call *c, size_t *out, CUfunction f, int n, int block)
{
	(void)c;
	if (!sim_func_is(f))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!out || n < 1 || block < 1 || n > blocks_per_sm(f, block, 0))
		return CUDA_ERROR_INVALID_VALUE;
	size_t each = (size_t)(SIM_SHARED_PER_SM / n - RESERVED_SHARED);
	*out = each < MAX_SHARED ? each : MAX_SHARED;
	return CUDA_SUCCESS;
}

/* ---- clusters: from compute capability 9.0 on ---- */
enum { CLUSTER_DIMENSION = 4, LARGEST_CLUSTER = 8 };

static CUresult potential_cluster(struct sim_call *c, int *out, CUfunction f,
				  const CUlaunchConfig *k)
{
	(void)c;
	if (!out || !k)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_func_is(f))
		return CUDA_ERROR_INVALID_HANDLE;
	*out = sim_cfg.cc_major >= 9 ? LARGEST_CLUSTER : 1;
	return CUDA_SUCCESS;
}

static CUresult active_clusters(struct sim_call *c, int *out, CUfunction f, const CUlaunchConfig *k)
{
	unsigned size = 1;
	CUresult r = potential_cluster(c, out, f, k);
	if (r)
		return r;
	const CUlaunchAttribute *a = k->attrs;
	for (unsigned i = 0; a && i < k->numAttrs; i++)
		if (a[i].id == CLUSTER_DIMENSION)
			size = a[i].dim[0] * a[i].dim[1] * a[i].dim[2];
	uint64_t block = (uint64_t)k->blockDimX * k->blockDimY * k->blockDimZ;
	if (!size || !block || block > 1024)
		return CUDA_ERROR_INVALID_VALUE;
	if (size > (unsigned)*out)
		return CUDA_ERROR_INVALID_CLUSTER_SIZE;
	*out = SIM_MULTIPROCESSORS * blocks_per_sm(f, (int)block, k->sharedMemBytes) / (int)size;
	return CUDA_SUCCESS;
}

SIM_API(cuOccupancyMaxActiveBlocksPerMultiprocessor, SIM_NEED_CTX, blocks,
	(int *n, CUfunction f, int block, size_t shared), (n, f, block, shared))
SIM_API(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, SIM_NEED_CTX, blocks_flags,
	(int *n, CUfunction f, int block, size_t shared, unsigned flags),
	(n, f, block, shared, flags))
SIM_API(cuOccupancyMaxPotentialBlockSize, SIM_NEED_CTX, best_block,
	(int *grid, int *block, CUfunction f, CUoccupancyB2DSize fn, size_t shared, int limit),
	(grid, block, f, fn, shared, limit))
SIM_API(cuOccupancyMaxPotentialBlockSizeWithFlags, SIM_NEED_CTX, best_block_flags,
	(int *grid, int *block, CUfunction f, CUoccupancyB2DSize fn, size_t shared, int limit,
	 unsigned flags),
	(grid, block, f, fn, shared, limit, flags))
SIM_API(cuOccupancyAvailableDynamicSMemPerBlock, SIM_NEED_CTX, dynamic_shared,
	(size_t * out, CUfunction f, int n, int block), (out, f, n, block))
SIM_API(cuOccupancyMaxPotentialClusterSize, SIM_NEED_CTX, potential_cluster,
	(int *out, CUfunction f, const CUlaunchConfig *k), (out, f, k))
SIM_API(cuOccupancyMaxActiveClusters, SIM_NEED_CTX, active_clusters,
	(int *out, CUfunction f, const CUlaunchConfig *k), (out, f, k))
