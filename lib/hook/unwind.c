/*
 * Stack walking with libunwind, which is part of the recorder where scripts/libunwind could build
 * it, else with the C++ runtime's libgcc_s.so.1. The latter is opened RTLD_LOCAL on the flusher
 * when backtraces are wanted. Our library must not be linked to it: it would precede the program's
 * own unwinder and take over its exceptions. libgcc_eh.a needs _dl_find_object() of glibc 2.35.
 *
 * The system's libunwind.so.8 is not used: it opens a pipe among the job's descriptors, and reads
 * and writes by its numbers even after the job has closed them and given them to files of its own.
 *
 * Measured on 25 frames, on a thread that is not the main one: a call with a backtrace takes 1.4 us
 * with libunwind, 5.6 us with libgcc, the first of a process 110 us and of a thread 14 us more.
 * Neither allocates from the job's heap. Each word is checked to be readable before libunwind reads
 * it from a stack, whatever the unwind tables say. libgcc stops at code without such tables
 * (JIT-compiled), and reads the targets of broken ones without checking that they are mapped.
 *
 * No walk waits for the loader: another thread may hold its list, in a callback of
 * dl_iterate_phdr() that waits for the GIL, which this thread holds. Before glibc 2.35 the list
 * cannot be read without its lock; there processes with Python in them get Python's frames only if
 * /proc is missing, or if libgcc unwinds.
 */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdint.h>
#include <string.h>

#include "base/proc.h"
#include "hook/driver/driver.h"
#include "record/process/recorder.h"
#include "record/process/forks.h"
#include "record/stacks/stacks.h"

#ifdef TFH_LIBUNWIND
#define UNW_LOCAL_ONLY
#include <libunwind.h>

#define PAGES 4

/* Pages that this walk has found readable. They may be unmapped before the next walk. */
static __thread struct {
	uintptr_t page[PAGES]; /* address + 1; 0: free */
	unsigned next;
} readable;

typedef int (*object_fn)(struct dl_phdr_info *, size_t, void *);
/* Called by libunwind (scripts/libunwind.patch). */
int tfh_unreadable(uintptr_t address);
int tfh_unwind_object(uintptr_t address, object_fn callback, void *data);

int tfh_unreadable(uintptr_t address)
{
	uintptr_t page = address & -TFH_PAGE, last = (address + sizeof(uint64_t) - 1) & -TFH_PAGE;

	for (unsigned i = 0; page == last && i < PAGES; i++)
		if (readable.page[i] == page + 1)
			return 0;
	if (!tfh_readable((const void *)address))
		return -1;
	if (page == last)
		readable.page[readable.next++ % PAGES] = page + 1;
	return 0;
}

/* As dl_iterate_phdr() would, but only for the object that contains `address`. */
int tfh_unwind_object(uintptr_t address, object_fn callback, void *data)
{
	struct tfh_object object;
	ElfW(Phdr) header[2] = {{.p_type = PT_LOAD}, {.p_type = PT_GNU_EH_FRAME}};
	struct dl_phdr_info info = {.dlpi_name = "", .dlpi_phdr = header, .dlpi_phnum = 2};
	int found = tfh_object_at((const void *)address, &object);

	if (found < 0)
		return tfh_each_object(callback, data);
	if (!found || !object.eh_frame)
		return 0;
	header[0].p_vaddr = (uintptr_t)object.start;
	header[0].p_memsz = header[0].p_filesz = (uintptr_t)object.end - (uintptr_t)object.start;
	header[1].p_vaddr = (uintptr_t)object.eh_frame;
	return callback(&info, sizeof(info), data);
}

/* libunwind caches how to unwind a function by its address, but another library may be loaded there
 * now. */
static void forget(void)
{
	unw_flush_cache(unw_local_addr_space, 0, 0);
}

static int frames(void **frame, int most)
{
	memset(&readable, 0, sizeof(readable));
	return unw_backtrace(frame, most);
}

static int open_unwinder(const char **by)
{
	*by = "libunwind";
	return 0;
}

static bool waits_for_loader(void)
{
	struct tfh_object object;

	return tfh_object_at(&tfh_real, &object) < 0;
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

static void forget(void)
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

static const struct link_map *libgcc;

/* Opening takes the loader's lock for 0.2 ms, once per process. */
static int open_unwinder(const char **by)
{
	void *handle;

	tfh_unforked_begin();
	handle = dlopen("libgcc_s.so.1", RTLD_NOW | RTLD_LOCAL);
	gcc_ip = (uintptr_t(*)(void *))look(handle, "_Unwind_GetIP");
	gcc_trace = (trace_fn)look(handle, "_Unwind_Backtrace");
	libgcc = handle;
	tfh_unforked_end();
	*by = "libgcc_s.so.1";
	return gcc_ip && gcc_trace ? 0 : -ENOENT;
}

/* Whether libgcc takes the loader's lock. Builds for a glibc before 2.35 do, whatever glibc they
 * run with. */
static bool waits_for_loader(void)
{
	static const char asked[] = "\0_dl_find_object";
	const char *strings = NULL;
	size_t bytes = 0;

	for (const ElfW(Dyn) *d = libgcc->l_ld; d->d_tag != DT_NULL; d++) {
		if (d->d_tag == DT_STRTAB)
			strings = (const char *)d->d_un.d_ptr;
		else if (d->d_tag == DT_STRSZ)
			bytes = d->d_un.d_val;
	}
	return !strings || !memmem(strings, bytes, asked, sizeof(asked));
}
#endif

static int open_walker(const char **by)
{
	int err;

	tfh_lookup_init();
	err = open_unwinder(by);
	if (!err && waits_for_loader() && tfh_next_dlsym(RTLD_DEFAULT, "Py_IsInitialized"))
		err = -ENOTSUP;
	dlerror();
	return err;
}

static int walk(void **frame, int most)
{
	int n;

	/* Where the loader's lock is taken. */
	tfh_unforked_begin();
	n = frames(frame, most);
	tfh_unforked_end();
	return n;
}

__attribute__((constructor)) static void attach(void)
{
	static const struct tfh_stack_source source = {open_walker, walk, forget};

	tfh_stacks_attach(&source);
}
