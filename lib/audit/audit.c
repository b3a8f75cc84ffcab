/*
 * libtfhook-audit.so, for LD_AUDIT with the preload: applies the hooks where the preload cannot.
 * A library opened with RTLD_DEEPBIND finds libc's dlsym and the driver's functions before
 * tfhook's; the dynamic linker reports each such binding to an auditor and lets it answer.
 *
 * An auditor lives in a namespace of its own with its own libc, so nothing is recorded here. It
 * only asks the preloaded libtfhook.so how to resolve a binding to the driver. Bindings made before
 * the program starts are left alone: the preload is not ready then and needs no help. So are
 * bindings in namespaces of dlmopen: the driver there is another copy with its own state, which the
 * hooks do not call.
 */
#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

typedef void *(*route)(const char *name, void *found);

static const char *recorder; /* its path; NULL if it is not preloaded */
static route ask;

static bool begins(const char *text, const char *prefix)
{
	return !strncmp(text, prefix, strlen(prefix));
}

/* Addresses in a dynamic section are absolute, except where the loader could not write. */
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
 * Selects the objects whose bindings are reported to la_symbind64. With LA_FLG_BINDTO, all dlsym
 * lookups in an object are. With LA_FLG_BINDFROM, glibc makes each call from an object to another
 * one slower, so only objects linked to the driver get it. The cookie says whether to redirect.
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
