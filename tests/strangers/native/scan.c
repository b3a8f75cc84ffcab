/*
 * A column store scans a table in row groups of growing size, copied from a mapped file. The twin
 * copies from pinned memory, on two streams.
 */
#include "native.h"
#include <sys/mman.h>

enum { BIG = 24 << 20, TABLE = 64, QUERIES = 250 };

static const char *map_table(void)
{
	static char block[1 << 20];
	int fd = open("column.bin", O_RDWR | O_CREAT | O_TRUNC, 0600);
	for (int i = 0; i < TABLE; i++) {
		memset(block, i, sizeof(block));
		if (write(fd, block, sizeof(block)) != sizeof(block))
			exit(2);
	}
	return mmap(NULL, (size_t)TABLE << 20, PROT_READ, MAP_SHARED, fd, 0);
}

static NOINLINE void copy_group(CUdeviceptr to, const char *from, char *stage, size_t rows,
				CUstream s)
{
	if (fixed())
		CK(cuStreamSynchronize(s));
	CK(cuMemcpyHtoDAsync(to, fixed() ? stage : from, rows, s));
}

int main(void)
{
	boot(0);
	const char *table = map_table();
	CUfunction filter = kernel_of("spin_filter"), compact = kernel_of("spin_compact");
	CUstream s[2] = {new_stream(), new_stream()};
	CUdeviceptr d[2] = {on_device(BIG), on_device(BIG)}, rows_found = on_device(1 << 20);
	char *stage[2] = {pinned(BIG), pinned(BIG)};
	int *found = pinned(4096), done = 0;
	unsigned seed = 2;
	double since = now();
	for (int query = 0; query < QUERIES; query++) {
		size_t rows = 1 << 20;
		int groups = 3 + rand_r(&seed) % 5; /* enough rows were found then */
		for (int g = 0; g < groups; g++, done++) {
			int k = done & 1;
			copy_group(d[k], table + ((size_t)done * 7919 % 40 << 20), stage[k], rows,
				   s[k]);
			run_kernel(filter, 400 + (double)rows / 12000., 512, s[k]);
			run_kernel(compact, 120, 128, s[k]);
			CK(cuMemcpyDtoHAsync(found, rows_found, 4, s[k]));
			if (!fixed() || g + 1 == groups)
				CK(cuStreamSynchronize(s[k]));
			if (rows < BIG / 2)
				rows *= 2;
		}
	}
	tell(done, since);
	return 0;
}
