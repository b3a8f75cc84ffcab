/*
 * Which loaded object contains an address. glibc tells it without a lock since 2.35. Before that,
 * the loader's list cannot be read while a callback of dl_iterate_phdr() runs, which may wait for
 * the calling thread; /proc/self/maps can. As that takes 2 ms in a process with 2,000 mappings,
 * objects that were found are remembered.
 */
#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/maps.h"
#include "base/refused.h"
#include "base/text.h"
#include "hook/driver/driver.h"
#include "record/process/filters.h"
#include "record/process/recorder.h"

struct owner {
	uintptr_t base; /* where the first byte of its file is mapped */
	uintptr_t end;
	uintptr_t eh_frame; /* 0: none */
	char file[128];
};

/* ---- by its mappings ---- */

struct mapped {
	uintptr_t address, base;
	uint64_t device, inode; /* 0: no file */
	char file[128];
};

static void copy_name(char *to, size_t size, const char *path)
{
	const char *file = tfh_file_of(path);
	size_t n = strnlen(file, size - 1);

	memcpy(to, file, n);
	to[n] = '\0';
}

/* An object's mappings follow each other, from the first byte of its file. */
static bool take_mapping(const struct tfh_mapping *m, void *data)
{
	struct mapped *at = data;

	if (!m->offset || m->inode != at->inode || m->device != at->device) {
		at->base = m->start;
		at->inode = m->inode;
		at->device = m->device;
		copy_name(at->file, sizeof(at->file), m->inode ? m->path : "");
	}
	return at->address >= m->start && at->address < m->end;
}

/* An object's first bytes: its headers, as linkers place them. */
struct headers {
	ElfW(Ehdr) file;
	ElfW(Phdr) part[17];
};

/* By a copy, since another thread may unload an object that does not contain the address. */
static bool copy_headers(uintptr_t base, struct headers *to)
{
	struct iovec here = {to, sizeof(*to)}, there = {(void *)base, sizeof(*to)};

	return tfh_filters_allowed() &&
	       tfh_copy_memory(getpid(), &here, 1, &there, 1) == (ssize_t)sizeof(*to) &&
	       !memcmp(to->file.e_ident, ELFMAG, SELFMAG) && to->file.e_phoff == sizeof(to->file) &&
	       to->file.e_phentsize == sizeof(*to->part);
}

static bool read_headers(uintptr_t base, struct owner *owner, uint32_t *check)
{
	struct headers headers;
	uintptr_t first = UINTPTR_MAX;

	*owner = (struct owner){.base = base};
	if (!copy_headers(base, &headers))
		return false;
	for (unsigned i = 0;
	     i < headers.file.e_phnum && i < sizeof(headers.part) / sizeof(*headers.part); i++) {
		const ElfW(Phdr) *p = &headers.part[i];

		if (p->p_type == PT_LOAD && first == UINTPTR_MAX)
			first = p->p_vaddr & -TFH_PAGE;
		if (p->p_type == PT_LOAD)
			owner->end = base + p->p_vaddr + p->p_memsz - first;
		else if (p->p_type == PT_GNU_EH_FRAME)
			owner->eh_frame = base + p->p_vaddr - first;
	}
	*check = tfh_crc32c(0, &headers, sizeof(headers));
	return owner->end > base;
}

/* ---- those that were found before ---- */

/* In the order of finding; when it is full, others are searched for each time. An object that was
 * unloaded stays, and what lies in its place has other headers. */
static struct {
	struct owner owner;
	uint32_t check;
	bool ready;
} known[64];
static unsigned n_known;

static void remember(const struct owner *owner, uint32_t check)
{
	unsigned at = __atomic_fetch_add(&n_known, 1, __ATOMIC_RELAXED);

	if (at >= sizeof(known) / sizeof(*known)) {
		__atomic_store_n(&n_known, sizeof(known) / sizeof(*known), __ATOMIC_RELAXED);
		return;
	}
	known[at].owner = *owner;
	known[at].check = check;
	__atomic_store_n(&known[at].ready, true, __ATOMIC_RELEASE);
}

static bool recall(uintptr_t address, struct owner *owner)
{
	uint32_t check;

	for (unsigned i = 0; i < sizeof(known) / sizeof(*known) &&
			     __atomic_load_n(&known[i].ready, __ATOMIC_ACQUIRE);
	     i++) {
		const struct owner *o = &known[i].owner;
		if (address < o->base || address >= o->end ||
		    !read_headers(o->base, owner, &check) || check != known[i].check)
			continue;
		*owner = *o;
		return true;
	}
	return false;
}

/* 1; 0: no object; -errno: /proc cannot be read. */
static int owner_of(const void *address, struct owner *owner)
{
	struct mapped mapped = {.address = (uintptr_t)address};
	uint32_t check;

	if (recall(mapped.address, owner))
		return 1;
	int found = tfh_each_mapping(0, take_mapping, &mapped);
	if (found <= 0 || !mapped.inode)
		return found < 0 ? found : 0;
	bool read = read_headers(mapped.base, owner, &check);
	memcpy(owner->file, mapped.file, sizeof(owner->file));
	if (read && mapped.address < owner->end)
		remember(owner, check);
	return 1;
}

int tfh_object_at(const void *address, struct tfh_object *found)
{
	struct owner owner;

	tfh_lookup_init();
	if (tfh_find_object)
		return !tfh_find_object(address, found);
	int n = owner_of(address, &owner);
	if (n > 0)
		*found = (struct tfh_object){.start = (void *)owner.base,
					     .end = (void *)owner.end,
					     .eh_frame = (void *)owner.eh_frame};
	return n;
}

/* ---- by the loader's list ---- */

struct listed {
	uintptr_t address;
	struct owner *owner;
};

static int find_owner(struct dl_phdr_info *info, size_t size, void *data)
{
	const struct listed *l = data;

	(void)size;
	if (!tfh_holds(info, l->address))
		return 0;
	l->owner->base = (uintptr_t)info->dlpi_addr;
	copy_name(l->owner->file, sizeof(l->owner->file), info->dlpi_name);
	return 1;
}

/* Where there is no /proc, the loader's list is all there is. */
static bool found_owner(const void *address, struct owner *owner)
{
	struct listed listed = {(uintptr_t)address, owner};
	int found = owner_of(address, owner);

	return found < 0 ? tfh_each_object(find_owner, &listed) : found;
}

void tfh_file_holding(const void *address, char *file, size_t size)
{
	struct tfh_object object;
	struct owner owner;

	tfh_lookup_init();
	if (tfh_find_object)
		copy_name(file, size, tfh_find_object(address, &object) ? "" : object.map->l_name);
	else
		copy_name(file, size, found_owner(address, &owner) ? owner.file : "");
}

/* What comes before us was there at the start, and stays. */
bool tfh_loaded_before_us(const void *address)
{
	const struct link_map *first = tfh_first_object();
	uintptr_t program = getauxval(AT_PHDR) & -TFH_PAGE;
	struct tfh_object object;
	struct owner owner;

	tfh_lookup_init();
	if (tfh_find_object ? tfh_find_object(address, &object) : !found_owner(address, &owner))
		return false;
	for (const struct link_map *m = first; m && m->l_ld != _DYNAMIC; m = m->l_next) {
		bool here = tfh_find_object ? m == object.map : m->l_addr == owner.base;
		if (here || (m == first && !tfh_find_object && owner.base == program))
			return true;
	}
	return false;
}

static bool driver_file(const char *file)
{
	return !strncmp(file, "libcuda.so", 10) || !strcmp(file, tfh_file_of(tfh_driver_path()));
}

bool tfh_in_driver(const void *address)
{
	char file[128];

	tfh_file_holding(address, file, sizeof(file));
	return driver_file(file);
}

bool tfh_in_vendor(const void *address)
{
	static const char *const prefix[] = {"libcupti", "libnvidia-", "libcudadebugger",
					     "libtfhook"};
	char file[128];

	tfh_file_holding(address, file, sizeof(file));
	for (unsigned i = 0; i < sizeof(prefix) / sizeof(*prefix); i++)
		if (!strncmp(file, prefix[i], strlen(prefix[i])))
			return true;
	return driver_file(file);
}
