/* Looking up functions by name in an ELF object that is in memory, without the loader: its
 * functions may be hooked, and take its lock. */
#ifndef TFH_BASE_ELF_TABLES_H
#define TFH_BASE_ELF_TABLES_H

#include <link.h>
#include <stdint.h>

/* The tables of an object's dynamic section. */
struct tfh_elf_tables {
	ElfW(Addr) base; /* what the addresses of its symbols are relative to */
	const ElfW(Sym) * symbols;
	const char *strings;
	const uint32_t *gnu_hash;
};

/* The object must stay mapped while *t is used. */
void tfh_elf_tables(struct tfh_elf_tables *t, ElfW(Addr) base, const ElfW(Dyn) * dynamic);

/* The same for the `n` program headers of an object whose addresses are relative to `base`; no
 * function is found in one without a dynamic section. */
void tfh_elf_tables_of(struct tfh_elf_tables *t, ElfW(Addr) base, const ElfW(Phdr) * headers,
		       uint32_t n);

/* The first defined function of that name in any version; NULL if there is none, or if the object
 * has no hash table in GNU's form. Variables are ignored: some libraries store pointers to the
 * driver's functions under their names. */
void *tfh_elf_function(const struct tfh_elf_tables *t, const char *name);

#endif
