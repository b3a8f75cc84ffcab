/* Orders for qsort(). */
#ifndef TFH_BASE_SORT_H
#define TFH_BASE_SORT_H

#include <string.h>

/* Doubles, ascending; none of them is NAN. */
static inline int tfh_by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* Names (char *), numbers in them by their value: segment 2 comes before segment 10. */
static inline int tfh_by_version(const void *a, const void *b)
{
	return strverscmp(*(char *const *)a, *(char *const *)b);
}

#endif
