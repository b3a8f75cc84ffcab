/* Looking up functions in an object in memory finds what the loader finds, in objects whose tables
 * the loader has relocated (libc) and in one that it could not write to (the kernel's); no
 * variables, no names that the object only uses, and nothing in an object without tables. */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>
#include <cmocka.h>

#include "base/arch.h"
#include "base/elf_tables.h"

static void tables_of(struct tfh_elf_tables *t, const char *library)
{
	struct link_map *map;
	void *opened = dlopen(library, RTLD_NOW | RTLD_NOLOAD);

	assert_non_null(opened);
	assert_int_equal(dlinfo(opened, RTLD_DI_LINKMAP, &map), 0);
	tfh_elf_tables(t, map->l_addr, map->l_ld);
	dlclose(opened);
}

static void test_libc(void **state)
{
	/* of which no sanitizer has its own */
	static const char *const names[] = {"gnu_get_libc_version", "lfind", "l64a", "wcwidth",
					    "swab"};
	struct tfh_elf_tables t;

	(void)state;
	tables_of(&t, "libc.so.6");
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		assert_ptr_equal(tfh_elf_function(&t, names[i]), dlsym(RTLD_DEFAULT, names[i]));
	assert_null(tfh_elf_function(&t, "environ"));
	assert_null(tfh_elf_function(&t, "__tls_get_addr"));
	assert_null(tfh_elf_function(&t, "no_such_function"));
}

static void test_kernel(void **state)
{
	uintptr_t object = getauxval(AT_SYSINFO_EHDR);
	const ElfW(Ehdr) *header = (const ElfW(Ehdr) *)object;
	struct tfh_elf_tables t;
	void *found;

	(void)state;
	if (!object)
		skip();
	tfh_elf_tables_of(&t, object, (const ElfW(Phdr) *)(object + header->e_phoff),
			  header->e_phnum);
	found = tfh_elf_function(&t, TFH_ARCH_KERNEL_CLOCK);
	assert_in_range((uintptr_t)found, object, object + 65536);
}

static void test_nothing(void **state)
{
	struct tfh_elf_tables t;

	(void)state;
	tfh_elf_tables_of(&t, 0, NULL, 0);
	assert_null(tfh_elf_function(&t, "malloc"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_libc),
		cmocka_unit_test(test_kernel),
		cmocka_unit_test(test_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
