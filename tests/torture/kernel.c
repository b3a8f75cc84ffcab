/* What a job may ask of the kernel for its own protection or speed: kernel WAY N. */
#include "job.h"

#include <linux/io_uring.h>
#include <linux/landlock.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#define MB (1ul << 20)

static int said(int n, const char *what)
{
	steps(n);
	nap_ms(150);
	steps(n);
	puts(what);
	return 7;
}

/* Its /proc entries belong to root from then on, and no other process may read its memory. */
static int not_dumpable(int n, char **more)
{
	(void)more;
	steps(n);
	must(!prctl(PR_SET_DUMPABLE, 0), "PR_SET_DUMPABLE");
	pid_t child = fork();
	if (!child) {
		steps(n);
		exit(3);
	}
	must(ended(child) == 3, "child");
	return said(n, "not dumpable");
}

/* No file may be opened, made or removed any more. */
static int landlocked(int n, char **more)
{
	struct landlock_ruleset_attr all = {.handled_access_fs = (1u << 13) - 1};
	int fd;

	(void)more;
	steps(n);
	nap_ms(150);
	must(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "PR_SET_NO_NEW_PRIVS");
	fd = (int)syscall(SYS_landlock_create_ruleset, &all, sizeof(all), 0);
	if (fd >= 0 && syscall(SYS_landlock_restrict_self, fd, 0))
		must(0, "landlock");
	close(fd);
	for (int i = 0; i < 10; i++)
		said(n, "locked in");
	return 7;
}

/* Pages never both writable and executable. */
static int no_new_code(int n, char **more)
{
	(void)more;
	(void)!prctl(65 /* PR_SET_MDWE */, 1, 0, 0, 0);
	return said(n, "no new code");
}

/* An effective user of its own while recording begins, as servers take for a moment. */
static int other_effective_user(int n, char **more)
{
	(void)more;
	must(!seteuid(65534), "seteuid");
	steps(n);
	nap_ms(150);
	must(!seteuid(0), "seteuid");
	return said(n, "root again");
}

/* Every descriptor but three closes at the exec that follows, in a table of its own. */
static int close_on_exec(int n, char **more)
{
	char count[16];

	steps(n);
	nap_ms(150);
	must(!syscall(SYS_close_range, 3u, ~0u, 2u | 4u /* UNSHARE, CLOEXEC */), "close_range");
	steps(n);
	snprintf(count, sizeof(count), "%d", n);
	execl(more[0], more[0], "said", count, NULL);
	return 1;
}

static int only_said(int n, char **more)
{
	(void)more;
	return said(n, "executed");
}

/* A kernel's thread is among the process' own. */
static int ring_of_the_kernel(int n, char **more)
{
	struct io_uring_params params = {.flags = IORING_SETUP_SQPOLL, .sq_thread_idle = 2000};
	int fd = (int)syscall(SYS_io_uring_setup, 4, &params);

	(void)more;
	if (fd < 0)
		puts("no ring");
	said(n, "with a ring");
	close(fd);
	return said(n, "without");
}

/* All memory from here on is locked, of which there is little: the job's share stays the job's. */
static int little_locked(int n, char **more)
{
	struct rlimit limit = {strtoul(more[0], NULL, 0) * MB, strtoul(more[0], NULL, 0) * MB};

	must(!setrlimit(RLIMIT_MEMLOCK, &limit), "setrlimit");
	must(!setgid(65534) && !setuid(65534), "setuid");
	must(!mlockall(MCL_FUTURE), "mlockall");
	steps(n);
	nap_ms(150);
	puts(mmap(NULL, strtoul(more[1], NULL, 0) * MB, PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED
		     ? "has room"
		     : "has no room");
	return said(n, "locked");
}

/* Nothing of the recorder's is a child that the job could wait for. */
static int no_children(int n, char **more)
{
	(void)more;
	must(!prctl(PR_SET_CHILD_SUBREAPER, 1), "PR_SET_CHILD_SUBREAPER");
	for (int i = 0; i < 20; i++) {
		steps(n);
		must(waitpid(-1, NULL, __WALL) < 0 && errno == ECHILD, "waitpid");
		nap_ms(10);
	}
	return said(n, "childless");
}

/* Threads with as little stack as there may be, whose first call may set everything up. */
static int small_stacks(int n, char **more)
{
	pthread_attr_t attr;
	pthread_t thread;

	(void)more;
	pthread_attr_init(&attr);
	must(!pthread_attr_setstacksize(&attr, (size_t)strtoul(more[0], NULL, 0)), "stack size");
	for (int i = 0; i < n; i++) {
		must(!pthread_create(&thread, &attr, steps_thread, (void *)100), "pthread_create");
		pthread_join(thread, NULL);
	}
	return said(n, "small");
}

static void on_signal(int number)
{
	(void)number;
	step();
}

/* A handler that calls the driver on the smallest stack for signals, the process' first calls among them. */
static int small_signal_stack(int n, char **more)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
	size_t size = strtoul(more[0], NULL, 0);
	char *guarded = mmap(NULL, 3 * size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	stack_t stack = {.ss_sp = guarded + size, .ss_size = size};

	must(guarded != MAP_FAILED && !mprotect(stack.ss_sp, size, PROT_READ | PROT_WRITE), "mmap");
	must(!sigaltstack(&stack, NULL) && !sigaction(SIGUSR1, &action, NULL), "sigaltstack");
	for (int i = 0; i < n; i++)
		raise(SIGUSR1);
	return said(n, "small");
}

/* Deeper than a path can say: kernel deep N DIRECTORY */
static int deep(int n, char **more)
{
	char name[201];

	memset(name, 'd', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	must(!chdir(more[0]), "chdir");
	for (int i = 0; i < 30; i++)
		must(!mkdir(name, 0755) && !chdir(name), "deep");
	return said(n, "deep");
}

int main(int argc, char **argv)
{
	static const struct way ways[] = {{"nodump", not_dumpable},
					  {"landlock", landlocked},
					  {"nocode", no_new_code},
					  {"euid", other_effective_user},
					  {"cloexec", close_on_exec},
					  {"said", only_said},
					  {"uring", ring_of_the_kernel},
					  {"locked", little_locked},
					  {"childless", no_children},
					  {"stacks", small_stacks},
					  {"signalstack", small_signal_stack},
					  {"deep", deep},
					  {NULL, NULL}};

	return choose(ways, argc, argv);
}
