/*
 * Fuzzed input: an ELF file. Backtraces in a trace name files, which the report opens for names of
 * functions and for lines; whatever is found there, it must neither crash nor hang.
 */
#include <stdio.h>

#include "fuzz.h"
#include "model/symbols/debug_lines.h"
#include "model/symbols/symbols.h"

static void find_lines(const char *path)
{
	struct tfh_debug_inlined *inlined = NULL;
	struct tfh_debug_lines *d = NULL;
	char file[TFH_SYMBOLS_FILE];
	struct tfh_elf e;
	uint32_t line;

	if (tfh_elf_open(&e, path, "", true))
		d = tfh_debug_lines_open(&e);
	for (uint64_t at = 0; d && at < 1ull << 40; at = at * 2 + 64)
		tfh_debug_lines_find(d, at, file, sizeof(file), &line);
	if (d)
		inlined = tfh_debug_inlined_open(&e);
	for (uint64_t at = 0x200; d && at < 0x600; at += 5) {
		tfh_debug_lines_find(d, at, file, sizeof(file), &line);
		if (inlined)
			tfh_debug_lines_call(d, inlined, at, file, sizeof(file), &line);
	}
	tfh_debug_inlined_close(inlined);
	tfh_debug_lines_close(d);
	tfh_elf_close(&e);
}

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
	find_lines(path);
	tfh_fuzz_bound(begin, size);
	return 0;
}
