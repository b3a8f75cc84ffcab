/* For `make sensitivity` and `make ablate`: TFH_VARY=NAME=FACTOR in the environment multiplies one
 * of the thresholds, or one of the rules for special cases, which are 1. Not part of a normal
 * build. */
#ifdef TFH_VARY
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "judge/numbers.h"

/* clang-format off */
#define WHOLE(name, value, unit, source) int TFH_##name = (value);
#define REAL(name, value, unit, source) double TFH_##name = (value);
#include "judge/numbers.def"
#undef WHOLE
#undef REAL
#define DETECTOR(name, what) int TFH_DETECT_##name = 1;
#include "judge/detectors.def"
#undef DETECTOR

static const struct { const char *name; int *whole; double *real; } numbers[] = {
#define WHOLE(name, value, unit, source) {#name, &TFH_##name, NULL},
#define REAL(name, value, unit, source) {#name, NULL, &TFH_##name},
#include "judge/numbers.def"
#undef WHOLE
#undef REAL
#define DETECTOR(name, what) {#name, &TFH_DETECT_##name, NULL},
#include "judge/detectors.def"
#undef DETECTOR
};
/* clang-format on */

__attribute__((constructor)) static void vary(void)
{
	const char *text = getenv("TFH_VARY"), *factor = text ? strchr(text, '=') : NULL;

	for (size_t i = 0; factor && i < sizeof(numbers) / sizeof(*numbers); i++) {
		if (strlen(numbers[i].name) != (size_t)(factor - text) ||
		    strncmp(numbers[i].name, text, (size_t)(factor - text)) != 0)
			continue;
		if (numbers[i].real)
			*numbers[i].real *= atof(factor + 1);
		else
			*numbers[i].whole = (int)lround(*numbers[i].whole * atof(factor + 1));
	}
}
#endif
