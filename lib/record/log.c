/* Messages of the library itself. Safe in signal handlers and atfork handlers: no lock, no
 * allocation; errno is kept. */
#include "record/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LOG_LINES_MAX 1000 /* a broken machine must not fill a disk */

static uint32_t lines;	  /* atomic */
static uint32_t failures; /* atomic */

static void expand_pid(const char *pattern, char *path, size_t size)
{
	const char *at = strstr(pattern, "%p");

	if (at)
		snprintf(path, size, "%.*s%d%s", (int)(at - pattern), pattern, (int)tfh_p.pid,
			 at + 2);
	else
		snprintf(path, size, "%s", pattern);
}

/* Apart from its caller, which may have little stack and no file. */
__attribute__((noinline)) static void append_to_file(const char *pattern, const char *line,
						     size_t len)
{
	char path[PATH_MAX];
	int fd;

	/* Opened for each line: the job may close descriptors it does not know. */
	expand_pid(pattern, path, sizeof(path));
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (fd < 0)
		return;
	if (write(fd, line, len) < 0) {
		/* nobody to tell */
	}
	close(fd);
}

static void append(const char *line, size_t len)
{
	const char *pattern = tfh_opt_str(&tfh_p.options, TFH_OPT_LOG);

	if (pattern[0])
		append_to_file(pattern, line, len);
	else if (write(STDERR_FILENO, line, len) < 0)
		return;
}

void tfh_log(int level, const char *fmt, ...)
{
	int saved = errno;
	char line[1024];
	va_list args;
	int n, m;

	/* With a file and no level given, what matters is written. */
	if (level > tfh_opt_int(&tfh_p.options, TFH_OPT_VERBOSE) &&
	    !(level == 1 && tfh_opt_str(&tfh_p.options, TFH_OPT_LOG)[0]))
		return;
	if (__atomic_fetch_add(&lines, 1, __ATOMIC_RELAXED) >= LOG_LINES_MAX)
		return;
	n = snprintf(line, sizeof(line), "tfhook[%d]: ", (int)tfh_p.pid);
	va_start(args, fmt);
	m = vsnprintf(line + n, sizeof(line) - (size_t)n - 1, fmt, args);
	va_end(args);
	if (m >= 0) {
		n = (int)strlen(line);
		line[n++] = '\n';
		append(line, (size_t)n);
	}
	errno = saved;
}

void tfh_log_failure(const char *what, const char *remedy)
{
	int saved = errno;
	static char line[PATH_MAX + 512]; /* filled once, on any stack */
	int n;

	/* Once per job: rank 0 speaks, or whoever has no rank. */
	if (tfh_p.dir.rank.rank <= 0 && !__atomic_fetch_add(&failures, 1, __ATOMIC_RELAXED)) {
		n = snprintf(line, sizeof(line), "tfhook: %s; %s\n", what, remedy);
		if (n >= (int)sizeof(line)) {
			n = (int)sizeof(line) - 1;
			line[n - 1] = '\n';
		}
		if (n > 0 && write(STDERR_FILENO, line, (size_t)n) < 0) {
			/* the job has closed it */
		}
	}
	tfh_log(1, "%s; %s", what, remedy);
	errno = saved;
}
