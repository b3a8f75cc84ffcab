/* Writes a run as .tft files, for runs imported from another tool's trace. */
#ifndef TFH_EXPORT_TFT_H
#define TFH_EXPORT_TFT_H

#include "base/err.h"
#include "model/model.h"

/* Writes one process of a run to a new file; an existing file is never touched (-EEXIST). A report
 * on the files of all processes equals a report on the run. Returns 0 or -errno. */
int tfh_export_tft(struct tfh_run *run, uint32_t process, const char *path, struct tfh_err *err);

#endif
