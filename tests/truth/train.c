/*
 * Runs the plan of libtrain.c: train STEPS PLAN [WAIT_MS]. WAIT_MS is spent before the first step,
 * as a job does that unpacks its data first.
 */
#include <dlfcn.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *library;

static void *find(const char *name)
{
	void *f = dlsym(library, name);
	if (!f) {
		fprintf(stderr, "train: %s\n", dlerror());
		exit(1);
	}
	return f;
}

int main(int argc, char **argv)
{
	char self[4096] = "", path[4200];
	if (argc < 3 || readlink("/proc/self/exe", self, sizeof(self) - 1) < 0) {
		fprintf(stderr, "usage: train STEPS PLAN [WAIT_MS]\n");
		return 2;
	}
	snprintf(path, sizeof(path), "%s/libtrain.so", dirname(self));
	library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
	if (!library) {
		fprintf(stderr, "train: %s\n", dlerror());
		return 1;
	}
	void (*open_it)(const char *, long) = (void (*)(const char *, long))find("train_open");
	void (*step)(double) = (void (*)(double))find("train_step");
	void (*close_it)(void) = (void (*)(void))find("train_close");
	long steps = atol(argv[1]);
	open_it(argv[2], steps);
	if (argc > 3)
		usleep((useconds_t)(atof(argv[3]) * 1e3));
	for (long i = 0; i < steps; i++)
		step(0);
	close_it();
	return 0;
}
