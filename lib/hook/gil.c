/*
 * Finds Python's global interpreter lock in `_PyRuntime`, which every CPython exports. The symbol
 * bound at load time is that of the interpreter that the program is or was linked with.
 */
#include <dlfcn.h>
#include <link.h>

#include "sampling/waiting.h"

extern char _PyRuntime[] __attribute__((weak, visibility("default")));

__attribute__((constructor)) static void on_load(void)
{
	Dl_info info;
	const ElfW(Sym) *symbol = NULL;

	if (_PyRuntime && dladdr1(_PyRuntime, &info, (void **)&symbol, RTLD_DL_SYMENT) && symbol)
		tfh_waiting_python(_PyRuntime, symbol->st_size);
}
