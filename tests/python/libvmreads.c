/* Counts calls of process_vm_readv(), and prints their number and the program's name at exit. */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <sys/uio.h>

static unsigned reads;

ssize_t process_vm_readv(pid_t pid, const struct iovec *to, unsigned long n_to,
			 const struct iovec *from, unsigned long n_from, unsigned long flags)
{
	ssize_t (*real)(pid_t, const struct iovec *, unsigned long, const struct iovec *,
			unsigned long, unsigned long);

	*(void **)&real = dlsym(RTLD_NEXT, "process_vm_readv");
	__atomic_fetch_add(&reads, 1, __ATOMIC_RELAXED);
	return real(pid, to, n_to, from, n_from, flags);
}

__attribute__((destructor)) static void report(void)
{
	fprintf(stderr, "process_vm_readv: %u in %s\n", reads, program_invocation_short_name);
}
