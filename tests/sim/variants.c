/*
 * One look at a variant of the driver. usage: variants VERSION; prints "name: what it gives" lines:
 * dlsym and cuGetProcAddress of names that tell the variants apart, and what calls of them do.
 */
#include "sim_test.h"

typedef int (*getproc_v1)(const char *, void **, int, uint64_t);

static const char *which(const void *p)
{
	Dl_info i;
	if (!p)
		return "none";
	return dladdr(p, &i) && i.dli_sname ? i.dli_sname : "unnamed";
}

int main(int argc, char **argv)
{
	static const char *const names[] = {"cuGetProcAddress_v2", "cuLaunchKernelEx",
					    "cuGraphAddNode",	   "cuFutureOperation",
					    "cuLaunchKernel_v2",   "cuMemcpyHtoD_v2"};
	static const char *const bases[] = {"cuLaunchKernel", "cuEventCreate", "cuGraphAddNode",
					    "cuFutureOperation"};
	int version = argc > 1 ? atoi(argv[1]) : 0, is = 0;
	open_context();
	OK(cuDriverGetVersion, (int *), &is);
	printf("version %d\n", is);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		printf("dlsym %s: %s\n", names[i], dlsym(driver, names[i]) ? "there" : "none");
	for (size_t i = 0; i < sizeof(bases) / sizeof(bases[0]); i++) {
		void *p = NULL;
		int r = ((getproc_v1)symbol("cuGetProcAddress"))(bases[i], &p, version, 0);
		printf("getproc %s: %d %s\n", bases[i], r, which(p));
	}
	printf("destroy alias: %d\n", symbol("cuEventDestroy") == symbol("cuEventDestroy_v2"));
	CUevent e = new_event();
	OK(cuEventDestroy, (CUevent), e);
	spin(NULL, 0.1);
	if (dlsym(driver, "cuLaunchKernel_v2")) {
		uint64_t ns = 1000;
		void *params[] = {&ns};
		CUDA_KERNEL_NODE_PARAMS p = {.func = kernel(SPIN_PTX, "spin"),
					     1,
					     1,
					     1,
					     1,
					     1,
					     1,
					     0,
					     params,
					     NULL,
					     NULL,
					     NULL};
		OK(cuLaunchKernel_v2,
		   (const CUDA_KERNEL_NODE_PARAMS *, CUstream, unsigned long long), &p, NULL, 0);
		OK(cuFutureOperation, (int *), &is);
		CHECK(symbol("cuFutureOperation") == symbol("cuFutureOperationAlias"));
	}
	OK(cuCtxSynchronize, (void), );
	return failures != 0;
}
