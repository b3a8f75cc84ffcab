/*
 * The live view's metrics over HTTP, for a Prometheus on this machine: http://127.0.0.1:PORT/metrics. Every user of the machine, and every
 * page in a browser on it, reaches loopback; so a request needs the token (Authorization: Bearer), and a Host that is loopback's name.
 */
#ifndef TFH_TOP_LISTEN_H
#define TFH_TOP_LISTEN_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct tfh_listener;

/* `token`: a file that only its owner can read, with the token as its first line; made, with a new token, if there is none. 0 or -errno
 * with `err`. A thread answers; one request at a time, of two seconds at most. */
int tfh_listener_new(uint16_t port, const char *token, struct tfh_listener **out,
		     struct tfh_err *err);
void tfh_listener_free(struct tfh_listener *l);
/* What is answered from now on; takes over `text`, from malloc(). */
void tfh_listener_offer(struct tfh_listener *l, char *text, size_t size);

#endif
