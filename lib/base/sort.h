/* Orders for qsort(). */
#ifndef TFH_BASE_SORT_H
#define TFH_BASE_SORT_H

/* Doubles, ascending; none of them is NAN. */
static inline int tfh_by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

#endif
