/* The flusher's list of loaded modules, for the addresses of backtraces. */
#ifndef TFH_RECORD_STACKS_MODULES_H
#define TFH_RECORD_STACKS_MODULES_H

#include <stdbool.h>
#include <stdint.h>

/* Updates the list. `now`: ticks. */
void tfh_modules_look(uint64_t now);
/* True if libraries were unloaded since the last call. */
bool tfh_modules_unloaded(void);
/* Marks the module that contains an address as to be written. */
void tfh_modules_use(uint64_t address);
struct tft_writer;
/* Writes modules in use that this segment lacks. 0 or -errno. */
int tfh_modules_put(struct tft_writer *w, uint64_t now);
void tfh_modules_new_segment(void);

#endif
