/* cuGetProcAddress, both versions: rules as in the documentation of CUDA 13.0. */
#include "sim/gpu/api.h"
#include "sim/gpu/entry/variant.h"

#include <string.h>

enum { FLAG_LEGACY = 1, FLAG_PER_THREAD = 2 };

/* All names in sequence, NULL at the end. */
static const struct sim_proc *entry(int i)
{
	const struct sim_proc *p =
		i < sim_nprocs ? &sim_procs[i] : &sim_variant_procs[i - sim_nprocs];
	return p->base ? p : NULL;
}

/* The newest variant not above version. Below the first one: the oldest, unless strict, since some
 * clients ask with a version older than the function. */
static void *choose(const char *name, int version, bool per_thread, int *status)
{
	const struct sim_proc *best = NULL, *oldest = NULL;
	*status = SIM_GPA_NOT_FOUND;
	const struct sim_proc *p;
	for (int i = 0; (p = entry(i)); i++) {
		if (!p->version || p->per_thread != per_thread || strcmp(p->base, name))
			continue;
		if (p->version <= version && (!best || p->version > best->version))
			best = p;
		if (!oldest || p->version < oldest->version)
			oldest = p;
	}
	if (!best && oldest && !sim_cfg.gpa_strict && oldest->version <= sim_cfg.driver_version)
		best = oldest;
	if (best)
		*status = SIM_GPA_SUCCESS;
	else if (oldest)
		*status = SIM_GPA_VERSION_NOT_SUFFICIENT;
	return best ? best->address : NULL;
}

static CUresult lookup(struct sim_call *c, const char *name, void **fn, int version, uint64_t flags,
		       int *status)
{
	int st = SIM_GPA_NOT_FOUND;
	if (!name || !fn || flags > FLAG_PER_THREAD)
		return CUDA_ERROR_INVALID_VALUE;
	c->kernel = name;
	*fn = NULL;
	if (version > sim_cfg.driver_version)
		return CUDA_ERROR_INVALID_VALUE;
	if (flags & FLAG_PER_THREAD)
		*fn = choose(name, version, true, &st);
	if (!*fn)
		*fn = choose(name, version, false, &st);
	if (status)
		*status = st;
	return CUDA_SUCCESS;
}

static CUresult lookup_v1(struct sim_call *c, const char *name, void **fn, int version,
			  uint64_t flags)
{
	return lookup(c, name, fn, version, flags, NULL);
}

SIM_API(cuGetProcAddress, SIM_NEED_NONE, lookup_v1,
	(const char *name, void **fn, int version, uint64_t flags), (name, fn, version, flags))
SIM_API(cuGetProcAddress_v2, SIM_NEED_NONE, lookup,
	(const char *name, void **fn, int version, uint64_t flags, int *status),
	(name, fn, version, flags, status))
