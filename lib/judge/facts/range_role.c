/*
 * What a program says that it does in a range of its own, by the range's name ("data_loading",
 * "DataLoad", "Load Batch 12", "fetch data", "data wait", "image preprocessing"): the words of a
 * name are what it is about and what is done with it, in any order. Such a name is the only thing
 * that a trace without functions of Python tells about the code between two calls.
 */
#include <ctype.h>
#include <string.h>

#include "judge/facts/cover.h"

enum { WORD_MAX = 24 }; /* bytes; longer words are cut */

/* The words that a name may be about. */
enum about { DATA = 1, BATCH = 2, IMAGE = 4 };

/* By how they begin; `whole`: only the whole word. */
static const struct {
	const char *word;
	bool whole;
	uint8_t about; /* enum about that it names; 0: it is what is done */
	uint8_t with;  /* done with one of these; 0: with anything, or with what is not named */
	uint8_t role;  /* enum tfh_role */
} words[] = {
	{"data", true, DATA, 0, 0},
	{"dataset", false, DATA, 0, 0},
	{"batch", false, BATCH, 0, 0},
	{"minibatch", false, BATCH, 0, 0},
	{"input", false, BATCH, 0, 0},
	{"image", false, IMAGE, 0, 0},
	{"dataload", false, 0, 0, TFH_ROLE_FED},
	{"load", false, 0, DATA | BATCH | IMAGE, TFH_ROLE_FED},
	{"fetch", false, 0, DATA | BATCH, TFH_ROLE_FED},
	{"prefetch", false, 0, DATA | BATCH, TFH_ROLE_FED},
	{"wait", false, 0, DATA | BATCH, TFH_ROLE_FED},
	{"get", true, 0, DATA | BATCH, TFH_ROLE_FED},
	{"next", true, 0, DATA | BATCH, TFH_ROLE_FED},
	{"read", true, 0, DATA | BATCH | IMAGE, TFH_ROLE_FED},
	{"reading", true, 0, DATA | BATCH | IMAGE, TFH_ROLE_FED},
	{"io", true, 0, DATA, TFH_ROLE_FED},
	{"prep", false, 0, DATA | IMAGE, TFH_ROLE_MAP},
	{"augment", false, 0, 0, TFH_ROLE_MAP},
	{"preprocess", false, 0, 0, TFH_ROLE_MAP},
	{"collat", false, 0, 0, TFH_ROLE_BATCH},
};

/* The next word of a name, in small letters: letters that follow each other, up to a capital one
 * after a small one. Returns what follows it; NULL: there is none. */
static const char *next_word(const char *s, char out[WORD_MAX])
{
	size_t n = 0;

	while (*s && !isalpha((unsigned char)*s))
		s++;
	if (!*s)
		return NULL;
	do {
		if (n < WORD_MAX - 1)
			out[n++] = (char)tolower((unsigned char)*s);
		s++;
	} while (isalpha((unsigned char)*s) &&
		 !(isupper((unsigned char)*s) && islower((unsigned char)s[-1])));
	out[n] = '\0';
	return s;
}

static bool is_word(const char *word, size_t i)
{
	return words[i].whole ? !strcmp(word, words[i].word)
			      : !strncmp(word, words[i].word, strlen(words[i].word));
}

enum tfh_role tfh_role_of_range(const char *name)
{
	const size_t n = sizeof(words) / sizeof(*words);
	bool found[sizeof(words) / sizeof(*words)] = {false};
	char word[WORD_MAX];
	uint8_t about = 0;

	while (TFH_DETECT_NAMED_INPUT && (name = next_word(name, word)))
		for (size_t i = 0; i < n; i++)
			if (is_word(word, i)) {
				found[i] = true;
				about |= words[i].about;
			}
	for (size_t i = 0; i < n; i++)
		if (found[i] && words[i].role && (!words[i].with || words[i].with & about))
			return words[i].role;
	return TFH_ROLE_NONE;
}
