/* Formats numbers and names for reading: three significant digits, scaled units, fixed widths. */
#ifndef TFH_REPORT_FORMAT_H
#define TFH_REPORT_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TFH_TEXT 32
#define TFH_RANGE 72
#define TFH_NOT_MEASURED "n/a"

/* Rounded to the nanosecond: for floats in JSON, whose further digits would be noise. */
double tfh_whole_ns(double seconds);

/* All others return `out`. NAN becomes "n/a": what was not measured is never printed as 0. */

/* "850 ns" "71.6 ms" "1.40 s" "6m12s" "3h05m" */
const char *tfh_fmt_time(char out[TFH_TEXT], double seconds);
/* "117 to 131 ms" "980 us to 1.20 ms": a range; the unit appears once if both ends share it */
const char *tfh_fmt_times(char out[TFH_RANGE], double low, double high);
/* "8 B" "77.1 MB": powers of 1000, like rates */
const char *tfh_fmt_bytes(char out[TFH_TEXT], double bytes);
/* "7.90 GB/s" */
const char *tfh_fmt_rate(char out[TFH_TEXT], double bytes_per_s);
/* "2,140" */
const char *tfh_fmt_count(char out[TFH_TEXT], uint64_t n);
/* "3,412" "1.50" "0.25": a mean of counts */
const char *tfh_fmt_mean(char out[TFH_TEXT], double n);
/* "1.70x" */
const char *tfh_fmt_factor(char out[TFH_TEXT], double factor);
/* "41 %" "<1 %" "0.04 %": a single share */
const char *tfh_fmt_share(char out[TFH_TEXT], double share);

/* Integer percentages of n shares by largest remainder, so that shares that add up to 1 give 100.
 */
void tfh_percents(const double *share, size_t n, int *percent);

/* Copies text, cleaned (base/clean.h) and shortened in the middle to at most `width` columns
 * ("cutlass::Kernel2<..256x128_tn>"). `out` holds `size` bytes. */
const char *tfh_fmt_cut(char *out, size_t size, const char *text, size_t width);

#endif
