/*
 * Incompressible flow: each time step solves for the pressure by Jacobi sweeps, and the residual
 * is fetched after each sweep. The twin fetches it after each tenth.
 */
#include "native.h"

enum { STEPS = 600 };
static CUdeviceptr residual;

static CUfunction jacobi, norm;
static CUstream s;

static NOINLINE float residual_norm(void)
{
	float r = 0;
	run_kernel(norm, 9, 64, s);
	CK(cuMemcpyDtoHAsync(&r, residual, 4, s));
	CK(cuStreamSynchronize(s));
	return r;
}
/* Returns the number of sweeps. */

static int solve_pressure(double rate)
{
	double left = 1;
	int sweeps = 0, every = fixed() ? 10 : 1;
	for (;;) {
		run_kernel(jacobi, 48, 1024, s);
		left *= rate;
		if (++sweeps % every)
			continue;
		residual_norm();
		if (left < 1e-3)
			return sweeps;
	}
}

int main(void)
{
	boot(0);
	CUfunction advect = kernel_of("spin_advect"), divergence = kernel_of("spin_divergence"),
		   gradient = kernel_of("spin_subtract_gradient");
	jacobi = kernel_of("spin_jacobi");
	norm = kernel_of("spin_residual");
	s = new_stream();
	residual = on_device(4096);
	unsigned seed = 5;
	long sweeps = 0;
	double since = now();
	for (int step = 0; step < STEPS; step++) {
		run_kernel(advect, 220, 1024, s);
		run_kernel(divergence, 40, 1024, s);
		sweeps += solve_pressure(
			0.75 + 0.15 * (rand_r(&seed) / (double)RAND_MAX)); /* 24 to 66 of them */
		run_kernel(gradient, 40, 1024, s);
		if (step % 100 == 99)
			printf("t=%.2f sweeps %ld\n", step * 0.01, sweeps);
	}
	CK(cuStreamSynchronize(s));
	tell(sweeps, since);
	return 0;
}
