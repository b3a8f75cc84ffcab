/* Messages of the library itself. Safe in signal handlers and atfork handlers: no lock, no
 * allocation; errno is kept. */
#ifndef TFH_RECORD_PROCESS_LOG_H
#define TFH_RECORD_PROCESS_LOG_H

#include <signal.h>
#include <stdbool.h>

/* Writes to TFHOOK_LOG, or to stderr if TFHOOK_VERBOSE is set; otherwise writes nothing. */
__attribute__((format(printf, 2, 3))) void tfh_log(int level, const char *fmt, ...);

/*
 * Between these two, a write beyond RLIMIT_FSIZE on a thread of the job only fails. Without them,
 * the SIGXFSZ that the thread also gets would end the job. A SIGXFSZ that was pending before stays
 * pending.
 */
struct tfh_xfsz {
	sigset_t old;
	bool blocked, waiting;
};
void tfh_xfsz_block(struct tfh_xfsz *x);
void tfh_xfsz_restore(const struct tfh_xfsz *x);

#endif
