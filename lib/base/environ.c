#include "base/environ.h"

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/refused.h"

#define ROOM ((size_t)1 << 20)
/* No page is smaller: within one, either all bytes can be read or none. */
#define PAGE ((uintptr_t)4096)
#define TRIES 3

static struct tfh_env taken;
static char **started_with;

/* Copies at most `most` bytes, up to the end of the page. 0: they cannot be read. */
static size_t copy(void *to, uintptr_t from, size_t most)
{
	size_t left = PAGE - from % PAGE;
	struct iovec here = {to, most < left ? most : left}, there = {(void *)from, here.iov_len};
	ssize_t n = tfh_copy_memory(getpid(), &here, 1, &there, 1);

	return n > 0 ? (size_t)n : 0;
}

/* Appends a string. false: it cannot be read to its end, or there is no room. */
static bool append(struct tfh_env *env, uintptr_t from)
{
	size_t len = env->len;

	while (len < env->room) {
		size_t n = copy(env->text + len, from, env->room - len);
		const char *end = memchr(env->text + len, '\0', n);

		if (end) {
			env->len = (size_t)(end - env->text) + 1;
			return true;
		}
		if (!n)
			return false;
		len += n;
		from += n;
	}
	return false;
}

/* false: the array, or a string, was gone when it was read. */
static bool append_all(struct tfh_env *env, char **array)
{
	uintptr_t entry[64], at = (uintptr_t)array;
	bool whole = true;

	for (;;) {
		size_t n = copy(entry, at, sizeof(entry)) / sizeof(*entry);

		if (!n)
			return false;
		for (size_t i = 0; i < n; i++) {
			if (!entry[i])
				return whole;
			whole &= append(env, entry[i]);
		}
		at += n * sizeof(*entry);
	}
}

/* Gives back what was not needed: a job's address space may be limited. */
static void shrink(struct tfh_env *env)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), used = (env->len / page + 1) * page;

	if (used < env->room && !munmap(env->text + used, env->room - used))
		env->room = used;
}

bool tfh_env_take(struct tfh_env *env)
{
	void *room = mmap(NULL, ROOM, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	char **array = NULL;
	bool whole = false;
	char probe;

	*env = (struct tfh_env){.room = ROOM};
	if (room == MAP_FAILED)
		return false;
	env->text = room;
	if (!copy(&probe, (uintptr_t)&env, 1)) {
		tfh_env_drop(env);
		return false;
	}
	for (int i = 0; i < TRIES && !whole; i++) {
		env->len = 0;
		array = __atomic_load_n(&environ, __ATOMIC_RELAXED);
		whole = (!array || append_all(env, array)) &&
			array == __atomic_load_n(&environ, __ATOMIC_RELAXED);
	}
	shrink(env);
	return true;
}

void tfh_env_drop(struct tfh_env *env)
{
	if (env->text)
		munmap(env->text, env->room);
	*env = (struct tfh_env){0};
}

/* ---- looking up ---- */

static const char *value_of(const char *entry, const char *name)
{
	size_t n = strlen(name);

	return !strncmp(entry, name, n) && entry[n] == '=' ? entry + n + 1 : NULL;
}

static const char *next_of(const struct tfh_env *env, size_t *at)
{
	const char *entry = env->text + *at;

	if (*at >= env->len)
		return NULL;
	*at += strlen(entry) + 1;
	return entry;
}

const char *tfh_env_next(size_t *at)
{
	char **array = started_with ? started_with : environ;

	if (taken.text)
		return next_of(&taken, at);
	return array && array[*at] ? array[(*at)++] : NULL;
}

const char *tfh_env_in(const struct tfh_env *env, const char *name)
{
	const char *entry, *value = NULL;
	size_t at = 0;

	while (!value && (entry = env ? next_of(env, &at) : tfh_env_next(&at)))
		value = value_of(entry, name);
	return value;
}

const char *tfh_env(const char *name)
{
	return tfh_env_in(NULL, name);
}

void tfh_env_started_with(char **first)
{
	started_with = first;
}

void tfh_env_renew(void)
{
	struct tfh_env now;

	if (!tfh_env_take(&now))
		return;
	tfh_env_drop(&taken); /* of the parent, in a forked child */
	taken = now;
}
