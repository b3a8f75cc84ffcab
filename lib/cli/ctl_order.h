/* A command of `tfhook ctl`, and giving it to the processes of this host. */
#ifndef TFH_CLI_CTL_ORDER_H
#define TFH_CLI_CTL_ORDER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "format/journal_view.h"

/* Part of a request's format: rows are only ever added. GPU_ON and GPU_OFF are two words on the
 * command line. */
enum tfh_ctl_verb {
	TFH_CTL_STOP,
	TFH_CTL_START,
	TFH_CTL_FLUSH,
	TFH_CTL_GPU_ON,
	TFH_CTL_GPU_OFF,
	TFH_CTL_VERBS
};

#define TFH_CTL_KEYS 512u

struct tfh_ctl_order {
	enum tfh_ctl_verb verb;
	uint32_t steps; /* 0: no end */
	uint64_t at;	/* 0: now */
	/* Another host's command, for the processes of this one that do not have it yet. NULL:
	 * for all that can be reached. */
	const char *host;
	const uint64_t *had;
	uint32_t n_had;
	/* Results. */
	unsigned told, failed, late;
	uint64_t first_least, first_most; /* steps at which device times begin or end; 0: none */
	uint64_t key[TFH_CTL_KEYS];	  /* of the first processes told */
	int naps;			  /* left for the answers of all processes together */
};

const char *tfh_ctl_verb_name(enum tfh_ctl_verb verb);
/* TFH_CTL_VERBS: there is none of that name. */
enum tfh_ctl_verb tfh_ctl_verb_find(const char *name);
/* Whether the command takes a number of steps, and a step to begin at. */
bool tfh_ctl_fits(enum tfh_ctl_verb verb, bool steps, bool at);

/* Gives the command to the processes of a run directory (absolute path); if it is NULL, to one
 * process. 0 or -errno. */
int tfh_ctl_give(struct tfh_ctl_order *o, const char *dir, pid_t pid);
/* Waits for their answers, 4 s at most, and reports them. */
void tfh_ctl_hear(struct tfh_ctl_order *o, const char *dir, pid_t pid);

#endif
