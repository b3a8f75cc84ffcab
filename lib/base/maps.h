/* The memory mappings of a process, from /proc/PID/maps. */
#ifndef TFH_BASE_MAPS_H
#define TFH_BASE_MAPS_H

#include <stdbool.h>
#include <stdint.h>

struct tfh_mapping {
	uint64_t start, end;
	uint64_t offset;	/* in the file */
	uint64_t device, inode; /* 0: no file */
	const char *path;	/* "" if it has none; "[stack]" and the like for the kernel's own */
};

typedef bool (*tfh_mapping_fn)(const struct tfh_mapping *, void *data);

/* Calls `take` for each mapping of a process (0: this one), lowest address first, until it returns
 * true. Returns whether it did, or -errno if the list cannot be read. Takes no lock, and allocates
 * nothing. A mapping whose path has over 2,000 bytes is left out. */
int tfh_each_mapping(int32_t pid, tfh_mapping_fn take, void *data);

#endif
