/*
 * A program in tight quarters: confined stack|coroutine BYTES | confined exit|_exit|exec|thread
 *
 * stack: a thread with that much stack, and a guard page below, is the first to copy to the device.
 * coroutine: so does the main thread on such a stack.
 * The others: a sandbox in which every system call but write, exec, thread creation's and exit
 * kills.
 */
#include <dlfcn.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

static void *context;
static unsigned long memory;
static int (*set_current)(void *);
static int (*copy)(unsigned long, const void *, size_t);

static void *call(const char *name)
{
	static void *driver;
	void *f;

	if (!driver)
		driver = dlopen("libcuda.so.1", RTLD_NOW);
	f = driver ? dlsym(driver, name) : NULL;
	if (!f) {
		puts("no driver");
		exit(1);
	}
	return f;
}

static void *copy_thread(void *arg)
{
	char bytes[64] = "";
	int *result = arg;

	*result = set_current(context) || copy(memory, bytes, sizeof(bytes));
	return NULL;
}

static ucontext_t main_place, small_place;
static int coroutine_result = 1;

static void coroutine(void)
{
	copy_thread(&coroutine_result);
}

static int in_coroutine(char *stack, size_t bytes)
{
	if (getcontext(&small_place))
		return 5;
	small_place.uc_stack.ss_sp = stack;
	small_place.uc_stack.ss_size = bytes;
	small_place.uc_link = &main_place;
	makecontext(&small_place, coroutine, 0);
	return swapcontext(&main_place, &small_place) ? 5 : coroutine_result;
}

static int on_small_stack(size_t bytes, bool of_main)
{
	int (*init)(unsigned) = (int (*)(unsigned))call("cuInit");
	int (*retain)(void **, int) = (int (*)(void **, int))call("cuDevicePrimaryCtxRetain");
	int (*alloc)(unsigned long *, size_t) =
		(int (*)(unsigned long *, size_t))call("cuMemAlloc_v2");
	char *stack = mmap(NULL, 4096 + bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int result = 1;
	pthread_attr_t attr;
	pthread_t thread;

	set_current = (int (*)(void *))call("cuCtxSetCurrent");
	copy = (int (*)(unsigned long, const void *, size_t))call("cuMemcpyHtoD_v2");
	if (init(0) || retain(&context, 0) || set_current(context) || alloc(&memory, 64))
		return 2;
	if (stack == MAP_FAILED || mprotect(stack + 4096, bytes, PROT_READ | PROT_WRITE))
		return 3;
	if (of_main)
		return in_coroutine(stack + 4096, bytes);
	pthread_attr_init(&attr);
	if (pthread_attr_setstack(&attr, stack + 4096, bytes) ||
	    pthread_create(&thread, &attr, copy_thread, &result))
		return 4;
	pthread_join(thread, NULL);
	return result;
}

#define ALLOW(call)                                                                                \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),                                           \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static int enter_sandbox(void)
{
	struct sock_filter rules[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		ALLOW(SYS_write),
		ALLOW(SYS_execve),
		ALLOW(SYS_exit_group),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog program = {sizeof(rules) / sizeof(*rules), rules};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

int main(int argc, char **argv)
{
	char *nothing[] = {NULL};

	if (argc > 2)
		return on_small_stack(strtoul(argv[2], NULL, 10), !strcmp(argv[1], "coroutine"));
	if (argc < 2 || enter_sandbox())
		return 77;
	if (!strcmp(argv[1], "_exit"))
		_exit(7);
	if (!strcmp(argv[1], "exec")) {
		execve("/no/such/program", nothing, nothing);
		_exit(errno == ENOENT ? 7 : 1);
	}
	exit(7);
}
