#include "hook/known_code.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#define CODE_BYTES 48u

static int digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c - 'a' + 10;
}

bool tfh_code_matches(const uint8_t *at, const char *code, struct tfh_code_numbers *in)
{
	memset(in, 0, sizeof(*in));
	for (uint32_t i = 0; i < CODE_BYTES && *code; code += 2, i++) {
		int which = *code == '#';
		if (*code == '@' || *code == '#') {
			memcpy(&in->number[which], at + i, sizeof(in->number[which]));
			in->behind[which] = i + 4;
			code += 6;
			i += 3;
		} else if (*code != '?' && at[i] != digit(code[0]) * 16 + digit(code[1])) {
			return false;
		}
	}
	return !*code;
}

bool tfh_same_library(const void *a, const void *b)
{
	Dl_info one, other;

	return dladdr(a, &one) && dladdr(b, &other) && one.dli_fbase == other.dli_fbase;
}

const void *tfh_code_address(const uint8_t *at, const struct tfh_code_numbers *in, int which)
{
	const uint8_t *found = at + in->behind[which] + in->number[which];

	return tfh_same_library(at, found) ? found : NULL;
}

const uint8_t *tfh_code_of(void *library, const char *symbol)
{
	const void *found = dlsym(library, symbol);

	if (!found)
		dlerror();
	return found;
}
