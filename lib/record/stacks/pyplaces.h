/*
 * Places in Python code, as a tree of calls. A place is a frame (a code object and a line) and its
 * calling place, so stacks with the same outer frames share them, however deep they are. Calling
 * threads add to it without a lock (hook/python/py_place.c); the flusher writes it (PYCO, PYFR).
 */
#ifndef TFH_RECORD_STACKS_PYPLACES_H
#define TFH_RECORD_STACKS_PYPLACES_H

#include <stdbool.h>
#include <stdint.h>

#include "format/sample_loops.h"
#include "record/record.h"

/* Stored bytes of a file's and a function's name. */
#define TFH_PLACE_FILE 1023u
#define TFH_PLACE_NAME 511u

/* A child process whose main thread's stack is read. Fields other than pid belong to the source;
 * they are all 0 for a new child. */
struct tfh_place_child {
	int32_t pid;
	uint8_t known; /* 1: its interpreter's address is known; 2: it has none that can be read */
	bool own_seed; /* its strings have different hashes */
	int64_t shift; /* offset of its interpreter from this process's */
	uint64_t interpreter; /* address of its interpreter's state */
	uint64_t state;	      /* that of its main thread; 0: not known yet */
};

/* What else a sample of a thread shows. */
struct tfh_place_seen {
	bool wants_loops; /* in: whether loops are read */
	enum tft_gil gil; /* whether it held the GIL */
	uint32_t loops;
	struct tft_loop loop[TFT_LOOPS]; /* its loops, from the outermost one on */
};

/* A thread of the process that runs Python, and the number of threads it was drawn from. */
struct tfh_place_other {
	uint32_t tid, of;
};

/* Reads stacks: hook/python/py_place.c. */
struct tfh_place_source {
	/* Called on the flusher from time to time: looks for an interpreter. */
	void (*look)(void);
	/* Why the existing interpreter is not read, or NULL. */
	const char *(*refusal)(void);
	/* Whether there is one, read or not. Thread-safe. */
	bool (*exists)(void);
	/* The calling thread's place; 0: none. Uses no lock of the job and no malloc. */
	uint32_t (*here)(const struct tfh_self *self);
	/* Another thread's place (pthread: its pthread_self()); called on the flusher. 0:
	 * unknown. */
	uint32_t (*there)(uint32_t tid, uint64_t pthread, struct tfh_place_seen *seen);
	/* The place of a thread drawn by `random` from those not in `but`; called on the
	 * flusher. */
	uint32_t (*other)(uint64_t random, const uint32_t *but, uint32_t n_but,
			  struct tfh_place_other *out);
	/* The place of a child process's main thread; called on the flusher. */
	uint32_t (*child)(struct tfh_place_child *c);
};

/* Called once, at load. */
void tfh_places_attach(const struct tfh_place_source *source);

/* The calling thread's place; 0: it runs no Python, or places are not wanted. */
uint32_t tfh_place_here(const struct tfh_self *self);
/* Whether the process has Python, or may have it: places are not wanted. */
bool tfh_place_python(void);

/* ---- for the source ---- */

/* Number of the code with this key (a hash of its texts); 0: none yet. */
uint32_t tfh_place_code(uint64_t key);
/* Adds a code; texts are UTF-8. Returns 0 if the table is full. */
struct tfh_place_texts {
	const char *file, *name;
	uint32_t file_bytes, name_bytes, first; /* first: first line */
};
uint32_t tfh_place_code_new(uint64_t key, const struct tfh_place_texts *texts);
/* The place of a frame; `caller` 0: the outermost frame. Returns 0 if the table is full. */
uint32_t tfh_place_frame(uint32_t caller, uint32_t code, uint32_t line);

/* The place that was stored under this mark (a hash of the calling place and the frame's contents);
 * 0: none. With it, a frame that was met before costs one probe. */
uint32_t tfh_place_known(uint64_t mark);
void tfh_place_keep(uint64_t mark, uint32_t place);

/* ---- called on the flusher ---- */

/* Another thread's place; 0: unknown, or samples have used their part of the tables. The
 * rest of *seen, which is 0, is set only with a place. */
uint32_t tfh_place_there(uint32_t tid, uint64_t pthread, struct tfh_place_seen *seen);
uint32_t tfh_place_other(uint64_t random, const uint32_t *but, uint32_t n_but,
			 struct tfh_place_other *out);
uint32_t tfh_place_child(struct tfh_place_child *c);
/* Creates the tables if places are wanted. */
void tfh_places_open(void);
struct tft_writer;
/* Writes new entries. Returns 0 or -errno. */
int tfh_places_put(struct tft_writer *w, uint64_t now);
bool tfh_places_waiting(void);
void tfh_places_look(void);
/* How many frames and codes did not fit. */
uint32_t tfh_places_unplaced(void);
void tfh_places_new_segment(void);
/* In a forked child: drops the parent's entries. */
void tfh_places_forget(void);

#endif
