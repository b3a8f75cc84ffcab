/* The known name nearest to a mistyped one: variables, subcommands, options, formats. */
#ifndef TFH_BASE_NEAREST_H
#define TFH_BASE_NEAREST_H

#include <stddef.h>

/* Smallest number of inserted, deleted, replaced or swapped neighbouring characters between two
 * words, case ignored (optimal string alignment distance). Words over 63 characters compare by
 * their beginning.
 */
int tfh_edit_distance(const char *a, const char *b);

/* The nearest of count names, or NULL when none is near: more than a third of the word's letters
 * differ. */
const char *tfh_nearest(const char *word, const char *const *names, size_t count);

#endif
