/* The table of formats. */
#include <string.h>

#include "export/writers.h"

static const struct tfh_format formats[] = {
#define FORMAT(name, blanks, suffix, by_rank, help) {#name, suffix, by_rank, tfh_write_##name},
#include "export/formats.def"
#undef FORMAT
};

const struct tfh_format *tfh_format_find(const char *name)
{
	for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++)
		if (!strcmp(formats[i].name, name))
			return &formats[i];
	return NULL;
}
