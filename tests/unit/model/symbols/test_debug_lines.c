/* An instruction's source file and line, from the debug information of this program; only where the
 * build id says that it is the file that ran, and where the line is the function's own. Damaged
 * copies cause no harm. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/symbols/debug_lines.h"
#include "model/symbols/symbols.h"
#include "inlined.h"

enum { LANDMARK_LINE = __LINE__ + 5 };
int tfh_test_marked(int x);
__attribute__((noinline)) int tfh_test_marked(int x)
{
	return x * 3 + 1;
}

/* Called by what is inlined: notes where that is. */
static uint64_t noted;

__attribute__((noinline)) void tfh_test_note(void)
{
	noted = (uint64_t)(uintptr_t)__builtin_return_address(0) - 1;
}

enum { CALL_LINE = __LINE__ + 7 };
int tfh_test_calling(int x);
__attribute__((noinline)) int tfh_test_calling(int x)
{
	int sum = 0;

	for (int i = 0; i < x; i++)
		sum += tfh_test_wrapped(sum);
	return sum;
}

struct own {
	uint64_t address, offset; /* of tfh_test_marked, in the file */
	char build_id[64];
};

static void read_id(const uint8_t *at, const uint8_t *end, char *hex)
{
	while (end - at >= (ptrdiff_t)sizeof(ElfW(Nhdr))) {
		ElfW(Nhdr) h;
		memcpy(&h, at, sizeof(h));
		const uint8_t *id = at + sizeof(h) + ((h.n_namesz + 3) & ~3u);
		for (uint32_t i = 0; h.n_type == NT_GNU_BUILD_ID && i < h.n_descsz && i < 31; i++)
			snprintf(hex + 2 * i, 3, "%02x", id[i]);
		at = id + ((h.n_descsz + 3) & ~3u);
	}
}

static int look(struct dl_phdr_info *info, size_t size, void *data)
{
	struct own *own = data;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *h = &info->dlpi_phdr[i];
		uint64_t at = (uint64_t)(uintptr_t)tfh_test_marked - info->dlpi_addr;
		const uint8_t *note = (const uint8_t *)info->dlpi_addr + h->p_vaddr;
		if (h->p_type == PT_LOAD && at - h->p_vaddr < h->p_memsz)
			own->offset = (own->address = at) - h->p_vaddr + h->p_offset;
		if (h->p_type == PT_NOTE)
			read_id(note, note + h->p_memsz, own->build_id);
	}
	return 1; /* the program comes first */
}

static struct own own(void)
{
	struct own o = {0};

	dl_iterate_phdr(look, &o);
	assert_true(o.offset && *o.build_id);
	return o;
}

static void test_own_line(void **state)
{
	(void)state;
	const struct own o = own();
	char file[TFH_SYMBOLS_FILE];
	uint32_t line = 0;

	struct tfh_symbols *s = tfh_symbols_open("/proc/self/exe", o.build_id, true);
	assert_non_null(s);
	assert_true(tfh_symbols_line(s, o.offset, 0, file, sizeof(file), &line));
	assert_non_null(strstr(file, "tests/unit/model/symbols/test_debug_lines.c"));
	assert_in_range(line, LANDMARK_LINE - 2, LANDMARK_LINE); /* or its head */
	assert_false(tfh_symbols_line(s, UINT64_MAX, 0, file, sizeof(file), &line));
	assert_false(tfh_symbols_line(s, o.offset, 0, file, 5, &line));
	tfh_symbols_close(s);
}

/* Where a header's function was put into another one, the line is that of the outermost call. */
static void test_inlined(void **state)
{
	(void)state;
	const struct own o = own();
	uint64_t begin = (uint64_t)(uintptr_t)tfh_test_calling;
	char file[TFH_SYMBOLS_FILE];
	uint32_t line = 0;

	assert_int_not_equal(tfh_test_calling(1), 0);
	assert_in_range(noted, begin, begin + 400);
	struct tfh_symbols *s = tfh_symbols_open("/proc/self/exe", o.build_id, true);
	assert_non_null(s);
	for (int i = 0; i < 2; i++) {
		assert_true(
			tfh_symbols_line(s, o.offset + noted - (uint64_t)(uintptr_t)tfh_test_marked,
					 noted - begin, file, sizeof(file), &line));
		assert_non_null(strstr(file, "tests/unit/model/symbols/test_debug_lines.c"));
		assert_int_equal(line, CALL_LINE);
	}
	tfh_symbols_close(s);
}

/* Without a build id nobody knows whether it is the file that ran. */
static void test_other_build(void **state)
{
	(void)state;
	const struct own o = own();
	char file[TFH_SYMBOLS_FILE];
	uint32_t line = 7;

	struct tfh_symbols *s = tfh_symbols_open("/proc/self/exe", "", true);
	assert_non_null(s);
	assert_false(tfh_symbols_line(s, o.offset, 0, file, sizeof(file), &line));
	assert_int_equal(line, 7);
	tfh_symbols_close(s);
}

static uint64_t seed = 0x2545f4914f6cdd1dull;

static uint64_t rnd(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static void try(const char *path, const uint8_t *data, size_t size, uint64_t address)
{
	struct tfh_debug_inlined *inlined = NULL;
	struct tfh_debug_lines *d = NULL;
	char file[TFH_SYMBOLS_FILE];
	FILE *f = fopen(path, "w");
	struct tfh_elf e;
	uint32_t line;

	assert_non_null(f);
	fwrite(data, 1, size, f);
	fclose(f);
	if (tfh_elf_open(&e, path, "", true))
		d = tfh_debug_lines_open(&e);
	if (d)
		inlined = tfh_debug_inlined_open(&e);
	for (uint64_t at = address - 200; d && at < address + 200; at += 7) {
		tfh_debug_lines_find(d, at, file, sizeof(file), &line);
		if (inlined)
			tfh_debug_lines_call(d, inlined, at, file, sizeof(file), &line);
	}
	tfh_debug_inlined_close(inlined);
	tfh_debug_lines_close(d);
	tfh_elf_close(&e);
}

/* Where a section is in the file. */
static Elf64_Shdr section_of(const uint8_t *data, const char *name)
{
	Elf64_Ehdr h;
	Elf64_Shdr s, names;

	memcpy(&h, data, sizeof(h));
	memcpy(&names, data + h.e_shoff + h.e_shstrndx * sizeof(names), sizeof(names));
	for (unsigned i = 0; i < h.e_shnum; i++) {
		memcpy(&s, data + h.e_shoff + i * sizeof(s), sizeof(s));
		if (!strcmp((const char *)data + names.sh_offset + s.sh_name, name))
			return s;
	}
	fail();
	return s;
}

static void test_damaged_lines(void **state)
{
	(void)state;
	char path[] = "/tmp/tfh-lines-XXXXXX";
	const struct own o = own();
	FILE *f = fopen("/proc/self/exe", "r");
	size_t most = 16 << 20;
	uint8_t *data = malloc(most), *copy = malloc(most);
	size_t size = fread(data, 1, most, f);
	const Elf64_Shdr section[] = {
		section_of(data, ".debug_line"), section_of(data, ".debug_line_str"),
		section_of(data, ".debug_info"), section_of(data, ".debug_abbrev")};

	fclose(f);
	close(mkstemp(path));
	assert_true(size < most);
	for (int i = 0; i < 400; i++) {
		const Elf64_Shdr *s = &section[i % 4];
		/* The first unit's head, and anywhere. */
		size_t span = i / 4 % 2 && s->sh_size > 300 ? 300 : s->sh_size;
		memcpy(copy, data, size);
		for (int k = 0; k < 6; k++)
			copy[s->sh_offset + rnd() % span] = (uint8_t)rnd();
		try(path, copy, size, o.address);
	}
	unlink(path);
	free(data);
	free(copy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_own_line),
		cmocka_unit_test(test_inlined),
		cmocka_unit_test(test_other_build),
		cmocka_unit_test(test_damaged_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
