/* Settings that are known to cost time: the table of priced.def. */
#ifndef TFH_BASE_PRICED_H
#define TFH_BASE_PRICED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tfh_priced {
	const char *variable, *value;
	bool part;	  /* the value is one of several in the variable */
	uint32_t classes; /* bit per enum tfh_class */
	const char *sentence;
};

#define TFH_PRICED_MOST 64u /* rows: they are bits of a word */

extern const struct tfh_priced tfh_priced[];
extern const uint32_t tfh_priced_count;

/* The rows that apply to this process's environment, as bits. */
uint64_t tfh_priced_here(void);
/* The row of a text "VARIABLE=VALUE" from a file; -1: there is none. */
int tfh_priced_find(const char *text, size_t n);

#endif
