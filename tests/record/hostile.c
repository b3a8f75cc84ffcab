/* A job in unfriendly surroundings: hostile HOW DIR makes them, marks 101 steps and ends with
 * status 7; 1 to 6 mean that the job itself saw something else than without tfhook. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void (*step)(void);
static int (*flush)(unsigned ms);
static char own[4096]; /* a folder for files of the job's */

static void steps(int n)
{
	for (int i = 0; step && i < n; i++)
		step();
}

static int limit(int what, rlim_t most)
{
	struct rlimit l = {most, most};

	return setrlimit(what, &l);
}

/* ---- descriptors ---- */

/* Without descriptors 0 to 2 nobody else may sit there: what the job then prints would go into its
 * files. */
static int nofds(void)
{
	close(0);
	close(1);
	close(2);
	steps(101);
	usleep(100000); /* the flusher has its files open */
	for (int fd = 0; fd < 3; fd++)
		if (write(fd, "spoilt", 6) >= 0 || errno != EBADF)
			return 1;
	return open("/dev/null", O_WRONLY) ? 2 : 7;
}

/* A program that closes all that it does not know, and opens files of its own on the numbers that
 * are free then. */
static int closeall(void)
{
	int fd[40];

	steps(51);
	usleep(100000);
	syscall(SYS_close_range, 3u, ~0u, 0u);
	for (int i = 0; i < 40; i++) {
		char name[4200];

		snprintf(name, sizeof(name), "%s/own%d", own, i);
		fd[i] = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
		if (fd[i] < 0 || write(fd[i], "own", 3) != 3)
			return 1;
	}
	steps(50);
	usleep(1000000); /* the flusher comes around */
	for (int i = 0; i < 40; i++) {
		char got[8];

		if (pread(fd[i], got, sizeof(got), 0) != 3 || memcmp(got, "own", 3))
			return 2;
	}
	return 7;
}

/* Descriptors are for the job: what it may open without tfhook, it may with tfhook, but for the few of the
 * recording. */
static int fewfds(void)
{
	int n = 0;

	if (limit(RLIMIT_NOFILE, 6))
		return 1;
	steps(101);
	while (dup(0) >= 0)
		n++;
	return n ? 7 : 2;
}

static bool as_before(const bool *before, int lowest)
{
	int fd = dup(0);

	if (fd != lowest || close(fd))
		return false;
	for (int i = 0; i < 1024; i++)
		if ((fcntl(i, F_GETFD) >= 0) != before[i])
			return false;
	return true;
}

/* No number of the job's is ever taken while the recorder writes, samples and looks at its disk,
 * and none of ours is inherited. */
static int unseen(void)
{
	bool before[1024];
	int lowest = dup(0), status;
	char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pid_t pid;

	close(lowest);
	if (syscall(SYS_close_range, 1u << 20, 1u << 20, 0u) || madvise(page, 4096, 23))
		return 77; /* a kernel before 5.14 */
	for (int i = 0; i < 1024; i++)
		before[i] = fcntl(i, F_GETFD) >= 0;
	steps(51);
	for (int i = 0; i < 300; i++, usleep(4000)) {
		if (i % 100 == 0 && flush)
			flush(1000);
		if (!as_before(before, lowest))
			return 2;
	}
	pid = fork();
	if (!pid)
		_exit(as_before(before, lowest) ? 0 : 1);
	if (waitpid(pid, &status, 0) != pid || status)
		return 3;
	steps(50);
	return 7;
}

/* ---- the journal's lock, by which others tell whether its process lives ---- */

static const char *journal_of(pid_t pid)
{
	static char path[5000];
	const char *places[] = {getenv("TFHOOK_RUN"), "/dev/shm"};
	char end[64];

	snprintf(end, sizeof(end), ".%d.journal", (int)pid);
	for (int i = 0; i < 2; i++) {
		DIR *d = places[i] ? opendir(places[i]) : NULL;
		struct dirent *e;

		for (path[0] = '\0'; d && !path[0] && (e = readdir(d));)
			if (strlen(e->d_name) > strlen(end) &&
			    !strcmp(e->d_name + strlen(e->d_name) - strlen(end), end))
				snprintf(path, sizeof(path), "%s/%s", places[i], e->d_name);
		if (d)
			closedir(d);
		if (path[0])
			return path;
	}
	return NULL;
}

/* Seen from another process: 1, 0; -1: there is no journal. */
static int is_locked(pid_t pid)
{
	const char *path = journal_of(pid);
	pid_t child = fork();
	int status;

	if (!child) {
		struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
		int fd = path ? open(path, O_RDWR) : -1;

		_exit(fd < 0 || fcntl(fd, F_GETLK, &lock) ? 2 : lock.l_type != F_UNLCK);
	}
	waitpid(child, &status, 0);
	return WIFEXITED(status) && WEXITSTATUS(status) < 2 ? WEXITSTATUS(status) : -1;
}

/* A job that reads all of its run directory, to upload it. */
static int uploads(void)
{
	const char *path;
	char bytes[4096];
	int fd, before;

	steps(51);
	before = is_locked(getpid());
	path = journal_of(getpid());
	fd = path ? open(path, O_RDONLY) : -1;
	if (before < 0 || fd < 0 || read(fd, bytes, sizeof(bytes)) < 0 || close(fd))
		return 77;
	steps(50);
	return is_locked(getpid()) == before ? 7 : 3;
}

/* A process is killed while a child of it lives on. */
static int orphan(void)
{
	int ready[2], gone[2], locked;
	char byte;
	pid_t pid;

	if (pipe(ready) || pipe(gone))
		return 1;
	pid = fork();
	if (!pid) {
		steps(51);
		if (!fork()) {
			close(gone[1]);
			_exit(write(ready[1], "", 1) == 1 && read(gone[0], &byte, 1) == 0 ? 0 : 1);
		}
		pause();
	}
	if (read(ready[0], &byte, 1) != 1 || is_locked(pid) != 1)
		return 77;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	locked = is_locked(pid);
	unlink(journal_of(pid));
	return locked == 0 ? 7 : 3;
}

/* ---- what the kernel refuses ---- */

static int refuse(const int *calls, int n, int error)
{
	struct sock_filter code[40] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
	struct sock_fprog program = {.len = (unsigned short)(n + 3), .filter = code};

	for (int i = 0; i < n; i++)
		code[i + 1] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
							   (uint32_t)calls[i], (uint8_t)(n - i), 0);
	code[n + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	code[n + 2] =
		(struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)error);
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static int refused(const int *calls, int n, int error)
{
	if (refuse(calls, n, error))
		return 77;
	steps(101);
	usleep(50000);
	return 7;
}

static int nothreads(void)
{
	return refused((int[]){SYS_clone, SYS_clone3}, 2, EAGAIN);
}

/* The last write is this thread's then, and the limit answers it with a signal that kills. */
static int nothreads_full(void)
{
	int rc = nothreads();

	return limit(RLIMIT_FSIZE, 0) ? 1 : rc;
}

/* Before 5.9 there is no close_range; before 5.14 madvise makes no room in a file. */
static int old_kernel(bool room)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_close_range, 5, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 2),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, room ? ~0u : 23, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS)};
	struct sock_fprog program = {.len = sizeof(code) / sizeof(code[0]), .filter = code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		return 77;
	steps(51);
	usleep(50000);
	for (int fd = 3; fd < 1024; fd++)
		close(fd);
	steps(50);
	return 7;
}

static int before_5_14(void)
{
	return old_kernel(false);
}

static int no_table(void)
{
	return old_kernel(true);
}

static int nofallocate(void)
{
	return refused((int[]){SYS_fallocate, SYS_memfd_create, SYS_ftruncate}, 3, EPERM);
}

static int nofiles(void)
{
	return refused((int[]){SYS_openat, SYS_open, SYS_creat, SYS_mkdir, SYS_mkdirat}, 5, EACCES);
}

static int nommap(void)
{
	return refused((int[]){SYS_mmap, SYS_mremap}, 2, ENOMEM);
}

static int nothing_else(void)
{
	return refused((int[]){SYS_fcntl, SYS_statfs, SYS_fstatfs, SYS_prctl, SYS_madvise,
			       SYS_getdents64, SYS_rt_sigprocmask, SYS_sched_getaffinity,
			       SYS_process_vm_readv, SYS_membarrier, SYS_getrusage, SYS_rename,
			       SYS_renameat2, SYS_unlink, SYS_fsync},
		       15, EPERM);
}

static int rooted(void)
{
	if (chroot(own) || chdir("/"))
		return 77;
	steps(101);
	return 7;
}

static int memory(void)
{
	if (limit(RLIMIT_AS, 80u << 20))
		return 1;
	steps(101);
	return 7;
}

/* ---- a clock that stands still, and a flusher that never comes back from it ---- */

static int frozen; /* atomic */

int clock_gettime(clockid_t id, struct timespec *ts)
{
	int still = __atomic_load_n(&frozen, __ATOMIC_ACQUIRE);

	while (still && syscall(SYS_gettid) != getpid())
		pause();
	if (still) {
		*ts = (struct timespec){.tv_sec = still};
		return 0;
	}
	return (int)syscall(SYS_clock_gettime, id, ts);
}

static int still(void)
{
	struct timespec now;

	steps(101);
	usleep(100000);
	clock_gettime(CLOCK_MONOTONIC, &now);
	__atomic_store_n(&frozen, (int)now.tv_sec, __ATOMIC_RELEASE);
	usleep(200000);
	alarm(20); /* the end takes 2 s */
	return 7;
}

/* ---- signals and threads ---- */

static void on_tick(int signal)
{
	int saved = errno;

	(void)signal;
	steps(1);
	errno = saved;
}

/* A signal every millisecond whose handler marks a step on a stack that has room for little more
 * than its frame. */
static int ticks(void)
{
	size_t size = getauxval(AT_MINSIGSTKSZ) + 4096, page = 4096;
	size_t rounded = (size + page - 1) & ~(page - 1);
	char *area = mmap(NULL, rounded + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);
	struct sigaction sa = {.sa_handler = on_tick, .sa_flags = SA_ONSTACK | SA_RESTART};
	struct itimerval every = {{0, 1000}, {0, 1000}};

	if (area == MAP_FAILED || mprotect(area, page, PROT_NONE))
		return 1;
	stack_t stack = {.ss_sp = area + page, .ss_size = rounded};
	if (sigaltstack(&stack, NULL) || sigaction(SIGALRM, &sa, NULL))
		return 2;
	setitimer(ITIMER_REAL, &every, NULL); /* the first mark may be the handler's */
	for (int i = 0; i < 300; i++) {
		steps(10);
		usleep(500);
	}
	every = (struct itimerval){{0, 0}, {0, 0}};
	setitimer(ITIMER_REAL, &every, NULL);
	return 7;
}

static void *one_step(void *arg)
{
	(void)arg;
	steps(2);
	return NULL;
}

static int churn(void)
{
	for (int i = 0; i < 2500; i++) {
		pthread_t t[4];

		for (int k = 0; k < 4; k++)
			if (pthread_create(&t[k], NULL, one_step, NULL))
				return 1;
		for (int k = 0; k < 4; k++)
			pthread_join(t[k], NULL);
	}
	return 7;
}

static int spawns(void)
{
	steps(101);
	for (int i = 0; i < 300; i++) {
		int status;
		pid_t pid = vfork();

		if (!pid) {
			execl("/bin/true", "true", (char *)NULL);
			_exit(99);
		}
		if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
			return 1;
	}
	return 7;
}

/* ---- names ---- */

static int noenv(void)
{
	clearenv();
	if (chdir(own))
		return 1;
	steps(101);
	return 7;
}

static int plain(void)
{
	steps(101);
	return 7;
}

static const struct {
	const char *name;
	int (*run)(void);
} ways[] = {{"plain", plain},
	    {"nofds", nofds},
	    {"closeall", closeall},
	    {"fewfds", fewfds},
	    {"unseen", unseen},
	    {"before_5_14", before_5_14},
	    {"no_table", no_table},
	    {"uploads", uploads},
	    {"orphan", orphan},
	    {"nothreads", nothreads},
	    {"nothreads_full", nothreads_full},
	    {"nofallocate", nofallocate},
	    {"nofiles", nofiles},
	    {"nommap", nommap},
	    {"nothing_else", nothing_else},
	    {"rooted", rooted},
	    {"memory", memory},
	    {"still", still},
	    {"ticks", ticks},
	    {"churn", churn},
	    {"spawns", spawns},
	    {"noenv", noenv}};

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	snprintf(own, sizeof(own), "%s", argv[2]);
	step = (void (*)(void))dlsym(RTLD_DEFAULT, "tfhook_step");
	flush = (int (*)(unsigned))dlsym(RTLD_DEFAULT, "tfhook_flush");
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		if (!strcmp(argv[1], ways[i].name))
			return ways[i].run();
	return 2;
}
