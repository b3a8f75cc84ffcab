/*
 * Intercepts prctl, with which a thread disables its time stamp counter (record/ring/confined.c). The same request
 * through seccomp(2) or syscall(2) is not seen.
 */
#include <dlfcn.h>
#include <linux/seccomp.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "hook/driver/driver.h"
#include "record/record.h"

static int (*real)(int, unsigned long, unsigned long, unsigned long, unsigned long);

__attribute__((constructor)) static void resolve(void)
{
	tfh_lookup_init();
	real = (int (*)(int, unsigned long, unsigned long, unsigned long,
			unsigned long))tfh_next_dlsym(RTLD_NEXT, "prctl");
}

__attribute__((visibility("default"))) int prctl(int option, ...)
{
	unsigned long arg[4];
	va_list more;
	bool confines;
	int result;

	va_start(more, option);
	for (int i = 0; i < 4; i++)
		arg[i] = va_arg(more, unsigned long);
	va_end(more);
	confines = (option == PR_SET_SECCOMP && arg[0] == SECCOMP_MODE_STRICT) ||
		   (option == PR_SET_TSC && arg[0] == PR_TSC_SIGSEGV);
	if (confines) /* before the call: afterwards the time cannot be read */
		tfh_confine();
	result = real ? real(option, arg[0], arg[1], arg[2], arg[3])
		      : (int)syscall(SYS_prctl, option, arg[0], arg[1], arg[2], arg[3]);
	if (confines ? result != 0 : option == PR_SET_TSC && !result)
		tfh_confine_end();
	return result;
}
