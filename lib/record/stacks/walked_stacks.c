#include "record/stacks/walked_stacks.h"

#include <stdbool.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/uio.h>

#include "base/hash.h"
#include "base/refused.h"
#include "record/process/recorder.h"

/* Entries that one place may use: the same line of Python can reach the driver in several ways. */
#define WAYS 4u
/* Maximum distance of the outermost frame, in words: Python needs about 1 KiB of stack for a
 * frame. */
#define MOST_WORDS (1u << 17)
#define PIECE 256u

static const struct tfh_walked_stack *first_way(const struct tfh_walked_stack *known,
						uintptr_t here, uint32_t place)
{
	return &known[tfh_hash_add(here, place) % (TFH_WALKED_STACKS / WAYS) * WAYS];
}

static bool still_there(const struct tfh_walked_stack *k)
{
	for (uint32_t i = 0; i < k->n; i++)
		if (((const volatile uintptr_t *)k->here)[k->offset[i]] != k->address[i])
			return false;
	return true;
}

uint32_t tfh_walked_stack(const struct tfh_walked_stack *known, uintptr_t here, uint32_t place)
{
	const struct tfh_walked_stack *k = first_way(known, here, place);

	for (uint32_t i = 0; i < WAYS; i++, k++) {
		uint32_t number = __atomic_load_n(&k->number, __ATOMIC_ACQUIRE);

		/* A signal handler's call may replace the entry meanwhile; its number then
		 * differs. */
		if (number && k->here == here && k->place == place && still_there(k) &&
		    __atomic_load_n(&k->number, __ATOMIC_ACQUIRE) == number)
			return number;
	}
	return 0;
}

/* A window of the stack, read through the kernel. The words between return addresses may be
 * uninitialised, and memory checkers would report direct reads of them to the user. */
struct stack_scan {
	uintptr_t here, end;
	uintptr_t word[PIECE];
	uint32_t from, n; /* which words it holds */
};

static bool next_piece(struct stack_scan *s)
{
	uintptr_t at;
	struct iovec to, from;
	ssize_t got;

	s->from += s->n;
	at = s->here + s->from * sizeof(uintptr_t);
	if (s->from >= MOST_WORDS || at >= s->end)
		return false;
	to = (struct iovec){s->word, s->end - at < sizeof(s->word) ? s->end - at : sizeof(s->word)};
	from = (struct iovec){(void *)at, to.iov_len};
	got = tfh_copy_memory(tfh_recorder.pid, &to, 1, &from, 1);
	s->n = got > 0 ? (uint32_t)((size_t)got / sizeof(uintptr_t)) : 0;
	return s->n > 0;
}

/* Offset of the word with this value, from `at` on; MOST_WORDS: there is none. */
static uint32_t offset_of(struct stack_scan *s, uint32_t at, uintptr_t value)
{
	for (;; at++) {
		while (at >= s->from + s->n)
			if (!next_piece(s))
				return MOST_WORDS;
		if (s->word[at - s->from] == value)
			return at;
	}
}

/* The entry to fill: a free one of the place's, or else the next in turn. */
static struct tfh_walked_stack *entry_for(struct tfh_walked_stack *known, uintptr_t here,
					  uint32_t place)
{
	static uint32_t turn;
	struct tfh_walked_stack *k = known + (first_way(known, here, place) - known);

	for (uint32_t i = 0; i < WAYS; i++)
		if (!k[i].number)
			return &k[i];
	return &k[turn++ % WAYS];
}

void tfh_keep_walk(struct tfh_walked_stack *known, uintptr_t here, uint32_t place,
		   void *const *frame, uint32_t n, uint32_t number)
{
	struct tfh_walked_stack *k = entry_for(known, here, place);
	struct stack_scan scan = {.here = here, .end = getauxval(AT_EXECFN)};

	if (n > TFH_STACK_FRAMES)
		return;
	__atomic_store_n(&k->number, 0, __ATOMIC_RELEASE);
	for (uint32_t i = 0, at = 0; i < n; i++, at++) {
		at = offset_of(&scan, at, (uintptr_t)frame[i]);
		if (at == MOST_WORDS)
			return;
		k->offset[i] = at;
		k->address[i] = (uintptr_t)frame[i];
	}
	k->here = here;
	k->place = place;
	k->n = n;
	__atomic_store_n(&k->number, number, __ATOMIC_RELEASE);
}
