/* Functions are found by their offset in an ELF file: this program, and damaged copies of it, which
 * must cause no harm. A file that is not ELF, or that is another build, has no functions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model/symbols/symbols.h"

int tfh_test_landmark(int x);
__attribute__((noinline)) int tfh_test_landmark(int x)
{
	return x * 3 + 1;
}

/* What a compiler makes of a function whose argument is always the same. */
int tfh_test_clone(int x) __asm__("tfh_test_clone.constprop.0");
__attribute__((noinline)) int tfh_test_clone(int x)
{
	return x * 5 + 1;
}

struct place {
	uint64_t address, offset;
};

static int find_place(struct dl_phdr_info *info, size_t size, void *data)
{
	struct place *p = data;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *h = &info->dlpi_phdr[i];
		uint64_t at = p->address - info->dlpi_addr - h->p_vaddr;
		if (h->p_type == PT_LOAD && at < h->p_memsz)
			p->offset = h->p_offset + at;
	}
	return 1; /* the program comes first */
}

static uint64_t offset_of(int (*function)(int))
{
	struct place p = {(uint64_t)(uintptr_t)function, 0};

	dl_iterate_phdr(find_place, &p);
	assert_true(p.offset);
	return p.offset;
}

static uint64_t landmark(void)
{
	return offset_of(tfh_test_landmark);
}

static void test_own(void **state)
{
	(void)state;
	struct tfh_symbols *s = tfh_symbols_open("/proc/self/exe", "", true);
	char name[100];
	uint64_t into;

	assert_non_null(s);
	assert_true(tfh_symbols_find(s, landmark() + 2, name, sizeof(name), &into));
	assert_string_equal(name, "tfh_test_landmark");
	assert_int_equal(into, 2);
	assert_true(tfh_symbols_find(s, offset_of(tfh_test_clone), name, sizeof(name), &into));
	assert_string_equal(name, "tfh_test_clone");
	assert_false(tfh_symbols_find(s, 0, name, sizeof(name), &into));
	assert_false(tfh_symbols_find(s, UINT64_MAX, name, sizeof(name), &into));
	tfh_symbols_close(s);
}

static void test_others(void **state)
{
	(void)state;
	char fifo[] = "/tmp/tfh-symbols-XXXXXX";

	assert_null(tfh_symbols_open("/nowhere", "", true));
	assert_null(tfh_symbols_open("/tmp", "", true));
	assert_null(tfh_symbols_open("/dev/null", "", true));
	assert_null(tfh_symbols_open("/etc/passwd", "", true));
	assert_null(tfh_symbols_open("/proc/self/exe", "00112233445566778899aabbccddeeff00112233",
				     true));
	assert_non_null(mkdtemp(fifo));
	char path[64];
	snprintf(path, sizeof(path), "%s/fifo", fifo);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_null(tfh_symbols_open(path, "", true));
	unlink(path);
	/* somebody else's file: only in a trace that is one's own */
	if (geteuid() == 0) {
		FILE *in = fopen("/proc/self/exe", "r"), *out = fopen(path, "w");
		for (int c; in && out && (c = getc(in)) != EOF;)
			putc(c, out);
		fclose(in);
		fclose(out);
		assert_int_equal(chown(path, 65534, 65534), 0);
		struct tfh_symbols *s = tfh_symbols_open(path, "", true);
		assert_non_null(s);
		tfh_symbols_close(s);
		assert_null(tfh_symbols_open(path, "", false));
		unlink(path);
	}
	rmdir(fifo);
}

/* A file that is cut off while it is read has no more names, and that is all. */
static void test_cut_off(void **state)
{
	(void)state;
	char path[] = "/tmp/tfh-symbols-XXXXXX", name[100];
	FILE *in = fopen("/proc/self/exe", "r"), *out = fdopen(mkstemp(path), "w");
	uint64_t into;

	for (int c; (c = getc(in)) != EOF;)
		putc(c, out);
	fclose(in);
	fclose(out);
	struct tfh_symbols *s = tfh_symbols_open(path, "", true);
	assert_non_null(s);
	assert_int_equal(truncate(path, 100), 0);
	assert_false(tfh_symbols_find(s, landmark(), name, sizeof(name), &into));
	tfh_symbols_close(s);
	unlink(path);
}

static uint64_t seed = 0x2545f4914f6cdd1dull;

static uint64_t rnd(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static void sample(const char *path, const uint8_t *data, size_t size, uint64_t offset)
{
	FILE *f = fopen(path, "w");
	char name[100];
	uint64_t into;

	assert_non_null(f);
	fwrite(data, 1, size, f);
	fclose(f);
	struct tfh_symbols *s = tfh_symbols_open(path, "ab", true);
	if (!s)
		s = tfh_symbols_open(path, "", true);
	if (s)
		tfh_symbols_find(s, offset, name, sizeof(name), &into);
	tfh_symbols_close(s);
}

static void test_damage(void **state)
{
	(void)state;
	char path[] = "/tmp/tfh-symbols-XXXXXX";
	uint64_t offset = landmark();
	FILE *f = fopen("/proc/self/exe", "r");
	size_t most = 4 << 20;
	uint8_t *data = malloc(most), *copy = malloc(most);
	size_t size = fread(data, 1, most, f);

	fclose(f);
	close(mkstemp(path));
	for (int i = 0; i < 40; i++)
		sample(path, data, (size_t)(rnd() % size), offset);
	for (int i = 0; i < 150; i++) {
		Elf64_Ehdr h;
		memcpy(copy, data, size);
		memcpy(&h, data, sizeof(h));
		/* The header, a segment's, a section's: where numbers are places and sizes. */
		size_t from = i % 3 == 0 ? 0 : i % 3 == 1 ? h.e_phoff : h.e_shoff;
		size_t span = i % 3 == 0   ? sizeof(h)
			      : i % 3 == 1 ? h.e_phnum * sizeof(Elf64_Phdr)
					   : h.e_shnum * sizeof(Elf64_Shdr);
		for (int k = 0; k < 4 && from + span <= size; k++)
			copy[from + rnd() % span] = (uint8_t)rnd();
		sample(path, copy, size, offset);
	}
	unlink(path);
	free(data);
	free(copy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_own),
		cmocka_unit_test(test_others),
		cmocka_unit_test(test_cut_off),
		cmocka_unit_test(test_damage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
