/*
 * The environment of a process whose other threads may change it at any time. setenv() frees the
 * array that `environ` pointed to, so a getenv() meanwhile may read freed memory and crash. Here
 * the kernel copies the strings: memory that is no longer mapped is left out, and nothing crashes.
 */
#ifndef TFH_BASE_ENVIRON_H
#define TFH_BASE_ENVIRON_H

#include <stdbool.h>
#include <stddef.h>

struct tfh_env {
	char *text; /* entries, each with its NUL; NULL: none taken */
	size_t len, room;
};

/* Copies the environment as it is now. false: the kernel does not copy here, or there is no
 * memory. */
bool tfh_env_take(struct tfh_env *env);
void tfh_env_drop(struct tfh_env *env);
/* Value of a variable; NULL: there is none. `env` NULL: in the default below. */
const char *tfh_env_in(const struct tfh_env *env, const char *name);

/*
 * The default environment: the last copy that tfh_env_renew() took. Before the first one, or where
 * it failed: that with which the program was started, whose memory is never freed. A program that
 * calls neither function gets its present environment.
 */
void tfh_env_started_with(char **first);
void tfh_env_renew(void);
const char *tfh_env(const char *name);
/* The entry after *at (from 0); NULL: there are no more. */
const char *tfh_env_next(size_t *at);

#endif
