/* Calls of the driver that are left in another way than by a return; argv[1] says which. A call
 * that is left so has no end and no record; all others have. left.py compares. */
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

#define STACK (256u << 10)

static int (*init)(unsigned), (*sync_in)(int (*)(void));
static int (*copy)(unsigned long long, const void *, size_t, void *);
static int (*query)(void *), (*destroy)(void *);

static void copies(int n)
{
	while (n--)
		copy(1, &n, sizeof(n), NULL);
}

static void queries(int n)
{
	while (n--)
		query(NULL);
}

/* ---- threads that end inside ---- */

static pthread_key_t key;
static pthread_t thread;
static volatile int arrived;

static void late(void *arg)
{
	destroy(arg);
}

static _Noreturn int wait_forever(void)
{
	arrived = 1;
	for (;;)
		pause();
}

static _Noreturn int spin_forever(void)
{
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	arrived = 1;
	for (;;)
		;
}

static _Noreturn int leave_thread(void)
{
	pthread_exit(NULL);
}

static void *sync_once(void *inside)
{
	pthread_setspecific(key, &thread);
	copies(1);
	sync_in((int (*)(void))inside);
	return NULL;
}

static void end_inside(int (*inside)(void))
{
	arrived = 0;
	pthread_key_create(&key, late);
	pthread_create(&thread, NULL, sync_once, (void *)inside);
	while (inside != leave_thread && !arrived)
		usleep(1000);
	if (inside != leave_thread)
		pthread_cancel(thread);
	pthread_join(thread, NULL);
}

/* ---- jumps ---- */

static sigjmp_buf back;

static _Noreturn int jump(void)
{
	siglongjmp(back, 1);
}

static void on_signal(int signal)
{
	(void)signal;
	siglongjmp(back, 1);
}

static int interrupted(void)
{
	raise(SIGUSR1);
	return 1;
}

static int jump_from_below(void)
{
	char room[4096];

	memset(room, 1, sizeof(room));
	sync_in(jump);
	return room[7];
}

static void jumps(int (*inside)(void), int n)
{
	for (volatile int i = 0; i < n; i++) {
		if (!sigsetjmp(back, 1))
			sync_in(inside);
		copies(1);
	}
}

static void query_from_below(void)
{
	char room[4096];

	memset(room, 1, sizeof(room));
	query(room);
}

/* At any moment, our own code included; after each jump a call from where the stack is deeper than
 * what was left, and 500 at the end. The ring is emptied now and then, so that it has room for
 * these. */
static void storm(void)
{
	struct itimerval every = {{0, 100}, {0, 100}};
	int (*flush)(unsigned) = (int (*)(unsigned))dlsym(RTLD_DEFAULT, "tfhook_flush");
	volatile int left = 0;
	sigset_t alarm, old;

	sigemptyset(&alarm);
	sigaddset(&alarm, SIGALRM);
	signal(SIGALRM, on_signal);
	if (!sigsetjmp(back, 1)) /* a signal may come before the first jump is prepared below */
		setitimer(ITIMER_REAL, &every, NULL);
	while (left < 200)
		if (sigsetjmp(back, 1)) {
			sigprocmask(SIG_BLOCK, &alarm, &old);
			query_from_below();
			if (flush && left % 8 == 0)
				flush(1000);
			left++;
			sigprocmask(SIG_SETMASK, &old, NULL);
		} else {
			for (;; copies(1))
				for (volatile int k = 0; k < 1000; k++)
					;
		}
	every = (struct itimerval){{0, 0}, {0, 0}};
	signal(SIGALRM, SIG_IGN);
	setitimer(ITIMER_REAL, &every, NULL);
	queries(500);
}

/* ---- stacks that are switched ---- */

static ucontext_t outer, inner;
static void *inner_stack;

static int yield_inside(void)
{
	swapcontext(&inner, &outer);
	return 0;
}

static void coroutine(void)
{
	copies(1);
	sync_in(yield_inside);
	copies(1);
	swapcontext(&inner, &outer);
}

/* `hint`: above or below the thread's own stack, as far as there is room. */
static void start(void *hint)
{
	inner_stack = mmap(hint, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	getcontext(&inner);
	inner.uc_stack.ss_sp = inner_stack;
	inner.uc_stack.ss_size = STACK;
	makecontext(&inner, coroutine, 0);
	swapcontext(&outer, &inner);
}

static void *switched(void *hint)
{
	start(hint);
	queries(3);
	usleep(20000);
	swapcontext(&outer, &inner);
	queries(3);
	return NULL;
}

static void *go_on(void *arg)
{
	queries(1);
	swapcontext(&outer, &inner);
	queries(1);
	return arg;
}

static void *only_start(void *arg)
{
	start(NULL);
	queries(1);
	return arg;
}

/* The call began on a thread that has ended when another one comes back from it. */
static void hop(int first_ends)
{
	pthread_t first, second;

	if (first_ends) {
		pthread_create(&first, NULL, only_start, NULL);
		pthread_join(first, NULL);
	} else {
		only_start(NULL);
	}
	pthread_create(&second, NULL, go_on, NULL);
	pthread_join(second, NULL);
	queries(5);
}

static void forgotten(void)
{
	for (int i = 0; i < 20; i++) {
		start(NULL);
		munmap(inner_stack, STACK);
		queries(1);
	}
}

static void in_thread(void *(*function)(void *), void *arg)
{
	pthread_t t;

	pthread_create(&t, NULL, function, arg);
	pthread_join(t, NULL);
}

/* ---- the end of main ---- */

static void *rest(void *arg)
{
	pthread_join(*(pthread_t *)arg, NULL);
	queries(5);
	return NULL;
}

static void leave_main(void)
{
	static pthread_t self;
	pthread_t t;

	self = pthread_self();
	pthread_create(&t, NULL, rest, &self);
	sync_in(leave_thread);
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);

	if (!driver)
		return 1;
	init = (int (*)(unsigned))dlsym(driver, "cuInit");
	sync_in = (int (*)(int (*)(void)))dlsym(driver, "cuStreamSynchronize");
	copy = (int (*)(unsigned long long, const void *, size_t, void *))dlsym(
		driver, "cuMemcpyHtoDAsync_v2");
	query = (int (*)(void *))dlsym(driver, "cuStreamQuery");
	destroy = (int (*)(void *))dlsym(driver, "cuStreamDestroy_v2");
	signal(SIGUSR1, on_signal);
	init(0);
	copies(1);
	if (!strcmp(how, "cancel"))
		end_inside(wait_forever);
	else if (!strcmp(how, "cancel_async"))
		end_inside(spin_forever);
	else if (!strcmp(how, "thread_exit"))
		end_inside(leave_thread);
	else if (!strcmp(how, "longjmp"))
		jumps(jump, 100);
	else if (!strcmp(how, "longjmp_nested"))
		jumps(jump_from_below, 100);
	else if (!strcmp(how, "siglongjmp"))
		jumps(interrupted, 100);
	else if (!strcmp(how, "storm"))
		storm();
	else if (!strcmp(how, "killed")) {
		jumps(jump, 3);
		usleep(250000);
		kill(getpid(), SIGKILL);
	} else if (!strcmp(how, "coroutine")) {
		switched(NULL);
		switched((void *)0x10000000);
		in_thread(switched, NULL);
		in_thread(switched, (void *)0x20000000);
	} else if (!strcmp(how, "hop"))
		hop(0);
	else if (!strcmp(how, "hop_ended"))
		hop(1);
	else if (!strcmp(how, "forgotten"))
		forgotten();
	else if (!strcmp(how, "main_exit"))
		leave_main();
	else
		return 2;
	return 7;
}
