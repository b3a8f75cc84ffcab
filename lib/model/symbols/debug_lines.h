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

/* The line that the instruction at an address was made of, and its file as the compiler was given
 * it, below the folder it ran in where that is known (DWARF 5). False: unknown. */
bool tfh_debug_lines_find(struct tfh_debug_lines *d, uint64_t address, char *file, size_t size,
			  uint32_t *line);
/* The same of the outermost call whose code the compiler has put where the address is, so that the
 * line is one of the function that the address is in. */
bool tfh_debug_lines_call(struct tfh_debug_lines *d, struct tfh_debug_inlined *inlined,
			  uint64_t address, char *file, size_t size, uint32_t *line);

#endif
