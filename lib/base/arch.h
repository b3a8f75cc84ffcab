/*
 * What differs between the processors that tfhook runs on. The rest is in hook/x86_64.inc and
 * hook/aarch64.inc (entries of hooks, in assembly), and glibc/2.17-*.abi (symbols of glibc).
 */
#ifndef TFH_BASE_ARCH_H
#define TFH_BASE_ARCH_H

#if defined(__x86_64__)

#define TFH_ARCH_ELF EM_X86_64
#define TFH_ARCH_CLOCK TFH_CLOCK_TSC
/* The kernel's own clock_gettime(), vdso(7). */
#define TFH_ARCH_KERNEL_CLOCK "__vdso_clock_gettime"
#define TFH_ARCH_FOLDER "lib/x86_64-linux-gnu"
/* The version of glibc's oldest symbols. */
#define TFH_ARCH_GLIBC "GLIBC_2.2.5"
/* Registers with integer arguments of a function. */
#define TFH_ARCH_ARGS 6
/* A process has nothing from this address on. */
#define TFH_ARCH_ADDRESSES (1ull << 47)

#elif defined(__aarch64__)

#define TFH_ARCH_ELF EM_AARCH64
#define TFH_ARCH_CLOCK TFH_CLOCK_CNTVCT
#define TFH_ARCH_KERNEL_CLOCK "__kernel_clock_gettime"
#define TFH_ARCH_FOLDER "lib/aarch64-linux-gnu"
#define TFH_ARCH_GLIBC "GLIBC_2.17"
#define TFH_ARCH_ARGS 8
#define TFH_ARCH_ADDRESSES (1ull << 48)

#else
#error "tfhook is for x86-64 and AArch64"
#endif

#ifndef __ASSEMBLER__

#include <stdbool.h>
#include <stdint.h>

#if defined(__x86_64__)

#include <cpuid.h>
#include <x86intrin.h>

/* The counter, without a fence: 7.7 ns, where lfence adds 5. */
static inline uint64_t tfh_arch_ticks(void)
{
	return __rdtsc();
}

/* Tells the processor that a loop waits. */
static inline void tfh_arch_pause(void)
{
	__builtin_ia32_pause();
}

/* Begins to fetch a cache line for writing. GCC's builtin would fetch it for reading where it may
 * not assume PREFETCHW; processors without that instruction ignore it. */
static inline void tfh_arch_fetch_to_write(const void *line)
{
	__asm__ volatile("prefetchw %0" : : "m"(*(const char *)line));
}

/* Whether the processor reports a counter of constant rate. */
static inline bool tfh_arch_counts_evenly(void)
{
	unsigned int a, b, c, d;

	return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & (1u << 8));
}

/* Address of the calling thread's copy of a variable of the initial-exec model, never a value that
 * the compiler has cached. */
#define TFH_ARCH_THREADS_OWN(variable, to)                                                         \
	__asm__ volatile("movq %%fs:0, %0\n\taddq " #variable "@gottpoff(%%rip), %0"               \
			 : "=r"(to)                                                                \
			 :                                                                         \
			 : "cc")

static inline bool tfh_arch_has_crc32c(void)
{
	return __builtin_cpu_supports("sse4.2");
}

static inline uint32_t tfh_arch_crc32c_eight(uint32_t crc, uint64_t bytes)
{
	uint64_t wide = crc;

	__asm__("crc32q %1, %0" : "+r"(wide) : "rm"(bytes));
	return (uint32_t)wide;
}

static inline uint32_t tfh_arch_crc32c_one(uint32_t crc, uint8_t byte)
{
	__asm__("crc32b %1, %0" : "+r"(crc) : "rm"(byte));
	return crc;
}

/* For long areas the processor's own instructions are as fast as any loop. */
#define TFH_ARCH_COPIES 1
static inline void tfh_arch_copy(void *to, const void *from, unsigned long n)
{
	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
}

static inline void tfh_arch_fill(void *to, int value, unsigned long n)
{
	__asm__ volatile("rep stosb" : "+D"(to), "+c"(n) : "a"(value) : "memory");
}

#else

#include <asm/hwcap.h>
#include <sys/auxv.h>

/* The counter, without a barrier. */
static inline uint64_t tfh_arch_ticks(void)
{
	uint64_t ticks;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
	return ticks;
}

static inline void tfh_arch_pause(void)
{
	__asm__ volatile("yield");
}

static inline void tfh_arch_fetch_to_write(const void *line)
{
	__builtin_prefetch(line, 1);
}

/* The architecture guarantees it. */
static inline bool tfh_arch_counts_evenly(void)
{
	return true;
}

#define TFH_ARCH_THREADS_OWN(variable, to)                                                         \
	do {                                                                                       \
		uint64_t thread_;                                                                  \
		__asm__ volatile("mrs %1, tpidr_el0\n\tadrp %0, :gottprel:" #variable              \
				 "\n\tldr %0, [%0, :gottprel_lo12:" #variable                      \
				 "]\n\tadd %0, %0, %1"                                             \
				 : "=&r"(to), "=&r"(thread_));                                     \
	} while (0)

static inline bool tfh_arch_has_crc32c(void)
{
	return getauxval(AT_HWCAP) & HWCAP_CRC32;
}

static inline uint32_t tfh_arch_crc32c_eight(uint32_t crc, uint64_t bytes)
{
	__asm__(".arch_extension crc\n\tcrc32cx %w0, %w0, %x1" : "+r"(crc) : "r"(bytes));
	return crc;
}

static inline uint32_t tfh_arch_crc32c_one(uint32_t crc, uint8_t byte)
{
	__asm__(".arch_extension crc\n\tcrc32cb %w0, %w0, %w1" : "+r"(crc) : "r"((uint32_t)byte));
	return crc;
}

#define TFH_ARCH_COPIES 0
static inline void tfh_arch_copy(void *to, const void *from, unsigned long n)
{
	(void)to;
	(void)from;
	(void)n;
}

static inline void tfh_arch_fill(void *to, int value, unsigned long n)
{
	(void)to;
	(void)value;
	(void)n;
}

#endif
#endif
#endif
