/*
 * Imitates drivers that look up their own names at start with dlsym on their own handle, and call
 * the results. An interposer must not recurse then.
 */
#include "sim/gpu/entry/variant.h"

#include <dlfcn.h>

void sim_self_lookup(void)
{
	Dl_info self;
	int looked = 0, absent = 0, foreign = 0, version = 0;
	CUresult (*ask)(int *) = NULL;
	void *h = dladdr((void *)sim_self_lookup, &self)
			  ? dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD)
			  : NULL;
	for (int i = 0; h && i < sim_nprocs; i++, looked++) {
		Dl_info there;
		void *p = dlsym(h, sim_procs[i].symbol);
		if (!p)
			absent++;
		else if (!dladdr(p, &there) || there.dli_fbase != self.dli_fbase)
			foreign++;
	}
	if (h)
		ask = (CUresult(*)(int *))dlsym(h, "cuDriverGetVersion");
	if (ask)
		ask(&version);
	sim_truth_note("self lookup: %d names, %d absent, %d of another library, version %d",
		       looked, absent, foreign, version);
	if (h)
		dlclose(h);
}
