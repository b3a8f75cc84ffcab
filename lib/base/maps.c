#include "base/maps.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"

/* strtoull() may be another library's, which is not ready for a process's first lookups. */
static uint64_t number(char **at, unsigned base)
{
	static const char digits[] = "0123456789abcdef";
	const char *digit;
	uint64_t n = 0;

	for (; **at && (digit = memchr(digits, **at, base)); ++*at)
		n = n * base + (uint64_t)(digit - digits);
	return n;
}

static bool skip(char **at, char expected)
{
	bool there = **at == expected;

	while (**at == expected)
		++*at;
	return there;
}

/* "7f00-7f80 r--p 00000000 fe:01 4711    /usr/lib/..." */
static bool read_line(char *at, struct tfh_mapping *m)
{
	m->start = number(&at, 16);
	if (!skip(&at, '-'))
		return false;
	m->end = number(&at, 16);
	if (!skip(&at, ' ') || strlen(at) < 5 || at[4] != ' ')
		return false;
	at += 5;
	m->offset = number(&at, 16);
	skip(&at, ' ');
	m->device = number(&at, 16) << 32;
	skip(&at, ':');
	m->device |= number(&at, 16);
	skip(&at, ' ');
	m->inode = number(&at, 10);
	skip(&at, ' ');
	m->path = at;
	return true;
}

/* Takes the complete lines of a text, and returns where the rest begins; NULL: `take` has what it
 * wants. */
static char *take_lines(char *text, tfh_mapping_fn take, void *data)
{
	struct tfh_mapping m;
	char *line = text, *eol;

	for (; (eol = strchr(line, '\n')); line = eol + 1) {
		*eol = '\0';
		if (read_line(line, &m) && take(&m, data))
			return NULL;
	}
	return line;
}

int tfh_each_mapping(int32_t pid, tfh_mapping_fn take, void *data)
{
	char path[64] = "/proc/self/maps", text[2100], *rest = text;
	size_t have = 0;
	ssize_t n = 0;
	int fd;

	if (pid)
		snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	fd = tfh_open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	while (rest && (n = tfh_read(fd, text + have, sizeof(text) - 1 - have)) > 0) {
		have += (size_t)n;
		text[have] = '\0';
		rest = take_lines(text, take, data);
		if (!rest)
			break;
		have -= (size_t)(rest - text);
		memmove(text, rest, have);
		if (have == sizeof(text) - 1) /* too long a line; its rest is not parsed as one */
			have = 0;
	}
	n = n < 0 ? -errno : 0;
	tfh_close(fd);
	return rest ? (int)n : 1;
}
