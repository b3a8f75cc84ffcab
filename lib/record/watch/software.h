/* Versions of the libraries that the process has loaded: by their files' names and the packages they came with. */
#ifndef TFH_RECORD_SOFTWARE_H
#define TFH_RECORD_SOFTWARE_H

#include <stddef.h>

/* Lines "software=NAME<tab>VERSION<tab>PATH" for a NOTE, cut at `size`; VERSION is ? where nothing tells it. Reads directories, which
 * may take long. Only on the thread of nvml_thread.h. */
void tfh_software_read(char *out, size_t size);

#endif
