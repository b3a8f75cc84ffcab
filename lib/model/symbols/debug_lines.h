/* Lines of source code in an ELF file, for addresses: DWARF's line tables (.debug_line), versions 2
 * to 5, which -g makes. The file is untrusted. */
#ifndef TFH_MODEL_SYMBOLS_DEBUG_LINES_H
#define TFH_MODEL_SYMBOLS_DEBUG_LINES_H

#include "model/symbols/debug_inlined.h"
#include "model/symbols/elf_file.h"

struct tfh_debug_lines;

/* NULL: the file has none, or they are too large. Reads all of them once. Not thread-safe. */
struct tfh_debug_lines *tfh_debug_lines_open(const struct tfh_elf *e);
void tfh_debug_lines_close(struct tfh_debug_lines *d);

/* The line of the instruction at an address, and its file as it was given to the compiler, below
 * the folder in which the compiler ran where that is known (DWARF 5). False: unknown. */
bool tfh_debug_lines_find(struct tfh_debug_lines *d, uint64_t address, char *file, size_t size,
			  uint32_t *line);
/* The same for the outermost inlined call at the address, so that the line is one of the function
 * that the address belongs to. */
bool tfh_debug_lines_call(struct tfh_debug_lines *d, struct tfh_debug_inlined *inlined,
			  uint64_t address, char *file, size_t size, uint32_t *line);

#endif
