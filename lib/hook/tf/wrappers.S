/*
 * The wrappers of base/tf_api.def: exported under the real functions' names.
 *
 * Recording off: flag test, load, tail jump (the stack is as the caller left it). On: a frame with rbp, all six integer
 * argument registers kept around tfh_tf_enter, rax and rdx kept around tfh_tf_leave. None of the functions takes or
 * returns floating point. An exception that passes through meets tfh_tf_personality, which closes the frame.
 */
#include "hook/tf/tf.h"

	.hidden	tfh_mode, tfh_tf_enter, tfh_tf_leave, tfh_tf_destroyed, tfh_tf_personality
	.hidden	tfh_tf_real, tfh_tf_wrapper

	.section .text
	.set	row, 0

/* The highest enum tfh_mode in which a function's family still needs tfh_tf_enter: the recorder counts get-next calls
 * while it is off, so that a window of steps can begin. */
	.set	last_mode_STAGE, 2
	.set	last_mode_REDUCE, 2
	.set	last_mode_EXECUTE, 2
	.set	last_mode_SESSION, 2
	.set	last_mode_CONSUMER, 3

/* Arguments beyond the sixth are above the return address, at 16(%rbp) and up. Callers leave them where the callee
 * would look, so they are pushed again below our frame. An even number keeps the stack aligned. */
.macro COPY_STACK words
	.if	\words & 1
	.error	"odd number of stack words"
	.endif
	.set	word, \words
	.rept	\words
	pushq	8+8*word(%rbp)
	.set	word, word-1
	.endr
.endm

.macro WRAP symbol, family, stack
	.globl	"\symbol"
	.type	"\symbol", @function
	.p2align 5
"\symbol":
	.cfi_startproc
	.cfi_personality 0x1b, tfh_tf_personality
	endbr64
	cmpl	$last_mode_\family, tfh_mode(%rip)
	jbe	1f
	movq	tfh_tf_real+8*row(%rip), %r11
	testq	%r11, %r11
	jz	1f
	jmp	*%r11
1:	pushq	%rbp
	.cfi_def_cfa_offset 16
	.cfi_offset %rbp, -16
	movq	%rsp, %rbp
	.cfi_def_cfa_register %rbp
	subq	$TFH_TF_FRAME, %rsp
	movq	%rdi, 0(%rsp)
	movq	%rsi, 8(%rsp)
	movq	%rdx, 16(%rsp)
	movq	%rcx, 24(%rsp)
	movq	%r8, 32(%rsp)
	movq	%r9, 40(%rsp)
	movl	$row, %edi
	movq	%rsp, %rsi
	call	tfh_tf_enter
	movq	%rax, %r11
	movq	0(%rsp), %rdi
	movq	8(%rsp), %rsi
	movq	16(%rsp), %rdx
	movq	24(%rsp), %rcx
	movq	32(%rsp), %r8
	movq	40(%rsp), %r9
	COPY_STACK \stack
	xorl	%eax, %eax
	testq	%r11, %r11
	jz	2f
	call	*%r11
2:	leaq	-TFH_TF_FRAME(%rbp), %rdi
	movq	%rax, 48(%rdi)
	movq	%rdx, 56(%rdi)
	call	tfh_tf_leave
	movq	48-TFH_TF_FRAME(%rbp), %rax
	movq	56-TFH_TF_FRAME(%rbp), %rdx
	leave
	.cfi_def_cfa %rsp, 8
	ret
	.cfi_endproc
	.size	"\symbol", .-"\symbol"
	.set	row, row+1
.endm

/* The destructor is only reported; its one argument is `this` in every ABI. */
.macro WATCH symbol
	.globl	"\symbol"
	.type	"\symbol", @function
	.p2align 5
"\symbol":
	.cfi_startproc
	endbr64
	pushq	%rdi
	.cfi_def_cfa_offset 16
	call	tfh_tf_destroyed
	popq	%rdi
	.cfi_def_cfa_offset 8
	testq	%rax, %rax
	jz	1f
	jmp	*%rax
1:	ret
	.cfi_endproc
	.size	"\symbol", .-"\symbol"
.endm

.macro WRAP_ROW symbol, family, stack
	.ifnc	"\symbol", ""
	WRAP	"\symbol", \family, \stack
	.endif
.endm

.macro ADDRESS_ROW symbol
	.ifnc	"\symbol", ""
	.quad	"\symbol"
	.endif
.endm

#define TF_FN(id, text, family, args, props, symbol, stack) WRAP_ROW symbol, family, stack;
#define TF_WATCH(symbol) WATCH symbol;
#include "base/tf_api.def"
#undef TF_FN

	.section .data.rel.ro, "aw"
	.p2align 3
	.globl	tfh_tf_wrapper
	.type	tfh_tf_wrapper, @object
tfh_tf_wrapper:
#define TF_FN(id, text, family, args, props, symbol, stack) ADDRESS_ROW symbol;
#define TF_WATCH(symbol) ADDRESS_ROW symbol;
#include "base/tf_api.def"
#undef TF_FN
	.size	tfh_tf_wrapper, .-tfh_tf_wrapper

	.section .note.GNU-stack, "", @progbits
