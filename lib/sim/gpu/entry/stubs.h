/* The table of exported names, for cuGetProcAddress. */
#ifndef TFH_SIM_GPU_ENTRY_STUBS_H
#define TFH_SIM_GPU_ENTRY_STUBS_H

struct sim_proc {
	const char *symbol, *base;
	int version;	/* version that introduced this variant, 0: cannot be looked up */
	int per_thread; /* of _ptsz/_ptds variants */
	void *address;
};
extern const struct sim_proc sim_procs[];
extern const int sim_nprocs;

#endif
