/*
 * Files that are read now and then, more of them than a process may have open: the descriptors of
 * those not read for the longest time are closed, and opened again when they are asked for.
 */
#ifndef TFT_DESCRIPTOR_H
#define TFT_DESCRIPTOR_H

#include <stdbool.h>
#include <sys/types.h>

struct tft_descriptor {
	const char *path; /* the caller's, until tft_descriptor_close */
	int fd;		  /* -1: closed for now */
	unsigned users;
	bool parked; /* open, and nobody uses it: it may be closed */
	dev_t dev;
	ino_t ino;
	uid_t owner;
	struct tft_descriptor *older, *newer; /* of those parked */
};

/* Opens a file to be read, without waiting for one that is not regular. 0 or -errno; the structure
 * stays where it is until it is closed. */
int tft_descriptor_open(struct tft_descriptor *d, const char *path);
/* A second one of the same file, whatever has become of its name since. 0 or -errno. */
int tft_descriptor_copy(struct tft_descriptor *d, struct tft_descriptor *of);
void tft_descriptor_close(struct tft_descriptor *d);

/* The descriptor, which stays open until tft_descriptor_done; or -errno: -ESTALE when another file
 * has taken the name. Any thread. */
int tft_descriptor_use(struct tft_descriptor *d);
void tft_descriptor_done(struct tft_descriptor *d);

#endif
