/* Opens a journal by name in an open directory. Internal to journal_find.c. */
#ifndef TFH_FORMAT_JOURNAL_OPEN_H
#define TFH_FORMAT_JOURNAL_OPEN_H

#include "format/journal_view.h"

/* Opens the last component of `path` in `dir`, which then belongs to the view (negative: the -errno
 * of opening it). Unlike tft_view_open(), returns a view with -EAGAIN, too. */
int tft_view_open_at(int dir, const char *path, struct tft_view **out, struct tfh_err *err);

#endif
