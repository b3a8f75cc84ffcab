/* A job under the preload that marks steps and then leaves in the way that argv[1] names. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void (*step)(void);
static int (*flush)(unsigned);

static void steps(int n)
{
	for (int i = 0; step && i < n; i++)
		step();
}

static void *thread(void *arg)
{
	(void)arg;
	for (;;)
		steps(1);
	return NULL;
}

static void *worker(void *arg)
{
	for (int i = 0; i < 50; i++, usleep(1000))
		steps(1);
	return arg;
}

static void said_goodbye(void)
{
	if (write(1, "bye\n", 4) != 4)
		_exit(1);
}

static void on_abort(int signal)
{
	(void)signal;
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	int status = 0;

	step = (void (*)(void))dlsym(RTLD_DEFAULT, "tfhook_step");
	flush = (int (*)(unsigned))dlsym(RTLD_DEFAULT, "tfhook_flush");
	if (!strcmp(how, "nothing"))
		return 7;
	steps(101); /* 100 steps lie between 101 marks */
	errno = 55;
	if (!strcmp(how, "return"))
		return 7;
	if (!strcmp(how, "_exit"))
		_exit(7);
	if (!strcmp(how, "_Exit"))
		_Exit(7);
	if (!strcmp(how, "quick_exit"))
		quick_exit(7);
	if (!strcmp(how, "abort"))
		abort();
	if (!strcmp(how, "exec"))
		execl("/bin/sh", "sh", "-c", "exit 7", NULL);
	if (!strcmp(how, "noexec")) { /* fails, and the job goes on */
		int fd = open("/tmp", O_RDONLY | O_DIRECTORY);

		if (execv("/etc/passwd", argv) != -1 || errno != EACCES)
			return 1;
		if (execv("/bin", argv) != -1 || errno != EACCES)
			return 2;
		close(fd);
		steps(51);
		return 7;
	}
	if (!strcmp(how, "spawn")) {
		char *args[] = {"true", NULL};
		pid_t pid;

		if (posix_spawn(&pid, "/bin/true", NULL, NULL, args, environ))
			return 1;
		waitpid(pid, &status, 0);
		steps(50);
		return status ? 1 : 7;
	}
	if (!strcmp(how,
		    "vfork")) { /* the child's exec fails, so it leaves by _exit in our memory */
		pid_t pid = vfork();

		if (!pid) {
			execl("/nowhere", "nowhere", NULL);
			_exit(3);
		}
		waitpid(pid, &status, 0);
		steps(50);
		return WEXITSTATUS(status) == 3 ? 7 : 1;
	}
	if (!strcmp(how, "fork")) {
		pid_t pid = fork();

		if (!pid) {
			steps(11);
			_exit(5);
		}
		waitpid(pid, &status, 0);
		return WEXITSTATUS(status) == 5 ? 7 : 1;
	}
	if (!strcmp(how, "daemon")) { /* closes everything and opens a file of its own */
		char name[256];
		int fd;

		for (fd = 3; fd < 1024; fd++)
			close(fd);
		snprintf(name, sizeof(name), "%s/own", argv[2]);
		for (int i = 0; i < 300; i++)
			if (open(name, O_RDWR | O_CREAT | O_APPEND, 0600) < 0)
				return 1;
		steps(50);
		if (flush)
			flush(2000);
		steps(50);
		return 7;
	}
	if (!strcmp(how, "busy")) { /* while a thread records */
		pthread_t t;

		pthread_create(&t, NULL, thread, NULL);
		usleep(100000);
		return 7;
	}
	if (!strcmp(how, "caught")) { /* abort with a handler that returns */
		signal(SIGABRT, on_abort);
		abort();
	}
	if (!strcmp(how, "main_first") ||
	    !strcmp(how, "main_first_blocked")) { /* other threads end the process */
		pthread_t t;
		sigset_t all;

		sigfillset(&all);
		if (how[10])
			pthread_sigmask(SIG_SETMASK, &all, NULL);
		atexit(said_goodbye);
		pthread_create(&t, NULL, worker, NULL);
		pthread_exit(NULL);
	}
	if (!strcmp(how, "space")) { /* most of what a small limit leaves */
		steps(1000);
		usleep(50000);
		return malloc((size_t)atoi(argv[3]) << 20) ? 7 : 1;
	}
	if (!strcmp(how, "lowered")) { /* below what is there already, and a ring wants to grow */
		const struct rlimit none = {0, 0};

		if (setrlimit(RLIMIT_FSIZE, &none))
			return 1;
		for (int i = 0; i < 100; i++, usleep(1000))
			steps(1000);
		return 7;
	}
	if (!strcmp(how, "limit")) { /* the file size limit raises SIGXFSZ at whoever writes on */
		usleep(100000);
		steps(100);
		return 7;
	}
	return 2;
}
