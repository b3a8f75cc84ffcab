/*
 * opens LIBRARY FUNCTION [deepbind|namespace]: opens a library in that way, RTLD_LOCAL
 * otherwise, and ends with what the function returns.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
	const char *way = argc > 3 ? argv[3] : "";
	int flags = RTLD_NOW | RTLD_LOCAL | (strcmp(way, "deepbind") ? 0 : RTLD_DEEPBIND);
	void *library = strcmp(way, "namespace") ? dlopen(argv[1], flags)
						 : dlmopen(LM_ID_NEWLM, argv[1], RTLD_NOW);
	int (*function)(void) = library ? (int (*)(void))dlsym(library, argv[2]) : NULL;

	if (!function) {
		printf("%s\n", dlerror());
		return 1;
	}
	return function();
}
