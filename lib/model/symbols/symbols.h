/* Names of functions in ELF files, for addresses of backtraces. Distrusts the files. */
#ifndef TFH_MODEL_SYMBOLS_H
#define TFH_MODEL_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tfh_symbols;

/* Opens the file a process had loaded. NULL: it is not there, is none, or has another build id
 * (hex; "": not known) than the one given; or belongs neither to root nor to this user, and the
 * trace that names it is not `trusted`: this user's or root's. One thread. */
struct tfh_symbols *tfh_symbols_open(const char *path, const char *build_id, bool trusted);
void tfh_symbols_close(struct tfh_symbols *s);

/* The function that holds the byte at a place in the file: its readable name without parameters,
 * and how far into it. One pass over the symbol table per question. */
bool tfh_symbols_find(const struct tfh_symbols *s, uint64_t file_offset, char *name, size_t size,
		      uint64_t *into);

#endif
