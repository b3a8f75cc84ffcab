/*
 * Fuzzed input: an XPlane trace. Whatever its bytes, importing it and reading the run it makes must
 * neither crash nor hang nor take memory beyond some multiple of its size.
 *
 * Under libFuzzer (`make fuzz`); with -DTFH_FUZZ_MAIN a program that runs over the files given to
 * it.
 */
#include "import/import.h"

#include "import_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	tfh_fuzz_import(tfh_import_xplane_bytes, data, size);
	return 0;
}
