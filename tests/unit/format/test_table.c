/* Tables are read as they were written, with texts, clock readings and spans. Any other payload is
 * rejected or read within its bounds. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "format/table.h"

#define N 1000u

static uint64_t state = 88172645463325252ull;

static uint64_t any(void) /* xorshift64 (Marsaglia 2003) */
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static const char heap[] = "\0spin\0gemm";
static const struct tft_table_pair pairs[] = {{10, 1795298355240978018ull},
					      {20, 1795298356240978018ull}};
static const struct tft_gpu_span spans[] = {{5, 25, TFT_GPU_SPAN_NODES}};
static const struct tft_table_extra extra = {.heap = heap,
					     .heap_bytes = sizeof(heap),
					     .pair = pairs,
					     .pairs = 2,
					     .span = spans,
					     .spans = 1};

static void *make(const struct tft_table *t, const void *rows, uint32_t n,
		  const struct tft_table_extra *e, size_t *len)
{
	size_t bound = tft_table_bound(t, n, e);
	void *out = malloc(bound);

	assert_non_null(out);
	*len = tft_table_pack(t, rows, n, e, out);
	assert_true(*len <= bound);
	return out;
}

static void random_rows(struct tft_gpu_row *row)
{
	uint64_t now = 1795298355240978018ull;

	memset(row, 0, N * sizeof(*row));
	for (uint32_t i = 0; i < N; i++) {
		now += any() % 100000;
		row[i].start = now;
		row[i].end = now + any() % 1000000;
		row[i].correlation = i * 3;
		row[i].kind = (uint8_t)(1 + any() % 3);
		row[i].name = row[i].kind == 1 ? 1 + 5 * (uint32_t)(any() % 2) : 0;
		row[i].bytes = row[i].kind == 1 ? 0 : any() >> any() % 64;
		row[i].node = any() % 2 ? any() : 0;
		row[i].device = (uint8_t)(any() % 8);
	}
}

/* A column read alone says what the rows say. */
static void assert_columns(const struct tft_table_view *v, const struct tft_table *t,
			   const void *rows)
{
	uint64_t values[N], same;

	for (uint32_t c = 0; c < t->columns; c++) {
		const struct tft_table_column *col = &t->column[c];
		bool differ = tft_table_values(v, col->id, values, &same);
		for (uint32_t i = 0; i < v->rows; i++) {
			uint64_t want = 0;
			memcpy(&want, (const char *)rows + (size_t)i * t->row_bytes + col->offset,
			       col->size);
			assert_int_equal(differ ? values[i] : same, want);
		}
	}
	assert_false(tft_table_values(v, 99, values, &same));
	assert_int_equal(same, 0);
	if (t != &tft_gpus && t != &tft_drvr)
		return;
	uint64_t ends[N];
	tft_table_times(v, values, ends);
	for (uint32_t i = 0; i < v->rows; i++) {
		const char *row = (const char *)rows + (size_t)i * t->row_bytes;
		assert_memory_equal(&values[i], row + t->column[0].offset, sizeof(*values));
		assert_memory_equal(&ends[i], row + t->column[1].offset, sizeof(*ends));
	}
}

static void test_gpus(void **unused)
{
	static struct tft_gpu_row in[N], out[N];
	struct tft_table_view v;
	size_t len;
	void *payload;

	(void)unused;
	random_rows(in);
	payload = make(&tft_gpus, in, N, &extra, &len);
	assert_int_equal(tft_table_open(&v, payload, len), 0);
	assert_int_equal(v.rows, N);
	assert_int_equal(tft_table_rows(&v, &tft_gpus, out), 0);
	assert_columns(&v, &tft_gpus, out);
	for (uint32_t i = 0; i < N; i++)
		assert_memory_equal(&in[i], &out[i], sizeof(in[i]));
	assert_string_equal(tft_table_text(&v, 1), "spin");
	assert_string_equal(tft_table_text(&v, 6), "gemm");
	assert_string_equal(tft_table_text(&v, 0), "");
	assert_string_equal(tft_table_text(&v, 100000), "");
	assert_int_equal(v.pairs, 2);
	assert_int_equal(tft_table_pair_at(&v, 1).ns, pairs[1].ns);
	assert_int_equal(tft_table_pair_at(&v, 2).ns, 0);
	assert_int_equal(v.spans, 1);
	assert_int_equal(tft_table_span_at(&v, 0).last, 25);
	free(payload);
}

static void test_drvr(void **unused)
{
	static struct tft_drvr_row in[N], out[N];
	const struct tft_table_extra none = {0};
	struct tft_table_view v;
	size_t len;
	void *payload;

	(void)unused;
	for (uint32_t i = 0; i < N; i++) {
		memset(&in[i], 0, sizeof(in[i]));
		in[i].start = any();
		in[i].end = any();
		in[i].correlation = (uint32_t)any();
		in[i].tid = (uint32_t)any();
		in[i].callback = (uint32_t)(any() % 800);
	}
	payload = make(&tft_drvr, in, N, &none, &len);
	assert_int_equal(tft_table_open(&v, payload, len), 0);
	assert_int_equal(tft_table_rows(&v, &tft_drvr, out), 0);
	assert_columns(&v, &tft_drvr, out);
	for (uint32_t i = 0; i < N; i++)
		assert_memory_equal(&in[i], &out[i], sizeof(in[i]));
	assert_string_equal(tft_table_text(&v, 0), "");
	free(payload);
}

/* Ends that are where the starts are, and ends as they were once written, each by the one before.
 */
static void test_ends(void **unused)
{
	static struct tft_gpu_row in[N], out[N];
	struct tft_table_column column[TFT_TABLE_SECTIONS_MAX];
	const struct tft_table old = {column, tft_gpus.columns, tft_gpus.row_bytes};

	(void)unused;
	memcpy(column, tft_gpus.column, tft_gpus.columns * sizeof(*column));
	assert_int_equal(column[1].id, TFT_GPUS_END);
	column[1].transform = column[0].transform;
	random_rows(in);
	for (int k = 0; k < 4; k++) {
		const struct tft_table *t = k % 2 ? &old : &tft_gpus;
		struct tft_table_view v;
		size_t len;
		void *payload = make(t, in, N, &extra, &len);
		assert_int_equal(tft_table_open(&v, payload, len), 0);
		assert_int_equal(tft_table_rows(&v, &tft_gpus, out), 0);
		assert_columns(&v, &tft_gpus, out);
		for (uint32_t i = 0; i < N; i++)
			assert_memory_equal(&in[i], &out[i], sizeof(in[i]));
		free(payload);
		for (uint32_t i = 0; i < N && k == 1; i++)
			in[i].end = in[i].start;
	}
}

/* Few rows, with all kinds of planes: none that differs, only in the first row, several. */
static void test_few(void **unused)
{
	(void)unused;
	for (uint32_t n = 1; n <= 5; n++)
		for (uint32_t kind = 0; kind < 40; kind++) {
			struct tft_gpu_row in[5] = {{0}}, out[5];
			struct tft_table_view v;
			size_t len;
			for (uint32_t i = 0; i < n; i++) {
				in[i].start = kind % 4 == 0   ? 0
					      : kind % 4 == 1 ? 7 + i * 3ull
							      : any() >> kind;
				in[i].end =
					kind % 3 ? in[i].start + kind * (i == 1) : any() >> kind;
				in[i].grid = i ? kind / 8 : any();
				in[i].bytes = i % 2 ? any() >> kind : 1ull << 40;
				in[i].node = kind % 5 ? 5 * i : 0;
			}
			void *payload = make(&tft_gpus, in, n, &extra, &len);
			assert_int_equal(tft_table_open(&v, payload, len), 0);
			assert_int_equal(tft_table_rows(&v, &tft_gpus, out), 0);
			assert_memory_equal(in, out, n * sizeof(*in));
			assert_columns(&v, &tft_gpus, out);
			free(payload);
		}
}

/* Spans and clock readings come without rows, too. */
static void test_empty(void **unused)
{
	struct tft_table_view v;
	size_t len;
	void *payload = make(&tft_gpus, NULL, 0, &extra, &len);

	(void)unused;
	assert_int_equal(tft_table_open(&v, payload, len), 0);
	assert_int_equal(v.rows, 0);
	assert_int_equal(v.spans, 1);
	free(payload);
}

static void test_damage(void **unused)
{
	static struct tft_gpu_row in[N];
	struct tft_table_view v;
	size_t len;
	uint8_t *payload, *copy;

	(void)unused;
	random_rows(in);
	payload = make(&tft_gpus, in, 50, &extra, &len);
	for (size_t cut = 0; cut < len;
	     cut++) { /* exact size, so that a sanitizer sees overreach */
		copy = malloc(cut + 1);
		memcpy(copy, payload, cut);
		copy = realloc(copy, cut ? cut : 1);
		assert_int_equal(tft_table_open(&v, copy, cut), -EBADMSG);
		free(copy);
	}
	for (int i = 0; i < 20000; i++) {
		copy = malloc(len);
		memcpy(copy, payload, len);
		for (int k = 0; k < 4; k++)
			copy[any() % (i % 2 ? len : 400)] = (uint8_t)any();
		if (!tft_table_open(&v, copy, len)) {
			struct tft_gpu_row *rows = calloc(v.rows + 1, sizeof(*rows));
			assert_non_null(rows);
			tft_table_rows(&v, &tft_gpus, rows);
			uint64_t *values = calloc(v.rows + 1, sizeof(*values)), same;
			assert_non_null(values);
			for (uint32_t c = 0; c < tft_gpus.columns; c++)
				tft_table_values(&v, tft_gpus.column[c].id, values, &same);
			uint64_t *ends = calloc(v.rows + 1, sizeof(*ends));
			assert_non_null(ends);
			tft_table_times(&v, values, ends);
			free(ends);
			free(values);
			for (uint32_t r = 0; r < v.rows; r++)
				assert_true(strlen(tft_table_text(&v, rows[r].name)) < len);
			free(rows);
		}
		free(copy);
	}
	free(payload);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_few),   cmocka_unit_test(test_gpus),
		cmocka_unit_test(test_drvr),  cmocka_unit_test(test_ends),
		cmocka_unit_test(test_empty), cmocka_unit_test(test_damage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
