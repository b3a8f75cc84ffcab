/* Counts how often a process compares texts; its count stands in the file that COMPARES names when it ends. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static unsigned long long compares;
static pid_t counted;

int strcmp(const char *a, const char *b)
{
	compares++;
	while (*a && *a == *b) {
		a++;
		b++;
	}
	return (unsigned char)*a - (unsigned char)*b;
}

__attribute__((constructor)) static void begin(void)
{
	counted = getpid();
}

/* Not of children, which it forks. */
__attribute__((destructor)) static void tell(void)
{
	const char *path = getenv("COMPARES");
	FILE *f = path && getpid() == counted ? fopen(path, "w") : NULL;

	if (!f)
		return;
	fprintf(f, "%llu\n", compares);
	fclose(f);
}
