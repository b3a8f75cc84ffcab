#include "base/elf_tables.h"

#include <stdbool.h>
#include <elf.h>
#include <string.h>

/* The loader stores absolute addresses, except in objects that it could not write to. */
static const void *table_at(ElfW(Addr) base, ElfW(Addr) value)
{
	return (const void *)(value < base ? base + value : value);
}

void tfh_elf_tables(struct tfh_elf_tables *t, ElfW(Addr) base, const ElfW(Dyn) * dynamic)
{
	memset(t, 0, sizeof(*t));
	t->base = base;
	for (const ElfW(Dyn) *d = dynamic; d->d_tag != DT_NULL; d++) {
		if (d->d_tag == DT_SYMTAB)
			t->symbols = table_at(base, d->d_un.d_ptr);
		else if (d->d_tag == DT_STRTAB)
			t->strings = table_at(base, d->d_un.d_ptr);
		else if (d->d_tag == DT_GNU_HASH)
			t->gnu_hash = table_at(base, d->d_un.d_ptr);
	}
}

void tfh_elf_tables_of(struct tfh_elf_tables *t, ElfW(Addr) base, const ElfW(Phdr) * headers,
		       uint32_t n)
{
	memset(t, 0, sizeof(*t));
	for (uint32_t i = 0; i < n; i++)
		if (headers[i].p_type == PT_DYNAMIC)
			tfh_elf_tables(t, base, (const ElfW(Dyn) *)(base + headers[i].p_vaddr));
}

void *tfh_elf_function(const struct tfh_elf_tables *t, const char *name)
{
	if (!t->symbols || !t->strings || !t->gnu_hash)
		return NULL;
	uint32_t hash = 5381;
	for (const unsigned char *p = (const unsigned char *)name; *p; p++)
		hash = hash * 33 + *p;
	uint32_t buckets = t->gnu_hash[0], first = t->gnu_hash[1], bloom = t->gnu_hash[2];
	const uint32_t *bucket = t->gnu_hash + 4 + bloom * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
	const uint32_t *chain = bucket + buckets;
	uint32_t i = buckets ? bucket[hash % buckets] : 0;

	for (; i >= first && i; i++) {
		const ElfW(Sym) *symbol = &t->symbols[i];
		bool same = (chain[i - first] | 1) == (hash | 1) && symbol->st_shndx != SHN_UNDEF &&
			    ELF64_ST_TYPE(symbol->st_info) == STT_FUNC;
		if (same && !strcmp(t->strings + symbol->st_name, name))
			return (void *)(t->base + symbol->st_value);
		if (chain[i - first] & 1)
			break;
	}
	return NULL;
}
