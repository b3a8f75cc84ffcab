/* The state of a thread follows from the text of /proc/self/task/TID/syscall and the link of a
 * descriptor, whatever the kernel writes. A live thread of this process gets its true state. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "sampling/waiting.h"

static enum tft_state state_of(const char *text)
{
	struct tfh_waiting w;
	uint64_t arg[TFH_CALL_WORDS];

	tfh_waiting_parse(text, &w, arg);
	return w.state;
}

static void test_parse(void **state)
{
	static char runtime[64];
	char text[128];

	(void)state;
	assert_int_equal(state_of("running\n"), TFT_STATE_RUNNING);
	assert_int_equal(state_of(""), TFT_STATE_RUNNING);
	assert_int_equal(state_of("-1 0x7ffc 0x401000\n"), TFT_STATE_PAGE);
	assert_int_equal(state_of("202 0x5000 0x80 0x0 0x0 0x0 0x0 0x7ffc 0x40\n"), TFT_STATE_LOCK);
	assert_int_equal(state_of("230 0x1 0x0 0x7ffc 0x7ffc 0x0 0x0 0x7ffc 0x40\n"),
			 TFT_STATE_SLEEP);
	assert_int_equal(state_of("0 0x5 0x7f00 0x1000 0x0 0x0 0x0 0x7ffc 0x40\n"), TFT_STATE_READ);
	assert_int_equal(state_of("99999 0x0 0x0 0x0 0x0 0x0 0x0 0x7ffc 0x40\n"), TFT_STATE_PAGE);
	assert_int_equal(state_of("500 0x0 0x0 0x0 0x0 0x0 0x0 0x7ffc 0x40\n"), TFT_STATE_OTHER);
	assert_int_equal(state_of("202"), TFT_STATE_LOCK);
	tfh_waiting_python(runtime, sizeof(runtime));
	snprintf(text, sizeof(text), "202 %p 0x80 0x0", (void *)(runtime + 8));
	assert_int_equal(state_of(text), TFT_STATE_GIL);
	snprintf(text, sizeof(text), "202 %p 0x80 0x0", (void *)(runtime + sizeof(runtime)));
	assert_int_equal(state_of(text), TFT_STATE_LOCK);
	tfh_waiting_python(NULL, 0);
}

/* The time-out of epoll_wait(); one that returns at once waits for nothing. */
static void test_timeout(void **state)
{
	static const struct {
		const char *text;
		uint64_t what;
	} rows[] = {{"232 0x5 0x7f00 0x31 0xc 0x0 0x0 0x7ffc 0x40\n", 13},
		    {"281 0x5 0x7f00 0x31 0x4e20 0x0 0x8 0x7ffc 0x40\n", 20001},
		    {"232 0x5 0x7f00 0x31 0xffffffff 0x0 0x0 0x7ffc 0x40\n", 0},
		    {"232 0x5 0x7f00 0x31 0x0 0x0 0x0 0x7ffc 0x40\n", 0}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct tfh_waiting w;
		uint64_t arg[TFH_CALL_WORDS];
		tfh_waiting_parse(rows[i].text, &w, arg);
		assert_int_equal(w.state, TFT_STATE_POLL);
		assert_int_equal(w.what, rows[i].what);
	}
}

static void test_link(void **state)
{
	static const struct {
		const char *link;
		enum tft_state before, after;
		uint64_t what;
		const char *name;
	} rows[] = {
		{"pipe:[77]", TFT_STATE_READ, TFT_STATE_PIPE, 77, ""},
		{"pipe:[77]", TFT_STATE_WRITE, TFT_STATE_PIPE_FULL, 77, ""},
		{"socket:[8]", TFT_STATE_READ, TFT_STATE_SOCKET, 8, ""},
		{"anon_inode:[eventfd]", TFT_STATE_READ, TFT_STATE_EVENT, 0, ""},
		{"/dev/pts/3", TFT_STATE_WRITE, TFT_STATE_TERMINAL_OUT, 0, ""},
		{"/dev/nvidia0", TFT_STATE_DEVICE, TFT_STATE_DEVICE, 0, "/dev/nvidia0"},
		{"/dev/shm/x", TFT_STATE_READ, TFT_STATE_READ, 0, "/dev/shm/x"},
		{"/data/train.rec", TFT_STATE_READ, TFT_STATE_READ, 0, "/data/train.rec"},
		{"/data/a", TFT_STATE_DEVICE, TFT_STATE_OTHER, 0, "/data/a"},
		{"", TFT_STATE_READ, TFT_STATE_READ, 0, ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct tfh_waiting w = {.state = rows[i].before};

		tfh_waiting_link(rows[i].link, &w);
		assert_int_equal(w.state, rows[i].after);
		assert_int_equal(w.what, rows[i].what);
		assert_string_equal(w.name, rows[i].name);
	}
	char path[600] = "/";
	memset(path + 1, 'x', sizeof(path) - 2);
	memcpy(path + sizeof(path) - 6, "/last", 6);
	struct tfh_waiting w = {.state = TFT_STATE_READ};
	tfh_waiting_link(path, &w);
	assert_int_equal(strlen(w.name), sizeof(w.name) - 1);
	assert_string_equal(w.name + sizeof(w.name) - 6, "/last");
}

struct live {
	int pipe_fd[2];
	uint32_t tid; /* atomic */
};

static void *reads(void *arg)
{
	struct live *l = arg;
	char byte;

	__atomic_store_n(&l->tid, (uint32_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	return read(l->pipe_fd[0], &byte, 1) == 1 ? arg : NULL;
}

static void test_live(void **state)
{
	struct timespec nap = {0, 10000000};
	struct live l = {0};
	struct tfh_waiting w = {0};
	pthread_t t;
	void *read_one;
	int fd;

	(void)state;
	assert_int_equal(pipe(l.pipe_fd), 0);
	assert_int_equal(pthread_create(&t, NULL, reads, &l), 0);
	while (!__atomic_load_n(&l.tid, __ATOMIC_ACQUIRE))
		nanosleep(&nap, NULL);
	fd = tfh_waiting_open(0, l.tid);
	if (fd == -EACCES || fd == -ENOENT)
		skip(); /* a kernel or sandbox that does not tell */
	assert_true(fd >= 0);
	for (int i = 0; i < 500 && w.state != TFT_STATE_PIPE; i++) {
		assert_int_equal(tfh_waiting_sample(fd, 0, l.tid, &w), 0);
		nanosleep(&nap, NULL);
	}
	assert_int_equal(w.state, TFT_STATE_PIPE);
	assert_int_equal(w.fd, l.pipe_fd[0]);
	assert_int_equal(write(l.pipe_fd[1], "x", 1), 1);
	pthread_join(t, &read_one);
	assert_ptr_equal(read_one, &l);
	for (int i = 0; i < 500 && !tfh_waiting_sample(fd, 0, l.tid, &w); i++)
		nanosleep(&nap, NULL); /* the kernel removes it a moment after the join */
	assert_int_equal(tfh_waiting_sample(fd, 0, l.tid, &w), -ESRCH);
	tfh_close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse),
		cmocka_unit_test(test_timeout),
		cmocka_unit_test(test_link),
		cmocka_unit_test(test_live),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
