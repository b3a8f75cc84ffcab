#include "cli/python_start.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/capture.h"

/* The interpreter next to the command, as in a wheel's environment; else the one on PATH. */
static void find_python(char python[4096])
{
	ssize_t n = readlink("/proc/self/exe", python, 4000);

	python[n > 0 ? n : 0] = '\0';
	char *slash = strrchr(python, '/');
	if (slash)
		memcpy(slash, "/python3", sizeof("/python3"));
	if (!slash || access(python, X_OK))
		memcpy(python, "python3", sizeof("python3"));
}

static void put_first(const char *variable, const char *path)
{
	const char *now = getenv(variable);
	char value[16384];

	snprintf(value, sizeof(value), "%s%s%s", path, now && *now ? ":" : "", now ? now : "");
	setenv(variable, value, 1);
}

bool tfh_python_package(char path[4096])
{
	if (tfh_install_find("python/tfhook/mcp.py", path))
		return false;
	for (int up = 0; up < 2; up++)
		*strrchr(path, '/') = '\0';
	return true;
}

/* `make install` puts the package where no interpreter searches,
 * and the package looks for this command. */
static void add_paths(void)
{
	char path[4096];

	if (tfh_python_package(path))
		put_first("PYTHONPATH", path);
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	path[n > 0 ? n : 0] = '\0';
	char *slash = strrchr(path, '/');
	if (slash) {
		*slash = '\0';
		put_first("PATH", path);
	}
}

/* The flags that were given, then the operands. */
static void run_module(char *python, const char *module, const struct tfh_command_line *args)
{
	char *argv[4 + 2 * TFH_MAX_FLAGS + args->operands + 1], names[TFH_MAX_FLAGS][32];
	int n = 0;

	argv[n++] = python;
	argv[n++] = "-m";
	argv[n++] = (char *)module;
	for (int i = 0; i < TFH_MAX_FLAGS && args->command->flags[i].name; i++) {
		const struct tfh_flag *flag = &args->command->flags[i];
		if (!args->value[i])
			continue;
		snprintf(names[i], sizeof(names[i]), "--%s", flag->name);
		argv[n++] = names[i];
		if (flag->arg)
			argv[n++] = (char *)args->value[i];
	}
	if (args->operands)
		argv[n++] = "--";
	for (int i = 0; i < args->operands; i++)
		argv[n++] = args->operand[i];
	argv[n] = NULL;
	execvp(python, argv);
}

/* Finds an interpreter with these modules, and prepares the environment for it. Returns whether
 * there is one. */
static bool prepare(char python[4096], const char *needs)
{
	char out[4096], code[512];
	char *look[] = {python, "-c", code, NULL};

	snprintf(code, sizeof(code),
		 "import importlib.util as u, sys\n"
		 "sys.exit(any(not u.find_spec(m) for m in '%s'.split(',')))",
		 needs);
	find_python(python);
	add_paths();
	return !tfh_capture(look, NULL, 60, out, sizeof(out));
}

#define MISSING                                                                                            \
	"this needs a python3 with the packages %s: install tfhook's wheel (make wheel), then: %s -m pip " \
	"install %s"

int tfh_python_start(const char *module, const char *needs, const char *remedy,
		     const struct tfh_command_line *args)
{
	char python[4096];

	if (!prepare(python, needs)) {
		tfh_say(MISSING, needs, python, remedy);
		return TFH_EXIT_TOOL;
	}
	run_module(python, module, args);
	tfh_say("cannot start %s", python);
	return TFH_EXIT_TOOL;
}

/* ---- a module as a filter ---- */

struct filter {
	char python[4096];
	const char *module;
	FILE *made, *said; /* its output and its messages: files without a name */
	int in;		   /* its input, here */
	pid_t pid;
};

/* A file in $TMPDIR that has no name. */
static FILE *scratch(void)
{
	const char *folder = getenv("TMPDIR");
	char path[4096];

	snprintf(path, sizeof(path), "%s/tfhook-export-XXXXXX",
		 folder && *folder ? folder : "/tmp");
	int fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		return NULL;
	unlink(path);
	return fdopen(fd, "w+");
}

static int start_filter(struct filter *f)
{
	char *argv[] = {f->python, "-m", (char *)f->module, NULL};
	int ends[2];

	f->made = scratch();
	f->said = f->made ? scratch() : NULL;
	if (!f->said || pipe2(ends, O_CLOEXEC))
		return -errno;
	f->pid = fork();
	if (!f->pid) {
		dup2(ends[0], STDIN_FILENO);
		dup2(fileno(f->made), STDOUT_FILENO);
		dup2(fileno(f->said), STDERR_FILENO);
		execvp(f->python, argv);
		_exit(127);
	}
	int code = -errno;
	close(ends[0]);
	f->in = ends[1];
	if (f->pid > 0)
		return 0;
	close(f->in);
	return code;
}

/* Gives the module its input. It may end before it has read all of that. */
static int feed(struct filter *f, int (*fill)(void *arg, FILE *in, struct tfh_err *err), void *arg,
		struct tfh_err *err)
{
	struct sigaction before;
	FILE *in = fdopen(f->in, "w");
	int rc;

	if (!in) {
		close(f->in);
		return -ENOMEM;
	}
	sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, &before);
	rc = fill(arg, in, err);
	if (fclose(in) && !rc)
		rc = -EIO;
	sigaction(SIGPIPE, &before, NULL);
	return rc;
}

/* The last line of what the module said. */
static void last_line(FILE *said, char *line, size_t cap)
{
	char next[512];

	*line = '\0';
	rewind(said);
	while (fgets(next, sizeof(next), said)) {
		next[strcspn(next, "\n")] = '\0';
		if (*next)
			snprintf(line, cap, "%s", next);
	}
}

static int wait_for(struct filter *f, struct tfh_err *err)
{
	char line[512];
	int status;

	while (waitpid(f->pid, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFEXITED(status) && !WEXITSTATUS(status))
		return 0;
	last_line(f->said, line, sizeof(line));
	return tfh_err_set(err, -EIO, "%s failed: %s", f->module,
			   *line ? line : "it was killed, or printed no reason");
}

static int copy(FILE *from, FILE *to)
{
	static char block[1 << 16];
	size_t n;

	rewind(from);
	while ((n = fread(block, 1, sizeof(block), from)))
		if (fwrite(block, 1, n, to) != n)
			return -EIO;
	return ferror(from) ? -EIO : 0;
}

int tfh_python_through(const char *module, const char *needs, const char *remedy, FILE *out,
		       int (*fill)(void *arg, FILE *in, struct tfh_err *err), void *arg,
		       struct tfh_err *err)
{
	struct filter f = {.module = module};
	int rc, ended;

	if (!prepare(f.python, needs))
		return tfh_err_set(err, -ENOPKG, MISSING, needs, f.python, remedy);
	rc = start_filter(&f);
	if (rc) {
		tfh_err_set(err, rc, "cannot start %s: %s", f.python, strerror(-rc));
	} else {
		rc = feed(&f, fill, arg, err);
		ended = wait_for(&f, err);
		rc = ended ? ended : rc ? rc : copy(f.made, out);
	}
	if (f.made)
		fclose(f.made);
	if (f.said)
		fclose(f.said);
	return rc;
}
