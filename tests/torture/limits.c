/* Limits of every kind, before or after the recording's begin, and files that the job owns: limits
 * WAY N. */
#include "job.h"

#include <dlfcn.h>
#include <sys/resource.h>
#include <sys/stat.h>

static const struct {
	const char *name;
	int which;
} kinds[] = {{"as", RLIMIT_AS},
	     {"core", RLIMIT_CORE},
	     {"cpu", RLIMIT_CPU},
	     {"data", RLIMIT_DATA},
	     {"fsize", RLIMIT_FSIZE},
	     {"locks", RLIMIT_LOCKS},
	     {"memlock", RLIMIT_MEMLOCK},
	     {"msgqueue", RLIMIT_MSGQUEUE},
	     {"nice", RLIMIT_NICE},
	     {"nofile", RLIMIT_NOFILE},
	     {"nproc", RLIMIT_NPROC},
	     {"rss", RLIMIT_RSS},
	     {"rtprio", RLIMIT_RTPRIO},
	     {"rttime", RLIMIT_RTTIME},
	     {"sigpending", RLIMIT_SIGPENDING},
	     {"stack", RLIMIT_STACK}};

static void set(const char *name, const char *value)
{
	struct rlimit limit;

	limit.rlim_cur = limit.rlim_max = strtoull(value, NULL, 0);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(kinds[i].name, name)) {
			must(!setrlimit(kinds[i].which, &limit), "setrlimit");
			return;
		}
	must(0, "kind of limit");
}

static uint32_t over, heard; /* atomic */
static int least, beyond;    /* the numbers that are closed and written to */

static void *writer(void *none)
{
	(void)none;
	while (!__atomic_load_n(&over, __ATOMIC_RELAXED))
		for (int fd = least; fd < beyond; fd++)
			heard += write(fd, "the job's text", 14) > 0;
	return NULL;
}

/* A thread writes to closed descriptors all the time, and none of it reaches a file. */
static int steps_beside_writer(int n, int rounds)
{
	pthread_t t;

	must(!pthread_create(&t, NULL, writer, NULL), "pthread_create");
	for (int i = 0; i < rounds; i++) {
		steps(n);
		nap_ms(10);
	}
	__atomic_store_n(&over, 1, __ATOMIC_RELAXED);
	pthread_join(t, NULL);
	return heard ? 1 : 7;
}

static int writes_to_closed(int n, char **more)
{
	(void)more;
	beyond = 3;
	for (int fd = 0; fd < 3; fd++)
		close(fd);
	return steps_beside_writer(n, 20);
}

/* Each child begins a recording while one of its threads writes to numbers that daemons and libraries use. */
static int children_write_to_closed(int n, char **more)
{
	int children = atoi(more[0]), status = 7;

	least = atoi(more[1]);
	beyond = atoi(more[2]);
	syscall(SYS_close_range, (unsigned)least, ~0u, 0u);
	for (int i = 0; i < children && status == 7; i++) {
		pid_t pid = fork();

		if (!pid) {
			count_as_new();
			exit(steps_beside_writer(n, 1));
		}
		status = ended(pid);
	}
	return status;
}

/* limits before N KIND VALUE */
static int before(int n, char **more)
{
	set(more[0], more[1]);
	steps(n);
	nap_ms(150);
	steps(n);
	puts("limited");
	return 7;
}

static int after(int n, char **more)
{
	steps(n);
	nap_ms(150);
	set(more[0], more[1]);
	for (int i = 0; i < 20; i++) {
		steps(n);
		nap_ms(10);
	}
	puts("limited");
	return 7;
}

/* What the job itself can still get is not ours to take: limits room N BYTES_OF_SPACE BYTES */
static int room(int n, char **more)
{
	set("as", more[0]);
	steps(n);
	nap_ms(100);
	puts(malloc(strtoull(more[1], NULL, 0)) ? "has room" : "has no room");
	return 7;
}

/* Numbers of descriptors that the job uses, low and high, are its own. */
static int closes_std(int n, char **more)
{
	close(0);
	close(1);
	close(2);
	steps(n);
	nap_ms(150);
	for (int want = 0; want < 3; want++)
		if (open(more[0], O_CREAT | O_WRONLY | O_APPEND, 0644) != want)
			return 40 + want;
	steps(n);
	nap_ms(150);
	return 7;
}

static int closes_all(int n, char **more)
{
	int fd[5];
	struct stat st;

	steps(n);
	nap_ms(150);
	syscall(SYS_close_range, 3u, ~0u, 0u);
	for (int i = 0; i < 5; i++)
		fd[i] = open(more[0], O_CREAT | O_RDWR | O_APPEND, 0644);
	for (int i = 0; i < 100; i++) {
		steps(n);
		nap_ms(2);
	}
	must(!fstat(fd[0], &st), "fstat");
	printf("size %ld\n", (long)st.st_size);
	return 7;
}

/* Which numbers are open, as the job and a child see them: the same ones with the preload and without. */
static void say_open(const char *who)
{
	printf("%s:", who);
	for (int fd = 0; fd < 4096; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			printf(" %d", fd);
	printf("\n");
	fflush(stdout);
}

/* By numbers, as daemons and Python's subprocess do: all but one go, and a child gets that one alone. */
static int closes_by_number(int n, char **more)
{
	void (*close_from)(int) = dlsym(RTLD_DEFAULT, "closefrom");
	int fd = open(more[0], O_CREAT | O_RDWR | O_TRUNC, 0644), status;
	pid_t child;

	steps(n);
	nap_ms(150);
	say_open("begun");
	must(fd >= 0 && dup2(fd, 700) == 700 && write(fd, "mine", 4) == 4, "write");
	if (syscall(SYS_close_range, 3u, 699u, 0u))
		for (int i = 3; i < 700; i++)
			close(i);
	say_open("close_range");
	child = fork();
	if (child == 0) {
		steps(n);
		nap_ms(150); /* while recording begins, a descriptor is the recorder's for a moment */
		say_open("child");
		_exit(pread(700, (char[8]){0}, 8, 0) == 4 ? 0 : 1);
	}
	must(waitpid(child, &status, 0) == child && status == 0, "child's file");
	if (close_from)
		close_from(3);
	else
		close(700);
	for (int i = 0; i < 50; i++) {
		steps(n);
		nap_ms(2);
	}
	say_open("closefrom");
	must(open(more[0], O_RDONLY | O_CLOEXEC) == 3, "the first free number");
	return 7;
}

/* Every number up to 1024 is taken by dup2, over whatever was there. */
static int takes_numbers(int n, char **more)
{
	char text[8] = "";
	int fd;

	steps(n);
	nap_ms(150);
	fd = open(more[0], O_CREAT | O_RDWR | O_TRUNC, 0644);
	must(fd >= 0 && write(fd, "mine", 4) == 4, "write");
	for (int i = 3; i < 1024; i++)
		if (i != fd)
			dup2(fd, i);
	for (int i = 0; i < 50; i++) {
		steps(n);
		nap_ms(2);
	}
	must(pread(1000, text, sizeof(text), 0) == 4 && !strcmp(text, "mine"), "own file");
	return 7;
}

static int locked_memory(int n, char **more)
{
	(void)more;
	must(!mlockall(MCL_CURRENT | MCL_FUTURE), "mlockall");
	steps(n);
	puts("locked");
	return 7;
}

int main(int argc, char **argv)
{
	static const struct way ways[] = {{"before", before},
					  {"after", after},
					  {"room", room},
					  {"closestd", closes_std},
					  {"writeclosed", writes_to_closed},
					  {"childrenwrite", children_write_to_closed},
					  {"closeall", closes_all},
					  {"closenumbers", closes_by_number},
					  {"takenumbers", takes_numbers},
					  {"mlockall", locked_memory},
					  {NULL, NULL}};

	return choose(ways, argc, argv);
}
