/* Opened RTLD_LOCAL: what it asks of RTLD_DEFAULT is about its own scope. */
#include <dlfcn.h>

int only_in_local_library = 5;

int cuOnlyInLocalLibrary(void)
{
	return 6;
}

int local_scope_works(void)
{
	int *number = dlsym(RTLD_DEFAULT, "only_in_local_library");
	int (*function)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "cuOnlyInLocalLibrary");

	return number && *number == 5 && function && function() == 6;
}
