/*
 * Fuzzed input: a trace of PyTorch's profiler, plain or gzip (the first byte of the input says
 * whether it is packed first, so that the fuzzer reaches the JSON behind the checksums). Whatever
 * its bytes, importing it and the report of it must neither crash nor hang nor take memory beyond
 * some multiple of its size.
 */
#include <stdlib.h>
#include <zlib.h>

#include "fuzz.h"
#include "import/import.h"

static void import(const void *data, size_t size)
{
	struct tfh_builder *b;
	struct tfh_err err = {0};

	if (tfh_build_new(TFH_SRC_KINETO, "fuzz", &b))
		return;
	int rc = tfh_import_kineto_bytes(b, data, size, "fuzz", &err);
	tfh_fuzz_built(b, rc, &err, size);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
	if (size < 2 || max < 2)
		return LLVMFuzzerMutate(data, size, max);
	return 1 + tfh_fuzz_mutate_json(data + 1, size - 1, max - 1, seed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	double begin = tfh_fuzz_clock();

	if (!size)
		return 0;
	if (data[0] & 1) {
		uLong cap = compressBound(size) + 64;
		uint8_t *packed = malloc(cap);
		z_stream z = {.next_in = (uint8_t *)data + 1,
			      .avail_in = (uInt)size - 1,
			      .next_out = packed,
			      .avail_out = (uInt)cap};
		deflateInit2(&z, 1, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
		deflate(&z, Z_FINISH);
		import(packed, z.total_out);
		deflateEnd(&z);
		free(packed);
	} else {
		import(data + 1, size - 1);
	}
	tfh_fuzz_bound(begin, size);
	return 0;
}
