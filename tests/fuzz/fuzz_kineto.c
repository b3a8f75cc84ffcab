/*
 * Fuzzed input: a trace of PyTorch's profiler, plain or gzip (the first byte of the input says
 * whether it is packed first, so that the fuzzer reaches the JSON behind the checksums). Whatever
 * its bytes, importing it and reading the run it makes must neither crash nor hang nor take memory
 * beyond some multiple of its size.
 *
 * Under libFuzzer (`make fuzz`); with -DTFH_FUZZ_MAIN a program that runs over the files given to
 * it.
 */
#include "import/import.h"

#include <stdlib.h>
#include <zlib.h>

#include "import_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
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
		tfh_fuzz_import(tfh_import_kineto_bytes, packed, z.total_out);
		deflateEnd(&z);
		free(packed);
	} else {
		tfh_fuzz_import(tfh_import_kineto_bytes, data + 1, size - 1);
	}
	return 0;
}
