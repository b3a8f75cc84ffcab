/*
 * Molecular dynamics: forces on the device; every 20th step the host makes the lists of
 * neighbours. The twin makes them on the device.
 */
#include "native.h"
#include <math.h>

enum { ATOMS = 12000, CELLS = 12, PAIRS = 80, STEPS = 1000 };
static float x[ATOMS][3];

static int list[ATOMS][PAIRS], count[ATOMS], head[CELLS * CELLS * CELLS], next[ATOMS];
static CUdeviceptr positions, lists;

static CUstream s;

static int cell_of(const float at[3], int a, int b, int c)
{
	int i = ((int)at[0] + a + CELLS) % CELLS, j = ((int)at[1] + b + CELLS) % CELLS,
	    k = ((int)at[2] + c + CELLS) % CELLS;
	return (i * CELLS + j) * CELLS + k;
}

static void sort_into_cells(void)
{
	unsigned seed = 7;
	memset(head, -1, sizeof(head));
	for (int i = 0; i < ATOMS; i++) {
		for (int k = 0; k < 3; k++)
			x[i][k] = (float)rand_r(&seed) / (float)RAND_MAX * CELLS;
		int cell = cell_of(x[i], 0, 0, 0);
		next[i] = head[cell];
		head[cell] = i;
	}
}

static void look_in(int cell, int i)
{
	for (int j = head[cell]; j >= 0; j = next[j]) {
		float d = 0;
		for (int k = 0; k < 3; k++) {
			float e = fabsf(x[i][k] - x[j][k]);
			e = e > CELLS / 2 ? CELLS - e : e;
			d += e * e;
		}
		if (d < 1.f && count[i] < PAIRS && i != j)
			list[i][count[i]++] = j;
	}
}

static NOINLINE void rebuild_neighbours(void)
{
	CK(cuStreamSynchronize(s));
	CK(cuMemcpyDtoH(x, positions, sizeof(x)));
	sort_into_cells();
	for (int i = 0; i < ATOMS; i++) {
		count[i] = 0;
		for (int a = -1; a < 2; a++)
			for (int b = -1; b < 2; b++)
				for (int c = -1; c < 2; c++)
					look_in(cell_of(x[i], a, b, c), i);
	}
	CK(cuMemcpyHtoD(lists, list, sizeof(list)));
}

int main(void)
{
	boot(0);
	CUfunction force = kernel_of("spin_lj_force"),
		   integrate = kernel_of("spin_velocity_verlet"), bin = kernel_of("spin_cell_list"),
		   energy = kernel_of("spin_energy");
	s = new_stream();
	positions = on_device(sizeof(x));
	lists = on_device(sizeof(list));
	CK(cuMemcpyHtoD(positions, x, sizeof(x)));
	double since = now();
	for (int step = 0; step < STEPS; step++) {
		if (step % 20 == 0 && fixed())
			run_kernel(bin, 900, 256, s);
		else if (step % 20 == 0)
			rebuild_neighbours();
		run_kernel(integrate, 60, 64, s);
		run_kernel(force, 1800, 256, s);
		run_kernel(integrate, 60, 64, s);
		if (step % 100 == 99) {
			double e = 0;
			run_kernel(energy, 40, 64, s);
			CK(cuMemcpyDtoHAsync(&e, positions, 8, s));
			CK(cuStreamSynchronize(s));
			printf("step %d energy %g\n", step + 1, e);
		}
	}
	CK(cuStreamSynchronize(s));
	tell(STEPS, since);
	return 0;
}
