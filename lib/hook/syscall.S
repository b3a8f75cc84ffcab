/*
 * syscall() as the job sees it: the C library has no function for seccomp(2), so this is how filters of system calls are installed. All
 * other requests are passed on as they came, since some depend on the stack (vfork).
 */
#include <asm/unistd.h>

#include "hook/entries.h"

	.text

	SYSTEM_CALLS __NR_seccomp, tfh_hook_seccomp, tfh_real_syscall

	.section .note.GNU-stack, "", %progbits
