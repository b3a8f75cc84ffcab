/* A run as trace files of our own: for runs that came from another tool's trace. */
#ifndef TFH_EXPORT_TFT_H
#define TFH_EXPORT_TFT_H

#include "base/err.h"
#include "model/model.h"

/* Writes one process of a run as one new file; an existing one is never touched (-EEXIST). A report
 * on the files of all processes says what one on the run says. 0 or -errno. */
int tfh_export_tft(struct tfh_run *run, uint32_t process, const char *path, struct tfh_err *err);

#endif
