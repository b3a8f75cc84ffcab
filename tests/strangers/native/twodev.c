/*
 * Gradient boosting on two devices, each of which makes half of the histograms: one is waited for
 * before the other gets its work. The twin waits for both together.
 */
#include "native.h"

enum { HIST = 1 << 17, TREES = 45, DEPTH = 8 };
static CUcontext context[2];

static CUfunction hist[2], split[2];
static CUstream s[2];

static CUdeviceptr d[2];
static float *h[2];

static NOINLINE void build(int i, double us)
{
	CK(cuCtxSetCurrent(context[i]));
	run_kernel(hist[i], us, 512, s[i]);
	CK(cuMemcpyDtoHAsync(h[i], d[i], HIST, s[i]));
}

static NOINLINE void finish(int i)
{
	CK(cuCtxSetCurrent(context[i]));
	CK(cuStreamSynchronize(s[i]));
}

static void level(double us)
{
	for (int i = 0; i < 2; i++) {
		build(i, us);
		if (!fixed())
			finish(i);
	}
	for (int i = 0; i < 2 && fixed(); i++)
		finish(i);
	for (int k = 0; k < HIST / 4; k++)
		h[0][k] += h[1][k];
	for (int i = 0; i < 2; i++) {
		CK(cuCtxSetCurrent(context[i]));
		CK(cuMemcpyHtoDAsync(d[i], h[0], HIST / 16, s[i]));
		run_kernel(split[i], 300, 128, s[i]);
	}
}

int main(void)
{
	for (int i = 0; i < 2; i++) {
		context[i] = boot(i);
		hist[i] = kernel_of("spin_histogram");
		split[i] = kernel_of("spin_partition");
		s[i] = new_stream();
		d[i] = on_device(1 << 22);
		h[i] = pinned(HIST);
	}
	double since = now();
	for (int tree = 0; tree < TREES; tree++)
		for (int depth = 0; depth < DEPTH; depth++)
			level(5200 - 400 * depth);
	finish(0);
	finish(1);
	tell((long)TREES * DEPTH, since);
	return 0;
}
