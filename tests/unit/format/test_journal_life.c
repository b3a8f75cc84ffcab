/* Whether the process of a journal is alive follows from locks of either kind, by its pid and start
 * time, and by its heartbeat. The journal of a live process is not salvaged but can be read and
 * controlled. Journals that were left by a kill during set-up are removed, and none that may belong
 * to someone else. */
#include "journal_fake.h"

#include <sys/wait.h>
#include <time.h>

/* A living process, whose lock is of one or the other kind, until a byte comes through `end`. */
static pid_t living(const char *file, int kind, int end[2])
{
	int ready[2];
	char c;

	assert_int_equal(pipe(ready) | pipe(end), 0);
	pid_t pid = fork();
	if (pid == 0) {
		struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
		int fd = open(file, O_RDWR), own = open(file, O_RDONLY);
		/* and it reads its own journal, as a job that copies its run directory does */
		if (fcntl(fd, kind, &lock) < 0 || own < 0 || (kind == F_OFD_SETLK && close(own)) ||
		    write(ready[1], "x", 1) != 1 || read(end[0], &c, 1) != 1)
			_exit(1);
		_exit(0);
	}
	assert_int_equal(read(ready[0], &c, 1), 1);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

static void end_life(pid_t pid, int end[2])
{
	assert_int_equal(write(end[1], "x", 1), 1);
	close(end[0]);
	close(end[1]);
	waitpid(pid, NULL, 0);
}

static void test_lock_of_a_description(void **state)
{
	struct fake f;
	struct tft_view *v;
	struct tfh_err err;
	int end[2];

	(void)state;
	clear_dir();
	make_journal(&f);
	pid_t pid = living(path, F_OFD_SETLK, end);
	assert_int_equal(tft_view_open(path, &v, &err), 0);
	assert_int_equal(tft_view_life(v), TFT_ALIVE);
	end_life(pid, end);
	assert_int_equal(tft_view_life(v), TFT_DEAD);
	tft_view_close(v);
	munmap(f.map, f.size);
}

static void test_life(void **state)
{
	struct fake f;
	struct tft_salvaged got;
	struct tfh_err err;
	struct tft_view *v;
	int end[2];
	char other[8300];

	(void)state;
	clear_dir();
	make_journal(&f);
	put_records(&f, 0, 10);
	pid_t pid = living(path, F_SETLK, end);
	assert_int_equal(tft_view_open(path, &v, &err), 0);
	assert_int_equal(tft_view_life(v), TFT_ALIVE);
	assert_int_equal(tft_salvage(path, NULL, 0, &got, &err), -EBUSY);
	assert_int_equal(tft_salvage(path, NULL, TFT_SALVAGE_SNAPSHOT, &got, &err), -EINVAL);
	snprintf(other, sizeof(other), "%s", test_dir());
	assert_int_equal(tft_salvage(path, other, TFT_SALVAGE_SNAPSHOT, &got, &err), 0);
	assert_int_equal(got.records, 10);
	unlink(got.path);
	assert_int_equal(tft_view_set_control(v, TFT_CTL_STOP | TFT_CTL_FLUSH, 0, 20, &err), 0);
	assert_int_equal(f.j->control, 20ull << 32 | TFT_CTL_STOP | TFT_CTL_FLUSH);
	assert_int_equal(tft_view_set_control(v, 0, TFT_CTL_STOP, 0, &err), 0);
	assert_int_equal(f.j->control, 20ull << 32 | TFT_CTL_FLUSH);
	f.j->at_answer = 5;
	assert_int_equal(tft_view_set_gpu(v, TFT_CTL_GPU_ON_AT, 0, 0, 7, 3, &err), 0);
	assert_int_equal(f.j->control, 20ull << 32 | TFT_CTL_FLUSH | TFT_CTL_GPU_ON_AT);
	assert_int_equal(f.j->at_step, 7);
	assert_int_equal(f.j->at_count, 3);
	assert_int_equal(f.j->at_answer, 0);
	end_life(pid, end);
	assert_int_equal(tft_view_life(v), TFT_DEAD);
	/* without locks: pid and start time, then the heartbeat */
	f.j->flags = 0;
	tft_view_close(v);
	assert_int_equal(tft_view_open(path, &v, &err), 0);
	assert_int_equal(tft_view_life(v), TFT_DEAD);
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	f.j->heartbeat_ns = (uint64_t)ts.tv_sec * 1000000000ull;
	assert_int_equal(tft_view_life(v), TFT_ALIVE);
	/* another boot */
	f.j->boot_id[0] ^= 1;
	tft_view_close(v);
	assert_int_equal(tft_view_open(path, &v, &err), 0);
	assert_int_equal(tft_view_life(v), TFT_ELSEWHERE);
	snprintf(f.j->host, sizeof(f.j->host), "some-other-host");
	assert_int_equal(tft_salvage(path, NULL, 0, &got, &err), -EXDEV);
	assert_non_null(strstr(err.text, "some-other-host"));
	tft_view_close(v);
	munmap(f.map, f.size);
}

static void try_sweep(void *arg, const struct tft_found *found)
{
	*(bool *)arg |= tft_view_sweep(found->view);
}

static bool sweep(void)
{
	bool gone = false;

	tft_journals_in(dir, try_sweep, &gone);
	return gone;
}

/* A kill during set-up leaves a file that says so in its first bytes and nothing else; it goes,
 * unless its owner lives, or may just have made it and not locked it yet. Files that say nothing
 * may be anybody's, whatever they are called. */
static void test_sweep(void **state)
{
	const uint64_t magic = TFT_JOURNAL_SETUP_MAGIC;
	const struct timespec old[2] = {{.tv_sec = time(NULL) - 60}, {.tv_sec = time(NULL) - 60}};
	char name[8300], second[8300];
	struct tft_view *v;
	struct fake f;
	int end[2];

	(void)state;
	clear_dir();
	snprintf(name, sizeof(name), "%s/p.node7.1.journal", dir);
	snprintf(second, sizeof(second), "%s/second", dir);
	make_journal(&f);
	assert_int_equal(rename(path, name), 0);
	assert_false(sweep());
	munmap(f.map, f.size);
	assert_int_equal(truncate(name, 0), 0);
	assert_int_equal(utimensat(AT_FDCWD, name, old, 0), 0);
	assert_false(sweep()); /* empty */
	assert_int_equal(truncate(name, 1 << 20), 0);
	assert_int_equal(utimensat(AT_FDCWD, name, old, 0), 0);
	assert_false(sweep()); /* zeros */
	int fd = open(name, O_RDWR);
	assert_int_equal(pwrite(fd, &magic, 8, 0), 8);
	assert_false(sweep()); /* young */
	assert_int_equal(tft_view_open(name, &v, NULL), -EAGAIN);
	assert_null(v);
	assert_int_equal(utimensat(AT_FDCWD, name, old, 0), 0);
	pid_t child = living(name, F_SETLK, end);
	assert_false(sweep()); /* locked */
	end_life(child, end);
	assert_int_equal(link(name, second), 0);
	assert_false(sweep()); /* a file of somebody's, who gave it a second name */
	assert_int_equal(unlink(second), 0);
	assert_true(sweep());
	assert_int_equal(access(name, F_OK), -1);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_life),
		cmocka_unit_test(test_lock_of_a_description),
		cmocka_unit_test(test_sweep),
	};

	return RUN_JOURNAL_TESTS(tests);
}
