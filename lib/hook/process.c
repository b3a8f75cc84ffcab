/*
 * Exits from a process that run no destructor: _exit and its variants, exec, abort. Each wrapper
 * gives the recorder some time (at most 2 s), then calls the real function. A vfork child runs in
 * its parent's memory, so there it only calls the real function. posix_spawn needs no wrapper: its
 * child never runs code of this process, and the parent continues.
 *
 * The real functions are resolved at load time, since a vfork child or a signal handler must not
 * look up symbols.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "hook/driver/driver.h"
#include "record/record.h"

#define EXPORT __attribute__((visibility("default")))
#define FLUSH_MS 2000

static struct {
	void (*exit_now)(int);
	void (*quick_exit)(int);
	void (*abort)(void);
	int (*execve)(const char *, char *const[], char *const[]);
	int (*execv)(const char *, char *const[]);
	int (*execvp)(const char *, char *const[]);
	int (*execvpe)(const char *, char *const[], char *const[]);
	int (*fexecve)(int, char *const[], char *const[]);
	int (*execveat)(int, const char *, char *const[], char *const[], int);
} real;

static void *next(const char *name)
{
	tfh_lookup_init();
	return tfh_next_dlsym(RTLD_NEXT, name);
}

__attribute__((constructor)) static void resolve(void)
{
	real.exit_now = (void (*)(int))next("_exit");
	real.quick_exit = (void (*)(int))next("quick_exit");
	real.abort = (void (*)(void))next("abort");
	real.execve = (int (*)(const char *, char *const[], char *const[]))next("execve");
	real.execv = (int (*)(const char *, char *const[]))next("execv");
	real.execvp = (int (*)(const char *, char *const[]))next("execvp");
	real.execvpe = (int (*)(const char *, char *const[], char *const[]))next("execvpe");
	real.fexecve = (int (*)(int, char *const[], char *const[]))next("fexecve");
	real.execveat =
		(int (*)(int, const char *, char *const[], char *const[], int))next("execveat");
}

EXPORT _Noreturn void _exit(int status)
{
	tfh_finish(true);
	if (real.exit_now)
		real.exit_now(status);
	for (;;)
		syscall(SYS_exit_group, status);
}

EXPORT _Noreturn void _Exit(int status)
{
	_exit(status);
}

EXPORT _Noreturn void quick_exit(int status)
{
	tfh_finish(true);
	if (real.quick_exit)
		real.quick_exit(status);
	_exit(status);
}

/* The journal is kept: it shows which calls were in flight. */
EXPORT _Noreturn void abort(void)
{
	tfh_flush_now(FLUSH_MS);
	if (real.abort)
		real.abort();
	__builtin_trap();
}

static int failed(int result)
{
	tfh_exec_failed();
	return result;
}

EXPORT int execve(const char *path, char *const argv[], char *const env[])
{
	tfh_exec_begin(path);
	return failed(real.execve ? real.execve(path, argv, env)
				  : (int)syscall(SYS_execve, path, argv, env));
}

EXPORT int execv(const char *path, char *const argv[])
{
	tfh_exec_begin(path);
	return failed(real.execv ? real.execv(path, argv)
				 : (int)syscall(SYS_execve, path, argv, environ));
}

EXPORT int execvp(const char *file, char *const argv[])
{
	tfh_exec_begin(NULL);
	errno = ENOSYS;
	return failed(real.execvp ? real.execvp(file, argv) : -1);
}

EXPORT int execvpe(const char *file, char *const argv[], char *const env[])
{
	tfh_exec_begin(NULL);
	errno = ENOSYS;
	return failed(real.execvpe ? real.execvpe(file, argv, env) : -1);
}

EXPORT int fexecve(int fd, char *const argv[], char *const env[])
{
	tfh_exec_begin(NULL);
	errno = ENOSYS;
	return failed(real.fexecve ? real.fexecve(fd, argv, env) : -1);
}

EXPORT int execveat(int dir, const char *path, char *const argv[], char *const env[], int flags)
{
	tfh_exec_begin(NULL);
	return failed(real.execveat ? real.execveat(dir, path, argv, env, flags)
				    : (int)syscall(SYS_execveat, dir, path, argv, env, flags));
}

/* Arguments of the execl family, on the stack: a vfork child must not allocate. */
#define COLLECT(first, argv, more)                                                                 \
	va_list args, again;                                                                       \
	size_t count = 1;                                                                          \
                                                                                                   \
	va_start(args, first);                                                                     \
	va_copy(again, args);                                                                      \
	while (va_arg(again, const char *))                                                        \
		count++;                                                                           \
	va_end(again);                                                                             \
	char *argv[count + 1];                                                                     \
	argv[0] = (char *)(uintptr_t)first;                                                        \
	for (size_t i = 1; i <= count; i++)                                                        \
		argv[i] = va_arg(args, char *);                                                    \
	more;                                                                                      \
	va_end(args)

EXPORT int execl(const char *path, const char *arg, ...)
{
	COLLECT(arg, argv, (void)0);
	return execv(path, argv);
}

EXPORT int execlp(const char *file, const char *arg, ...)
{
	COLLECT(arg, argv, (void)0);
	return execvp(file, argv);
}

EXPORT int execle(const char *path, const char *arg, ...)
{
	char *const *env;

	COLLECT(arg, argv, env = va_arg(args, char *const *));
	return execve(path, argv, env);
}
