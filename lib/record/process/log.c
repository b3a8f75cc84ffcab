#include "record/process/log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/access.h"
#include "base/clean.h"
#include "base/fd.h"
#include "record/process/apart.h"
#include "record/process/recorder.h"

#define LOG_LINES_MAX 1000 /* a broken machine must not fill a disk */

static uint32_t lines;	  /* atomic */
static uint32_t failures; /* atomic */

static void expand_pid(const char *pattern, char *path, size_t size)
{
	const char *at = strstr(pattern, "%p");

	if (at)
		snprintf(path, size, "%.*s%d%s", (int)(at - pattern), pattern,
			 (int)tfh_recorder.pid, at + 2);
	else
		snprintf(path, size, "%s", pattern);
}

/*
 * Path of the log of this process. It is made once, in static memory, because the caller's stack
 * may be 16 KiB. NULL: another thread is making it, and this line is lost.
 */
static const char *log_path(const char *pattern)
{
	static char path[PATH_MAX];
	static int32_t made_for; /* atomic: pid; -pid: being made */
	int32_t pid = (int32_t)tfh_recorder.pid;
	int32_t was = __atomic_load_n(&made_for, __ATOMIC_ACQUIRE);

	if (was == pid)
		return path;
	if (was == -pid || !__atomic_compare_exchange_n(&made_for, &was, -pid, false,
							__ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return NULL;
	expand_pid(pattern, path, sizeof(path));
	__atomic_store_n(&made_for, pid, __ATOMIC_RELEASE);
	return path;
}

void tfh_xfsz_block(struct tfh_xfsz *x)
{
	sigset_t set;

	sigemptyset(&x->old);
	sigpending(&x->old);
	x->waiting = sigismember(&x->old, SIGXFSZ) == 1;
	sigemptyset(&set);
	sigaddset(&set, SIGXFSZ);
	x->blocked = !pthread_sigmask(SIG_BLOCK, &set, &x->old);
}

void tfh_xfsz_restore(const struct tfh_xfsz *x)
{
	const struct timespec now = {0, 0};
	sigset_t set, pending;

	if (!x->blocked)
		return;
	sigemptyset(&set);
	sigaddset(&set, SIGXFSZ);
	sigemptyset(&pending);
	sigpending(&pending);
	if (!x->waiting && sigismember(&pending, SIGXFSZ) == 1)
		sigtimedwait(&set, NULL, &now);
	pthread_sigmask(SIG_SETMASK, &x->old, NULL);
}

/* Whether there is room below the file size limit. A part of a line would take the rest of it, and
 * the job's next line would end the job. */
static bool fits(int fd, size_t len)
{
	struct rlimit limit;
	struct stat st;

	return getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur == RLIM_INFINITY ||
	       tfh_fstat(fd, &st) || !S_ISREG(st.st_mode) ||
	       (uint64_t)st.st_size + len <= limit.rlim_cur;
}

/* A line beyond the file size limit is lost; it must not end the job. */
static void write_line(int fd, const char *line, size_t len)
{
	struct tfh_xfsz x;
	ssize_t written;

	if (!fits(fd, len))
		return;
	tfh_xfsz_block(&x);
	written = tfh_write(fd, line, len);
	(void)written;
	tfh_xfsz_restore(&x);
}

struct log_line {
	const char *text;
	size_t len;
};

static void put_line(void *arg)
{
	const struct log_line *l = arg;

	write_line(STDERR_FILENO, l->text, l->len);
}

/* The flusher has no standard error of its own. */
static void to_stderr(const char *text, size_t len)
{
	struct log_line l = {text, len};

	tfh_among_job(put_line, &l);
}

/* A reader that never opens the file, or never reads, must not hold the job up. */
static void refuse(const char *path)
{
	static uint32_t told;
	static const char what[] = "tfhook: TFHOOK_LOG is neither a file nor a terminal: ",
			  remedy[] = "; name a file that need not exist\n";

	if (tfh_recorder.rank.rank > 0 || __atomic_exchange_n(&told, 1, __ATOMIC_RELAXED))
		return;
	to_stderr(what, sizeof(what) - 1);
	to_stderr(path, strlen(path));
	to_stderr(remedy, sizeof(remedy) - 1);
}

/* Opened for each line, since the job may close descriptors it does not know. */
static int open_log(const char *path)
{
	int fd = tfh_open_above(AT_FDCWD, path,
				O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW |
					O_NONBLOCK | O_NOCTTY,
				0644);
	struct stat st;

	if (fd < 0) {
		if (errno == ENXIO || errno == ELOOP)
			refuse(path);
		return -1;
	}
	if (!tfh_fstat(fd, &st) && (S_ISREG(st.st_mode) || S_ISCHR(st.st_mode)))
		return fd;
	refuse(path);
	tfh_close(fd);
	return -1;
}

static void append(const char *line, size_t len)
{
	const char *pattern = tfh_opt_str(&tfh_recorder.options, TFH_OPT_LOG);
	const char *path = pattern[0] ? log_path(pattern) : NULL;
	int fd;

	if (!pattern[0])
		to_stderr(line, len);
	fd = path ? open_log(path) : -1;
	if (fd < 0)
		return;
	write_line(fd, line, len);
	tfh_close(fd);
}

void tfh_log(int level, const char *fmt, ...)
{
	int saved = errno;
	char text[1024], line[1024];
	va_list args;
	int n;

	/* With a file but no level, only important lines are written. */
	if (level > tfh_opt_int(&tfh_recorder.options, TFH_OPT_VERBOSE) &&
	    !(level == 1 && tfh_opt_str(&tfh_recorder.options, TFH_OPT_LOG)[0]))
		return;
	if (__atomic_fetch_add(&lines, 1, __ATOMIC_RELAXED) >= LOG_LINES_MAX)
		return;
	va_start(args, fmt);
	n = vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (n >= 0) {
		n = snprintf(line, sizeof(line), "tfhook[%d]: ", (int)tfh_recorder.pid);
		n += (int)tfh_clean(line + n, sizeof(line) - (size_t)n - 1, text, strlen(text));
		line[n++] = '\n';
		append(line, (size_t)n);
	}
	errno = saved;
}

void tfh_log_failure(const char *what, const char *remedy)
{
	int saved = errno;
	static char text[PATH_MAX + 512], line[PATH_MAX + 512]; /* filled once, on any stack */
	size_t n;

	/* Once per job: printed by rank 0, or by a process without a rank. */
	if (tfh_recorder.rank.rank <= 0 && !__atomic_fetch_add(&failures, 1, __ATOMIC_RELAXED)) {
		snprintf(text, sizeof(text), "tfhook: %s; %s", what, remedy);
		n = tfh_clean(line, sizeof(line) - 1, text, strlen(text));
		line[n++] = '\n';
		to_stderr(line, n);
	}
	tfh_log(1, "%s; %s", what, remedy);
	errno = saved;
}
