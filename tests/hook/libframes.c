/*
 * int through(int (*call)(void)): a function that calls another one. In this library its frame is found by rbp. In the other one
 * (libframes_other.c), with the call in the same place, rbp holds 16 meanwhile and the frame is found by rsp. What the unwind tables say is
 * true in both.
 */
#ifdef __x86_64__
#ifdef OTHER
#define FRAME "mov $16, %ebp\n"
#else
#define FRAME "mov %rsp, %rbp\n.cfi_def_cfa_register 6\nnop\nnop\n"
#endif

__asm__(".text\n.globl through\n.type through, @function\n.p2align 4\n"
	"through:\n.cfi_startproc\n"
	"push %rbp\n.cfi_def_cfa_offset 16\n.cfi_offset 6, -16\n" FRAME "call *%rdi\n"
	"pop %rbp\n.cfi_def_cfa 7, 8\n.cfi_restore 6\nret\n.cfi_endproc\n.size through, . - through\n"
	".section .note.GNU-stack,\"\",@progbits\n");
#endif
