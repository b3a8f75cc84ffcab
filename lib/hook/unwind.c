/*
 * Stack walking with libunwind, which is part of the recorder where scripts/libunwind could build it, else with the C++ runtime's
 * libgcc_s.so.1. The latter is opened RTLD_LOCAL on the flusher when backtraces are wanted. Our library must not be linked to it: it
 * would precede the program's own unwinder and take over its exceptions. libgcc_eh.a needs _dl_find_object() of glibc 2.35.
 *
 * The system's libunwind.so.8 is not used: it opens a pipe among the job's descriptors, and reads and writes by its numbers even after
 * the job has closed them and given them to files of its own.
 *
 * Measured on 25 frames: libunwind takes 280 us for the first walk of a process, then 0.3 us; libgcc 15 us, then 3 us (docs/costs.md has
 * whole calls). Neither allocates
 * from the job's heap. libunwind probes addresses before it reads code without unwind tables (JIT-compiled); libgcc stops there, and reads
 * the targets of broken unwind tables without checking that they are mapped.
 */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdint.h>

#include "hook/driver/driver.h"
#include "record/process/forks.h"
#include "record/stacks/stacks.h"

#ifdef TFH_LIBUNWIND
#define UNW_LOCAL_ONLY
#include <libunwind.h>

static int take_unloads(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	*(uint64_t *)arg = info->dlpi_subs;
	return 1;
}

/* libunwind caches how to unwind a function by its address, but another library may have been
 * loaded there since. */
static void forget_unloaded(void)
{
	static uint64_t seen;
	uint64_t now = 0;

	tfh_each_object(take_unloads, &now);
	if (now != __atomic_exchange_n(&seen, now, __ATOMIC_RELAXED))
		unw_flush_cache(unw_local_addr_space, 0, 0);
}

static int frames(void **frame, int most)
{
	return unw_backtrace(frame, most);
}

static int open_walker(const char **by)
{
	*by = "libunwind";
	return 0;
}

#else
typedef int (*trace_fn)(int (*)(void *, void *), void *);

static trace_fn gcc_trace;
static uintptr_t (*gcc_ip)(void *);

struct walk {
	void **frame;
	int n, most;
};

/* _URC_NO_REASON continues, _URC_END_OF_STACK stops. */
static int take_frame(void *context, void *arg)
{
	struct walk *w = arg;

	if (w->n == w->most)
		return 5;
	w->frame[w->n++] = (void *)gcc_ip(context);
	return 0;
}

static void forget_unloaded(void)
{
}

static int frames(void **frame, int most)
{
	struct walk w = {frame, 0, most};

	gcc_trace(take_frame, &w);
	return w.n;
}

static void *look(void *handle, const char *name)
{
	void *found = handle ? tfh_next_dlsym(handle, name) : NULL;

	if (!found)
		dlerror();
	return found;
}

/* Opening takes the loader's lock for 0.2 ms, once per process. */
static int open_walker(const char **by)
{
	void *handle;

	tfh_lookup_init();
	tfh_unforked_begin();
	handle = dlopen("libgcc_s.so.1", RTLD_NOW | RTLD_LOCAL);
	gcc_ip = (uintptr_t(*)(void *))look(handle, "_Unwind_GetIP");
	gcc_trace = (trace_fn)look(handle, "_Unwind_Backtrace");
	tfh_unforked_end();
	*by = "libgcc_s.so.1";
	return gcc_ip && gcc_trace ? 0 : -ENOENT;
}
#endif

static int walk(void **frame, int most)
{
	int n;

	forget_unloaded();
	/* Both unwinders query the loader for objects that they have not met before. */
	tfh_unforked_begin();
	n = frames(frame, most);
	tfh_unforked_end();
	return n;
}

__attribute__((constructor)) static void attach(void)
{
	static const struct tfh_stack_source source = {open_walker, walk};

	tfh_stacks_attach(&source);
}
