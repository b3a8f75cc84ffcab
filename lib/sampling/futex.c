#include "sampling/futex.h"

#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/text.h"

/* Newer than the headers of the build. */
#ifndef FUTEX_LOCK_PI2
#define FUTEX_LOCK_PI2 13
#endif

#define FIRST_MINOR 25	     /* glibc 2.25: conditions no longer wait for any number */
#define TID_MOST 0x400000u   /* the kernel's */
#define AWAITED 2u	     /* a locked mutex for which somebody waits */
#define OWNED 0x80000000u    /* and the number of the owner, in a robust mutex */
#define PROMISED 0x80000000u /* a std::future of libstdc++ that has no value yet */
/* A thread's own number is in the structure that pthread_self() points to, which is aligned. */
#define THREAD_ALIGN 64u
#define THREAD_SEARCH 0x480u

static struct {
	struct {
		uintptr_t from, to;
	} text[4]; /* of libc and, before 2.34, libpthread */
	uint32_t texts;
	uintptr_t call, call_end; /* syscall(), through which programs make calls of their own */
	uint32_t tid_at;	  /* where in THREAD_ALIGN bytes the thread's number is */
	pid_t pid;
	bool known;
	/* the last word that was found to hold the number of a thread */
	uint64_t word;
	uint32_t thread;
} libc;

static void *real_syscall;

void tfh_futex_syscall(void *glibc)
{
	real_syscall = glibc;
}

static int add_text(struct dl_phdr_info *info, size_t bytes, void *arg)
{
	const char *file = tfh_file_of(info->dlpi_name ? info->dlpi_name : "");

	(void)bytes;
	(void)arg;
	if (strncmp(file, "libc.so.", 8) != 0 && strncmp(file, "libc-2.", 7) != 0 &&
	    strncmp(file, "libpthread", 10) != 0)
		return 0;
	for (uint32_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X) ||
		    libc.texts == sizeof(libc.text) / sizeof(*libc.text))
			continue;
		libc.text[libc.texts].from = info->dlpi_addr + p->p_vaddr;
		libc.text[libc.texts++].to = info->dlpi_addr + p->p_vaddr + p->p_memsz;
	}
	return 0;
}

static bool in_libc(uint64_t at)
{
	for (uint32_t i = 0; i < libc.texts; i++)
		if (at >= libc.text[i].from && at < libc.text[i].to)
			return true;
	return false;
}

/* Where in the calling thread's structure its number is; 0: not found. */
static uint32_t number_at(void)
{
	uint32_t tid = (uint32_t)syscall(SYS_gettid), word;
	const char *self;
	pthread_t thread = pthread_self();

	memcpy(&self, &thread, sizeof(self));
	for (uint32_t at = 0; at < THREAD_SEARCH; at += sizeof(word)) {
		memcpy(&word, self + at, sizeof(word));
		if (word == tid)
			return at;
	}
	return 0;
}

uint32_t tfh_futex_number_at(void)
{
	return libc.known ? libc.tid_at : 0;
}

static bool is_new_enough(const char *version)
{
	char *minor;
	long major = strtol(version, &minor, 10);

	return major == 2 && *minor == '.' && strtol(minor + 1, NULL, 10) >= FIRST_MINOR;
}

void tfh_futex_begin(void)
{
	Dl_info info;
	const ElfW(Sym) *symbol = NULL;
	long (*of)(long, ...) = syscall;
	void *call = real_syscall;

	libc.pid = getpid();
	if (libc.known || !is_new_enough(gnu_get_libc_version()))
		return;
	if (!call)
		memcpy(&call, &of, sizeof(call));
	libc.texts = 0;
	dl_iterate_phdr(add_text, NULL);
	/* Another library's function of that name would call glibc's, wherever that is. */
	if (!dladdr1(call, &info, (void **)&symbol, RTLD_DL_SYMENT) || !symbol ||
	    !in_libc((uintptr_t)call))
		return;
	libc.call = (uintptr_t)call;
	libc.call_end = libc.call + symbol->st_size;
	libc.tid_at = number_at();
	libc.known = true;
}

/*
 * glibc's functions (2.25 to 2.42):
 *   mutexes               FUTEX_WAIT for 2; robust ones for the owner's number and the highest bit
 *   with priorities       FUTEX_LOCK_PI, also of a condition's mutex
 *   conditions            FUTEX_WAIT_BITSET (up to 2.30 FUTEX_WAIT) for 0, or for a count
 *   semaphores            the same for 0
 *   pthread_join()        the same for the number of the thread, mostly not private
 *   rwlocks, timed locks  FUTEX_WAIT_BITSET for 2 or 3: not told from a condition that counts
 *   barriers, once        FUTEX_WAIT for other numbers
 * std::future of libstdc++ makes a call of its own that is not private. So do absl, nsync, Rust and
 * C++20's atomics, of which nothing is known.
 */
enum tft_wait tfh_futex_says(uint64_t operation, uint64_t value, bool glibc)
{
	bool shared = !(operation & FUTEX_PRIVATE_FLAG);
	uint32_t word = (uint32_t)value;
	int command = (int)operation & FUTEX_CMD_MASK;

	if (!glibc)
		return shared && word == PROMISED &&
				       (command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET)
			       ? TFT_WAIT_SIGNAL
			       : TFT_WAIT_ANY;
	switch (command) {
	case FUTEX_LOCK_PI:
	case FUTEX_LOCK_PI2:
		return TFT_WAIT_MUTEX;
	case FUTEX_WAIT_REQUEUE_PI:
		return TFT_WAIT_SIGNAL;
	case FUTEX_WAIT:
		return word == AWAITED || word > OWNED			 ? TFT_WAIT_MUTEX
		       : !word						 ? TFT_WAIT_SIGNAL
		       : word > AWAITED + 1 && shared && word < TID_MOST ? TFT_WAIT_END
									 : TFT_WAIT_ANY;
	case FUTEX_WAIT_BITSET:
		return word > OWNED				? TFT_WAIT_MUTEX
		       : word == AWAITED || word == AWAITED + 1 ? TFT_WAIT_ANY
		       : word && word < TID_MOST		? TFT_WAIT_END
								: TFT_WAIT_SIGNAL;
	default:
		return TFT_WAIT_ANY;
	}
}

/* Whether the word holds the number of a living thread of this process, and is where such numbers
 * are. The kernel is asked only when the word or its value differs from the last one. */
static bool is_thread(uint64_t word, uint32_t thread, uint32_t tid)
{
	if (word % THREAD_ALIGN != libc.tid_at % THREAD_ALIGN || !libc.tid_at || thread == tid)
		return false;
	if (word == libc.word && thread == libc.thread)
		return true;
	if (syscall(SYS_tgkill, libc.pid, thread, 0))
		return false;
	libc.word = word;
	libc.thread = thread;
	return true;
}

enum tft_wait tfh_futex_kind(const uint64_t call[TFH_CALL_WORDS], uint32_t tid)
{
	uint64_t at = call[TFH_CALL_AT];

	if (!libc.known)
		return TFT_WAIT_ANY;
	bool own = at >= libc.call && at <= libc.call_end;
	if (!own && !in_libc(at))
		return TFT_WAIT_ANY;
	enum tft_wait says = tfh_futex_says(call[1], call[2], !own);
	if (says != TFT_WAIT_END || is_thread(call[0], (uint32_t)call[2], tid))
		return says;
	/* A condition that counts. */
	return ((int)call[1] & FUTEX_CMD_MASK) == FUTEX_WAIT ? TFT_WAIT_ANY : TFT_WAIT_SIGNAL;
}
