/*
 * syscall() as the job sees it. The C library has no function for seccomp(2), so programs install
 * seccomp filters this way. All other requests are passed on with registers and stack unchanged,
 * since some depend on the stack (vfork).
 */
#include <asm/unistd.h>

#include "hook/entries.h"

	.text

	SYSTEM_CALLS __NR_seccomp, tfh_hook_seccomp, tfh_real_syscall

	.section .note.GNU-stack, "", %progbits
