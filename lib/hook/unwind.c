/*
 * Stack walking with libunwind.so.8 if installed, else with the C++ runtime's libgcc_s.so.1. Both are opened RTLD_LOCAL
 * on the flusher when backtraces are wanted. Our library must not be linked to them: they would precede the program's
 * own unwinder and take over its exceptions.
 *
 * Opening takes the loader's lock for 0.2 ms, once per process. Linking an unwinder would need no lock, but Debian's
 * libunwind.a is not built for shared objects. libgcc_eh.a reads the targets of broken unwind tables without checking
 * that they are mapped, stops at code without tables, and needs _dl_find_object() of glibc 2.35.
 *
 * Measured on 25 frames: libunwind takes 280 us for the first walk of a process, then 0.3 us; libgcc 15 us, then 3 us.
 * Neither allocates from the job's heap. libunwind probes addresses before it reads code without unwind tables
 * (JIT-compiled); libgcc stops there.
 */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdint.h>

#include "base/arch.h"
#include "hook/driver/driver.h"
#include "record/process/forks.h"
#include "record/stacks/stacks.h"

typedef int (*trace_fn)(int (*)(void *, void *), void *);

static int (*unw_backtrace)(void **, int);
static void (*unw_flush)(void *space, uintptr_t low, uintptr_t high);
static void **unw_space;
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
	if (now != __atomic_exchange_n(&seen, now, __ATOMIC_RELAXED) && unw_flush)
		unw_flush(*unw_space, 0, 0);
}

static int walk(void **frame, int most)
{
	struct walk w = {frame, 0, most};

	if (unw_backtrace)
		forget_unloaded();
	/* Both unwinders query the loader for objects that they have not met before. */
	tfh_unforked_begin();
	if (unw_backtrace)
		w.n = unw_backtrace(frame, most);
	else
		gcc_trace(take_frame, &w);
	tfh_unforked_end();
	return w.n;
}

static void *look(void *handle, const char *name)
{
	void *found = handle ? tfh_next_dlsym(handle, name) : NULL;

	if (!found)
		dlerror();
	return found;
}

static int open_one(const char **by)
{
	void *handle;

	handle = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);
	unw_backtrace = (int (*)(void **, int))look(handle, "unw_backtrace");
	unw_flush = (void (*)(void *, uintptr_t, uintptr_t))look(handle, TFH_ARCH_UNWIND_FLUSH);
	unw_space = look(handle, TFH_ARCH_UNWIND_SPACE);
	if (!unw_space)
		unw_flush = NULL;
	*by = "libunwind.so.8";
	if (unw_backtrace)
		return 0;
	handle = dlopen("libgcc_s.so.1", RTLD_NOW | RTLD_LOCAL);
	gcc_ip = (uintptr_t(*)(void *))look(handle, "_Unwind_GetIP");
	gcc_trace = (trace_fn)look(handle, "_Unwind_Backtrace");
	*by = "libgcc_s.so.1";
	return gcc_ip && gcc_trace ? 0 : -ENOENT;
}

static int open_walker(const char **by)
{
	int err;

	tfh_lookup_init();
	tfh_unforked_begin();
	err = open_one(by);
	tfh_unforked_end();
	return err;
}

__attribute__((constructor)) static void attach(void)
{
	static const struct tfh_stack_source source = {open_walker, walk};

	tfh_stacks_attach(&source);
}
