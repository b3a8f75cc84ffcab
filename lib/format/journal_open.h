/* Opening a journal by its name in a directory that is open. Not for others than journal_find.c. */
#ifndef TFT_JOURNAL_OPEN_H
#define TFT_JOURNAL_OPEN_H

#include "format/journal_view.h"

/* The last part of `path`, looked up in `dir`, which becomes the view's (below 0: the -errno of
 * opening it). Other than tft_view_open it hands out a view with -EAGAIN, too. */
int tft_view_open_at(int dir, const char *path, struct tft_view **out, struct tfh_err *err);

#endif
