/*
 * Where PyTorch keeps the settings that a program makes by calls: deterministic algorithms, cuDNN's search for the
 * fastest algorithm, TF32. No function of torch is called: the first call of at::globalContext() creates the object,
 * later ones may throw, and both are the job's business. The accessor functions are so short that their code shows the
 * address, which is taken only from code that is known byte by byte. Other versions of the code are left alone.
 */
#include "hook/torch/torch.h"

#include <dlfcn.h>
#include <string.h>

#define CODE_BYTES 48u
#define OBJECT_BYTES 65536 /* at::Context is some 1,100 bytes */

/* Machine code, two digits per byte. "??" matches any byte, "@@@@@@@@" is four bytes that give an address, "########"
 * four that give another one. */
#define GLOBAL "_ZN2at13globalContextEv"
static const char global_code[] = "5553488d1d@@@@@@@@4883ec080fb605########84c07410";
#define BOOL_CODE "0fb687@@@@@@@@c3"

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
	{"_ZNK2at7Context15allowTF32CuBLASEv",
	 "4157be010000004156415541545553"
	 "4881ec????????8b97@@@@@@@@85d2",
	 {.name = "torch.float32_matmul_precision",
	  .value = {"highest", "high", "medium"},
	  .bytes = 4}},
};
#define KNOWN (sizeof(known) / sizeof(known[0]))
_Static_assert(KNOWN <= TFH_SETTINGS_AT_MOST, "room for all");

static struct tfh_setting_at found[KNOWN];

static int digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c - 'a' + 10;
}

/* Whether the code is the known one. If so, returns the two numbers in it (0: there is none) and the offset after
 * each. */
static bool matches(const uint8_t *at, const char *code, int32_t number[2], uint32_t behind[2])
{
	memset(number, 0, 2 * sizeof(*number));
	for (uint32_t i = 0; i < CODE_BYTES && *code; code += 2, i++) {
		int which = *code == '#';
		if (*code == '@' || *code == '#') {
			memcpy(&number[which], at + i, sizeof(*number));
			behind[which] = i + 4;
			code += 6;
			i += 3;
		} else if (*code != '?' && at[i] != digit(code[0]) * 16 + digit(code[1])) {
			return false;
		}
	}
	return !*code;
}

static bool in_library(const void *at, const void *base)
{
	Dl_info info;

	return dladdr(at, &info) && info.dli_fbase == base;
}

void tfh_torch_settings(void *library)
{
	const uint8_t *code = dlsym(library, GLOBAL), *object, *there;
	int32_t number[2];
	uint32_t behind[2], n = 0;
	Dl_info info;

	if (!code || !dladdr(code, &info) || !matches(code, global_code, number, behind)) {
		dlerror();
		return;
	}
	object = code + behind[0] + number[0];
	there = code + behind[1] + number[1];
	if (!in_library(object, info.dli_fbase) || !in_library(there, info.dli_fbase))
		return;
	for (size_t i = 0; i < KNOWN; i++) {
		code = dlsym(library, known[i].symbol);
		if (!code)
			dlerror(); /* the job must not see this failure */
		if (!code || !in_library(code, info.dli_fbase) ||
		    !matches(code, known[i].code, number, behind) || number[0] <= 0 ||
		    number[0] > OBJECT_BYTES || !in_library(object + number[0], info.dli_fbase))
			continue;
		found[n] = known[i].is;
		found[n].at = object + number[0];
		found[n++].there = there;
	}
	if (n)
		tfh_note_settings(found, n);
}
