/* A user of the runtime; each object that has one has a runtime too, its own or the shared one. */
#include "minirt.h"

#include <stdint.h>
#include <stdlib.h>

#define DO(call)                                                                                   \
	do {                                                                                       \
		if (call)                                                                          \
			return __LINE__;                                                           \
	} while (0)

enum { ROOM = 1 << 16, STEPS = 10 };

int rt_work(unsigned bytes)
{
	static const char ptx[] = ".version 6.0\n.target sm_50\n.address_size 64\n"
				  ".visible .entry spin(.param .u64 ns)\n{ ret; }\n";
	uint64_t ns = 20000;
	void *arguments[] = {&ns, NULL}, *memory, *pinned;
	char *host = calloc(1, ROOM);
	rtStream stream;
	rtEvent event;
	rtKernel kernel;

	DO(rtMalloc(&memory, ROOM));
	DO(rtMallocHost(&pinned, ROOM));
	DO(rtStreamCreate(&stream));
	DO(rtEventCreate(&event));
	DO(rtKernelLoad(&kernel, ptx, "spin"));
	for (unsigned i = 0; i < STEPS; i++) {
		host[bytes + i - 1] = (char)(bytes + i);
		DO(rtMemcpy(memory, host, bytes + i, rtHostToDevice));
		DO(rtMemcpyAsync((char *)memory + ROOM / 2, pinned, 3 * bytes, rtHostToDevice,
				 stream));
		DO(rtMemsetAsync((char *)memory + ROOM / 2, 7, 100, stream));
		DO(rtLaunchKernel(kernel, i + 1, 32, arguments, stream));
		DO(rtMemcpyAsync(pinned, (char *)memory + ROOM / 2, 50, rtDefault, stream));
		DO(rtEventRecord(event, stream));
		DO(rtEventSynchronize(event));
		DO(rtMemcpy(pinned, memory, bytes + i, rtDeviceToHost));
		DO(((char *)pinned)[bytes + i - 1] != (char)(bytes + i));
	}
	DO(rtStreamSynchronize(stream));
	DO(rtDeviceSynchronize());
	DO(rtEventDestroy(event));
	DO(rtStreamDestroy(stream));
	DO(rtFreeHost(pinned));
	DO(rtFree(memory));
	free(host);
	return 0;
}
