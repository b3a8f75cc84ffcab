/* The flusher's list of what the process has loaded, for the addresses of backtraces. */
#ifndef TFH_RECORD_MODULES_H
#define TFH_RECORD_MODULES_H

#include <stdint.h>

/* Compares the list with what is loaded now. `now`: ticks. */
void tfh_modules_look(uint64_t now);
/* The module that holds an address is to be written. */
void tfh_modules_use(uint64_t address);
/* Writes modules in use that this segment lacks. 0 or -errno. */
int tfh_modules_put(uint64_t now);
void tfh_modules_new_segment(void);

#endif
