/* A custom loader's get-next: six arguments, a result, errno. */
#include <errno.h>

long tf_data_iterator_get_next(long a, long b, long c, long d, long e, long f);
long tf_data_iterator_get_next(long a, long b, long c, long d, long e, long f)
{
	errno += 1;
	return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f;
}
