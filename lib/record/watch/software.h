/*
 * Versions of the libraries that the process has loaded, from the names of their files and the
 * packages they came with.
 */
#ifndef TFH_RECORD_WATCH_SOFTWARE_H
#define TFH_RECORD_WATCH_SOFTWARE_H

#include <stddef.h>

/* Writes lines "software=NAME<tab>VERSION<tab>PATH" for a NOTE, cut at `size`. VERSION is ? if it
 * is unknown. `out` is "" at first, and stays as it is if no library of software.def was loaded
 * since the last call. Otherwise directories are read, which may take long, so only the thread of
 * nvml_thread.h calls this. */
void tfh_software_read(char *out, size_t size);

#endif
