/*
 * Fuzzed input: an XPlane trace. Whatever its bytes, importing it and the report of it must neither
 * crash nor hang nor take memory beyond some multiple of its size.
 */
#include "fuzz.h"
#include "import/import.h"

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
	return tfh_fuzz_mutate_wire(data, size, max, seed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tfh_builder *b;
	double begin = tfh_fuzz_clock();
	struct tfh_err err = {0};

	if (tfh_build_new(TFH_SRC_XPLANE, "fuzz", &b))
		return 0;
	int rc = tfh_import_xplane_bytes(b, data, size, "fuzz", &err);
	tfh_fuzz_built(b, rc, &err, size);
	tfh_fuzz_bound(begin, size);
	return 0;
}
