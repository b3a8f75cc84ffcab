/* Recognises kernels that wait for other devices, by name: no recording says it otherwise. */
#include <ctype.h>
#include <string.h>

#include "base/text.h"
#include "model/symbols/kernel_name.h"

#define LONGEST 4096 /* longer names are cut here */

/* Prefixes of libraries whose kernels all communicate. The last two are namespaces of DeepEP
 * (experts on other devices). */
static const char *const begins[] = {"nccl", "rccl", "msccl", "nvshmem", "hcom_"};
static const char *const holds[] = {"nccldevkernel", "ncclkernel", "nvshmem",
				    "deepep::", "dpsk::ep::"};

/* Names of collective operations, in any spelling: AllReduce, all_reduce, one_shot_all_reduce. */
static const char *const operations[] = {"allreduce", "allgather", "reducescatter", "alltoall",
					 "crossdevicereduce"};

#define COUNT(list) (sizeof(list) / sizeof(*(list)))

static bool one_of(const char *name, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strstr(name, list[i]))
			return true;
	return false;
}

/* Converts to lower case, without underscores. */
static void flatten(char *out, const char *name)
{
	size_t n = 0;

	for (; *name && n + 1 < LONGEST; name++)
		if (*name != '_')
			out[n++] = (char)tolower((unsigned char)*name);
	out[n] = '\0';
}

bool tfh_kernel_communicates(const char *name)
{
	char flat[LONGEST];

	for (size_t i = 0; i < COUNT(begins); i++)
		if (tfh_starts_with(name, begins[i]))
			return true;
	flatten(flat, name);
	if (one_of(flat, holds, COUNT(holds)))
		return true;
	/* TorchInductor names a fused kernel after all ops around it, including collectives; the
	 * kernel itself only computes. */
	return one_of(flat, operations, COUNT(operations)) &&
	       !(tfh_starts_with(name, "triton_") && strstr(name, "_fused_"));
}
