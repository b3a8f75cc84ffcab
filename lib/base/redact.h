/* What a recording may tell of a process: which variables of its environment, and texts without
 * secrets. The rules are a table, base/redact.def.
 *
 * A secret is what stands behind a name that says so, wherever that is: an option and its value,
 * NAME=value, a script's text, JSON and YAML, a header, a URL; the password of a URL; and what is
 * known by its looks (keys of clouds and hubs, JSON web tokens, private keys, 40 hexadecimal digits
 * that no name calls a commit).
 */
#ifndef TFH_BASE_REDACT_H
#define TFH_BASE_REDACT_H

#include <stdbool.h>
#include <stddef.h>

#define TFH_REDACTED "<redacted>"

/* True for a variable that helps to understand a run (devices, threads, launcher, frameworks, our
 * own settings); all others are never told. */
bool tfh_env_told(const char *name, size_t length);

/* Argument i of a command line as it may be told; text behind a name ("API_KEY=x", a variable's
 * whole entry) likewise. Itself if it holds no secret, else a text that holds until the next call,
 * of at most 64 KiB. Not for two threads at once. */
const char *tfh_told_text(char *const *argv, size_t i);
const char *tfh_told_entry(const char *entry);

#endif
