/* Inlined calls in an ELF file, from DWARF's .debug_info, versions 4 and 5, which -g makes. The
 * file is untrusted. */
#ifndef TFH_MODEL_SYMBOLS_DEBUG_INLINED_H
#define TFH_MODEL_SYMBOLS_DEBUG_INLINED_H

#include "model/symbols/elf_file.h"

struct tfh_debug_inlined;

/* NULL: the file has none, or it is too large. Not thread-safe. */
struct tfh_debug_inlined *tfh_debug_inlined_open(const struct tfh_elf *e);
void tfh_debug_inlined_close(struct tfh_debug_inlined *d);

/* The outermost inlined call that contains the instruction at an address: its line, which is in the
 * function that the address belongs to, and the number of its file in the unit's line table, which
 * is at `table` in .debug_line. False: there is none, or it is not known. */
bool tfh_debug_inlined_call(struct tfh_debug_inlined *d, uint64_t table, uint64_t address,
			    uint64_t *file, uint64_t *line);

#endif
