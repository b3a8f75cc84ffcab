/* What the text report says of a gain: a prediction, an estimate, a bound or none, each for what it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "report_fixture.h"

/* Where not even a bound of the gain is known, the screen says so and why. */
static void gain_without_bound(void **state)
{
	(void)state;
	struct tfh_result r = fixture();
	uint32_t i = 0;

	while (tfh_remove_part(r.whatif[i].remove) != tfh_cause_part(r.verdict.cause))
		i++;
	r.whatif[i].step_s = r.whatif[i].ceiling_speedup = r.whatif[i].speedup = NAN;
	r.whatif[i].no_bound = "it is compiled anew each time";
	char *text = fixture_print(fixture_screen, &r);
	assert_non_null(strstr(text, "  gain     no estimate: it is compiled anew each time\n"));
	free(text);
}

/* A range too wide for a prediction still has a step with everything else as it was; a bound that is none stands beside it. */
static void about_that_time(void **state)
{
	(void)state;
	struct tfh_result r = fixture();

	r.whatif[0].step_s = r.whatif[0].speedup = NAN;
	r.whatif[0].about_s = 0.110;
	r.whatif[0].high_s = 0.130;
	for (int k = 0; k < 2; k++) {
		char *text = fixture_print(fixture_screen, &r);
		assert_non_null(strstr(text, k ? " -> about 110 ms (at best 101 ms), 1.58x"
					       : " -> about 110 ms (95.0 to 130 ms), 1.58x"));
		free(text);
		r.whatif[0].high_s = 0.174;
	}
}

/* A bound that is that of nothing but compute tells nothing of the part that it is given for. */
static void bounds_that_tell(void **state)
{
	(void)state;
	struct tfh_result r = fixture();

	r.whatif[0] =
		(struct tfh_whatif){TFH_REMOVE_TRANSFER, NAN, NAN, NAN, NAN, NAN, 1.12, 9, NULL, 0};
	for (int k = 0; k < 2; k++) {
		r.whatif[1] = r.whatif[0];
		r.whatif[1].remove = TFH_REMOVE_EVERYTHING_BUT_COMPUTE;
		r.whatif[1].ceiling_speedup = k ? 1.12 : 1.5;
		char *text = fixture_print(fixture_text, &r);
		assert_non_null(strstr(text, "  nothing but compute"));
		assert_true((strstr(text, "  no copies") == NULL) == k);
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gain_without_bound),
		cmocka_unit_test(about_that_time),
		cmocka_unit_test(bounds_that_tell),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
