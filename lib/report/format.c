#include "report/format.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clean.h"

/* A value below 1000 (after rounding) with three significant digits. */
static void digits(char *out, size_t size, double value, const char *unit)
{
	int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;

	snprintf(out, size, "%.*f%s%s", decimals, value, *unit ? " " : "", unit);
}

static const char *scaled(char out[TFH_TEXT], double value, double unit, const char *const *units,
			  size_t n)
{
	size_t i = 0;

	value /= unit;
	while (i + 1 < n && fabs(value) >= 999.5) {
		value /= 1000;
		i++;
	}
	if (fabs(value) >= 999.5)
		snprintf(out, TFH_TEXT, "%.0f %s", value, units[i]);
	else if (i == 0 && value == floor(value))
		snprintf(out, TFH_TEXT, "%.0f %s", value,
			 units[i]); /* whole nanoseconds, whole bytes */
	else
		digits(out, TFH_TEXT, value, units[i]);
	return out;
}

static const char *not_measured(char out[TFH_TEXT])
{
	return strcpy(out, TFH_NOT_MEASURED);
}

double tfh_whole_ns(double seconds)
{
	return round(seconds * 1e9) / 1e9;
}

const char *tfh_fmt_time(char out[TFH_TEXT], double seconds)
{
	static const char *const units[] = {"ns", "us", "ms", "s"};

	if (isnan(seconds))
		return not_measured(out);
	if (seconds < 0)
		seconds = 0;
	if (seconds < 99.95)
		return scaled(out, seconds, 1e-9, units, 4);
	uint64_t s = (uint64_t)(seconds + 0.5);
	if (s < 3600)
		snprintf(out, TFH_TEXT, "%um%02us", (unsigned)(s / 60), (unsigned)(s % 60));
	else
		snprintf(out, TFH_TEXT, "%lluh%02um", (unsigned long long)(s / 3600),
			 (unsigned)(s / 60 % 60));
	return out;
}

/* Formats a time in the unit of a larger one: "0.41" for 406 us beside "2.71 ms". Returns false if
 * that does not suit: the value is 1 or more, or so small that little but zeros would be left. */
static bool in_unit_of(char out[TFH_TEXT], double seconds, const char *unit)
{
	double value = seconds * (!strcmp(unit, " s") ? 1 : !strcmp(unit, " ms") ? 1e3 : 1e6);

	digits(out, TFH_TEXT, value, "");
	return value >= 0.095 && value < 1;
}

const char *tfh_fmt_times(char out[TFH_RANGE], double low, double high)
{
	char a[TFH_TEXT], b[TFH_TEXT], other[TFH_TEXT];
	const char *a_unit = strchr(tfh_fmt_time(a, low), ' ');
	const char *b_unit = strchr(tfh_fmt_time(b, high), ' ');
	bool same = a_unit && b_unit && !strcmp(a_unit, b_unit);

	if (!same && a_unit && b_unit && in_unit_of(other, low, b_unit))
		snprintf(out, TFH_RANGE, "%s to %s", other, b);
	else
		snprintf(out, TFH_RANGE, "%.*s to %s", same ? (int)(a_unit - a) : (int)strlen(a), a,
			 b);
	return out;
}

const char *tfh_fmt_bytes(char out[TFH_TEXT], double bytes)
{
	static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB"};

	return isnan(bytes) ? not_measured(out) : scaled(out, bytes, 1, units, 6);
}

const char *tfh_fmt_rate(char out[TFH_TEXT], double bytes_per_s)
{
	static const char *const units[] = {"B/s", "kB/s", "MB/s", "GB/s", "TB/s"};

	return isnan(bytes_per_s) ? not_measured(out) : scaled(out, bytes_per_s, 1, units, 5);
}

const char *tfh_fmt_count(char out[TFH_TEXT], uint64_t n)
{
	char plain[24];
	size_t len = (size_t)snprintf(plain, sizeof(plain), "%llu", (unsigned long long)n), at = 0;

	for (size_t i = 0; i < len; i++) {
		if (i && (len - i) % 3 == 0)
			out[at++] = ',';
		out[at++] = plain[i];
	}
	out[at] = '\0';
	return out;
}

const char *tfh_fmt_mean(char out[TFH_TEXT], double n)
{
	if (isnan(n))
		return not_measured(out);
	if (n >= 99.95 || n == floor(n))
		return tfh_fmt_count(out, (uint64_t)(n + 0.5));
	digits(out, TFH_TEXT, n, "");
	return out;
}

const char *tfh_fmt_factor(char out[TFH_TEXT], double factor)
{
	if (isnan(factor))
		return not_measured(out);
	if (factor > 9999)
		return strcpy(out, ">9999x"); /* a larger share leaves nothing of the step */
	digits(out, TFH_TEXT, factor, "");
	return strcat(out, "x");
}

const char *tfh_fmt_share(char out[TFH_TEXT], double share)
{
	double percent = share * 100;

	if (isnan(share))
		return not_measured(out);
	if (percent > 0 && percent < 0.995)
		snprintf(out, TFH_TEXT, percent < 0.01 ? "<0.01 %%" : "%.2f %%", percent);
	else
		snprintf(out, TFH_TEXT, "%.0f %%", percent);
	return out;
}

/* Whether the value can be printed as a share of a whole. A damaged file may hold any number, which
 * an int cannot. */
static bool is_part(double share)
{
	return fabs(share) < 1e4;
}

void tfh_percents(const double *share, size_t n, int *percent)
{
	double sum = 0;
	int given = 0;

	for (size_t i = 0; i < n; i++) {
		percent[i] = is_part(share[i]) ? (int)floor(share[i] * 100 + 1e-9) : 0;
		sum += is_part(share[i]) ? share[i] : 0;
		given += percent[i];
	}
	for (int left = (int)lround(sum * 100) - given; left > 0; left--) {
		size_t most = 0;
		double rest = -1;
		for (size_t i = 0; i < n; i++)
			if (is_part(share[i]) && share[i] * 100 - percent[i] > rest) {
				rest = share[i] * 100 - percent[i];
				most = i;
			}
		if (rest < 0)
			return;
		percent[most]++;
	}
}

const char *tfh_fmt_cut(char *out, size_t size, const char *text, size_t width)
{
	size_t left = strlen(text), columns = tfh_columns(text, left), at = 0, column = 0;
	/* Two dots replace the middle: columns [head, tail) are left out. */
	size_t head = columns, tail = columns;
	bool dots = false;
	struct tfh_glyph g;

	if (columns > width && width > 2) {
		head = (width - 2) / 2;
		tail = columns - (width - 2 - head);
	}
	while (left && at + 2 + sizeof(g.text) < size) {
		size_t n = tfh_glyph(text, left, &g);
		if (column + g.columns <= head || column >= tail) {
			memcpy(out + at, g.text, g.len);
			at += g.len;
		} else if (!dots) {
			memcpy(out + at, "..", 2);
			at += 2;
			dots = true;
		}
		column += g.columns;
		text += n;
		left -= n;
	}
	out[at] = '\0';
	return out;
}
