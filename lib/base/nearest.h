/* Spelling suggestions for variables, subcommands, options and formats. */
#ifndef TFH_BASE_NEAREST_H
#define TFH_BASE_NEAREST_H

#include <stddef.h>

/* Optimal string alignment distance (insert, delete, replace, swap neighbours), ignoring case. Only
 * the first 63 characters count. */
int tfh_edit_distance(const char *a, const char *b);

/* The nearest of `count` names, or NULL if more than a third of the word's letters differ. */
const char *tfh_nearest(const char *word, const char *const *names, size_t count);

#endif
