/*
 * jumps LIBRARY init|reduce TIMES: leaves that many calls of the library's function by longjmp,
 * then makes as many that return, from another place of the stack each. Prints how many returned
 * well.
 */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int (*call)(unsigned long);

__attribute__((noinline)) static int deeper(int levels)
{
	volatile char room[64] = {(char)levels};

	return (levels ? deeper(levels - 1) : call(1)) + (room[0] != (char)levels);
}

int main(int argc, char **argv)
{
	void *library = argc > 3 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
	jmp_buf **out = library ? (jmp_buf **)dlsym(library, "jump_out") : NULL;
	int *returned = library ? (int *)dlsym(library, "jumps_returned") : NULL;
	jmp_buf here;

	if (!library)
		return 2;
	call = (int (*)(unsigned long))dlsym(library,
					     strcmp(argv[2], "init") ? "user_reduce" : "user_init");
	for (volatile int i = 0; i < atoi(argv[3]); i++) {
		*out = &here;
		if (!setjmp(here))
			deeper(i % 7);
	}
	*out = NULL;
	for (int i = 0; i < atoi(argv[3]); i++)
		deeper(i % 5);
	printf("%d\n", *returned);
	return 0;
}
