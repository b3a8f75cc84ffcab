/* Inspects a program before it is started: can the loader load the recorder into it? */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/arch.h"
#include "cli/run.h"

#define HEAD_BYTES 4096

__attribute__((format(printf, 3, 4))) static void
set(struct tfh_program *p, enum tfh_program_state state, const char *fmt, ...)
{
	va_list args;

	p->state = state;
	va_start(args, fmt);
	vsnprintf(p->why, sizeof(p->why), fmt, args);
	va_end(args);
}

/* Finds `name` along PATH as execvp does. Returns 0, -EACCES if there are only unusable files, or
 * -ENOENT. */
static int find_in_path(const char *name, char path[4096])
{
	const char *dirs = getenv("PATH");
	int err = -ENOENT;

	if (strchr(name, '/')) {
		snprintf(path, 4096, "%s", name);
		return access(path, F_OK) ? -errno : 0;
	}
	if (!dirs)
		dirs = "/bin:/usr/bin";
	for (;;) {
		size_t len = strcspn(dirs, ":");
		struct stat st;
		snprintf(path, 4096, "%.*s%s%s", (int)len, dirs, len ? "/" : "", name);
		if (!stat(path, &st) && S_ISREG(st.st_mode)) {
			if (!access(path, X_OK))
				return 0;
			err = -EACCES;
		}
		if (!dirs[len])
			return err;
		dirs += len + 1;
	}
}

static ssize_t read_head(const char *path, unsigned char *head)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	ssize_t n = pread(fd, head, HEAD_BYTES, 0);
	if (n < 0)
		n = -errno;
	close(fd);
	return n;
}

/* The interpreter in a script's first line, or false. */
static bool script_interpreter(const unsigned char *head, ssize_t n, char path[4096])
{
	if (n < 3 || memcmp(head, "#!", 2))
		return false;
	size_t i = 2, end;
	while (i < (size_t)n && (head[i] == ' ' || head[i] == '\t'))
		i++;
	for (end = i; end < (size_t)n && !strchr(" \t\r\n", head[end]); end++)
		;
	snprintf(path, 4096, "%.*s", (int)(end - i), (const char *)head + i);
	return end > i;
}

/* The loader that an ELF image names: "" if none, NULL if the name is beyond the first page. */
static const char *loader_of(const unsigned char *head, size_t n)
{
	Elf64_Ehdr h;

	memcpy(&h, head, sizeof(h));
	if (h.e_phentsize != sizeof(Elf64_Phdr))
		return NULL;
	for (unsigned i = 0; i < h.e_phnum; i++) {
		Elf64_Phdr ph;
		if (h.e_phoff > n || n - h.e_phoff < (i + 1) * sizeof(ph))
			return NULL;
		memcpy(&ph, head + h.e_phoff + i * sizeof(ph), sizeof(ph));
		if (ph.p_type != PT_INTERP)
			continue;
		bool here = ph.p_offset < n && ph.p_filesz && ph.p_filesz <= n - ph.p_offset &&
			    !head[ph.p_offset + ph.p_filesz - 1];
		return here ? (const char *)head + ph.p_offset : NULL;
	}
	return "";
}

static void check_elf(struct tfh_program *p, const char *path, const unsigned char *head, size_t n)
{
	Elf64_Ehdr h;

	if (n < sizeof(h) || head[EI_CLASS] != ELFCLASS64) {
		set(p, TFH_PROGRAM_OTHER_CLASS,
		    "%s is a 32-bit program and the recorder is 64-bit, so it cannot be recorded: "
		    "use the 64-bit "
		    "build",
		    path);
		return;
	}
	memcpy(&h, head, sizeof(h));
	const char *loader = loader_of(head, n);
	if (h.e_machine != TFH_ARCH_ELF)
		set(p, TFH_PROGRAM_OTHER_CLASS,
		    "%s is built for another CPU architecture, so it cannot be recorded: use this "
		    "machine's build",
		    path);
	else if (loader && strstr(loader, "/ld-musl"))
		set(p, TFH_PROGRAM_OTHER_LIBC,
		    "%s uses the C library musl and the recorder needs glibc, so it runs without "
		    "being recorded: use a build for glibc",
		    path);
	else if (loader && !*loader)
		set(p, TFH_PROGRAM_STATIC,
		    "%s is statically linked: no loader, so nothing can be preloaded into it. Use "
		    "a dynamically "
		    "linked build; children that are dynamically linked are recorded all the same",
		    path);
}

/* The kernel ignores LD_PRELOAD when a program gains rights from its file. */
static bool gains_rights(const char *path, const struct stat *st)
{
	if ((st->st_mode & S_ISUID) && st->st_uid != geteuid())
		return true;
	if ((st->st_mode & S_ISGID) && st->st_gid != getegid())
		return true;
	return geteuid() != 0 && getxattr(path, "security.capability", NULL, 0) > 0;
}

static void check_file(struct tfh_program *p, const char *path, int level)
{
	unsigned char head[HEAD_BYTES];
	char interpreter[4096];
	struct stat st;

	if (stat(path, &st)) {
		if (level)
			set(p, TFH_PROGRAM_NOT_EXECUTABLE,
			    "%s asks for the interpreter %s, which does not exist: correct its "
			    "first line",
			    p->path, path);
		else
			set(p, TFH_PROGRAM_NOT_FOUND, "%s: %s", path, strerror(errno));
		return;
	}
	if (S_ISDIR(st.st_mode)) {
		set(p, TFH_PROGRAM_NOT_EXECUTABLE, "%s is a directory, not a command", path);
		return;
	}
	if (access(path, X_OK)) {
		set(p, TFH_PROGRAM_NOT_EXECUTABLE,
		    "%s is not executable: chmod +x it, or put its interpreter before it (tfhook "
		    "run python3 %s)",
		    path, path);
		return;
	}
	if (gains_rights(path, &st)) {
		set(p, TFH_PROGRAM_PRIVILEGED,
		    "%s runs with its owner's rights (setuid, setgid or capabilities), so the "
		    "kernel drops LD_PRELOAD: trace the program that it starts instead (sudo "
		    "tfhook run CMD, not tfhook run sudo CMD)",
		    path);
		return;
	}
	ssize_t n = read_head(path, head);
	if (n >= EI_NIDENT && !memcmp(head, ELFMAG, SELFMAG))
		check_elf(p, path, head, (size_t)n);
	else if (level < 4 && script_interpreter(head, n, interpreter))
		check_file(p, interpreter, level + 1);
}

void tfh_program_check(const char *name, struct tfh_program *p)
{
	memset(p, 0, sizeof(*p));
	int err = find_in_path(name, p->path);

	if (err == -ENOENT || err == -ENOTDIR) {
		if (strchr(name, '/'))
			set(p, TFH_PROGRAM_NOT_FOUND, "%s: no such file", name);
		else
			set(p, TFH_PROGRAM_NOT_FOUND, "no command '%s' in PATH%s%s", name,
			    access(name, F_OK) ? "" : "; it is in this directory: start it as ./",
			    access(name, F_OK) ? "" : name);
		return;
	}
	if (err == -EACCES && !strchr(name, '/')) {
		set(p, TFH_PROGRAM_NOT_EXECUTABLE, "'%s' is in PATH, but not executable", name);
		return;
	}
	check_file(p, p->path, 0);
}
