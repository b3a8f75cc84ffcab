/*
 * The stack of a child process's main thread. A forked child has its parent's interpreter at the
 * same addresses; a newly started one has the same files loaded at other addresses. Its main thread
 * is the one with the oldest state: the thread that forked, since CPython removes the others, or
 * the thread that started the interpreter.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "base/maps.h"
#include "base/refused.h"
#include "hook/python/there.h"
#include "hook/python/version.h"

/* Seen at offsets 32 to 936. */
#define MAIN_MOST 1024u

/* Offset in _PyRuntime of the pointer to the main interpreter's state; UINT32_MAX: not found. */
static uint32_t main_offset(const struct tfh_py *py)
{
	uint64_t interpreter = (uint64_t)(uintptr_t)py->main_interpreter();

	for (uint32_t i = 0; interpreter && i < MAIN_MOST; i += sizeof(uint64_t))
		if (tfh_py_word((const uint8_t *)py->runtime + i) == interpreter)
			return i;
	return UINT32_MAX;
}

static uint64_t word_of(int32_t pid, uint64_t from)
{
	uint64_t word = 0;
	struct iovec here = {&word, sizeof(word)}, there = {(void *)(uintptr_t)from, sizeof(word)};

	return tfh_copy_memory(pid, &here, 1, &there, 1) == sizeof(word) ? word : 0;
}

/* ---- where a file is loaded ---- */

struct module_base {
	uint64_t base;
	uint64_t device, inode; /* 0: not known yet */
};

/* In this process, finds the file from its base address. In another one, finds the base address
 * from the file. */
static bool take_mapping(const struct tfh_mapping *m, void *data)
{
	struct module_base *l = data;

	if (!l->inode && m->start == l->base) {
		l->device = m->device;
		l->inode = m->inode;
		return true;
	}
	if (!l->inode || m->inode != l->inode || m->device != l->device || m->offset)
		return false;
	l->base = m->start;
	return true;
}

static bool find_shift(const struct tfh_py *py, int32_t pid, int64_t *shift)
{
	static struct module_base here;
	struct module_base there;
	Dl_info info;

	if (!here.inode) {
		if (!dladdr(py->runtime, &info))
			return false;
		here.base = (uint64_t)(uintptr_t)info.dli_fbase;
		if (tfh_each_mapping(0, take_mapping, &here) <= 0 || !here.inode)
			return false;
	}
	there = here;
	if (tfh_each_mapping(pid, take_mapping, &there) <= 0)
		return false;
	*shift = (int64_t)(there.base - here.base);
	return true;
}

/* ---- the child ---- */

static bool find_interpreter(const struct tfh_py *py, struct tfh_place_child *c)
{
	uint32_t offset = main_offset(py);
	uint64_t at = (uint64_t)(uintptr_t)py->runtime + offset;

	if (offset == UINT32_MAX)
		return false;
	c->interpreter = word_of(c->pid, at);
	if (c->interpreter && c->interpreter == (uint64_t)(uintptr_t)py->main_interpreter())
		return true;
	c->own_seed = true;
	if (!find_shift(py, c->pid, &c->shift))
		return false;
	c->interpreter = word_of(c->pid, at + (uint64_t)c->shift);
	return c->interpreter;
}

uint32_t tfh_py_child(struct tfh_place_child *c)
{
	const struct tfh_py *py = tfh_py();
	struct tfh_py of_child;
	struct tfh_py_target t;
	uint32_t place;

	if (!py || py->finalizing())
		return 0;
	if (!c->known)
		c->known = find_interpreter(py, c) ? 1 : 2;
	if (c->known != 1)
		return 0;
	of_child = *py;
	of_child.code_type += (uint64_t)c->shift;
	of_child.own_seed = c->own_seed;
	t = (struct tfh_py_target){
		.py = &of_child, .pid = c->pid, .interpreter = c->interpreter, .state = c->state};
	place = tfh_py_sample(&t, NULL);
	c->state = t.state;
	return place;
}
