/*
 * dlsym and dlvsym as the job sees them. They ask a filter; if it declines, they jump to the real function with the
 * caller's return address and registers unchanged. RTLD_NEXT and RTLD_DEFAULT refer to the calling object, which glibc
 * derives from the return address: with a wrapper written in C, every caller would look like tfhook.
 */
	.text

	.globl	dlsym
	.globl	tfh_dlsym
	.hidden	tfh_dlsym
	.type	dlsym, @function
	.p2align 4
dlsym:
tfh_dlsym:
	.cfi_startproc
	endbr64
	pushq	%rdi
	.cfi_adjust_cfa_offset 8
	pushq	%rsi
	.cfi_adjust_cfa_offset 8
	movq	16(%rsp), %rdx
	subq	$8, %rsp
	.cfi_adjust_cfa_offset 8
	call	tfh_filter_dlsym
	addq	$8, %rsp
	.cfi_adjust_cfa_offset -8
	popq	%rsi
	.cfi_adjust_cfa_offset -8
	popq	%rdi
	.cfi_adjust_cfa_offset -8
	testq	%rax, %rax
	jne	1f
	jmpq	*tfh_next_dlsym(%rip)
1:	ret
	.cfi_endproc
	.size	dlsym, .-dlsym

	.globl	dlvsym
	.globl	tfh_dlvsym
	.hidden	tfh_dlvsym
	.type	dlvsym, @function
	.p2align 4
dlvsym:
tfh_dlvsym:
	.cfi_startproc
	endbr64
	pushq	%rdi
	.cfi_adjust_cfa_offset 8
	pushq	%rsi
	.cfi_adjust_cfa_offset 8
	pushq	%rdx
	.cfi_adjust_cfa_offset 8
	movq	24(%rsp), %rcx
	call	tfh_filter_dlvsym
	popq	%rdx
	.cfi_adjust_cfa_offset -8
	popq	%rsi
	.cfi_adjust_cfa_offset -8
	popq	%rdi
	.cfi_adjust_cfa_offset -8
	testq	%rax, %rax
	jne	1f
	jmpq	*tfh_next_dlvsym(%rip)
1:	ret
	.cfi_endproc
	.size	dlvsym, .-dlvsym

	.section .note.GNU-stack, "", %progbits
