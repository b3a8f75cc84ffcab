/* Removes secrets from the environment variables and texts of a process that a recording keeps. The
 * rules are in base/redact.def.
 *
 * A secret is the value that follows a name that suggests one, in options, NAME=value, scripts,
 * JSON, YAML, headers and URLs; the password in a URL; and text with the form of a secret (keys of
 * clouds and model hubs, JSON web tokens, private keys, 40 hexadecimal digits that are not named as
 * a commit). */
#ifndef TFH_BASE_REDACT_H
#define TFH_BASE_REDACT_H

#include <stdbool.h>
#include <stddef.h>

#define TFH_REDACTED "<redacted>"

/* True for a variable that may be recorded: one that helps to understand a run (devices, threads,
 * launcher, frameworks, tfhook's settings). All others are never recorded. */
bool tfh_env_recorded(const char *name, size_t length);

/* Argument i of a command line, or an entry such as "API_KEY=x", without its secrets. Returns the
 * text itself if it holds none, else a buffer of at most 64 KiB, valid until the next call. Not
 * thread-safe. */
const char *tfh_redact_arg(char *const *argv, size_t i);
const char *tfh_redact_entry(const char *entry);

#endif
