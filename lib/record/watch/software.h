/* Versions of the libraries that the process has loaded: by their files' names and the packages they came with. */
#ifndef TFH_RECORD_SOFTWARE_H
#define TFH_RECORD_SOFTWARE_H

#include <stddef.h>

/* Lines "software=NAME<tab>VERSION<tab>PATH" for a NOTE, cut at `size`; VERSION is ? where nothing tells it. `out` is "" at first
 * and stays as it is if no library of software.def came since the last call. Where one did, directories are read, which may take
 * long. Only on the thread of nvml_thread.h. */
void tfh_software_read(char *out, size_t size);

#endif
