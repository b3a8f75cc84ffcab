#include "hook/driver/driver.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

#include "base/elf_tables.h"
#include "base/environ.h"
#include "base/text.h"
#include "hook/within.h"
#include "record/record.h"
#include "record/process/forks.h"
#include "record/process/steady.h"

void *tfh_real[TFH_FN_COUNT];
tfh_find_object_fn tfh_find_object;

/* ---- libc's own dlvsym, without calling dlvsym: tfhook defines that name ---- */

/* Only the loader modifies this list. dl_iterate_phdr may be a sanitizer's, which cannot be called
 * yet if the process's first dlsym is its own. */
#pragma weak _r_debug

const struct link_map *tfh_first_object(void)
{
	return &_r_debug ? _r_debug.r_map : NULL;
}

static int (*objects)(int (*)(struct dl_phdr_info *, size_t, void *), void *) = dl_iterate_phdr;

int tfh_each_object(int (*look)(struct dl_phdr_info *, size_t, void *), void *data)
{
	int found;

	tfh_lookup_init();
	tfh_unforked_begin();
	found = objects(look, data);
	tfh_unforked_end();
	return found;
}

/* libc's own functions, even if other objects define these names. */
static struct libc {
	void *dlsym, *dlvsym, *dl_iterate_phdr;
} libc;

static void *defined_in(const struct dl_phdr_info *info, const char *name)
{
	struct tfh_elf_tables t;

	tfh_elf_tables_of(&t, info->dlpi_addr, info->dlpi_phdr, info->dlpi_phnum);
	return tfh_elf_function(&t, name);
}

static void find_in_libc(struct libc *l, const char *path, ElfW(Addr) base,
			 const ElfW(Dyn) * dynamic)
{
	const char *file = tfh_file_of(path);
	struct tfh_elf_tables t;

	if (strncmp(file, "libc.so", 7) && strncmp(file, "libc-", 5) && strncmp(file, "libdl", 5))
		return;
	tfh_elf_tables(&t, base, dynamic);
	if (!l->dlsym)
		l->dlsym = tfh_elf_function(&t, "dlsym");
	if (!l->dlvsym)
		l->dlvsym = tfh_elf_function(&t, "dlvsym");
	if (!l->dl_iterate_phdr)
		l->dl_iterate_phdr = tfh_elf_function(&t, "dl_iterate_phdr");
	if (!tfh_find_object)
		tfh_find_object = (tfh_find_object_fn)tfh_elf_function(&t, "_dl_find_object");
}

void *(*tfh_next_dlsym)(void *, const char *);
void *(*tfh_next_dlvsym)(void *, const char *, const char *);

void tfh_lookup_init(void)
{
	if (tfh_likely(__atomic_load_n(&tfh_next_dlsym, __ATOMIC_ACQUIRE) != NULL))
		return;
	void *next[2];

	for (const struct link_map *m = tfh_first_object(); m; m = m->l_next)
		find_in_libc(&libc, m->l_name, m->l_addr, m->l_ld);
	if (libc.dl_iterate_phdr)
		objects = libc.dl_iterate_phdr;
	/* Looked up without a version: with one, glibc ignores another preload's unversioned
	 * definition. */
	void *(*look)(void *, const char *) = (void *(*)(void *, const char *))libc.dlsym;
	next[0] = look(RTLD_NEXT, "dlsym");
	next[1] = look(RTLD_NEXT, "dlvsym");
	__atomic_store_n(
		&tfh_next_dlvsym,
		(void *(*)(void *, const char *, const char *))(next[1] ? next[1] : libc.dlvsym),
		__ATOMIC_RELEASE);
	/* Stored last, since it marks both as valid. */
	__atomic_store_n(&tfh_next_dlsym,
			 (void *(*)(void *, const char *))(next[0] ? next[0] : libc.dlsym),
			 __ATOMIC_RELEASE);
}

/* ---- the driver ---- */

const char *tfh_driver_path(void)
{
	static const char *path;
	const char *found = __atomic_load_n(&path, __ATOMIC_ACQUIRE);

	if (!found) {
		static char copy[4096]; /* the job may change its environment */
		const char *given = tfh_env("TFHOOK_CUDA_LIB");
		found = "libcuda.so.1";
		if (given && *given && strlen(given) < sizeof(copy))
			found = memcpy(copy, given, strlen(given) + 1);
		__atomic_store_n(&path, found, __ATOMIC_RELEASE);
	}
	return found;
}

/*
 * The driver's handle, kept open from then on; NULL while no driver is loaded.
 *
 * The first call takes the loader's lock. Later ones must not: a library's constructor, which runs
 * under that lock, may wait for a thread that calls the driver.
 */
static void *driver_handle(void)
{
	static void *handle;
	void *found = __atomic_load_n(&handle, __ATOMIC_ACQUIRE);

	if (tfh_likely(found != NULL))
		return found;
	tfh_lookup_init();
	found = dlopen(tfh_driver_path(), RTLD_NOLOAD | RTLD_LAZY);
	if (!found) {
		dlerror(); /* the job must not see this failure */
		return NULL;
	}
	__atomic_store_n(&handle, found, __ATOMIC_RELEASE);
	return found;
}

/* Looks up an export of the driver's own object without the loader. */
static void *exported(void *handle, const char *name)
{
	struct link_map *map;
	struct tfh_elf_tables t;

	if (dlinfo(handle, RTLD_DI_LINKMAP, &map))
		return NULL;
	tfh_elf_tables(&t, map->l_addr, map->l_ld);
	return tfh_elf_function(&t, name);
}

/* Whether another preload may replace the driver's functions. */
static bool others_answer(void)
{
	return (void *)tfh_next_dlsym != libc.dlsym;
}

static void *ask_loader(void *handle, const char *name)
{
	void *found = tfh_next_dlsym(handle, name);

	if (!found)
		dlerror();
	return found;
}

/* Cancellation or a longjmp in the middle would leave the loader's lock held. */
void *tfh_driver_symbol(const char *name)
{
	struct tfh_steady steady;
	void *handle, *found;

	tfh_steady_begin(&steady);
	handle = driver_handle();
	found = handle && !others_answer() ? exported(handle, name) : NULL;
	if (handle && !found)
		found = ask_loader(handle, name);
	tfh_steady_end(&steady);
	return found;
}

bool tfh_holds(const struct dl_phdr_info *info, uintptr_t address)
{
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		if (p->p_type == PT_LOAD && address - (info->dlpi_addr + p->p_vaddr) < p->p_memsz)
			return true;
	}
	return false;
}

/* ---- real functions ---- */

/* The linker's symbols for the bounds of this library. */
#pragma GCC visibility push(hidden)
extern const char __ehdr_start[], _end[];
#pragma GCC visibility pop

static bool is_ours(const void *address)
{
	return (uintptr_t)address - (uintptr_t)__ehdr_start <
	       (uintptr_t)_end - (uintptr_t)__ehdr_start;
}

static void *keep_real(enum tfh_fn fn, void *found)
{
	if (is_ours(found))
		found = NULL; /* a handle whose search leads back to this library */
	if (found)
		__atomic_store_n(&tfh_real[fn], found, __ATOMIC_RELEASE);
	return found;
}

void *tfh_real_find(enum tfh_fn fn)
{
	void *found = __atomic_load_n(&tfh_real[fn], __ATOMIC_ACQUIRE);

	return found ? found : keep_real(fn, tfh_driver_symbol(tfh_fn_table[fn].name));
}

void *tfh_real_exported(enum tfh_fn fn)
{
	void *found = __atomic_load_n(&tfh_real[fn], __ATOMIC_ACQUIRE);
	void *handle = found ? NULL : driver_handle();

	if (found || !handle)
		return found;
	if (others_answer())
		return tfh_real_find(fn);
	return keep_real(fn, exported(handle, tfh_fn_table[fn].name));
}

void *tfh_ask(enum tfh_ask which)
{
	static const char *const symbol[] = {
#define X(id, name, parameters) #name,
		TFH_ASK_LIST(X)
#undef X
	};
	static void *known[TFH_ASK_COUNT];
	static char absent; /* its address means: looked up, but missing */
	void *found = __atomic_load_n(&known[which], __ATOMIC_ACQUIRE);

	if (!found) {
		found = tfh_driver_symbol(symbol[which]);
		if (!found && driver_handle())
			found = &absent;
		__atomic_store_n(&known[which], found, __ATOMIC_RELEASE);
	}
	return found == &absent ? NULL : found;
}

/*
 * The definition that the caller would bind to: that of its own object, else that of the first
 * other object that has one. TensorFlow's wheel defines the driver's names and is opened with
 * RTLD_LOCAL, so dlsym would not find them from here.
 */
struct symbol_search {
	const char *name;
	uintptr_t address; /* the object that contains it; 0: all but this library */
	void *found;
};

static int find_definition(struct dl_phdr_info *info, size_t size, void *data)
{
	struct symbol_search *search = data;
	bool wanted = search->address ? tfh_holds(info, search->address)
				      : !tfh_holds(info, (uintptr_t)&tfh_real);

	(void)size;
	if (wanted)
		search->found = defined_in(info, search->name);
	return search->found != NULL;
}

void *tfh_without_us(const char *name, const void *caller)
{
	struct symbol_search search = {name, (uintptr_t)caller, NULL};

	tfh_each_object(find_definition, &search);
	search.address = 0;
	if (!search.found)
		tfh_each_object(find_definition, &search);
	return search.found;
}

/*
 * Calls that this thread has forwarded while no driver was loaded. The function that received one
 * may look the same name up and reach our wrapper again. Outermost first; entries at or below the
 * stack address of a new call have ended.
 */
#define FORWARDS 8
static __thread struct {
	unsigned count;
	tfh_within call[FORWARDS];
} forwards __attribute__((tls_model("initial-exec")));

static bool may_forward(tfh_within here)
{
	while (forwards.count && !tfh_is_within(forwards.call[forwards.count - 1], here))
		forwards.count--;
	return forwards.count < FORWARDS;
}

unsigned tfh_forward(const char *here)
{
	if (!may_forward(here))
		return forwards.count;
	forwards.call[forwards.count] = here;
	return forwards.count++;
}

void tfh_forwarded(unsigned before)
{
	forwards.count = before;
}

void *tfh_real_for(enum tfh_fn fn, const void *caller, bool *record)
{
	void *found = tfh_real_find(fn);

	*record = found != NULL;
	if (found || driver_handle() || !may_forward(TFH_HERE))
		return found;
	return tfh_without_us(tfh_fn_table[fn].name, caller);
}

CUresult tfh_no_driver(void)
{
	return driver_handle() ? TFH_CUDA_NOT_SUPPORTED : TFH_CUDA_SHARED_OBJECT_INIT_FAILED;
}
