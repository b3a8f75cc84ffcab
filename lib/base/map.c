#include "base/map.h"

#include <stdbool.h>
#include <sys/mman.h>

void *tfh_map(size_t bytes)
{
	void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return map == MAP_FAILED ? NULL : map;
}

void *tfh_map_once(void *place, size_t bytes)
{
	void **at = place, *there = __atomic_load_n(at, __ATOMIC_ACQUIRE), *map;

	if (there)
		return there;
	map = tfh_map(bytes);
	if (!map ||
	    __atomic_compare_exchange_n(at, &there, map, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return map;
	munmap(map, bytes);
	return there;
}
