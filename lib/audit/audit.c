/*
 * libtfhook-audit.so, for LD_AUDIT beside the preload: sends those to the hooks whom no preload
 * reaches. A library opened with RTLD_DEEPBIND finds libc's dlsym and the driver's own functions
 * before ours; the dynamic linker tells an auditor of each such binding and lets it answer.
 *
 * An auditor lives in a namespace of its own with a libc of its own, so nothing is recorded here:
 * the only thing done is to ask the preloaded libtfhook.so what a binding to the driver is to be.
 * Bindings before the program starts are left alone: the preload is not yet ready, and needs no
 * help then. So are those in namespaces of dlmopen: the driver there is another copy, with a state
 * of its own, which our hooks do not call.
 */
#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

typedef void *(*route)(const char *name, void *found);

static const char *recorder; /* its path; NULL when it is not preloaded */
static route ask;

static bool begins(const char *text, const char *prefix)
{
	return !strncmp(text, prefix, strlen(prefix));
}

/* Addresses in a dynamic section are those in memory, but where the loader could not write. */
static const char *strings_of(const struct link_map *map)
{
	for (const ElfW(Dyn) *d = map->l_ld; d->d_tag != DT_NULL; d++)
		if (d->d_tag == DT_STRTAB)
			return (const char *)(d->d_un.d_ptr < map->l_addr
						      ? d->d_un.d_ptr + map->l_addr
						      : d->d_un.d_ptr);
	return NULL;
}

static bool is_linked_to_driver(const struct link_map *map)
{
	const char *strings = strings_of(map);

	for (const ElfW(Dyn) *d = map->l_ld; strings && d->d_tag != DT_NULL; d++)
		if (d->d_tag == DT_NEEDED && begins(strings + d->d_un.d_val, "libcuda.so"))
			return true;
	return false;
}

EXPORT unsigned la_version(unsigned version)
{
	return version < LAV_CURRENT ? version : LAV_CURRENT;
}

/*
 * Whose bindings la_symbind64 is told of. All lookups by dlsym in an object with LA_FLG_BINDTO are
 * told; LA_FLG_BINDFROM makes each call of an object to another one dearer (that is how glibc does
 * it), so only those have it that are linked to the driver. The cookie says whether to redirect.
 */
EXPORT unsigned la_objopen(struct link_map *map, Lmid_t space, uintptr_t *cookie)
{
	static const char *const vendor[] = {"libcupti", "libnvidia-", "libcudadebugger"};
	const char *slash = strrchr(map->l_name, '/');
	const char *file = slash ? slash + 1 : map->l_name;

	*cookie = false;
	if (space != LM_ID_BASE)
		return 0;
	if (begins(file, "libtfhook")) {
		if (!recorder)
			recorder = map->l_name;
		return 0;
	}
	if (begins(file, "libcuda.so"))
		return LA_FLG_BINDTO;
	for (unsigned i = 0; i < sizeof(vendor) / sizeof(*vendor); i++)
		if (begins(file, vendor[i]))
			return 0;
	*cookie = true;
	return is_linked_to_driver(map) ? LA_FLG_BINDFROM : 0;
}

EXPORT void la_preinit(uintptr_t *cookie)
{
	void *handle = recorder ? dlmopen(LM_ID_BASE, recorder, RTLD_NOLOAD | RTLD_LAZY) : NULL;

	(void)cookie;
	if (handle)
		__atomic_store_n(&ask, (route)dlsym(handle, "tfhook_route"), __ATOMIC_RELEASE);
}

EXPORT uintptr_t la_symbind64(Elf64_Sym *symbol, unsigned index, uintptr_t *from, uintptr_t *to,
			      unsigned *flags, const char *name)
{
	route redirect = __atomic_load_n(&ask, __ATOMIC_ACQUIRE);

	(void)index;
	(void)to;
	*flags |= LA_SYMB_NOPLTENTER | LA_SYMB_NOPLTEXIT;
	if (!redirect || !*from || ELF64_ST_TYPE(symbol->st_info) != STT_FUNC)
		return symbol->st_value;
	return (uintptr_t)redirect(name, (void *)symbol->st_value);
}
