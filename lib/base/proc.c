#include "base/proc.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void tfh_read_small(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t n = 0;
	ssize_t got = 1;

	while (fd >= 0 && n + 1 < size && got > 0) {
		got = read(fd, text + n, size - 1 - n);
		if (got > 0)
			n += (size_t)got;
	}
	if (fd >= 0)
		close(fd);
	text[n] = '\0';
}

uint64_t tfh_process_start(pid_t pid)
{
	char path[64], text[1024];
	const char *at;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	tfh_read_small(path, text, sizeof(text));
	at = strrchr(text, ')'); /* the name before may contain anything */
	for (int field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	return at ? strtoull(at + 1, NULL, 10) : 0;
}
