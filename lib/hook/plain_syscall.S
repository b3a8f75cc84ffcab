/* syscall() before the C library's is known: constructors that run before ours may call it. */
#include "hook/entries.h"

	.text

	PLAIN_SYSCALL tfh_plain_syscall

	.section .note.GNU-stack, "", %progbits
