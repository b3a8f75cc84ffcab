/* Where the journal may be. */
#ifndef TFH_RECORD_RUN_PLACE_H
#define TFH_RECORD_RUN_PLACE_H

#include "record/run/rundir.h"

/* Facts that decide where the journal may be. Types as from statfs, 0 = none. */
struct tfh_site {
	bool container;
	uint64_t file_limit; /* largest file that this process may write */
	uint64_t shm_type, shm_free;
	uint64_t dir_type;
};
enum tfh_place { TFH_PLACE_MEMORY, TFH_PLACE_SHM, TFH_PLACE_BESIDE };
enum tfh_place tfh_place_choose(const struct tfh_site *site, uint64_t bytes);
/* Whether the process runs in Docker, Kubernetes, podman, LXC, Apptainer, enroot or the like. The
 * second function decides it from the text of /proc/self/mountinfo. */
bool tfh_in_container(void);
bool tfh_container_root(const char *mountinfo);
struct tfh_journal_way {
	bool nameless, beside; /* beside: not in /dev/shm */
};
/* Opens a file for the journal, without a name if that is requested and possible. Fills path ("":
 * no name yet) and the place flags. Returns a descriptor, or -errno (then anonymous memory is
 * used). */
int tfh_journal_place(const struct tfh_rundir *dir, uint64_t bytes, struct tfh_journal_way way,
		      char *path, size_t size, uint32_t *flags);
/* Gives the journal a name in the place that the flags say. Fills path, "" on failure. Returns 0 or
 * -errno. */
int tfh_journal_name(const struct tfh_rundir *dir, int fd, uint32_t flags, char *path, size_t size);

#endif
