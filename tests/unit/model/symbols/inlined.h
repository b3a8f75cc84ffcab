/* A function of a header that is put into its callers (test_debug_lines.c). */
#ifndef TFH_TESTS_INLINED_H
#define TFH_TESTS_INLINED_H

void tfh_test_note(void);

static inline __attribute__((always_inline)) int tfh_test_wrap_more(int x)
{
	tfh_test_note();
	return x + 1;
}

static inline __attribute__((always_inline)) int tfh_test_wrapped(int x)
{
	return 3 * tfh_test_wrap_more(x);
}

#endif
