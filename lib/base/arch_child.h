/* Creates a child process that shares this one's memory, on each processor: the part of base/arch.h
 * that only one file needs. */
#ifndef TFH_BASE_ARCH_CHILD_H
#define TFH_BASE_ARCH_CHILD_H

/* Makes the system call `number`(a, b, 0, 0, 0), which creates a child in this process' memory
 * (CLONE_VM, CLONE_VFORK). The child calls run(arg), which does not return, on the stack that ends
 * at `top`. Returns its process number or -errno. */
#if defined(__x86_64__)
static inline long tfh_arch_child(long number, long a, long b, void (*run)(void *), void *arg,
				  void *top)
{
	register long fourth __asm__("r10") = 0;
	register long fifth __asm__("r8") = 0;
	long pid;

	__asm__ volatile("syscall\n\ttestq %%rax, %%rax\n\tjnz 1f\n\t"
			 "movq %[top], %%rsp\n\tmovq %[arg], %%rdi\n\t"
			 "callq *%[run]\n\thlt\n1:"
			 : "=a"(pid)
			 : "0"(number), "D"(a), "S"(b), "d"(0l), "r"(fourth),
			   "r"(fifth), [run] "r"(run), [arg] "r"(arg), [top] "r"(top)
			 : "rcx", "r11", "memory", "cc");
	return pid;
}
#else
static inline long tfh_arch_child(long number, long a, long b, void (*run)(void *), void *arg,
				  void *top)
{
	register long first __asm__("x0") = a;
	register long second __asm__("x1") = b;
	register long third __asm__("x2") = 0;
	register long fourth __asm__("x3") = 0;
	register long fifth __asm__("x4") = 0;
	register long what __asm__("x8") = number;

	__asm__ volatile("svc #0\n\tcbnz x0, 1f\n\tmov sp, %[top]\n\tmov x0, %[arg]\n\t"
			 "blr %[run]\n\tbrk #0\n1:"
			 : "+r"(first)
			 : "r"(second), "r"(third), "r"(fourth), "r"(fifth),
			   "r"(what), [run] "r"(run), [arg] "r"(arg), [top] "r"(top)
			 : "memory", "cc");
	return first;
}
#endif

#endif
