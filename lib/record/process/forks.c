#include "record/process/forks.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include "record/process/filters.h"
#include "record/process/requests.h"

#define NAP_NS 10000000
#define NAPS 100
#define TRIES 3

static uint32_t inside;	 /* atomic, futex: calls under way */
static uint32_t forking; /* atomic, futex: threads that fork */
/* Waits that timed out: a thread was ended inside such a call, or waits for something that the
 * forking thread holds. After a few of these, nobody waits again. */
static uint32_t vain;

static bool wait_for_none(uint32_t *word)
{
	int saved = errno;
	uint32_t n = 1;

	for (int i = 0; i < NAPS && (n = __atomic_load_n(word, __ATOMIC_SEQ_CST)); i++)
		tfh_futex_wait(word, n, NAP_NS);
	errno = saved;
	return !n;
}

static void wake(uint32_t *word)
{
	int saved = errno;

	tfh_futex_wake(word);
	errno = saved;
}

/* Each side first counts itself and then reads the other's count, so one of the two sees the
 * other. */
void tfh_unforked_begin(void)
{
	__atomic_add_fetch(&inside, 1, __ATOMIC_SEQ_CST);
	for (int i = 0; i < TRIES && __atomic_load_n(&forking, __ATOMIC_SEQ_CST); i++) {
		tfh_unforked_end();
		wait_for_none(&forking);
		__atomic_add_fetch(&inside, 1, __ATOMIC_SEQ_CST);
	}
}

void tfh_unforked_end(void)
{
	if (!__atomic_sub_fetch(&inside, 1, __ATOMIC_SEQ_CST) &&
	    __atomic_load_n(&forking, __ATOMIC_SEQ_CST))
		wake(&inside);
}

void tfh_forks_begin(void)
{
	__atomic_add_fetch(&forking, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&vain, __ATOMIC_RELAXED) < TRIES && !wait_for_none(&inside))
		__atomic_add_fetch(&vain, 1, __ATOMIC_RELAXED);
}

void tfh_forks_end(void)
{
	if (!__atomic_sub_fetch(&forking, 1, __ATOMIC_SEQ_CST) && tfh_filters_allowed())
		wake(&forking);
}

void tfh_forks_forked(void)
{
	inside = forking = 0;
}
