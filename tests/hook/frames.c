/*
 * frames CASE FOLDER: calls the driver from frames that mislead who walks the stack. Each call must return, and the program ends with 0.
 *	false	a function whose unwind table says that it leaves rbp alone, and it does not, is called where an honest one was
 *	loaded	a library is unloaded, and another one comes to lie in its place
 *	mapped	a coroutine's stack is unmapped, which the frame below still points to
 *	deep	20,000 frames
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifdef __x86_64__

#define COPIES 3
typedef int (*call_fn)(void);
typedef int (*through_fn)(call_fn);

static unsigned long long device;
static int (*upload)(unsigned long long, const void *, size_t);
static const char *folder, *what;
static int (*set)(void *);
static void *context;

static int copy(void)
{
	return upload(device, "", 1);
}

int honest(call_fn call), false_table(call_fn call), nowhere(call_fn call, void *rbp);

__asm__(".text\n.globl honest\n.p2align 4\nhonest:\n.cfi_startproc\n"
	"push %rbp\n.cfi_def_cfa_offset 16\n.cfi_offset 6, -16\n"
	"call *%rdi\n"
	"pop %rbp\n.cfi_def_cfa_offset 8\n.cfi_restore 6\nret\n.cfi_endproc\n"
	".globl false_table\n.p2align 4\nfalse_table:\n.cfi_startproc\n"
	"push %rbp\n.cfi_def_cfa_offset 16\n"
	"mov $16, %ebp\n"
	"call *%rdi\n"
	"pop %rbp\n.cfi_def_cfa_offset 8\nret\n.cfi_endproc\n"
	/* As compilers at run time make code: no table. */
	".globl nowhere\n.p2align 4\nnowhere:\n"
	"push %rbp\nmov %rsi, %rbp\ncall *%rdi\npop %rbp\nret\n");

/* The variable array makes the compiler find this frame by rbp. */
static __attribute__((noinline)) int from_one_place(through_fn through, int n)
{
	volatile char room[n];
	int err;

	room[0] = 0;
	err = through(copy);
	return err + room[0];
}

static int false_tables(void)
{
	static const through_fn by[] = {honest, honest, false_table, honest, false_table};
	int err = 0;

	for (unsigned i = 0; i < sizeof(by) / sizeof(*by); i++)
		err |= from_one_place(by[i], 40);
	return err;
}

static int use(const char *name, void **where)
{
	char path[4096];
	void *library;
	int err = 0;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	library = dlopen(path, RTLD_NOW);
	if (!library)
		return 1;
	*where = dlsym(library, "through");
	for (int i = 0; i < COPIES; i++)
		err |= ((through_fn)*where)(copy);
	return dlclose(library) || err;
}

static int libraries(void)
{
	void *first, *second;

	for (int i = 0; i < 10; i++) {
		if (use("libframes.so", &first) || use("libframes_other.so", &second))
			return 1;
		if (first != second) {
			printf("the libraries were loaded elsewhere\n");
			return 1;
		}
	}
	return 0;
}

static int stacks(void)
{
	size_t bytes = 1 << 16;
	int err = 0;

	for (int i = 0; i < 20; i++) {
		char *stack = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				   -1, 0);
		if (stack == MAP_FAILED)
			return 1;
		err |= nowhere(copy, stack + bytes - 64);
		munmap(stack, bytes);
		err |= nowhere(copy, stack + bytes - 64);
		err |= nowhere(copy, (char *)__builtin_frame_address(0) - 64) |
		       nowhere(copy, (void *)-16l);
	}
	return err;
}

static __attribute__((noinline)) int deep(int frames)
{
	int err = frames ? deep(frames - 1) : copy();

	__asm__ volatile("" : "+r"(err)); /* no loop instead */
	return err;
}

static void *act(void *arg)
{
	int err = set(context);

	err |= !strcmp(what, "false")	 ? false_tables()
	       : !strcmp(what, "loaded") ? libraries()
	       : !strcmp(what, "mapped") ? stacks()
					 : deep(20000);

	return err ? arg : NULL;
}

int main(int argc, char **argv)
{
	void *cuda = dlopen("libcuda.so.1", RTLD_NOW), *wrong;
	int (*init)(unsigned), (*retain)(void **, int), (*alloc)(unsigned long long *, size_t);
	pthread_t thread;

	if (argc < 3 || !cuda)
		return 2;
	what = argv[1];
	folder = argv[2];
	*(void **)&init = dlsym(cuda, "cuInit");
	*(void **)&retain = dlsym(cuda, "cuDevicePrimaryCtxRetain");
	*(void **)&set = dlsym(cuda, "cuCtxSetCurrent");
	*(void **)&alloc = dlsym(cuda, "cuMemAlloc_v2");
	*(void **)&upload = dlsym(cuda, "cuMemcpyHtoD_v2");
	if (init(0) || retain(&context, 0) || set(context) || alloc(&device, 64) || copy())
		return 3;
	usleep(300000); /* recording begins with the first call */
	/* Known stacks of the main thread are not walked again. */
	if (pthread_create(&thread, NULL, act, argv) || pthread_join(thread, &wrong))
		return 4;
	return wrong ? 1 : 0;
}

#else
int main(void)
{
	return 77;
}
#endif
