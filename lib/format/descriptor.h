/*
 * A pool of read-only files, of which there may be more than a process can have open. The least
 * recently used descriptors are closed, and reopened when needed.
 */
#ifndef TFH_FORMAT_DESCRIPTOR_H
#define TFH_FORMAT_DESCRIPTOR_H

#include <stdbool.h>
#include <sys/types.h>

struct tft_descriptor {
	const char *path; /* the caller's; must stay valid until tft_descriptor_close */
	int fd;		  /* -1: closed for now */
	unsigned users;
	bool parked; /* open and unused: may be closed */
	dev_t dev;
	ino_t ino;
	uid_t owner;
	struct tft_descriptor *older, *newer; /* list of the parked ones */
};

/* Opens a file for reading, without blocking on one that is not regular. Returns 0 or -errno. The
 * structure must not move until it is closed. */
int tft_descriptor_open(struct tft_descriptor *d, const char *path);
/* Opens the same file once more, even if it was renamed or removed since. Returns 0 or -errno. */
int tft_descriptor_copy(struct tft_descriptor *d, struct tft_descriptor *of);
void tft_descriptor_close(struct tft_descriptor *d);

/* Returns the descriptor, which stays open until tft_descriptor_done(); or -errno, -ESTALE if the
 * name now belongs to another file. Thread-safe. */
int tft_descriptor_use(struct tft_descriptor *d);
void tft_descriptor_done(struct tft_descriptor *d);

#endif
