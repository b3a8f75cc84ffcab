/* Writes run.json for a process that was not started by `tfhook run` (base/runjson.h). */
#ifndef TFH_RECORD_RUN_RUNJSON_WRITE_H
#define TFH_RECORD_RUN_RUNJSON_WRITE_H

#include <stddef.h>

struct tfh_access;

struct tfh_runjson {
	char *text; /* NULL: not made */
	size_t len;
};

/* Makes the document, from the environment too. Returns 0 or -errno; the caller frees it. */
int tfh_runjson_make(struct tfh_runjson *document, const char *launch);
void tfh_runjson_free(struct tfh_runjson *document);
/* Writes it to a directory, completely or not at all. Returns 0, -EEXIST if there is one already,
 * or another -errno. */
int tfh_runjson_write(int dir, const struct tfh_runjson *document, const struct tfh_access *access);

/* Command line of this process without secrets, arguments separated by spaces. */
void tfh_command_line(char *text, size_t size);

#endif
