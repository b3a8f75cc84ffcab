/* syscall() until the C library's function is known: constructors that run before ours may call
 * it. */
#include "hook/entries.h"

	.text

	PLAIN_SYSCALL tfh_plain_syscall

	.section .note.GNU-stack, "", %progbits
