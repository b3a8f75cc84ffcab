/* The job's device memory in JSON. */
#include "report/json_memory.h"

void tfh_json_memory(struct tfh_json *j, const struct tfh_result *r)
{
	const struct tfh_heap_sum *h = &r->heap;

	if (!tfh_json_kobject_if(j, "memory", h->allocations || h->failed))
		return;
	tfh_json_ku64(j, "peak_bytes", h->peak);
	tfh_json_kf64(j, "peak_at_s", (double)h->peak_t / 1e9);
	tfh_json_ku64(j, "end_bytes", h->in_use);
	tfh_json_ku64_if(j, "capacity_bytes", h->capacity, h->capacity);
	tfh_json_ku64_if(j, "headroom_bytes", h->capacity,
			 h->capacity > h->peak ? h->capacity - h->peak : 0);
	tfh_json_ku64(j, "allocations", h->allocations);
	tfh_json_ku64(j, "failed", h->failed);
	tfh_json_key(j, "line");
	tfh_json_array(j);
	double wall = r->run ? (double)tfh_run_wall_ns(r->run) / 1e9 : 0;
	for (uint32_t i = 0; i < h->drawn; i++) {
		tfh_json_object(j);
		tfh_json_kf64(j, "t_s", wall * i / TFH_HEAP_POINTS);
		tfh_json_ku64(j, "bytes", h->line[i]);
		tfh_json_end(j);
	}
	tfh_json_end(j);
	tfh_json_key(j, "failures");
	tfh_json_array(j);
	for (uint32_t i = 0; i < h->n_failure; i++) {
		tfh_json_object(j);
		tfh_json_kstr(j, "fn", h->failure[i].at.fn);
		tfh_json_kf64(j, "t_s", (double)h->failure[i].at.t / 1e9);
		tfh_json_ku64(j, "bytes", h->failure[i].at.bytes);
		tfh_json_ku64(j, "in_use_bytes", h->failure[i].in_use);
		tfh_json_end(j);
	}
	tfh_json_end(j);
	tfh_json_end(j);
}
