/* What a function's name says about the steps that execute it. */
#include <ctype.h>
#include <string.h>

#include "base/text.h"
#include "judge/loops/loops.h"

/* The first one that the name contains decides. */
static const struct {
	const char *word;
	enum tfh_branch role;
} words[] = {
	{"train", TFH_BRANCH_TRAIN},
	{"pretrain", TFH_BRANCH_TRAIN},
	{"learn", TFH_BRANCH_TRAIN},
	{"update", TFH_BRANCH_TRAIN},
	{"eval", TFH_BRANCH_EVALUATE},
	{"valid", TFH_BRANCH_EVALUATE},
	{"test", TFH_BRANCH_EVALUATE},
	{"predict", TFH_BRANCH_PREDICT},
	{"infer", TFH_BRANCH_PREDICT},
	/* Keras 3's predict(): fit() and evaluate() execute functions that take an iterator. */
	{"step_on_data_distributed", TFH_BRANCH_PREDICT},
};

/* Whether a word of the name begins at s: "eval" in "my_eval", "myEval", "Eval2", but not "test"
 * in "latest". */
static bool begins(const char *name, const char *s)
{
	return s == name || !isalpha((unsigned char)s[-1]) ||
	       (isupper((unsigned char)*s) && islower((unsigned char)s[-1]));
}

static bool contains(const char *name, const char *word)
{
	for (const char *s = name; (s = strcasestr(s, word)); s++)
		if (begins(name, s))
			return true;
	return false;
}

enum tfh_branch tfh_role_of_name(const char *name)
{
	static const char inference[] =
		"__inference_"; /* TensorFlow's prefix of every function name */

	if (tfh_starts_with(name, inference))
		name += sizeof(inference) - 1;
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (contains(name, words[i].word))
			return words[i].role;
	return TFH_BRANCH_STEP;
}

static bool contains_any(const char *name, const char *const word[], size_t n)
{
	for (size_t i = 0; name && i < n; i++)
		if (strcasestr(name, word[i]))
			return true;
	return false;
}

bool tfh_name_updates(const char *name)
{
	static const char *const word[] = {"apply", "update", "optim", "adam", "sgd"};

	return contains_any(name, word, sizeof(word) / sizeof(*word));
}

bool tfh_name_trains(const char *name)
{
	static const char *const word[] = {"backward", "bwd", "grad"};

	return tfh_name_updates(name) || contains_any(name, word, sizeof(word) / sizeof(*word));
}
