/*
 * Fuzzed input: an ELF file. Backtraces in a trace name files, which the report opens for names of
 * functions; whatever is found there, it must neither crash nor hang.
 */
#include <stdio.h>

#include "fuzz.h"
#include "model/symbols/symbols.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *place = tfh_fuzz_place();
	double begin = tfh_fuzz_clock();
	char path[128], name[256];
	uint64_t into;

	if (!place)
		return 0;
	snprintf(path, sizeof(path), "%s/elf", place);
	tfh_fuzz_write("elf", data, size);
	struct tfh_symbols *s = tfh_symbols_open(path, size & 1 ? "0123456789abcdef" : "", true);
	for (uint64_t at = 0; s && at < 1ull << 40; at = at * 2 + 64)
		tfh_symbols_find(s, at, name, sizeof(name), &into);
	tfh_symbols_close(s);
	tfh_fuzz_bound(begin, size);
	return 0;
}
