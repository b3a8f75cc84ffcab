/*
 * Serves the live view's metrics over HTTP, for Prometheus on the same machine:
 * http://127.0.0.1:PORT/metrics. Every user of the machine, and every page in a browser on it, can
 * reach loopback. So a request needs the token (Authorization: Bearer) and a loopback name as its
 * Host.
 */
#ifndef TFH_TOP_LISTEN_H
#define TFH_TOP_LISTEN_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct tfh_listener;

/* `token`: a file that only its owner can read, with the token as its first line. If there is none,
 * it is created with a new token. A thread answers one request at a time, for at most two seconds.
 * 0 or -errno with `err`. */
int tfh_listener_new(uint16_t port, const char *token, struct tfh_listener **out,
		     struct tfh_err *err);
void tfh_listener_free(struct tfh_listener *l);
/* Sets what is served from now on. Takes ownership of `text`, from malloc(). */
void tfh_listener_offer(struct tfh_listener *l, char *text, size_t size);

#endif
