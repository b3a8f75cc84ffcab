/* Memory that only some jobs need, mapped at its first use. */
#include <stdio.h>

#include "base/map.h"
#include "record/record.h"

void *tfh_memory(void *place, size_t bytes, const char *what)
{
	static uint32_t told;
	void *memory = tfh_map_once(place, bytes);
	char text[128];

	if (memory || __atomic_exchange_n(&told, 1, __ATOMIC_RELAXED))
		return memory;
	snprintf(text, sizeof(text), "not recording %s: no memory for it", what);
	tfh_log_failure(text, "raise the limit of address space (ulimit -v) or of mappings "
			      "(vm.max_map_count)");
	return NULL;
}
