/*
 * The numbers that decide (numbers.def) and the limits on memory (limits.def): a constant
 * TFH_<name> for each row. Whole numbers have type int and can be array sizes.
 */
#ifndef TFH_JUDGE_NUMBERS_H
#define TFH_JUDGE_NUMBERS_H

#define TFH_US 1000ll
#define TFH_MS 1000000ll

/* clang-format off */
#define WHOLE(name, value, unit, source) TFH_##name = (value),
#define REAL(name, value, unit, source)
#define LIMIT(name, value, unit, beyond) TFH_##name = (value),
enum {
#include "judge/numbers.def"
#include "judge/limits.def"
};
#undef WHOLE
#undef REAL
#undef LIMIT

#define WHOLE(name, value, unit, source)
#define REAL(name, value, unit, source) static const double TFH_##name = (value);
#include "judge/numbers.def"
#undef WHOLE
#undef REAL
/* clang-format on */

#endif
