/* Offloaded by GCC: an array goes to the device and back three times. Kernels only take time there.
 */
#include <omp.h>
#include <stdio.h>

static float x[1 << 14];

int main(void)
{
	int n = sizeof(x) / sizeof(*x), wrong = omp_get_num_devices() != 1;

	for (int i = 0; i < n; i++)
		x[i] = i;
	for (int step = 0; step < 3; step++) {
#pragma omp target teams distribute parallel for map(tofrom : x)
		for (int i = 0; i < n; i++)
			x[i] *= 2;
		for (int i = 0; i < n; i++)
			wrong += x[i] != i;
		printf("step %d\n", step);
	}
	return wrong != 0;
}
