#include "sampling/waiting.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/refused.h"
#include "sampling/holder.h"

/* System calls newer than the headers of the build. */
#ifndef SYS_io_uring_enter
#define SYS_io_uring_enter 426
#endif
#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif
#define NO_CALL 0xffffu

/* Where a system call shows what it waits for. */
enum wait_kind {
	PLAIN, /* nowhere */
	FUTEX, /* the address of the first argument */
	FD,    /* the descriptor of the first argument */
	POLL,  /* an array of struct pollfd */
	EPOLL,
	SELECT
};

static const struct waiting_row {
	uint16_t call, number; /* of this processor; in files */
	uint8_t state, how;
} rows[] = {
#define SYSTEM_CALL(name, number, state, how) {SYS_##name, number, TFT_STATE_##state, how},
#if !defined(__x86_64__)
#define OLD_SYSTEM_CALL(...)
#endif
#include "base/system_calls.def"
};

#if defined(__x86_64__)
#define SYSTEM_CALL(name, number, ...) _Static_assert(SYS_##name == number, #name);
#include "base/system_calls.def"
#include "base/text.h"
#endif

static const char *python;
static size_t python_bytes;

void tfh_waiting_python(const void *runtime, size_t bytes)
{
	python = runtime;
	python_bytes = bytes;
}

/* By this processor's number. */
static const struct waiting_row *row_of(long call)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (rows[i].call == call)
			return &rows[i];
	return NULL;
}

void tfh_waiting_parse(const char *text, struct tfh_waiting *out, uint64_t arg[TFH_CALL_WORDS])
{
	const struct waiting_row *row;
	char *at;
	long call = strtol(text, &at, 10);

	*out = (struct tfh_waiting){
		.state = TFT_STATE_RUNNING, .wait = TFT_WAIT_ANY, .call = NO_CALL, .fd = -1};
	memset(arg, 0, TFH_CALL_WORDS * sizeof(*arg));
	if (at == text) /* "running" */
		return;
	/* Stopped outside of a system call: a page has to be loaded. */
	if (call < 0 || call >= NO_CALL) {
		out->state = TFT_STATE_PAGE;
		return;
	}
	for (int i = 0; i < TFH_CALL_WORDS; i++)
		arg[i] = strtoull(at, &at, 16);
	row = row_of(call);
	out->call = row ? row->number : NO_CALL;
	out->state = row ? row->state : TFT_STATE_OTHER;
	if (row && row->how == EPOLL && (int32_t)arg[3] > 0)
		out->what = (uint64_t)(uint32_t)arg[3] + 1;
	if (row && row->how == FUTEX) {
		out->what = arg[0];
		if (arg[0] - (uintptr_t)python < python_bytes)
			out->state = TFT_STATE_GIL;
	} else if (row && row->how == FD) {
		out->fd = (int32_t)arg[0];
	}
}

/* Keeps the end of a path, which is more informative than its beginning. */
static void take_name(struct tfh_waiting *out, const char *path)
{
	size_t len = strlen(path);

	if (len >= sizeof(out->name))
		path += len - sizeof(out->name) + 1;
	snprintf(out->name, sizeof(out->name), "%s", path);
}

void tfh_waiting_link(const char *link, struct tfh_waiting *out)
{
	bool writes = out->state == TFT_STATE_WRITE;

	if (tfh_starts_with(link, "pipe:[")) {
		out->state = writes ? TFT_STATE_PIPE_FULL : TFT_STATE_PIPE;
		out->what = strtoull(link + strlen("pipe:["), NULL, 10);
	} else if (tfh_starts_with(link, "socket:[")) {
		out->state = writes ? TFT_STATE_SOCKET_FULL : TFT_STATE_SOCKET;
		out->what = strtoull(link + strlen("socket:["), NULL, 10);
	} else if (tfh_starts_with(link, "anon_inode:")) {
		out->state = TFT_STATE_EVENT;
	} else if (tfh_starts_with(link, "/dev/pts/") || tfh_starts_with(link, "/dev/tty") ||
		   tfh_starts_with(link, "/dev/console")) {
		out->state = writes ? TFT_STATE_TERMINAL_OUT : TFT_STATE_TERMINAL;
	} else if (tfh_starts_with(link, "/dev/") && !tfh_starts_with(link, "/dev/shm/")) {
		out->state = TFT_STATE_DEVICE;
		take_name(out, link);
	} else {
		/* an ioctl on a file changes it or requests something */
		if (out->state == TFT_STATE_DEVICE || out->state == TFT_STATE_POLL)
			out->state = TFT_STATE_OTHER;
		take_name(out, link);
	}
}

/* Copies the job's memory, which the job may be freeing meanwhile. */
static bool copy(int32_t pid, void *to, uint64_t from, size_t bytes)
{
	struct iovec here = {to, bytes}, there = {(void *)(uintptr_t)from, bytes};

	return bytes && from &&
	       tfh_copy_memory(pid ? pid : getpid(), &here, 1, &there, 1) == (ssize_t)bytes;
}

static int lowest(const uint8_t *set, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		if (set[i])
			return (int)(i * 8) + __builtin_ctz(set[i]);
	return -1;
}

/* The descriptor that it waits for: the first one stands for all. Waiting for none of them is
 * sleeping. */
static void take_polled(struct tfh_waiting *out, int32_t pid, const uint64_t *arg,
			enum wait_kind how)
{
	uint8_t set[128];
	struct pollfd first;
	size_t bytes;

	if ((how == POLL && !arg[1]) || (how == SELECT && !arg[0])) {
		out->state = TFT_STATE_SLEEP;
		return;
	}
	if (how == POLL && copy(pid, &first, arg[0], sizeof(first))) {
		out->fd = first.fd;
		out->state = first.events & POLLIN ? TFT_STATE_READ : TFT_STATE_WRITE;
	} else if (how == SELECT) {
		bytes = (size_t)((uint32_t)arg[0] + 63) / 64 * 8;
		bytes = bytes < sizeof(set) ? bytes : sizeof(set);
		if (copy(pid, set, arg[1], bytes) && (out->fd = lowest(set, bytes)) >= 0)
			out->state = TFT_STATE_READ;
		else if (copy(pid, set, arg[2], bytes) && (out->fd = lowest(set, bytes)) >= 0)
			out->state = TFT_STATE_WRITE;
	}
}

/* "/proc/PID/task/TID/" */
static int folder(char path[64], int32_t pid, uint32_t tid)
{
	return pid ? snprintf(path, 64, "/proc/%d/task/%u/", pid, tid)
		   : snprintf(path, 64, "/proc/self/task/%u/", tid);
}

static void follow(int32_t pid, uint32_t tid, struct tfh_waiting *out)
{
	char path[64], link[1024];
	int at = folder(path, pid, tid);
	ssize_t n;

	snprintf(path + at, sizeof(path) - (size_t)at, "fd/%d", out->fd);
	n = readlink(path, link, sizeof(link) - 1);
	if (n <= 0) {
		out->state = TFT_STATE_OTHER;
		return;
	}
	link[n] = '\0';
	tfh_waiting_link(link, out);
}

int tfh_waiting_open(int32_t pid, uint32_t tid)
{
	char path[64];
	int at = folder(path, pid, tid), fd;

	snprintf(path + at, sizeof(path) - (size_t)at, "syscall");
	fd = tfh_open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		return fd;
	return errno == ENOENT && access("/proc/self/task", F_OK) == 0 ? -ESRCH : -errno;
}

int tfh_waiting_sample(int fd, int32_t pid, uint32_t tid, struct tfh_waiting *out)
{
	const struct waiting_row *row;
	char text[256];
	uint64_t arg[TFH_CALL_WORDS];
	ssize_t n = tfh_pread(fd, text, sizeof(text) - 1, 0);

	if (n <= 0)
		return n < 0 ? -errno : -ESRCH;
	text[n] = '\0';
	tfh_waiting_parse(text, out, arg);
	row = row_of(strtol(text, NULL, 10));
	if (row && (row->how == POLL || row->how == SELECT))
		take_polled(out, pid, arg, row->how);
	if (!pid && row && row->how == FUTEX && out->state == TFT_STATE_LOCK)
		out->wait = tfh_futex_kind(arg, tid);
	if (out->wait == TFT_WAIT_MUTEX)
		tfh_holder_of(arg, tid, out->name, sizeof(out->name));
	if (out->wait == TFT_WAIT_END)
		out->what = arg[2];
	if (out->fd >= 0)
		follow(pid, tid, out);
	return 0;
}
