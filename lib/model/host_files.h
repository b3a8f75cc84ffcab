/* Files of a run directory by the host whose process wrote them. */
#ifndef TFH_MODEL_HOST_FILES_H
#define TFH_MODEL_HOST_FILES_H

#include <stdbool.h>
#include <stdint.h>

#define TFH_HOST_NAME 256

/* The host in the name of a segment or journal: r<rank>.<host>.<pid>.<n>.tft, or p. in place of the
 * rank. False: it has none. */
bool tfh_host_of_file(const char *name, char host[TFH_HOST_NAME]);

/* The hosts whose files a directory has, sorted. 0 or -errno; the caller frees. */
struct tfh_run_hosts {
	char (*name)[TFH_HOST_NAME];
	uint64_t *bytes; /* of its segments */
	uint32_t n;
};
int tfh_run_hosts_find(const char *dir, struct tfh_run_hosts *out);
void tfh_run_hosts_free(struct tfh_run_hosts *hosts);

#endif
