/* The job has a context: device times may begin, and its devices are recorded. */
#include "hook/cupti/cupti.h"

#include "hook/driver/driver.h"
#include "record/gpu/gpu.h"

static uint32_t has_context; /* atomic */

/* Capacity: the largest device's multiprocessors, the smallest one's memory. Recorded with and
 * without CUPTI; these queries create no context. */
void tfh_cupti_tell_devices(void)
{
	static uint32_t told;
	enum { MULTIPROCESSORS = 16 };
	CUresult (*count)(int *) = (CUresult(*)(int *))tfh_driver_symbol("cuDeviceGetCount");
	CUresult (*ask)(int *, int, int) =
		(CUresult(*)(int *, int, int))tfh_driver_symbol("cuDeviceGetAttribute");
	CUresult (*total)(size_t *, int) =
		(CUresult(*)(size_t *, int))tfh_driver_symbol("cuDeviceTotalMem_v2");
	int n = 0, value, most = 0;
	size_t bytes, least = 0;

	if (!count || !ask || __atomic_exchange_n(&told, 1, __ATOMIC_ACQ_REL) || count(&n))
		return;
	for (int i = 0; i < n; i++)
		if (!ask(&value, MULTIPROCESSORS, i) && value > most)
			most = value;
	for (int i = 0; i < n && total; i++)
		if (!total(&bytes, i) && (!least || bytes < least))
			least = bytes;
	if (most)
		tfh_gpu_fact("gpu.processors=%d", most);
	if (least)
		tfh_gpu_fact("gpu.memory=%zu", least);
}

void tfh_cupti_context(void)
{
	if (__atomic_exchange_n(&has_context, 1, __ATOMIC_ACQ_REL))
		return;
	tfh_cupti_tell_devices();
	tfh_gpu_begin();
}

bool tfh_cupti_has_context(void)
{
	return __atomic_load_n(&has_context, __ATOMIC_ACQUIRE);
}
