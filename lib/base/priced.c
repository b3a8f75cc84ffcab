#include "base/environ.h"
#include "base/priced.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/proc.h"
#include "base/vocabulary.h"

enum {
	INPUT = 1 << TFH_CLASS_INPUT_BOUND,
	TRANSFER = 1 << TFH_CLASS_TRANSFER_BOUND,
	COMPUTE = 1 << TFH_CLASS_COMPUTE_BOUND,
	HOST = 1 << TFH_CLASS_HOST_BOUND,
	COMMUNICATION = 1 << TFH_CLASS_COMMUNICATION_BOUND,
	ANY = (1 << TFH_CLASS_COUNT) - 1
};
enum { IS, HAS };

const struct tfh_priced tfh_priced[] = {
#define PRICED(variable, test, value, classes, sentence)                                           \
	{variable, value, test == HAS, (uint32_t)(classes), sentence},
#include "base/priced.def"
#undef PRICED
};
#define ROWS (sizeof(tfh_priced) / sizeof(tfh_priced[0]))
const uint32_t tfh_priced_count = ROWS;
static_assert(ROWS <= TFH_PRICED_MOST, "bits of a word");

static bool applies(const struct tfh_priced *row, const char *value)
{
	size_t n = strlen(row->value);
	const char *at = value;

	if (!row->part)
		return !strcmp(value, row->value);
	while ((at = strstr(at, row->value))) {
		if (!at[n] || strchr(" ,\t", at[n]))
			return true;
		at += n;
	}
	return false;
}

/* Under intel_pstate and amd-pstate, a governor is only a hint to the processor, which raises its
 * clock by itself. */
static const char *governor(char value[32])
{
#define CPUFREQ "/sys/devices/system/cpu/cpu0/cpufreq/"
	tfh_read_small(CPUFREQ "scaling_driver", value, 32);
	if (!strncmp(value, "intel_pstate", 12) || !strncmp(value, "amd-pstate", 10))
		return NULL;
	tfh_read_small(CPUFREQ "scaling_governor", value, 32);
	value[strcspn(value, "\n")] = '\0';
	return *value ? value : NULL;
}

uint64_t tfh_priced_here(void)
{
	uint64_t found = 0;
	char text[32];

	for (uint32_t i = 0; i < ROWS; i++) {
		bool machine = !strcmp(tfh_priced[i].variable, "cpu.governor");
		const char *value = machine ? governor(text) : tfh_env(tfh_priced[i].variable);
		if (value && applies(&tfh_priced[i], value))
			found |= 1ull << i;
	}
	return found;
}

int tfh_priced_find(const char *text, size_t n)
{
	for (uint32_t i = 0; i < ROWS; i++) {
		size_t len = strlen(tfh_priced[i].variable);
		if (n > len && !memcmp(text, tfh_priced[i].variable, len) && text[len] == '=' &&
		    n - len - 1 == strlen(tfh_priced[i].value) &&
		    !memcmp(text + len + 1, tfh_priced[i].value, n - len - 1))
			return (int)i;
	}
	return -1;
}
