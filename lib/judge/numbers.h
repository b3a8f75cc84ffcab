/*
 * The thresholds for decisions (numbers.def), the limits on memory (limits.def) and the rules for
 * special cases (detectors.def): a constant TFH_<name> for each row. Whole numbers have type int
 * and can be array sizes. In the build of `make sensitivity` (TFH_VARY), those of numbers.def and
 * detectors.def are variables, one of which is changed (vary.c).
 */
#ifndef TFH_JUDGE_NUMBERS_H
#define TFH_JUDGE_NUMBERS_H

#define TFH_US 1000ll
#define TFH_MS 1000000ll

/* clang-format off */
#define LIMIT(name, value, unit, beyond) TFH_##name = (value),
#define REAL(name, value, unit, source)
#ifdef TFH_VARY
#define WHOLE(name, value, unit, source)
#else
#define WHOLE(name, value, unit, source) TFH_##name = (value),
#endif
#ifdef TFH_VARY
#define DETECTOR(name, what) extern int TFH_DETECT_##name;
#include "judge/detectors.def"
#undef DETECTOR
#define DETECTOR(name, what)
#else
#define DETECTOR(name, what) TFH_DETECT_##name = 1,
#endif
enum {
#include "judge/numbers.def"
#include "judge/limits.def"
#include "judge/detectors.def"
};
#undef DETECTOR
#undef WHOLE
#undef REAL
#undef LIMIT

#ifdef TFH_VARY
#define WHOLE(name, value, unit, source) extern int TFH_##name;
#define REAL(name, value, unit, source) extern double TFH_##name;
#else
#define WHOLE(name, value, unit, source)
#define REAL(name, value, unit, source) static const double TFH_##name = (value);
#endif
#include "judge/numbers.def"
#undef WHOLE
#undef REAL
/* clang-format on */

#endif
