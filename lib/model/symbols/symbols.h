/* Function names and lines in ELF files, for addresses of backtraces. The files are untrusted. */
#ifndef TFH_MODEL_SYMBOLS_SYMBOLS_H
#define TFH_MODEL_SYMBOLS_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TFH_SYMBOLS_FILE 1024 /* size of the longest file name of a line, with '\0' */

struct tfh_symbols;

/* Opens a file that a process had loaded. NULL if it is missing, invalid, or has another build id
 * (hex; "": unknown); or if it belongs neither to root nor to this user, while the trace is not
 * `trusted` (this user's or root's). Not thread-safe. */
struct tfh_symbols *tfh_symbols_open(const char *path, const char *build_id, bool trusted);
void tfh_symbols_close(struct tfh_symbols *s);

/* The function at an offset in the file: its demangled name without parameters, and the offset in
 * it. Scans the symbol table each time. */
bool tfh_symbols_find(const struct tfh_symbols *s, uint64_t file_offset, char *name, size_t size,
		      uint64_t *into);

/* The line of the instruction at an offset in the file, `into` bytes after its function's begin,
 * from debug information in the file or in its separate file below /usr/lib/debug. False: unknown,
 * as always without a build id, which alone shows that it is the file that the process had loaded.
 * For code inlined from another source file, it is the line of the call; this is unknown before
 * DWARF 4, or with split debug information. */
bool tfh_symbols_line(struct tfh_symbols *s, uint64_t file_offset, uint64_t into, char *file,
		      size_t size, uint32_t *line);

#endif
