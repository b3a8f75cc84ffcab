/*
 * Addresses of a framework's variables, from the machine code of its functions. Nothing of the
 * framework is called. An address is taken only from code that is known byte by byte; other
 * versions of the code are left alone.
 */
#ifndef TFH_HOOK_KNOWN_CODE_H
#define TFH_HOOK_KNOWN_CODE_H

#include <stdbool.h>
#include <stdint.h>

/* What is in the code: two numbers of four bytes, and the offset after each. */
struct tfh_code_numbers {
	int32_t number[2];
	uint32_t behind[2];
};

/* Whether the code is the known one, two digits per byte. "??" matches any byte, "@@@@@@@@" is the
 * first number, "########" the second; a number that the code does not contain is 0. At most 48
 * bytes. */
bool tfh_code_matches(const uint8_t *at, const char *code, struct tfh_code_numbers *in);

/* Address that instruction number `which` refers to, relative to its end; NULL: it is not in the
 * code's own library. */
const void *tfh_code_address(const uint8_t *at, const struct tfh_code_numbers *in, int which);

/* Whether both addresses are in the same library. */
bool tfh_same_library(const void *a, const void *b);

/* The function of an open library, or NULL. The job sees no failure. */
const uint8_t *tfh_code_of(void *library, const char *symbol);

#endif
