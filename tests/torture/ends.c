/* Ends of a process and of programs within it: ends WAY N. Each way makes N steps before its end.
 */
#include "job.h"

#include <setjmp.h>
#include <sys/resource.h>
#include <ucontext.h>

extern char **environ;

static int plain(int n, char **more)
{
	(void)more;
	steps(n);
	puts("plain");
	return 7;
}

static int by_abort(int n, char **more)
{
	(void)more;
	steps(n);
	abort();
}

static int segv(int n, char **more)
{
	(void)more;
	steps(n);
	*(volatile int *)(intptr_t)(n & 0) = 1;
	return 0;
}

static int quick(int n, char **more)
{
	(void)more;
	steps(n);
	quick_exit(5);
}

static int underscore(int n, char **more)
{
	(void)more;
	steps(n);
	_exit(6);
}

static int raw(int n, char **more)
{
	(void)more;
	steps(n);
	syscall(SYS_exit_group, 5);
	return 0;
}

static int by_signal(int n, char **more)
{
	steps(n);
	raise(atoi(more[0]));
	return 0;
}

static void leave(int signal)
{
	exit(20 + signal);
}

/* A handler that exits, as many launchers' do, while other threads go on. */
static int handler_exits(int n, char **more)
{
	(void)more;
	signal(SIGTERM, leave);
	spawn(steps_thread, 1 << 30);
	steps(n);
	raise(SIGTERM);
	return 0;
}

static void *last_worker(void *n)
{
	nap_ms(100);
	return steps_thread(n);
}

static void leave_now(int signal)
{
	_exit(20 + signal);
}

static void step_and_leave(int signal)
{
	steps(10);
	exit(20 + signal);
}

static int step_interrupted(int signal)
{
	__atomic_fetch_add(&mine->tried, 1, __ATOMIC_RELAXED);
	copy(1, NULL, (size_t)signal);
	return 0; /* it does not come back */
}

/* The handler runs inside a call of the driver's, which never returns. */
static int inside_exits(int n, char **more)
{
	void (*const how[])(int) = {leave, leave_now, step_and_leave};

	signal(SIGUSR1, how[atoi(more[0])]);
	steps(n);
	return step_interrupted(SIGUSR1);
}

/* And so, with the loader's lock held, where a library's destructor exits: see libctor.c. */
static int destructor_exits(int n, char **more)
{
	void *lib;

	steps(n);
	setenv("TORTURE_EXIT", "1", 1);
	lib = dlopen(more[0], RTLD_NOW | RTLD_LOCAL);
	must(lib != NULL, "dlopen");
	__atomic_fetch_add(&mine->tried, 4, __ATOMIC_RELAXED);
	__atomic_fetch_add(&mine->done, 4, __ATOMIC_RELAXED);
	if (atoi(more[1]))
		dlclose(lib);
	return 7;
}

static pthread_barrier_t at_once;

static void *exits_at_once(void *n)
{
	steps((long)(intptr_t)n);
	pthread_barrier_wait(&at_once);
	exit(9);
}

static int two_exits(int n, char **more)
{
	(void)more;
	pthread_barrier_init(&at_once, NULL, 2);
	spawn(exits_at_once, n);
	exits_at_once((void *)(intptr_t)n);
	return 7;
}

static void fork_steps(void)
{
	pid_t child = fork();

	if (!child) {
		steps(20);
		_exit(3);
	}
	printf("child %d\n", ended(child));
}

/* Of a handler that was registered before the recording began, which runs after its end, or behind
 * that. */
static int fork_at_exit(int n, char **more)
{
	if (atoi(more[0]))
		atexit(fork_steps);
	steps(n);
	if (!atoi(more[0]))
		atexit(fork_steps);
	return 7;
}

static void ten_steps(void)
{
	steps(10);
}

static int quick_with_handler(int n, char **more)
{
	(void)more;
	at_quick_exit(ten_steps);
	steps(n);
	quick_exit(5);
}

/* One second of processor time: the end, or a handler that exits. */
static int uses_up(int n, char **more)
{
	const struct rlimit second = {1, 2};

	if (atoi(more[0]))
		signal(SIGXCPU, leave);
	steps(n);
	must(!setrlimit(RLIMIT_CPU, &second), "setrlimit");
	for (;;)
		step();
	return 0;
}

/* The process ends when its last thread does, with status 0. */
static int main_thread_ends(int n, char **more)
{
	(void)more;
	steps(10);
	spawn(last_worker, n);
	pthread_exit(NULL);
}

static void *exits(void *n)
{
	steps((long)(intptr_t)n);
	exit(9);
}

static int thread_exits(int n, char **more)
{
	(void)more;
	spawn(exits, n);
	for (;;)
		step();
	return 0;
}

static void late_steps(void)
{
	steps(10);
}

__attribute__((destructor)) static void later_steps(void)
{
	if (getenv("TORTURE_LATE"))
		steps(10);
}

/* Exit handlers and destructors step on, and so does another thread. Those calls pass through. */
static int after_exit(int n, char **more)
{
	(void)more;
	setenv("TORTURE_LATE", "1", 1);
	atexit(late_steps);
	steps(n);
	atexit(late_steps);
	spawn(steps_thread, 1 << 30);
	nap_ms(5);
	return 7;
}

static int exec_self(int n, char **more)
{
	char left[16], *args[] = {"ends", "exec", left, NULL};

	(void)more;
	steps(10);
	if (!n) {
		puts("the last program");
		return 7;
	}
	snprintf(left, sizeof(left), "%d", n - 1);
	execv("/proc/self/exe", args);
	return 1;
}

static void *exec_thread(void *arg)
{
	char *args[] = {"true", NULL};

	(void)arg;
	steps(10);
	execv("/bin/true", args);
	return NULL;
}

/* Its records are closed at the exec; what other threads called between that and their end is lost
 * with them. */
static int exec_beside(int n, char **more)
{
	(void)more;
	steps(n);
	spawn(exec_thread, 0);
	for (;;)
		step();
	return 0;
}

static void *exec_in_vain(void *arg)
{
	char *args[] = {"x", NULL};

	(void)arg;
	for (int i = 0; i < 20; i++) {
		execv("/nonexistent", args);
		execv("/etc/passwd", args);
	}
	return NULL;
}

/* An exec that fails closes the recording and begins another: what falls between passes through. */
static int exec_fails(int n, char **more)
{
	(void)more;
	steps(10);
	pthread_t t = spawn(exec_in_vain, 0);
	steps(n);
	pthread_join(t, NULL);
	steps(10);
	puts("still here");
	return 7;
}

/* Stopped and continued by a child, in the middle. */
static int stopped(int n, char **more)
{
	(void)more;
	pthread_t t = spawn(steps_thread, n);
	for (int i = 0; i < 5; i++) {
		pid_t child = fork();

		if (!child) {
			nap_ms(30);
			kill(getppid(), SIGCONT);
			_exit(0);
		}
		raise(SIGSTOP);
		ended(child);
		step();
	}
	pthread_join(t, NULL);
	return 7;
}

/* Coroutines: contexts that take turns on stacks of their own. */
static ucontext_t back, there;

static void coroutine(void)
{
	for (;;) {
		step();
		swapcontext(&there, &back);
	}
}

static int coroutines(int n, char **more)
{
	static char stack[64 << 10];

	(void)more;
	getcontext(&there);
	there.uc_stack.ss_sp = stack;
	there.uc_stack.ss_size = sizeof(stack);
	makecontext(&there, coroutine, 0);
	for (int i = 0; i < n; i++) {
		step();
		swapcontext(&back, &there);
	}
	return 7;
}

static sigjmp_buf out;

static void jump(int signal)
{
	(void)signal;
	siglongjmp(out, 1);
}

/* A timer's handler leaves whatever runs, hooks included, with siglongjmp. */
static int jumps(int n, char **more)
{
	volatile int left = n;

	(void)more;
	signal(SIGALRM, jump);
	while (left-- > 0)
		if (!sigsetjmp(out, 1)) {
			ualarm((useconds_t)(200 + left % 300), 0);
			for (;;)
				step();
		}
	puts("came back");
	return 7;
}

int main(int argc, char **argv)
{
	static const struct way ways[] = {{"plain", plain},
					  {"abort", by_abort},
					  {"segv", segv},
					  {"quick", quick},
					  {"underscore", underscore},
					  {"raw", raw},
					  {"signal", by_signal},
					  {"handler", handler_exits},
					  {"main", main_thread_ends},
					  {"thread", thread_exits},
					  {"late", after_exit},
					  {"exec", exec_self},
					  {"execbeside", exec_beside},
					  {"execfails", exec_fails},
					  {"stopped", stopped},
					  {"coroutines", coroutines},
					  {"jumps", jumps},
					  {"inside", inside_exits},
					  {"destructor", destructor_exits},
					  {"twice", two_exits},
					  {"forks", fork_at_exit},
					  {"quickhandler", quick_with_handler},
					  {"usesup", uses_up},
					  {NULL, NULL}};

	return choose(ways, argc, argv);
}
