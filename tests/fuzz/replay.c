/*
 * A target without libFuzzer: runs it over the files given and over all files of directories given.
 * Fails when one breaks a bound (report.c), when all together take more memory than LIMIT_MB, or, after "-r", when
 * one is refused before a report of it.
 */
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "fuzz.h"

#define LIMIT_MB 1024

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max)
{
	(void)data, (void)max;
	return size;
}

static bool must_report;

static int run_file(const char *path, size_t size)
{
	unsigned before = tfh_fuzz_reports;
	FILE *f = fopen(path, "rb");
	uint8_t *data = malloc(size + 1);
	size_t n = f && data ? fread(data, 1, size, f) : 0;

	if (f)
		fclose(f);
	printf("%s\n", path);
	fflush(stdout); /* it may be the last word */
	LLVMFuzzerTestOneInput(data, n);
	free(data);
	if (!must_report || tfh_fuzz_reports > before)
		return 0;
	printf("%s: refused\n", path);
	return 1;
}

static int run_path(const char *path)
{
	struct dirent **name;
	struct stat st;
	int bad = 0;

	if (stat(path, &st)) {
		perror(path);
		return 1;
	}
	if (!S_ISDIR(st.st_mode))
		return run_file(path, (size_t)st.st_size);
	int n = scandir(path, &name, NULL, alphasort);
	for (int i = 0; i < n; i++) {
		char inner[4096];
		snprintf(inner, sizeof(inner), "%s/%s", path, name[i]->d_name);
		if (name[i]->d_name[0] != '.')
			bad |= run_path(inner);
		free(name[i]);
	}
	if (n >= 0)
		free(name);
	return bad;
}

int main(int argc, char **argv)
{
	struct rusage used;
	int bad = 0;

	must_report = argc > 1 && !strcmp(argv[1], "-r");
	for (int i = must_report ? 2 : 1; i < argc; i++)
		bad |= run_path(argv[i]);
	getrusage(RUSAGE_SELF, &used);
	if (used.ru_maxrss > LIMIT_MB * 1024L) {
		printf("%ld MB of memory were taken\n", used.ru_maxrss / 1024);
		bad = 1;
	}
	return bad;
}
