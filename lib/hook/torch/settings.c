/*
 * Where PyTorch keeps the settings that a program makes by calls: deterministic algorithms, cuDNN's
 * search for the fastest algorithm, TF32. No function of torch is called: the first call of
 * at::globalContext() creates the object, later ones may throw, and both are the job's business.
 * The accessor functions are so short that their code shows the address (hook/known_code.h).
 */
#include "hook/torch/torch.h"

#include "hook/known_code.h"

#define OBJECT_BYTES 65536 /* at::Context is some 1,100 bytes */

/* The first number is the object's address, the second that of the byte which says whether it is
 * there. */
#define GLOBAL "_ZN2at13globalContextEv"
static const char *const global_code[] = {
	"5553488d1d@@@@@@@@4883ec080fb605########84c07410", /* 2.8 to 2.14 */
	"0fb605########84c0740d488d05@@@@@@@@c3",	    /* 2.4 */
};
#define GLOBAL_CODES (sizeof(global_code) / sizeof(global_code[0]))

/* The number is the offset in the object. A setting with several rows has one in each version. */
#define BOOL_CODE "0fb687@@@@@@@@c3"
#define MATMUL                                                                                     \
	{                                                                                          \
		.name = "torch.float32_matmul_precision", .value = {"highest", "high", "medium"},  \
		.bytes = 4                                                                         \
	}
static const struct {
	const char *symbol, *code;
	struct tfh_setting_at is;
} known[] = {
	{"_ZNK2at7Context23deterministicAlgorithmsEv",
	 BOOL_CODE,
	 {.name = "torch.use_deterministic_algorithms", .value = {"False", "True"}, .bytes = 1}},
	{"_ZNK2at7Context18deterministicCuDNNEv",
	 BOOL_CODE,
	 {.name = "torch.backends.cudnn.deterministic", .value = {"False", "True"}, .bytes = 1}},
	{"_ZNK2at7Context14benchmarkCuDNNEv",
	 BOOL_CODE,
	 {.name = "torch.backends.cudnn.benchmark", .value = {"False", "True"}, .bytes = 1}},
	{"_ZNK2at7Context14allowTF32CuDNNEv", /* until 2.8 */
	 BOOL_CODE,
	 {.name = "torch.backends.cudnn.allow_tf32", .value = {"False", "True"}, .bytes = 1}},
	{"_ZNK2at7Context15allowTF32CuBLASEv", /* 2.11 to 2.14 */
	 "4157be010000004156415541545553"
	 "4881ec????????8b97@@@@@@@@85d2",
	 MATMUL},
	{"_ZNK2at7Context15allowTF32CuBLASEv", "8b87@@@@@@@@85c00f95c0c3", MATMUL}, /* until 2.8 */
};
#define KNOWN (sizeof(known) / sizeof(known[0]))

static struct tfh_setting_at found[KNOWN];

/* The object; NULL: this version's code is not known. */
static const uint8_t *global(void *library, const uint8_t **there)
{
	const uint8_t *code = tfh_code_of(library, GLOBAL), *object;
	struct tfh_code_numbers in;

	for (size_t i = 0; code && i < GLOBAL_CODES; i++) {
		if (!tfh_code_matches(code, global_code[i], &in))
			continue;
		object = tfh_code_address(code, &in, 0);
		*there = tfh_code_address(code, &in, 1);
		return *there ? object : NULL;
	}
	return NULL;
}

void tfh_torch_settings(void *library)
{
	const uint8_t *there = NULL, *object = global(library, &there), *code;
	struct tfh_code_numbers in;

	for (size_t i = 0; object && i < KNOWN; i++) {
		code = tfh_code_of(library, known[i].symbol);
		if (!code || !tfh_same_library(code, object) ||
		    !tfh_code_matches(code, known[i].code, &in) || in.number[0] <= 0 ||
		    in.number[0] > OBJECT_BYTES || !tfh_same_library(code, object + in.number[0]))
			continue;
		found[i] = known[i].is;
		found[i].at = object + in.number[0];
		found[i].there = there;
		tfh_note_setting(&found[i]);
	}
}
