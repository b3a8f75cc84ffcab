/* Binary images: kernel names from the symbol table of a cubin; unpacking of fat binaries. */
#include "sim/gpu/sim.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

/*
 * Sizes of kernel parameters stand in section .nv.info.<kernel> as records of format, attribute and
 * size; attribute 0x17 describes one parameter: ordinal at byte 4, offset at 6, size in the top 14
 * bits of the word at 8.
 */
static void parameters(struct sim_func *f, const unsigned char *p, size_t n)
{
	enum { PARAM = 0x17, SIZED = 4, MAX = 256 };
	f->nparams = 0;
	for (size_t i = 0; i + 4 <= n;) {
		uint16_t size, ordinal, off;
		uint32_t word;
		memcpy(&size, p + i + 2, 2);
		if (p[i] == SIZED && p[i + 1] == PARAM && size >= 12 && i + 16 <= n) {
			memcpy(&ordinal, p + i + 8, 2);
			memcpy(&off, p + i + 10, 2);
			memcpy(&word, p + i + 12, 4);
			if (ordinal < MAX) {
				while (f->nparams <= ordinal) {
					struct sim_param *q = realloc(
						f->params, (size_t)(f->nparams + 1) * sizeof(*q));
					f->params = q;
					q[f->nparams++] = (struct sim_param){0, 0, NULL};
				}
				f->params[ordinal] = (struct sim_param){off, word >> 18, NULL};
				if (off + (word >> 18) > f->psize)
					f->psize = off + (word >> 18);
			}
		}
		i += 4u + (p[i] == SIZED ? size : 0u);
	}
}

static const Elf64_Shdr *section(const Elf64_Shdr *sh, const char *names, unsigned n,
				 const char *prefix, const char *name)
{
	size_t k = strlen(prefix);
	for (unsigned i = 0; i < n; i++) {
		const char *s = names + sh[i].sh_name;
		if (!strncmp(s, prefix, k) && !strcmp(s + k, name))
			return &sh[i];
	}
	return NULL;
}

void sim_elf_scan(struct sim_module *m, const void *image)
{
	const unsigned char *im = image;
	const Elf64_Ehdr *eh = image;
	const Elf64_Shdr *sh = (const void *)(im + eh->e_shoff);
	m->opaque = true;
	if (eh->e_ident[EI_CLASS] != ELFCLASS64 || !eh->e_shoff || eh->e_shstrndx >= eh->e_shnum)
		return;
	const char *names = (const char *)im + sh[eh->e_shstrndx].sh_offset;
	for (unsigned i = 0; i < eh->e_shnum; i++) {
		if (sh[i].sh_type != SHT_SYMTAB || sh[i].sh_link >= eh->e_shnum)
			continue;
		const Elf64_Sym *sym = (const void *)(im + sh[i].sh_offset);
		const char *str = (const char *)im + sh[sh[i].sh_link].sh_offset;
		for (size_t k = 0; k < sh[i].sh_size / sizeof(*sym); k++) {
			const char *s = str + sym[k].st_name;
			int type = ELF64_ST_TYPE(sym[k].st_info),
			    bind = ELF64_ST_BIND(sym[k].st_info);
			if (bind == STB_LOCAL || !*s)
				continue;
			if (type == STT_OBJECT) {
				sim_var_add(m, s, strlen(s), sym[k].st_size);
			} else if (type == STT_FUNC &&
				   section(sh, names, eh->e_shnum, ".text.", s)) {
				struct sim_func *f = sim_func_add(m, s, strlen(s));
				const Elf64_Shdr *info =
					section(sh, names, eh->e_shnum, ".nv.info.", s);
				if (info)
					parameters(f, im + info->sh_offset, info->sh_size);
				m->opaque = false;
			}
		}
	}
}
