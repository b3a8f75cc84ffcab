/*
 * Where TensorFlow keeps settings that a program makes by calls: TF32, and whether ops compute the
 * same bits in every run. Nothing of TensorFlow is called. Only the code of the wheels of 2.20 and
 * 2.21 is known; other code is left alone.
 */
#include "hook/tf/tf.h"

#include "hook/known_code.h"

static const struct {
	const char *symbol, *code; /* the number is the variable's address */
	struct tfh_setting_at is;
} known[] = {
	{"_ZN3tsl33tensor_float_32_execution_enabledEv",
	 "554889e50fb605@@@@@@@@24015dc3",
	 {.name = "tf.config.experimental.enable_tensor_float_32_execution",
	  .value = {"False", "True"},
	  .bytes = 1}},
	{"_ZN3tsl19EnableOpDeterminismEb",
	 "554889e541565389fb4c8b35????????4c89f7e8????????891d@@@@@@@@",
	 {.name = "tf.config.experimental.enable_op_determinism",
	  .value = {"False", "True"}, /* 2: as TF_DETERMINISTIC_OPS says */
	  .bytes = 4}},
};
#define KNOWN (sizeof(known) / sizeof(known[0]))

void tfh_tf_settings(void)
{
	static struct tfh_setting_at found[KNOWN];
	static uint32_t asked; /* atomic */
	struct tfh_code_numbers in;

	if (__atomic_exchange_n(&asked, 1, __ATOMIC_RELAXED))
		return;
	for (size_t i = 0; i < KNOWN; i++) {
		const uint8_t *code = tfh_tf_lookup(known[i].symbol, NULL);
		if (!code || !tfh_code_matches(code, known[i].code, &in))
			continue;
		found[i] = known[i].is;
		found[i].at = tfh_code_address(code, &in, 0);
		if (found[i].at)
			tfh_note_setting(&found[i]);
	}
}
