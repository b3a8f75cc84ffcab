/* A job whose first recorded call begins the recording while its file system answers after seconds. It defines syscall() itself, and
 * prints for how many milliseconds waits for other threads expired within that call. `signal`: the call is a signal handler's. */
#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static __thread bool within;
static long expired_ms;
static void (*step)(void);

/* What makes the journal's file as large as it is to be. */
static void answer_late(void)
{
	nanosleep(&(struct timespec){3, 0}, NULL);
}

long syscall(long n, ...)
{
	static long (*real)(long, ...);
	long a[6], result;
	va_list args;

	va_start(args, n);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(args, long);
	va_end(args);
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "syscall");
	if (n == SYS_ftruncate)
		answer_late();
	result = real(n, a[0], a[1], a[2], a[3], a[4], a[5]);
	if (within && n == SYS_futex && (a[1] & FUTEX_CMD_MASK) == FUTEX_WAIT && a[3] && result &&
	    errno == ETIMEDOUT) {
		const struct timespec *most = (const struct timespec *)a[3];

		expired_ms += most->tv_sec * 1000 + most->tv_nsec / 1000000;
	}
	return result;
}

static void first_call(int signal)
{
	(void)signal;
	step();
	within = true;
	step();
	within = false;
}

int main(int argc, char **argv)
{
	static char stack[1 << 16];
	const stack_t alternative = {.ss_sp = stack, .ss_size = sizeof(stack)};
	const struct sigaction action = {.sa_handler = first_call, .sa_flags = SA_ONSTACK};

	*(void **)&step = dlsym(RTLD_DEFAULT, "tfhook_step");
	if (!step)
		return 1;
	if (argc > 1 && !strcmp(argv[1], "signal")) {
		sigaltstack(&alternative, NULL);
		sigaction(SIGUSR1, &action, NULL);
		raise(SIGUSR1);
	} else {
		first_call(0);
	}
	printf("%ld\n", expired_ms);
	return 0;
}
