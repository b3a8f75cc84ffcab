#include "record/process/filters.h"

#include <errno.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arch_child.h"
#include "base/fd.h"
#include "base/proc.h"
#include "base/refused.h"
#include "record/process/log.h"
#include "record/process/recorder.h"

#ifndef SYS_clone3
#define SYS_clone3 435
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef SYS_faccessat2
#define SYS_faccessat2 439
#endif
#ifndef SYS_quotactl_fd
#define SYS_quotactl_fd 443
#endif

#define STACK_BYTES 16384u
#define CHILDREN 8u /* more than there are calls that recording can do without */

enum filter_state { FREE, UNTRIED, ALLOWED, KILLS };
static uint32_t state; /* atomic, enum filter_state */
static uint32_t fatal; /* the call for which a filter ends the process */

static const struct own_call {
	uint16_t number;
	uint16_t without; /* enum tfh_call; 0: nothing can be recorded */
	const char *name;
	long arg[6];
} own[] = {
#define OWN_CALL(name, without, ...) {SYS_##name, without, #name, {__VA_ARGS__}},
#include "record/process/own_calls.def"
#undef OWN_CALL
};
#define OWN (sizeof(own) / sizeof(own[0]))

/* In memory that the child shares. */
struct trial {
	/* a request that installs a filter; NULL: the filters that there are */
	const long *install;
	uint32_t skip; /* set of enum tfh_call */
	bool installs; /* the request succeeded */
	uint32_t at;   /* the call being made; OWN: all have been */
	uint8_t stack[STACK_BYTES] __attribute__((aligned(64)));
};

/* ---- the child ---- */

static long request(const long *r)
{
	return syscall(r[0], r[1], r[2], r[3], r[4], r[5], r[6]);
}

/* A core limit of 1 byte is one below which neither a file is written nor a program is given the
 * core. */
static void without_core(void)
{
	struct rlimit core;

	if (getrlimit(RLIMIT_CORE, &core))
		return;
	core.rlim_cur = 1;
	setrlimit(RLIMIT_CORE, &core);
}

static void child_main(void *arg)
{
	volatile struct trial *t = arg;

	without_core();
	if (t->install)
		t->installs = !request(t->install);
	for (uint32_t i = 0; i < OWN; i++) {
		const long *a = own[i].arg;

		if (own[i].without & t->skip)
			continue;
		t->at = i;
		syscall(own[i].number, a[0], a[1], a[2], a[3], a[4], a[5]);
	}
	t->at = OWN;
	syscall(SYS_exit, 0);
}

static void child_says(void *none)
{
	char what[128];

	(void)none;
	without_core();
	snprintf(what, sizeof(what),
		 "not recording: a system call filter (seccomp) would kill the job at %s",
		 own[fatal].name);
	tfh_log_failure(what, "make the filter return an error for that call");
	syscall(SYS_exit, 0);
}

/* Runs `run` in a process that shares this one's memory, and waits for its end. Returns false if no
 * such process can be created. Creates it with the system calls that the C library uses for
 * threads. */
static bool run_child(struct trial *t, void (*run)(void *))
{
	uint64_t args[8] = {CLONE_VM | CLONE_VFORK};
	void *top = t->stack + STACK_BYTES;
	long pid = tfh_arch_child(SYS_clone3, (long)args, sizeof(args), run, t, top);

	if (pid == -ENOSYS)
		pid = tfh_arch_child(SYS_clone, CLONE_VM | CLONE_VFORK, 0, run, t, top);
	/* Only if the filter allows waiting. Otherwise the child remains in the process table. */
	if (pid > 0 && t->at > 0)
		syscall(SYS_wait4, pid, NULL, __WCLONE, NULL);
	return pid > 0;
}

/* Returns false if the filter ends the process for a call that recording needs. Adds calls that
 * recording can do without to tfh_refused. */
static bool try_calls(struct trial *t)
{
	for (uint32_t n = 0; n < CHILDREN; n++) {
		t->at = 0;
		if (!run_child(t, child_main) || t->at == OWN || (t->install && !t->installs))
			break;
		fatal = t->at;
		if (!own[fatal].without)
			return false;
		t->skip |= own[fatal].without;
	}
	__atomic_fetch_or(&tfh_refused, t->skip, __ATOMIC_RELAXED);
	return true;
}

static bool calls_survive(const long *install)
{
	struct trial *t =
		mmap(NULL, sizeof(*t), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int saved = errno;
	sigset_t all, old;
	bool survive;

	if (t == MAP_FAILED)
		return true;
	t->install = install;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	survive = try_calls(t);
	if (!survive && !install)
		run_child(t, child_says);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	munmap(t, sizeof(*t));
	errno = saved;
	return survive;
}

/* ---- the process ---- */

/* Reads with the calls that the loader makes. tfh_read_small() also queries the file's type, with a
 * call that newer loaders do not make. */
static void read_text(const char *path, char *text, size_t size)
{
	int fd = tfh_open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : tfh_read(fd, text, size - 1);

	if (fd >= 0)
		tfh_close(fd);
	text[n > 0 ? n : 0] = '\0';
}

static enum filter_state now(void)
{
	return __atomic_load_n(&state, __ATOMIC_ACQUIRE);
}

static void become(enum filter_state next)
{
	__atomic_store_n(&state, next, __ATOMIC_RELEASE);
}

bool tfh_filters_find(void)
{
	char text[4096];

	read_text("/proc/self/status", text, sizeof(text));
	if (tfh_number_of_line(text, "Seccomp:") == SECCOMP_MODE_FILTER)
		become(UNTRIED);
	return now() == FREE;
}

/* Whether a child may be created (Linux 5.16 and newer, see filters.h). If not, filters are assumed
 * to refuse calls with an error. */
static bool has_children(void)
{
	char release[64], *end;
	unsigned long major, minor;

	read_text("/proc/sys/kernel/osrelease", release, sizeof(release));
	major = strtoul(release, &end, 10);
	minor = *end == '.' ? strtoul(end + 1, NULL, 10) : 0;
	return major > 5 || (major == 5 && minor >= 16);
}

bool tfh_filters_allow(void)
{
	if (now() == UNTRIED)
		become(!has_children() || calls_survive(NULL) ? ALLOWED : KILLS);
	return now() != KILLS;
}

static uint32_t asked;

uint32_t tfh_filters_asked(void)
{
	return __atomic_load_n(&asked, __ATOMIC_ACQUIRE);
}

bool tfh_filters_allow_more(const long *install)
{
	__atomic_fetch_add(&asked, 1, __ATOMIC_RELEASE);
	if (!has_children() || calls_survive(install))
		return true;
	become(KILLS);
	tfh_log(1, "recording stops: the job installs a filter that would kill it at %s",
		own[fatal].name);
	return false;
}

void tfh_filters_changed(void)
{
	if (now() != KILLS)
		become(UNTRIED);
}

bool tfh_filters_allowed(void)
{
	return now() == FREE || now() == ALLOWED;
}
