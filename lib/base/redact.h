/* What a recording may tell of a process: which variables of its environment, and arguments without
 * secrets.
 */
#ifndef TFH_BASE_REDACT_H
#define TFH_BASE_REDACT_H

#include <stdbool.h>
#include <stddef.h>

#define TFH_REDACTED "<redacted>"

/* True for a variable that helps to understand a run (devices, threads, launcher, frameworks, our
 * own settings). A secret's name never does.
 */
bool tfh_env_told(const char *name, size_t length);

/* Length of the part of argument i that may be told; less than its whole length when the rest is a
 * secret: "--api-key=x" and "TOKEN=x" keep their name and "=", "x" after "--token" keeps nothing.
 */
size_t tfh_told_length(char *const *argv, size_t i);

/* Argument i as it may be told: itself, or a text that holds until the next call. Not for two
 * threads at once. */
const char *tfh_told_text(char *const *argv, size_t i);

#endif
