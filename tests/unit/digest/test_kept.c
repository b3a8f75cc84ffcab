/*
 * What a digest keeps of a result: every member has a row; values of any kind come back as they were; and whatever a file holds in
 * their place is refused, or can be printed in every form without harm.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <cmocka.h>

#include "digest_fixture.h"
#include "digest/digest_out.h"
#include "digest/digest_restore.h"
#include "digest/kept.h"
#include "report/page/html_page.h"

static uint64_t drawn = 1;

static uint32_t draw(uint32_t below)
{
	drawn = drawn * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(drawn >> 33) % below;
}

/* ---- every member has a row ---- */

static void cover(uint8_t *seen, size_t at, size_t n)
{
	for (size_t i = at; i < at + n; i++) {
		assert_int_equal(seen[i], 0); /* two rows of one member */
		seen[i] = 1;
	}
}

/* What is no row's is padding, up to a multiple of 2, 4 or 8: a member without a row is found unless it fits into such. `apart`:
 * members that are kept elsewhere. */
static void is_whole(const struct tfh_kept_type *t, const size_t (*apart)[2], size_t n_apart)
{
	uint8_t *seen = calloc(1, t->size + 1);
	size_t from = 0;

	for (uint32_t i = 0; i < t->n; i++) {
		const struct tfh_kept_field *f = &t->field[i];
		bool pointer = f->form == TFH_KEPT_TEXT || f->form == TFH_KEPT_MAYBE ||
			       f->form >= TFH_KEPT_LIST;
		assert_true(!i || f->number > t->field[i - 1].number);
		/* whose bound is not checked */
		assert_true(!f->most || (f->form != TFH_KEPT_SIGNED && f->form != TFH_KEPT_REAL));
		cover(seen, f->offset,
		      pointer			   ? sizeof(void *)
		      : f->form == TFH_KEPT_STRUCT ? f->count * f->of->size
						   : (size_t)f->count * f->size);
		if (f->form >= TFH_KEPT_LIST)
			cover(seen, f->count_offset, sizeof(uint32_t));
		if (f->of)
			is_whole(f->of, NULL, 0);
	}
	for (size_t i = 0; i < n_apart; i++)
		cover(seen, apart[i][0], apart[i][1]);
	seen[t->size] = 1;
	for (size_t i = 0; i <= t->size; i++) {
		bool padding = (from + 1) / 2 * 2 == i || (from + 3) / 4 * 4 == i ||
			       (from + 7) / 8 * 8 == i;
		if (seen[i] && i > from && !padding)
			fail_msg("bytes %zu to %zu of a struct of %zu have no row", from, i - 1,
				 t->size);
		from = seen[i] ? i + 1 : from;
	}
	free(seen);
}

#define MEMBER(m)                                                                                  \
	{                                                                                          \
		offsetof(struct tfh_result, m), sizeof(((struct tfh_result *)0)->m)                \
	}

static void every_member(void **state)
{
	static const size_t apart[][2] = {MEMBER(run),	      MEMBER(step),   MEMBER(n_step),
					  MEMBER(step_cause), MEMBER(need_s), MEMBER(late)};
	const struct tfh_kept_field *r = &tfh_kept_type.field[0];
	struct tfh_kept_type rest = {tfh_kept_type.field + 1, tfh_kept_type.n - 1,
				     tfh_kept_type.size};
	const size_t result[][2] = {{r->offset, r->of->size}};

	(void)state;
	is_whole(r->of, apart, sizeof(apart) / sizeof(*apart));
	is_whole(&rest, result, 1);
}

/* ---- and comes back ---- */

static const char *some_text(struct tfh_arena *arena)
{
	static const char *const text[] = {
		"",	   "a", "train.py", "/usr/lib/x.py", "a\x1b[1m\n", "Iterator::Root::Map",
		"<string>"};

	return tfh_arena_strdup(arena, text[draw(sizeof(text) / sizeof(*text))]);
}

static uint64_t some_number(const struct tfh_kept_field *f)
{
	static const double real[] = {0, 0.5, 1e-3, -1, 1e300, 7};
	uint64_t x = draw(8) ? draw(3) : ((uint64_t)draw(1u << 31) << 32 | draw(1u << 31));
	double d = draw(4) ? real[draw(6)] : NAN;
	float s = (float)d;

	if (f->form == TFH_KEPT_REAL) {
		memcpy(&x, f->size == 8 ? (void *)&d : (void *)&s, f->size);
		return x;
	}
	if (f->form == TFH_KEPT_MEMBER)
		return f->maybe_none ? (uint64_t)draw((uint32_t)f->most + 1) - 1
				     : draw((uint32_t)f->most);
	return f->most ? x % (f->most + 1) : x;
}

static void fill(const struct tfh_kept_type *t, char *to, struct tfh_arena *arena, bool first)
{
	for (uint32_t i = 0; i < t->n; i++) {
		const struct tfh_kept_field *f = &t->field[i];
		char *at = to + f->offset;
		uint32_t n = first ? 2 + draw(2) : draw(3);
		const char *text = some_text(arena);
		void *list = tfh_arena_array(arena, 4, f->of ? f->of->size : 8);
		if (f->form == TFH_KEPT_MAYBE && !draw(4))
			text = NULL;
		switch (f->form) {
		case TFH_KEPT_TEXT:
		case TFH_KEPT_MAYBE:
			memcpy(at, &text, sizeof(text));
			break;
		case TFH_KEPT_STRUCT:
			for (uint32_t k = 0; k < f->count; k++)
				fill(f->of, at + k * f->of->size, arena, false);
			break;
		case TFH_KEPT_LIST:
		case TFH_KEPT_TEXTS:
		case TFH_KEPT_REALS:
			for (uint32_t k = 0; k < n && f->form == TFH_KEPT_LIST; k++)
				fill(f->of, (char *)list + k * f->of->size, arena, false);
			for (uint32_t k = 0; k < n && f->form == TFH_KEPT_TEXTS; k++)
				((const char **)list)[k] = some_text(arena);
			memcpy(at, &list, sizeof(list));
			memcpy(to + f->count_offset, &n, sizeof(n));
			break;
		default:
			for (uint32_t k = 0; k < f->count; k++) {
				uint64_t x = some_number(f);
				memcpy(at + (size_t)k * f->size, &x, f->size);
			}
		}
	}
}

/* Both or none. */
static void name(const char **a, const char **b)
{
	*a = *b ? *a : NULL;
	*b = *a ? *b : NULL;
}

static void set_line(struct tfh_seen_line *l)
{
	name(&l->file, &l->function);
	name(&l->callee, &l->callee_file);
	name(&l->through.file, &l->through.function);
	for (uint32_t i = 0; i < l->n_caller; i++) {
		name(&l->caller[i].file, &l->caller[i].function);
		if (!l->caller[i].file)
			l->n_caller = i;
	}
}

static void set_node(struct tfh_seen_node *node, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		node[i].parent %= i + 1;
		node[i].s_per_step = node[i].own_s = draw(100) * 1e-3;
		name(&node[i].file, &node[i].function);
	}
}

/* A tree's parents lie before their parts, and the number of what is made of a list is not drawn. */
static void make_sound(struct tfh_kept *k)
{
	struct tfh_result *r = &k->r;

	r->process %= k->n_process;
	for (uint32_t i = 0; i < k->n_thread; i++)
		k->thread[i].process %= k->n_process;
	for (uint32_t i = 0; i < k->n_flight; i++)
		k->flight[i].process %= k->n_process;
	for (uint32_t i = 0; i < r->n_rank; i++)
		r->rank[i].process %= k->n_process;
	for (uint32_t i = 0; i < r->n_generation; i++) {
		r->generation[i].process %= k->n_process;
		name(&r->generation[i].file, &r->generation[i].function);
	}
	for (uint32_t i = 0; i < r->n_tree; i++)
		r->tree[i].parent = i ? r->tree[i].parent % i : 0;
	for (uint32_t i = 0; i < r->n_whatif; i++)
		if (r->whatif[i].remove == TFH_REMOVE_NONE)
			r->whatif[i].remove = TFH_REMOVE_INPUT;
	r->heap.peak %= 1ull << 60;
	for (uint32_t i = 0; i < TFH_HEAP_POINTS; i++)
		r->heap.line[i] = r->heap.peak ? r->heap.line[i] % r->heap.peak : 0;
	set_node(r->found.node, r->found.n_node);
	set_node(r->found.workers.node, r->found.workers.n_node);
	set_line(&r->found.line);
	set_line(&r->found.new_pool);
	name(&r->found.workers.line.file, &r->found.workers.line.function);
	for (uint32_t i = 0; i < 2; i++)
		for (uint32_t l = 0; l < r->found.start[i].n_line; l++)
			name(&r->found.start[i].line[l].file, &r->found.start[i].line[l].function);
	r->lead = r->n_recurring ? r->lead % r->n_recurring : 0;
	r->line_place = r->n_place ? r->line_place % r->n_place : 0;
}

static void same_again(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 200; i++) {
		struct tfh_arena arena;
		struct tfh_kept *k, *back;
		void *a, *b;
		size_t n, m;

		drawn = i + 1;
		tfh_arena_init(&arena, 0);
		k = tfh_arena_alloc(&arena, sizeof(*k));
		back = tfh_arena_alloc(&arena, sizeof(*back));
		fill(&tfh_kept_type, (char *)k, &arena, true);
		assert_int_equal(tfh_kept_pack(&tfh_kept_type, k, &a, &n), 0);
		assert_int_equal(tfh_kept_unpack(&tfh_kept_type, a, n, back, &arena), 0);
		assert_int_equal(tfh_kept_pack(&tfh_kept_type, back, &b, &m), 0);
		assert_int_equal(n, m);
		assert_memory_equal(a, b, n);
		assert_int_equal(back->r.n_kernels, k->r.n_kernels);
		assert_true(back->r.end == k->r.end && back->r.heap.line[9] == k->r.heap.line[9]);
		free(a);
		free(b);
		tfh_arena_free(&arena);
	}
}

/* ---- whatever a file holds ---- */

/* In memory: each of some hundred files is written through. */
static char path[] = "/dev/shm/tfhook_kept_test.XXXXXX";

static void write_file(const void *message, size_t n)
{
	const struct tfh_digest_rank rank = {.unit = 1024, .steps = 30, .tier = 'A'};
	struct tfh_digest_step step[30];
	struct tfh_digest_out o = {.w = NULL};
	struct tfh_digest_key key;

	memset(step, 0, sizeof(step));
	for (uint32_t i = 0; i < 30; i++) {
		step[i].index = i;
		step[i].compute = 1000 + i;
		step[i].segment = TFH_SEGMENT_TRAIN + 1;
		step[i].cls = (uint8_t)draw(TFH_CLASS_COUNT + 1);
	}
	unlink(path);
	assert_int_equal(tft_writer_create(path, NULL, &empty_head, &o.w), 0);
	assert_int_equal(tfh_digest_put(&o, TFT_DSTP, &tfh_digest_steps, step, 30), 0);
	assert_int_equal(tfh_digest_put(&o, TFT_DRNK, &tfh_digest_ranks, &rank, 1), 0);
	assert_int_equal(tft_write_chunk(o.w, TFT_DRES, message, (uint32_t)n), 0);
	key.name = tfh_digest_add_text(&o, "digest");
	key.value = tfh_digest_add_text(&o, "tfhook.digest/1");
	assert_int_equal(tfh_digest_put(&o, TFT_DKEY, &tfh_digest_keys, &key, 1), 0);
	tfh_digest_out_free(&o);
	assert_int_equal(tft_writer_finish(o.w, true), 0);
}

static void print_all(const struct tfh_result *r)
{
	const struct tfh_shown shown = {.n = 0};
	static const struct tfh_style style[] = {{.columns = 80, .every = true, .wide = true},
						 {.columns = 40, .utf8 = true, .color = true}};
	struct tfh_wording words;
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	tfh_wording_make(&words, r);
	for (int i = 0; i < 2; i++) {
		tfh_report_screen(out, &words, &style[i]);
		tfh_report_text(out, &words, &style[i]);
		for (size_t k = 0; k < tfh_section_count; k++)
			tfh_report_section(out, &words, &style[i], &tfh_sections[k]);
	}
	tfh_report_why(out, &words, &style[0], "gain");
	tfh_report_why(out, &words, &style[0], "verdict");
	tfh_report_where_text(out, r, &style[0]);
	tfh_report_where_folded(out, r);
	tfh_report_steps_text(out, r);
	assert_int_equal(tfh_report_json(out, &words), 0);
	assert_int_equal(tfh_report_page(out, &words, &shown, NULL), 0);
	tfh_wording_free(&words);
	fclose(out);
	free(text);
}

/* Returns whether it was taken. */
static bool restore(const void *message, size_t n)
{
	struct tfh_run_digest *d;
	struct tfh_result *r;
	struct tfh_run *run;
	struct tfh_err err = {0};

	write_file(message, n);
	assert_int_equal(tfh_digest_open(path, &d, NULL), 0);
	int rc = tfh_digest_restore(d, &run, &r, &err);
	if (!rc) {
		assert_int_equal(r->n_step, 30);
		print_all(r);
		tfh_result_free(r);
		tfh_run_close(run);
	} else {
		assert_true(*err.text);
	}
	tfh_digest_close(d);
	return !rc;
}

static void any_values(void **state)
{
	uint32_t taken = 0;

	(void)state;
	for (uint32_t i = 0; i < 25; i++) {
		struct tfh_arena arena;
		struct tfh_kept *k;
		void *message;
		size_t n;

		drawn = 1000 + i;
		tfh_arena_init(&arena, 0);
		k = tfh_arena_alloc(&arena, sizeof(*k));
		fill(&tfh_kept_type, (char *)k, &arena, true);
		make_sound(k);
		assert_int_equal(tfh_kept_pack(&tfh_kept_type, k, &message, &n), 0);
		assert_true(restore(message, n));
		for (uint32_t change = 0; change < 4; change++) {
			((uint8_t *)message)[draw((uint32_t)n)] ^= (uint8_t)(1u << draw(8));
			taken += restore(message, change % 4 ? n : draw((uint32_t)n));
		}
		free(message);
		tfh_arena_free(&arena);
	}
	assert_true(taken > 2); /* else the test tests little */
}

/* A prediction says what it is without: reports look that up. */
static void without_nothing(void **state)
{
	struct tfh_arena arena;
	struct tfh_kept *k;
	void *message;
	size_t n;

	(void)state;
	drawn = 1;
	tfh_arena_init(&arena, 0);
	k = tfh_arena_alloc(&arena, sizeof(*k));
	fill(&tfh_kept_type, (char *)k, &arena, true);
	make_sound(k);
	k->r.n_whatif = 1;
	k->r.whatif[0].remove = TFH_REMOVE_NONE;
	assert_int_equal(tfh_kept_pack(&tfh_kept_type, k, &message, &n), 0);
	assert_false(restore(message, n));
	free(message);
	tfh_arena_free(&arena);
}

int main(void)
{
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	/* A value that makes a report endless must not take the machine's memory. */
	setrlimit(RLIMIT_AS, &(struct rlimit){1ul << 31, 1ul << 31});
#endif
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_member), cmocka_unit_test(same_again),
		cmocka_unit_test(any_values), cmocka_unit_test(without_nothing)};
	int fd = mkstemp(path);

	close(fd);
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	return failed;
}
