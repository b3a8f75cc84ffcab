/*
 * Intercepts requests after which the calling thread cannot read the time stamp counter
 * (record/ring/confined.c), or the process has a seccomp filter (record/process/filters.h).
 * Requests that a program makes with a system call instruction of its own are not seen.
 */
#include <dlfcn.h>
#include <linux/seccomp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "hook/driver/driver.h"
#include "record/record.h"
#include "sampling/futex.h"

#ifndef SECCOMP_FILTER_FLAG_NEW_LISTENER
#define SECCOMP_FILTER_FLAG_NEW_LISTENER 8
#endif

#pragma GCC visibility push(hidden)
long tfh_plain_syscall(long number, ...); /* plain_syscall.S */
long tfh_hook_seccomp(long number, unsigned long operation, unsigned long flags, void *args);
extern long (*tfh_real_syscall)(long number, ...);
#pragma GCC visibility pop

static int (*real)(int, unsigned long, unsigned long, unsigned long, unsigned long);
long (*tfh_real_syscall)(long number, ...) = tfh_plain_syscall;

__attribute__((constructor)) static void resolve(void)
{
	void *next;

	tfh_lookup_init();
	real = (int (*)(int, unsigned long, unsigned long, unsigned long,
			unsigned long))tfh_next_dlsym(RTLD_NEXT, "prctl");
	next = tfh_next_dlsym(RTLD_NEXT, "syscall");
	if (next)
		tfh_real_syscall = (long (*)(long, ...))next;
	tfh_futex_syscall(next);
}

static long request(const long *r)
{
	return real && r[0] == SYS_prctl
		       ? real((int)r[1], (unsigned long)r[2], (unsigned long)r[3],
			      (unsigned long)r[4], (unsigned long)r[5])
		       : tfh_real_syscall(r[0], r[1], r[2], r[3], r[4], r[5], r[6]);
}

/* The recorder is notified first, since the time cannot be read afterwards. */
static long confining(const long *r)
{
	long result;

	tfh_confine();
	result = request(r);
	if (result)
		tfh_confine_end();
	return result;
}

static long filtering(const long *r, bool answered_elsewhere)
{
	tfh_filter_coming(r, answered_elsewhere);
	return request(r);
}

__attribute__((visibility("default"))) int prctl(int option, ...)
{
	long r[7] = {SYS_prctl, option};
	va_list more;
	int result;

	va_start(more, option);
	for (int i = 2; i < 6; i++)
		r[i] = va_arg(more, long);
	va_end(more);
	if ((option == PR_SET_SECCOMP && r[2] == SECCOMP_MODE_STRICT) ||
	    (option == PR_SET_TSC && r[2] == PR_TSC_SIGSEGV))
		return (int)confining(r);
	if (option == PR_SET_SECCOMP && r[2] == SECCOMP_MODE_FILTER)
		return (int)filtering(r, false);
	result = (int)request(r);
	if (option == PR_SET_TSC && !result)
		tfh_confine_end();
	return result;
}

long tfh_hook_seccomp(long number, unsigned long operation, unsigned long flags, void *args)
{
	const long r[7] = {number, (long)operation, (long)flags, (long)args};

	if (operation == SECCOMP_SET_MODE_STRICT)
		return confining(r);
	if (operation == SECCOMP_SET_MODE_FILTER)
		return filtering(r, flags & SECCOMP_FILTER_FLAG_NEW_LISTENER);
	return request(r);
}
