#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "base/elf_tables.h"
#include "base/fd.h"

uint8_t tfh_clock_counter;
tfh_clock_read_fn tfh_clock_read = clock_gettime;

/* The kernel maps its functions into every process, as an ELF object (vdso(7)). A debugger like
 * valgrind hides it; in kernels before 3.16 it has addresses of its own, which table_at() does not
 * expect. */
static void find_kernel_clock(void)
{
	uintptr_t object = getauxval(AT_SYSINFO_EHDR);
	const ElfW(Ehdr) *header = (const ElfW(Ehdr) *)object;
	const ElfW(Phdr) * headers;
	struct tfh_elf_tables tables;
	void *found;

	if (!object)
		return;
	headers = (const ElfW(Phdr) *)(object + header->e_phoff);
	if (!header->e_phnum || headers[0].p_type != PT_LOAD || headers[0].p_vaddr)
		return;
	tfh_elf_tables_of(&tables, object, headers, header->e_phnum);
	found = tfh_elf_function(&tables, TFH_ARCH_KERNEL_CLOCK);
	if (found)
		__atomic_store_n(&tfh_clock_read, (tfh_clock_read_fn)found, __ATOMIC_RELAXED);
}

static void read_clocksource(char *text, size_t size)
{
	int fd = tfh_open("/sys/devices/system/clocksource/clocksource0/current_clocksource",
			  O_RDONLY | O_CLOEXEC);
	ssize_t n = 0;

	if (fd >= 0) {
		n = tfh_read(fd, text, size - 1);
		tfh_close(fd);
	}
	text[n > 0 ? n : 0] = '\0';
	text[strcspn(text, "\n")] = '\0';
}

enum tfh_clock_trust tfh_clock_judge(bool invariant, const char *clocksource)
{
	/* The processor's flag is not enough: the kernel does not use the counters if it saw them
	 * differ between sockets. */
	if (!invariant)
		return TFH_TRUST_NONE;
	if (!strcmp(clocksource, "tsc") || !strcmp(clocksource, "arch_sys_counter"))
		return TFH_TRUST_FULL;
	if (!strcmp(clocksource, "kvm-clock") ||
	    !strcmp(clocksource, "hyperv_clocksource_tsc_page"))
		return TFH_TRUST_PROVISIONAL;
	return TFH_TRUST_NONE;
}

static void clock_decide(struct tfh_clock_info *info)
{
	memset(info, 0, sizeof(*info));
	info->invariant = tfh_arch_counts_evenly();
	read_clocksource(info->clocksource, sizeof(info->clocksource));
	info->trust = tfh_clock_judge(info->invariant, info->clocksource);
	info->source = info->trust ? TFH_ARCH_CLOCK : TFH_CLOCK_MONOTONIC;
}

/* No thread waits for another thread's reading: each takes its own, and the first to finish
 * decides. */
void tfh_clock_init(struct tfh_clock_info *info)
{
	static struct tfh_clock_info kept;
	static uint32_t decided; /* atomic: 0 none, else 1 + enum tfh_clock_source */
	static uint32_t there;	 /* atomic: `kept` is valid */
	struct tfh_clock_info mine;
	uint32_t source = 0;
	int saved = errno;

	if (!__atomic_load_n(&there, __ATOMIC_ACQUIRE)) {
		find_kernel_clock();
		clock_decide(&mine);
		if (__atomic_compare_exchange_n(&decided, &source, 1 + mine.source, false,
						__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
			kept = mine;
			__atomic_store_n(&there, 1, __ATOMIC_RELEASE);
		} else {
			mine.source = source - 1;
		}
		tfh_clock_counter = mine.source != TFH_CLOCK_MONOTONIC;
		if (info)
			*info = mine;
		errno = saved;
	} else if (info) {
		*info = kept;
	}
}

void tfh_clock_read_pair(struct tfh_clock_pair *pair)
{
	pair->bracket = UINT64_MAX;
	for (int i = 0; i < TFH_CLOCK_TRIES; i++) {
		uint64_t t0 = tfh_ticks();
		int64_t mono = tfh_clock_ns(CLOCK_MONOTONIC);
		uint64_t t1 = tfh_ticks();
		int64_t real = tfh_clock_ns(CLOCK_REALTIME);
		uint64_t t2 = tfh_ticks();

		if (t2 - t0 < pair->bracket) {
			pair->bracket = t2 - t0;
			pair->ticks = t0 + (t1 - t0) / 2;
			pair->mono_ns = mono;
			/* About 20 ns later than the other two, far below the accuracy of REALTIME
			 * between hosts. */
			pair->real_ns = real;
		}
	}
}

double tfh_clock_ns_per_tick(const struct tfh_clock_pair *a, const struct tfh_clock_pair *b)
{
	if (b->ticks == a->ticks)
		return 0;
	return (double)(b->mono_ns - a->mono_ns) / (double)(int64_t)(b->ticks - a->ticks);
}
