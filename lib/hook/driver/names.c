/* Names of driver functions: which are hooked, which are deliberately not, and the meaning of
 * suffixes. */
#include "hook/driver/driver.h"

#include <string.h>

static const char *const left[] = {
#define CUDA_LEFT(name) #name,
#include "base/cuda_left.def"
#undef CUDA_LEFT
};

enum tfh_fn tfh_fn_find(const char *name)
{
	/* This takes less than a microsecond, and only at program start, so it is not worth
	 * sorting. */
	for (unsigned fn = 1; fn < TFH_FN_COUNT; fn++)
		if (tfh_fn_table[fn].name[2] == name[2] && !strcmp(tfh_fn_table[fn].name, name))
			return (enum tfh_fn)fn;
	return TFH_FN_NONE;
}

static bool is_ending(const char *text)
{
	if (text[0] == '_' && text[1] == 'v' && text[2] >= '1' && text[2] <= '9' &&
	    (!text[3] || text[3] == '_'))
		text += 3;
	return !*text || !strcmp(text, "_ptsz") || !strcmp(text, "_ptds");
}

bool tfh_same_base(const char *symbol, const char *base)
{
	size_t length = strlen(base);
	return !strncmp(symbol, base, length) && is_ending(symbol + length);
}

bool tfh_left_alone(const char *name, bool base)
{
	for (unsigned i = 0; i < sizeof(left) / sizeof(*left); i++)
		if (!strcmp(left[i], name) || (base && tfh_same_base(left[i], name)))
			return true;
	return false;
}
