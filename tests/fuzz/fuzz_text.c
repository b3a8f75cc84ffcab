/*
 * Fuzzed input: a text for one of the small parsers; the first byte says for which. Settings
 * (options, rules), command lines (redaction), names of kernels, copies, threads and stages, words
 * of end.json, JSON as it is written.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/nearest.h"
#include "base/options.h"
#include "base/redact.h"
#include "base/rules.h"
#include "base/vocabulary.h"
#include "diff/diff.h"
#include "fuzz.h"
#include "import/import.h"
#include "model/symbols/kernel_name.h"

static void settings(const char *text)
{
	static struct tfh_options o;
	char name[128], sentence[256], entry[4096];
	char *env[] = {entry, NULL};
	int64_t bytes;

	for (int i = 0; i < TFH_OPT_COUNT; i++) {
		snprintf(entry, sizeof(entry), "%s=%s", tfh_option_specs[i].name, text);
		tfh_options_read(&o, env);
		tfh_option_check(entry, sentence, sizeof(sentence));
	}
	snprintf(name, sizeof(name), "TFHOOK_%s", text);
	tfh_option_check(name, sentence, sizeof(sentence));
	tfh_option_unknown(name);
	tfh_option_suggest(name);
	tfh_parse_size(text, &bytes);
}

static void rules(const char *text)
{
	struct tfh_stack_rule rule;
	struct tfh_rule_window window;
	struct tfh_diff_limit limit;

	for (int32_t rank = -1; rank < 4; rank++)
		tfh_ranks_match(text, rank);
	tfh_window_parse(text, &window);
	tfh_stack_rule_parse(text, true, &rule);
	tfh_stack_rule_parse(text, false, &rule);
	tfh_end_find(text);
	tfh_diff_limit_parse(text, &limit, NULL);
}

/* Words of a command line, one a line. */
static void redacted(char *text)
{
	char *argv[64], *rest = NULL;
	size_t n = 0;

	for (char *p = strtok_r(text, "\n", &rest); p && n < 63; p = strtok_r(NULL, "\n", &rest))
		argv[n++] = p;
	argv[n] = NULL;
	for (size_t i = 0; i < n; i++) {
		tfh_redact_arg(argv, i);
		tfh_redact_entry(argv[i]);
		tfh_env_recorded(argv[i], strcspn(argv[i], "="));
	}
}

static void kernels(char *text)
{
	static char out[64][TFH_KERNEL_NAME];
	const char *names[64];
	char *rest = NULL;
	size_t n = 0;

	for (size_t width = 16; width < TFH_KERNEL_NAME; width += 36) {
		tfh_kernel_short(out[0], text, width);
		if (strlen(out[0]) > width)
			abort();
	}
	for (char *p = strtok_r(text, "\n", &rest); p && n < 64; p = strtok_r(NULL, "\n", &rest))
		names[n++] = p;
	tfh_kernel_shorts(out, names, n, 40);
}

static void imported(const char *text)
{
	struct tfh_op op = {0};

	tfh_import_call(text);
	tfh_import_other_call(text);
	tfh_import_copy_name(text, &op);
	tfh_kernel_communicates(text);
}

static void written(const char *text, size_t size)
{
	char *made = NULL;
	size_t length;
	FILE *out = open_memstream(&made, &length);
	struct tfh_json j;

	if (!out)
		return;
	tfh_json_init(&j, out, 0);
	tfh_json_object(&j);
	tfh_json_key(&j, text);
	tfh_json_strn(&j, text, size);
	tfh_json_kf64(&j, "number", strtod(text, NULL));
	tfh_json_end(&j);
	tfh_json_finish(&j);
	fclose(out);
	tfh_fuzz_is_json(made, length);
	free(made);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	double begin = tfh_fuzz_clock();
	char *text = size ? malloc(size) : NULL;

	if (!text)
		return 0;
	memcpy(text, data + 1, size - 1);
	text[size - 1] = '\0';
	switch (data[0] % 6) {
	case 0:
		settings(text);
		break;
	case 1:
		rules(text);
		break;
	case 2:
		redacted(text);
		break;
	case 3:
		kernels(text);
		break;
	case 4:
		imported(text);
		break;
	default:
		written(text, size - 1);
	}
	free(text);
	tfh_fuzz_bound(begin, size);
	return 0;
}
