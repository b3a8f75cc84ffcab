/* A request of `tfhook ctl` is read back as it was written; with any byte changed, cut short, longer, or
 * with contents that no command line gives, it is refused, and nothing beyond the given bytes is read. An answer likewise. Names of both are told from others. */
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "cli/ctl_request.h"

static const struct tfh_ctl_request good = {.id = 7,
					    .at = 5000,
					    .verb = TFH_CTL_GPU_ON,
					    .steps = 20,
					    .wait_s = 10,
					    .host = "node0",
					    .n_had = 1,
					    .had = {9}};

/* From memory that ends with it, so that sanitizers and valgrind see reads beyond. */
static int parse(const void *bytes, size_t n)
{
	void *copy = malloc(n ? n : 1);
	struct tfh_ctl_request r;

	assert_non_null(copy);
	memcpy(copy, bytes, n);
	int code = tfh_ctl_request_parse(copy, n, &r);
	free(copy);
	return code;
}

static void any_byte(void **state)
{
	unsigned char bytes[sizeof(good) + 1] = {0};
	struct tfh_ctl_request sealed = good, r;

	(void)state;
	tfh_ctl_request_seal(&sealed);
	memcpy(bytes, &sealed, sizeof(sealed));
	assert_int_equal(tfh_ctl_request_parse(bytes, sizeof(good), &r), 0);
	assert_memory_equal(&r, &sealed, sizeof(r));
	for (size_t i = 0; i < sizeof(good); i++) {
		bytes[i] ^= 0x40;
		int code = parse(bytes, sizeof(good));
		assert_true(code == -EBADMSG || (code == -EPROTO && i >= 8 && i < 12));
		bytes[i] ^= 0x40;
	}
	for (size_t n = 0; n < sizeof(good); n++)
		assert_int_equal(parse(bytes, n), -EBADMSG);
	assert_int_equal(parse(bytes, sizeof(good) + 1), -EBADMSG);
}

static int sealed(struct tfh_ctl_request r)
{
	tfh_ctl_request_seal(&r);
	return parse(&r, sizeof(r));
}

static void contents(void **state)
{
	struct tfh_ctl_request r = good;

	(void)state;
	assert_int_equal(sealed(r), 0);
	r.verb = TFH_CTL_VERBS;
	assert_int_equal(sealed(r), -EBADMSG);
	r.verb = TFH_CTL_FLUSH;
	assert_int_equal(sealed(r), -EBADMSG);
	r.steps = 0;
	r.at = 0;
	assert_int_equal(sealed(r), 0);
	r = good;
	r.at = 1ull << 32;
	assert_int_equal(sealed(r), -EBADMSG);
	r = good;
	r.n_had = TFH_CTL_KEYS + 1;
	assert_int_equal(sealed(r), -EBADMSG);
	r = good;
	r.wait_s = TFH_CTL_WAIT_MOST_S + 1;
	assert_int_equal(sealed(r), -EBADMSG);
	r = good;
	memset(r.host, 'h', sizeof(r.host));
	assert_int_equal(sealed(r), -EBADMSG);
}

static void answers(void **state)
{
	struct tfh_ctl_answer a = {.id = 7, .told = 8}, b;
	unsigned char bytes[sizeof(a)];

	(void)state;
	tfh_ctl_answer_seal(&a);
	memcpy(bytes, &a, sizeof(a));
	assert_int_equal(tfh_ctl_answer_parse(bytes, sizeof(a), &b), 0);
	assert_int_equal(b.told, 8);
	for (size_t i = 0; i < sizeof(a); i++) {
		bytes[i] ^= 1;
		assert_int_not_equal(tfh_ctl_answer_parse(bytes, sizeof(a), &b), 0);
		bytes[i] ^= 1;
		assert_int_equal(tfh_ctl_answer_parse(bytes, i, &b), -EBADMSG);
	}
}

static void names(void **state)
{
	char name[NAME_MAX + 1], host[NAME_MAX + 1];

	(void)state;
	assert_true(tfh_ctl_name(name, 0xab, NULL));
	assert_string_equal(name, "ctl-00000000000000ab.request");
	assert_true(tfh_ctl_name(name, 1, "node0.site"));
	assert_string_equal(name, "ctl-0000000000000001.node0.site.answer");
	assert_true(tfh_ctl_is_name(name));
	assert_false(tfh_ctl_is_name("ctl-1.tft"));
	assert_false(tfh_ctl_is_name("r0.ctl-.1.0.tft"));
	assert_false(tfh_ctl_name(name, 1, "../node0"));
	memset(host, 'h', NAME_MAX);
	host[NAME_MAX] = '\0';
	assert_false(tfh_ctl_name(name, 1, host));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_byte),
		cmocka_unit_test(contents),
		cmocka_unit_test(answers),
		cmocka_unit_test(names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
