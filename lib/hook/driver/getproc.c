/*
 * The hook of cuGetProcAddress, through which the CUDA runtime finds every driver function.
 *
 * The real function is called first, and the pointer that it returns decides, not the name: only
 * the driver knows which version of a name answers a request. The table of its pointers is built by
 * querying the real driver through dlsym and through cuGetProcAddress, since the two may return
 * different addresses.
 */
#include "hook/driver/driver.h"

#include <sys/mman.h>

#include "hook/within.h"
#include "record/record.h"

/* ---- our wrappers ---- */

#pragma GCC visibility push(hidden)
#define CUDA_FN(name, family, args, dir, props, version, params, ...) CUresult hook_##name params;
#include "base/cuda_api.def"
#undef CUDA_FN
#pragma GCC visibility pop

/* Hidden names, since an exported one may be bound to another object's definition. */
static void *const hooks[TFH_FN_COUNT] = {
#define CUDA_FN(name, ...) [TFH_FN_##name] = (void *)hook_##name,
#include "base/cuda_api.def"
#undef CUDA_FN
};

void *tfh_hook_of(enum tfh_fn fn)
{
	return hooks[fn];
}

bool tfh_is_hook(const void *address)
{
	for (unsigned fn = 1; fn < TFH_FN_COUNT && hooks[fn]; fn++)
		if (hooks[fn] == address)
			return true;
	return false;
}

/* ---- the driver's answers ---- */

typedef CUresult (*getproc_v1)(const char *, void **, int, uint64_t);
typedef CUresult (*getproc_v2)(const char *, void **, int, uint64_t, void *);

struct route {
	void *real;
	enum tfh_fn fn;
};

/* Each row once as exported and once as returned by cuGetProcAddress. */
struct routes {
	unsigned count;
	struct route route[2 * TFH_FN_COUNT];
};

/*
 * A thread that finds no table builds one, and the first complete one is kept. No thread waits for
 * another one, which might itself wait for the loader, or might not exist in a forked child.
 */
static struct routes *known; /* atomic */

/* A call inside this one is the driver's own, caused by our queries. */
static __thread tfh_within making __attribute__((tls_model("initial-exec")));

static const uint16_t version_of[TFH_FN_COUNT] = {
#define CUDA_FN(name, family, args, dir, props, version, ...) [TFH_FN_##name] = version,
#include "base/cuda_api.def"
#undef CUDA_FN
};

/* The name without _v<n>, _ptsz or _ptds; true if it asks for per-thread default streams. */
static bool base_of(const char *symbol, char base[64])
{
	size_t n = 0;
	bool per_thread = tfh_fn_table[tfh_fn_find(symbol)].props & TFH_FN_PTDS;

	while (n < 63 && symbol[n] && !tfh_same_base(symbol, base)) {
		base[n] = symbol[n];
		base[++n] = '\0';
	}
	return per_thread;
}

static void *ask_driver(const char *base, int version, uint64_t flags)
{
	getproc_v2 v2 = (getproc_v2)tfh_real_exported(TFH_FN_cuGetProcAddress_v2);
	getproc_v1 v1 = (getproc_v1)tfh_real_exported(TFH_FN_cuGetProcAddress);
	void *found = NULL;
	int status;

	if (v2 ? v2(base, &found, version, flags, &status)
	       : !v1 || v1(base, &found, version, flags))
		return NULL;
	return found;
}

static enum tfh_fn route_of(const struct routes *r, const void *real, const char *symbol)
{
	enum tfh_fn any = TFH_FN_NONE;

	for (unsigned i = 0; i < r->count; i++) {
		enum tfh_fn fn = r->route[i].fn;
		if (r->route[i].real != real)
			continue;
		/* Drivers give some names the same address: the requested name is then hooked as
		 * well. */
		if (tfh_same_base(tfh_fn_table[fn].name, symbol))
			return fn;
		if (!any)
			any = fn;
	}
	return any;
}

static bool routed(const struct routes *r, const void *real)
{
	for (unsigned i = 0; i < r->count; i++)
		if (r->route[i].real == real)
			return true;
	return false;
}

/*
 * Exported addresses come first and take precedence: only their version is certain. An additional
 * address from cuGetProcAddress belongs to the row whose version was requested.
 */
static void build_routes(struct routes *r)
{
	unsigned exported;

	for (enum tfh_fn fn = 1; fn < TFH_FN_COUNT && tfh_hook_of(fn); fn++) {
		void *real = tfh_real_exported(fn);
		if (real)
			r->route[r->count++] = (struct route){real, fn};
	}
	exported = r->count;
	for (enum tfh_fn fn = 1; exported && fn < TFH_FN_COUNT && tfh_hook_of(fn); fn++) {
		char base[64] = "";
		bool per_thread = base_of(tfh_fn_table[fn].name, base);
		void *real = version_of[fn] ? ask_driver(base, version_of[fn],
							 per_thread ? TFH_GPA_PER_THREAD : 0)
					    : NULL;
		if (real && !routed(r, real) && !tfh_is_hook(real))
			r->route[r->count++] = (struct route){real, fn};
	}
}

/* NULL within our own queries, or when out of memory. */
static const struct routes *routes(void)
{
	struct routes *found = __atomic_load_n(&known, __ATOMIC_ACQUIRE), *none = NULL;
	tfh_within here = TFH_HERE;

	if (tfh_likely(found != NULL))
		return found;
	if (tfh_is_within(making, here))
		return NULL;
	found = mmap(NULL, sizeof(*found), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		     0);
	if (found == MAP_FAILED)
		return NULL;
	making = here;
	build_routes(found);
	making = NULL;
	if (__atomic_compare_exchange_n(&known, &none, found, false, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE))
		return found;
	munmap(found, sizeof(*found));
	return none;
}

/* Replaces a pointer returned by the driver with our wrapper, if there is one. */
static void route(const char *symbol, void **answer, const void *caller)
{
	void *real = answer ? *answer : NULL;
	const struct routes *r;

	/* If another preload wraps dlsym, the driver may find and return our own wrappers. */
	if (!real || !symbol || !tfh_driver_name(symbol) || tfh_is_hook(real) || !(r = routes()) ||
	    tfh_in_vendor(caller))
		return;
	enum tfh_fn fn = route_of(r, real, symbol);
	bool left = tfh_left_alone(symbol, true);
	/* A function in cuda_left.def may share its address with a hooked one that does the same
	 * thing, such as failing. */
	if (fn && !(left && !tfh_same_base(tfh_fn_table[fn].name, symbol)))
		*answer = tfh_hook_of(fn);
	else if (!left)
		tfh_unhooked(symbol);
}

/* ---- the hook ---- */

CUresult hook_cuGetProcAddress(const char *symbol, void **pfn, int version, uint64_t flags)
{
	bool driver;
	getproc_v1 real = (getproc_v1)tfh_real_for(TFH_FN_cuGetProcAddress,
						   __builtin_return_address(0), &driver);
	CUresult result = real ? real(symbol, pfn, version, flags) : tfh_no_driver();

	if (result == TFH_CUDA_SUCCESS && driver)
		route(symbol, pfn, __builtin_return_address(0));
	return result;
}

CUresult hook_cuGetProcAddress_v2(const char *symbol, void **pfn, int version, uint64_t flags,
				  void *status)
{
	bool driver;
	getproc_v2 real = (getproc_v2)tfh_real_for(TFH_FN_cuGetProcAddress_v2,
						   __builtin_return_address(0), &driver);
	CUresult result = real ? real(symbol, pfn, version, flags, status) : tfh_no_driver();

	if (result == TFH_CUDA_SUCCESS && driver)
		route(symbol, pfn, __builtin_return_address(0));
	return result;
}

__attribute__((visibility("default"), alias("hook_cuGetProcAddress"))) CUresult
cuGetProcAddress(const char *symbol, void **pfn, int version, uint64_t flags);
__attribute__((visibility("default"), alias("hook_cuGetProcAddress_v2"))) CUresult
cuGetProcAddress_v2(const char *symbol, void **pfn, int version, uint64_t flags, void *status);
