/*
 * Jobs under system call filters that end the process (SECCOMP_RET_KILL_PROCESS):
 *
 * filters deny|own|listed N before|prctl|seccomp|all [CALL...]
 *
 * What it forbids: deny: those calls; own: all but those that this program makes without the recorder; listed: all but these and what
 * the recorder says of itself (own_calls.def). When: before: the program is started under it; otherwise after N steps, by prctl(), by
 * syscall(), or for all threads.
 */
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "base/refused.h"
#include "job.h"

#ifndef SYS_quotactl_fd
#define SYS_quotactl_fd 443
#endif

#define CALLS 256

struct filter {
	int call[CALLS];
	unsigned n;
	bool allows; /* the calls are those allowed, not those forbidden */
};

static const int own[] = {
	SYS_execve,	  SYS_brk,	  SYS_set_tid_address, SYS_set_robust_list,
	SYS_rseq,	  SYS_mprotect,	  SYS_prlimit64,       SYS_munmap,
	SYS_mmap,	  SYS_openat,	  SYS_newfstatat,      SYS_read,
	SYS_pread64,	  SYS_close,	  SYS_getrandom,       SYS_exit,
	SYS_exit_group,	  SYS_write,	  SYS_clone3,	       SYS_clone,
	SYS_wait4,	  SYS_futex,	  SYS_rt_sigprocmask,  SYS_rt_sigreturn,
	SYS_madvise,	  SYS_ftruncate,  SYS_clock_nanosleep, SYS_getpid,
	SYS_rt_sigaction, SYS_fstat,
#ifdef __x86_64__
	SYS_access,	  SYS_arch_prctl,
#else
	SYS_faccessat,
#endif
};

static const struct {
	const char *name;
	int number;
} named[] = {
#define OWN_CALL(name, ...) {#name, SYS_##name},
#include "record/process/own_calls.def"
};

static void add(struct filter *f, int call)
{
	f->call[f->n++] = call;
}

static int number_of(const char *name)
{
	for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++)
		if (!strcmp(named[i].name, name))
			return named[i].number;
	must(0, name);
	return -1;
}

static struct filter filter_of(const char *kind, char **calls)
{
	struct filter f = {.allows = strcmp(kind, "deny")};

	for (; !f.allows && *calls; calls++)
		add(&f, number_of(*calls));
	for (size_t i = 0; f.allows && i < sizeof(own) / sizeof(own[0]); i++)
		add(&f, own[i]);
	for (size_t i = 0; !strcmp(kind, "listed") && i < sizeof(named) / sizeof(named[0]); i++)
		add(&f, named[i].number);
	return f;
}

static void install(const struct filter *f, const char *how)
{
	const unsigned listed = f->allows ? SECCOMP_RET_ALLOW : SECCOMP_RET_KILL_PROCESS,
		       others = f->allows ? SECCOMP_RET_KILL_PROCESS : SECCOMP_RET_ALLOW;
	struct sock_filter code[2 * CALLS + 2] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
	struct sock_fprog program = {0, code};
	unsigned n = 1, flags = strcmp(how, "all") ? 0 : SECCOMP_FILTER_FLAG_TSYNC;

	for (unsigned i = 0; i < f->n; i++) {
		code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
							 (unsigned)f->call[i], 0, 1);
		code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, listed);
	}
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, others);
	program.len = (unsigned short)n;
	must(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs");
	must(!strcmp(how, "seccomp") || flags
		     ? !syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program)
		     : !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program),
	     "seccomp");
}

/* What a job does then: calls here, in a new thread and in a child, and an exec that fails. */
static int go_on(int n)
{
	char *nothing[] = {NULL};
	pid_t child;

	steps(n);
	nap_ms(300);
	steps(n);
	pthread_join(spawn(steps_thread, n), NULL);
	execve("/no/such/program", nothing, nothing);
	child = fork();
	if (!child) {
		steps(n);
		_exit(3);
	}
	must(ended(child) == 3, "child");
	steps(n);
	must(write(1, "filtered\n", 9) == 9, "write");
	return 7;
}

static int filtered(const char *kind, int n, char **more)
{
	const struct filter f = filter_of(kind, more + 1);
	char count[16];

	if (!strcmp(more[0], "before")) {
		snprintf(count, sizeof(count), "%d", n);
		install(&f, "prctl");
		execl("/proc/self/exe", "filters", "then", count, NULL);
	}
	steps(n);
	nap_ms(300);
	install(&f, more[0]);
	return go_on(n);
}

static int deny(int n, char **more)
{
	return filtered("deny", n, more);
}

static int own_only(int n, char **more)
{
	return filtered("own", n, more);
}

static int own_and_listed(int n, char **more)
{
	return filtered("listed", n, more);
}

static int then(int n, char **more)
{
	(void)more;
	return go_on(n);
}

int main(int argc, char **argv)
{
	static const struct way ways[] = {{"deny", deny},
					  {"own", own_only},
					  {"listed", own_and_listed},
					  {"then", then},
					  {NULL, NULL}};

	return choose(ways, argc, argv);
}
