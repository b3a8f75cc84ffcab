#include "cli/capture.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

static void child(char *const *argv, const char *preload, int out)
{
	int null = open("/dev/null", O_RDONLY);

	if (null >= 0)
		dup2(null, 0);
	dup2(out, 1);
	dup2(out, 2);
	if (preload)
		setenv("LD_PRELOAD", preload, 1);
	execvp(argv[0], argv);
	_exit(127);
}

static long seconds_now(void)
{
	return (long)(tfh_clock_ns(CLOCK_MONOTONIC) / 1000000000);
}

int tfh_capture(char *const *argv, const char *preload, unsigned seconds, char *out, size_t size)
{
	long end = seconds_now() + (long)seconds;
	char rest[4096];
	size_t used = 0;
	int pipes[2], status;

	out[0] = '\0';
	if (pipe2(pipes, O_CLOEXEC))
		return -errno;
	pid_t pid = fork();
	if (pid < 0) {
		int err = -errno;
		close(pipes[0]);
		close(pipes[1]);
		return err;
	}
	if (!pid)
		child(argv, preload, pipes[1]);
	close(pipes[1]);
	for (;;) {
		struct pollfd fd = {.fd = pipes[0], .events = POLLIN};
		long left = end - seconds_now();
		if (left <= 0 || poll(&fd, 1, (int)left * 1000) <= 0) {
			kill(pid, SIGKILL);
			break;
		}
		/* Output beyond the buffer is read and discarded, so that the program does not
		 * block. */
		ssize_t n = used + 1 < size ? read(pipes[0], out + used, size - 1 - used)
					    : read(pipes[0], rest, sizeof(rest));
		if (n <= 0)
			break;
		if (used + 1 < size)
			out[used += (size_t)n] = '\0';
	}
	close(pipes[0]);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
