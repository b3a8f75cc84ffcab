/* Facts about device times come from several threads at the same time and are all written, each
 * once and complete, whatever one file already has. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "format/tft_read.h"
#include "format/tft_write.h"
#include "record/gpu/gpu.h"

#define THREADS 8
#define EACH 4 /* as many as there is room for */

static pthread_barrier_t together;

static void *tell(void *arg)
{
	pthread_barrier_wait(&together);
	for (int i = 0; i < EACH; i++)
		tfh_gpu_fact("gpu.of.%d.%d=told", (int)(intptr_t)arg, i);
	return arg;
}

/* How often each fact stands in the file. */
static void count(const char *path, unsigned *n)
{
	struct tft_reader *r;
	const void *data;
	char text[8192], fact[64];
	size_t len;

	assert_int_equal(tft_open(path, &r, NULL), 0);
	for (uint32_t c = 0; c < tft_chunk_count(r); c++) {
		if (tft_chunk(r, c)->type != TFT_NOTE)
			continue;
		assert_int_equal(tft_chunk_payload(r, c, &data, &len, NULL), 0);
		assert_true(len < sizeof(text));
		memcpy(text, data, len);
		text[len] = '\0';
		for (int i = 0; i < THREADS * EACH; i++) {
			snprintf(fact, sizeof(fact), "gpu.of.%d.%d=told\n", i / EACH, i % EACH);
			for (char *at = text; (at = strstr(at, fact)); at++)
				n[i]++;
		}
	}
	tft_close(r);
}

static void test_all_are_written(void **state)
{
	(void)state;
	for (int round = 0; round < 200; round++) {
		char path[] = "/tmp/tfh-notes-XXXXXX";
		struct tft_head head = {
			.version = TFT_VERSION, .host = "h", .exe = "", .command = ""};
		unsigned n[THREADS * EACH] = {0};
		pthread_t thread[THREADS];
		struct tft_writer *w;

		assert_true(mkdtemp(path) != NULL);
		char file[64];
		snprintf(file, sizeof(file), "%s/a.tft", path);
		assert_int_equal(tft_writer_create(file, NULL, &head, &w), 0);
		tfh_gpu_forget_notes();
		pthread_barrier_init(&together, NULL, THREADS);
		for (intptr_t i = 0; i < THREADS; i++)
			assert_int_equal(pthread_create(&thread[i], NULL, tell, (void *)i), 0);
		for (int i = 0; i < THREADS; i++)
			pthread_join(thread[i], NULL);
		assert_int_equal(tfh_gpu_put_notes(w, 0, false), 0);
		assert_int_equal(tfh_gpu_put_notes(w, 0, false), 0);
		assert_int_equal(tft_writer_finish(w, true), 0);
		count(file, n);
		for (int i = 0; i < THREADS * EACH; i++)
			assert_int_equal(n[i], 1);
		pthread_barrier_destroy(&together);
		unlink(file);
		rmdir(path);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_all_are_written)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
