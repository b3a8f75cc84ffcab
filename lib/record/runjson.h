/* run.json: what was run, where and with which settings; and the redaction of secrets in it. */
#ifndef TFH_RECORD_RUNJSON_H
#define TFH_RECORD_RUNJSON_H

#include <stdbool.h>
#include <stddef.h>

/* Writes DIR/run.json, whole or not at all. 0, -EEXIST when there is one, or another -errno. */
int tfh_runjson_write(const char *dir, const char *launch);

/* Command line of this process, arguments separated by blanks, secrets left out. */
void tfh_command_line(char *text, size_t size);

/* Does a name say that its value is a secret? (token, key, secret, passw, credential; any case) */
bool tfh_is_secret(const char *name, size_t len);

#endif
