/*
 * A command of `tfhook ctl` for the other hosts of a run: a request in the run directory, which
 * the follower of each host (`tfhook digest --follow`) obeys, and next to it an answer for each
 * host. Both are removed by the `ctl` that asked. Each host's answer is created, exclusively,
 * before the command is given, so that it is given there at most once.
 *
 * Anyone who may write to the directory may have placed a file there. So only those of the
 * directory's owner count, and only in a directory of one's own; they are opened below its checked
 * descriptor without following a link, and copied before they are parsed.
 */
#ifndef TFH_CLI_CTL_REQUEST_H
#define TFH_CLI_CTL_REQUEST_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "cli/ctl_order.h"
#include "model/host_files.h"

#define TFH_CTL_REQUESTS 16u	/* at most, in a directory */
#define TFH_CTL_WAIT_MOST_S 600 /* longest validity of a request */

struct tfh_ctl_request {
	uint64_t magic;
	uint32_t version, wait_s; /* how long it is valid */
	uint64_t id;		  /* as in the file's name */
	uint64_t at;
	uint32_t verb, steps;
	char host[64]; /* where it comes from: has been given to this host's processes */
	uint32_t n_had;
	uint32_t check;		    /* CRC-32C of the other members */
	uint64_t had[TFH_CTL_KEYS]; /* processes that have been given it, on any host */
};

struct tfh_ctl_answer {
	uint64_t magic;
	uint32_t version, check;
	uint64_t id;
	int32_t code; /* 0, or the -errno of parsing the request */
	uint32_t told, failed, late;
	uint64_t first_least, first_most;
};

/* Set the members that every request or answer has. */
void tfh_ctl_request_seal(struct tfh_ctl_request *r);
void tfh_ctl_answer_seal(struct tfh_ctl_answer *a);
/* Copy and check. 0, -EBADMSG, or -EPROTO: of another version. */
int tfh_ctl_request_parse(const void *bytes, size_t n, struct tfh_ctl_request *r);
int tfh_ctl_answer_parse(const void *bytes, size_t n, struct tfh_ctl_answer *a);

/* Opens a run directory of this user; *st is its status. A descriptor or -errno. */
int tfh_ctl_dir(const char *dir, struct stat *st);
/* Names; `host` NULL: of the request. False: too long, or not a host's name. */
bool tfh_ctl_name(char name[NAME_MAX + 1], uint64_t id, const char *host);
bool tfh_ctl_is_name(const char *name);
/* The requests in a directory, at most TFH_CTL_REQUESTS; removes old files of both kinds. */
uint32_t tfh_ctl_list(int dir, uid_t owner, uint64_t id[TFH_CTL_REQUESTS]);
/* Reads up to `size` bytes of a file that belongs to `owner`. The number or -errno. */
ssize_t tfh_ctl_read(int dir, const char *name, uid_t owner, void *to, size_t size,
		     struct stat *st);

/* ctl_obey.c: gives this host's processes the requests that a run directory has, once each. */
void tfh_ctl_obey(const char *dir, const char *host);

/* ctl_hosts.c: asks the other hosts of a run directory (absolute path). The order has been given
 * to this host's processes. */
struct tfh_ctl_asked {
	struct tfh_run_hosts hosts;
	uint8_t *state; /* of each host */
	int dir;	/* -1: there is nobody to wait for */
	uid_t owner;
	uint64_t id;
	double until_s;
	unsigned told, missing; /* processes; hosts that do not obey completely */
};
void tfh_ctl_ask(const char *dir, const struct tfh_ctl_order *o, double wait_s,
		 struct tfh_ctl_asked *a);
/* Waits for the answers, reports them, removes the request and frees. */
void tfh_ctl_gather(const struct tfh_ctl_order *o, struct tfh_ctl_asked *a);

#endif
