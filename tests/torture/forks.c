/* Processes that beget processes: forks WAY N. */
#include "job.h"

#include <sched.h>
#include <spawn.h>
#include <sys/stat.h>

extern char **environ;

static int one_after_another(int n, char **more)
{
	int bad = 0;

	(void)more;
	steps(10);
	for (int i = 0; i < n; i++) {
		pid_t pid = fork();

		if (!pid) {
			steps(5);
			exit(3);
		}
		bad += ended(pid) != 3;
	}
	printf("bad %d\n", bad);
	return 7;
}

static int at_once(int n, char **more)
{
	int bad = 0, status;

	(void)more;
	steps(10);
	for (int i = 0; i < n; i++) {
		pid_t pid = fork();

		if (!pid) {
			steps(5);
			nap_ms(1);
			exit(3);
		}
		bad += pid < 0;
	}
	while (waitpid(-1, &status, 0) > 0)
		bad += !WIFEXITED(status) || WEXITSTATUS(status) != 3;
	printf("bad %d\n", bad);
	return 7;
}

static volatile int enough;

/* Forks while other threads record, set up and end; children of children, too. */
static int storm(int n, char **more)
{
	pthread_t t[3];
	int bad = 0;

	(void)more;
	for (int i = 0; i < 3; i++)
		t[i] = spawn(steps_until, (intptr_t)&enough);
	for (int i = 0; i < n; i++) {
		pthread_t short_one = spawn(steps_thread, 20);
		pid_t pid = fork();

		if (!pid) {
			if (i % 4 == 0) {
				pid_t grandchild = fork();

				steps(4);
				if (!grandchild)
					exit(2);
				exit(ended(grandchild) == 2 ? 3 : 4);
			}
			steps(i % 3);
			exit(3);
		}
		pthread_join(short_one, NULL);
		bad += ended(pid) != 3;
	}
	enough = 1;
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	printf("bad %d\n", bad);
	return 7;
}

static int vforks(int n, char **more)
{
	static const char *program; /* a vfork child returns into this frame */
	static int bad;

	(void)more;
	steps(10);
	for (int i = 0; i < n; i++) {
		program = i % 2 ? "/nonexistent" : "/bin/true";
		pid_t pid = vfork();

		if (!pid) {
			execl(program, "true", (char *)NULL);
			_exit(9);
		}
		bad += ended(pid) != (i % 2 ? 9 : 0);
		step();
	}
	printf("bad %d\n", bad);
	return 7;
}

static int spawns(int n, char **more)
{
	char *args[] = {"true", NULL};
	int bad = 0;

	(void)more;
	steps(10);
	for (int i = 0; i < n; i++) {
		pid_t pid;

		bad += posix_spawn(&pid, "/bin/true", NULL, NULL, args, environ) || ended(pid);
		step();
	}
	printf("bad %d\n", bad);
	return 7;
}

/* A process that no fork handler saw made. */
static int raw_clone(int n, char **more)
{
	int bad = 0;

	(void)more;
	steps(10);
	for (int i = 0; i < n; i++) {
		pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);

		if (!pid) {
			count_as_new();
			steps(5);
			_exit(3);
		}
		bad += ended(pid) != 3;
		step();
	}
	printf("bad %d\n", bad);
	return 7;
}

/* The same by clone3 and with what a thread shares: descriptors, directory. */
static int raw_clone3(int n, char **more)
{
	struct {
		uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls;
	} how = {.flags = CLONE_FILES | CLONE_FS, .exit_signal = SIGCHLD};
	int bad = 0;

	(void)more;
	steps(10);
	for (int i = 0; i < n; i++) {
		pid_t pid = (pid_t)syscall(SYS_clone3, &how, sizeof(how));

		must(pid >= 0, "clone3");
		if (!pid) {
			count_as_new();
			steps(5);
			_exit(3);
		}
		bad += ended(pid) != 3;
		step();
	}
	printf("bad %d\n", bad);
	return 7;
}

static int shares_memory(void *arg)
{
	steps(5); /* in its parent's memory they are its parent's */
	return *(int *)arg;
}

/* A process that shares its parent's memory, as a vfork child does, beside a parent that goes on.
 */
static int clones_vm(int n, int flags)
{
	char *stack = mmap(NULL, 256 << 10, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	int bad = 0, status = 3;

	must(stack != MAP_FAILED, "mmap");
	steps(10);
	for (int i = 0; i < n; i++) {
		/* CLONE_SETTLS is left out: the child has its parent's thread pointer, so the
		 * parent waits. */
		pid_t pid = clone(shares_memory, stack + (256 << 10), CLONE_VM | flags | SIGCHLD,
				  &status);

		bad += ended(pid) != 3;
		step();
	}
	printf("bad %d\n", bad);
	return 7;
}

static int clone_vm(int n, char **more)
{
	(void)more;
	return clones_vm(n, CLONE_VFORK);
}

/* The parent waits for its end, and not by CLONE_VFORK. */
static int clone_vm_files(int n, char **more)
{
	(void)more;
	return clones_vm(n, CLONE_FILES | CLONE_FS | CLONE_SIGHAND);
}

static int by_system(int n, char **more)
{
	int bad = 0;

	(void)more;
	for (int i = 0; i < n; i++) {
		step();
		bad += system("exit 5") != 5 << 8;
	}
	printf("bad %d\n", bad);
	return 7;
}

static int daemonised(int n, char **more)
{
	int fd;

	steps(10);
	if (fork())
		_exit(7);
	setsid();
	if (fork())
		_exit(7);
	if (chdir("/"))
		return 1;
	umask(0);
	for (fd = 0; fd < 1024; fd++)
		close(fd);
	if (open("/dev/null", O_RDWR) || dup(0) != 1 || dup(0) != 2)
		return 1;
	steps(n);
	fd = open(more[0], O_CREAT | O_WRONLY | O_TRUNC, 0644);
	steps(n);
	if (write(fd, "done\n", 5) != 5)
		return 1;
	return 0;
}

int main(int argc, char **argv)
{
	static const struct way ways[] = {
		{"one", one_after_another}, {"many", at_once},
		{"storm", storm},	    {"vfork", vforks},
		{"spawn", spawns},	    {"rawclone", raw_clone},
		{"clonevm", clone_vm},	    {"system", by_system},
		{"clone3", raw_clone3},	    {"clonefiles", clone_vm_files},
		{"daemon", daemonised},	    {NULL, NULL}};

	return choose(ways, argc, argv);
}
