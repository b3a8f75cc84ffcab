/* CRC-32C (Castagnoli, polynomial 0x1EDC6F41 reflected), as in iSCSI, ext4 and SSE4.2. */
#ifndef TFH_BASE_CRC32C_H
#define TFH_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* CRC of `size` bytes, continuing from crc; start with 0. Uses the processor's instruction if
 * available. */
uint32_t tfh_crc32c(uint32_t crc, const void *data, size_t size);

/* CRC of `size` bytes of which the four at `at`, where this CRC is kept, count as 0. */
uint32_t tfh_crc32c_around(const void *data, size_t size, size_t at);

/* Like tfh_crc32c(), from a table, for any processor. */
uint32_t tfh_crc32c_table(uint32_t crc, const void *data, size_t size);

#endif
