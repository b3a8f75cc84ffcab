/*
 * One rank of kernels that wait for one another. usage: rendezvous RANK RANKS ROUNDS [DEVICES]
 * Each round: a kernel of its own that takes (RANK + 1) ms, then the common one of 2 ms. Prints
 * the result of the last wait. With DEVICES the process has one rank on each of its devices.
 */
#include "sim_test.h"

#define PTX                                                                                        \
	".version 7.0\n.target sm_50\n.address_size 64\n"                                          \
	".visible .entry spin(.param .u64 ns)\n{\n\tret;\n}\n"                                     \
	".visible .entry rendezvous_all(.param .u64 group, .param .u32 rank, .param .u32 ranks,\n" \
	".param .u64 ns)\n{\n\tret;\n}\n"

enum { MOST = 8 };

int main(int argc, char **argv)
{
	uint32_t rank = argc > 1 ? (uint32_t)atoi(argv[1]) : 0;
	uint32_t ranks = argc > 2 ? (uint32_t)atoi(argv[2]) : 1;
	int rounds = argc > 3 ? atoi(argv[3]) : 1, devices = argc > 4 ? atoi(argv[4]) : 1, r = 0;
	CUcontext ctx[MOST];
	CUstream s[MOST];
	CUfunction spin_f[MOST], all[MOST];
	open_driver();
	OK(cuInit, (unsigned), 0);
	for (int d = 0; d < devices; d++) {
		OK(cuDevicePrimaryCtxRetain, (CUcontext *, int), &ctx[d], d);
		OK(cuCtxSetCurrent, (CUcontext), ctx[d]);
		s[d] = new_stream(1);
		spin_f[d] = kernel(PTX, "spin");
		all[d] = kernel(PTX, "rendezvous_all");
	}
	for (int i = 0; i < rounds && !r; i++) {
		for (int d = 0; d < devices; d++) {
			uint32_t me = rank + (uint32_t)d;
			uint64_t own = (me + 1) * 1000000ull, group = 77, ns = 2000000;
			void *p[] = {&own}, *q[] = {&group, &me, &ranks, &ns};
			OK(cuCtxSetCurrent, (CUcontext), ctx[d]);
			CHECK(launch(spin_f[d], 1, 1, s[d], p) == 0);
			CHECK(launch(all[d], 1, 1, s[d], q) == 0);
		}
		for (int d = 0; d < devices && !r; d++)
			r = CU(cuStreamSynchronize, (CUstream), s[d]);
	}
	printf("result %d\n", r);
	return failures != 0;
}
