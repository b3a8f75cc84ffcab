/* Ways that a process may live and die while it records; life.sh says what must come out of each.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "record/record.h"

static void call(enum tfh_fn fn)
{
	uint64_t begin;
	struct tfh_self *self = tfh_enter(fn, 1, &begin);
	struct tfh_rec *rec = self ? tfh_leave(self, begin, fn, TFT_CALL) : NULL;

	if (rec)
		tfh_publish(self, 1);
}

static void calls(int n)
{
	for (int i = 0; i < n; i++)
		call(TFH_FN_cuLaunchKernel);
}

/* Calls that come before any launch leave no trace. */
static int life_cold(void)
{
	for (int i = 0; i < 100; i++)
		call(TFH_FN_cuInit);
	return 0;
}

/* They are the beginning of the trace when a launch comes. */
static int life_warm(void)
{
	for (int i = 0; i < 100; i++)
		call(TFH_FN_cuInit);
	calls(10);
	return 0;
}

/* The rank is set while the process records, as Python programs do. */
static int life_rank(void)
{
	calls(10);
	setenv("RANK", "2", 1);
	setenv("WORLD_SIZE", "4", 1);
	calls(10);
	return 0;
}

static int life_rank_late(void)
{
	calls(10);
	tfh_flush_now(2000);
	tfh_flush_now(2000);
	return life_rank();
}

/* A function that is looked up late and not hooked is reported before the job is killed. */
static int life_unhooked(void)
{
	calls(10);
	tfh_flush_now(2000);
	tfh_unhooked("cuNotThere");
	calls(10);
	tfh_flush_now(2000);
	return raise(SIGKILL);
}

static int life_fork(void)
{
	calls(10);
	for (int i = 0; i < 3; i++)
		if (!fork()) {
			calls(20 + i);
			exit(0);
		}
	while (wait(NULL) > 0)
		;
	calls(1);
	return 0;
}

/* The child leaves a call that its parent entered. */
static int life_fork_inside(void)
{
	struct tfh_self *self;
	struct tfh_rec *rec;
	uint64_t begin;
	pid_t child;

	calls(10);
	self = tfh_enter(TFH_FN_cuLaunchKernel, 0, &begin);
	child = fork();
	rec = tfh_leave(self, begin, TFH_FN_cuLaunchKernel, TFT_CALL);
	if (rec)
		tfh_publish(self, 1);
	if (!child) {
		calls(5);
		exit(0);
	}
	int status = 1;
	waitpid(child, &status, 0);
	return status;
}

static int life_vfork(void)
{
	int status = 1;

	calls(10);
	if (!vfork()) {
		execl("/bin/true", "true", NULL);
		_exit(9);
	}
	wait(&status);
	calls(10);
	return status;
}

static atomic_int stop, about;

static void *worker(void *arg)
{
	(void)arg;
	while (!stop) {
		calls(1);
		about = 1;
	}
	return NULL;
}

/* fork every few ms while another thread records */
static int life_storm(void)
{
	pthread_t t;
	int bad = 0;

	pthread_create(&t, NULL, worker, NULL);
	for (int i = 0; i < 100; i++) {
		int status = 0;
		pid_t pid = fork();

		if (!pid) {
			if (i % 2)
				calls(3);
			exit(0);
		}
		waitpid(pid, &status, 0);
		bad |= status;
		usleep(2000);
	}
	stop = 1;
	pthread_join(t, NULL);
	return bad;
}

static void *one_call(void *arg)
{
	(void)arg;
	call(TFH_FN_cuLaunchKernel);
	return NULL;
}

static int many = 10000; /* argv[2]: making a thread takes milliseconds under a sanitizer */

static int life_threads(void)
{
	for (int i = 0; i < many; i += 20) {
		pthread_t t[20];

		for (int k = 0; k < 20; k++)
			pthread_create(&t[k], NULL, one_call, NULL);
		for (int k = 0; k < 20; k++)
			pthread_join(t[k], NULL);
	}
	return 0;
}

/* exit while others go on */
static int life_exit(void)
{
	pthread_t t;

	for (int i = 0; i < 4; i++)
		pthread_create(&t, NULL, worker, NULL);
	while (!about)
		usleep(1000);
	usleep(100000);
	return 0;
}

static void *first_call(void *arg)
{
	(void)arg;
	about = 1;
	calls(1);
	return NULL;
}

/* 40 processes that exit, or _exit, or exec, while their recording is just beginning by another
 * thread, 0 to 2 ms after it began. */
static int life_exit_first(void)
{
	int bad = 0;

	for (int i = 0; i < 40; i++) {
		int status = 1;
		pid_t pid = fork();
		pthread_t t;

		if (!pid) {
			pthread_create(&t, NULL, first_call, NULL);
			while (!about)
				;
			usleep((useconds_t)(i * 50));
			if (i % 3 == 1) {
				tfh_finish(true); /* as the hook of _exit does */
				_exit(0);
			}
			if (i % 3 == 2) {
				tfh_exec_begin("/bin/true"); /* as the hook of execl */
				execl("/bin/true", "true", NULL);
			}
			exit(0);
		}
		waitpid(pid, &status, 0);
		bad |= status;
	}
	return bad;
}

static long resident_pages(void)
{
	long all = 0, resident = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	if (!f || fscanf(f, "%ld %ld", &all, &resident) != 2)
		resident = 0;
	if (f)
		fclose(f);
	return resident;
}

/* 20 execs that fail, each of which ends a recording whose memory is then given back. */
static int life_execs(void)
{
	long before, grown;

	calls(1);
	before = resident_pages();
	for (int i = 0; i < 20; i++) {
		tfh_exec_begin(NULL);
		tfh_exec_failed();
		calls(1);
	}
	grown = (resident_pages() - before) * sysconf(_SC_PAGESIZE) >> 20;
	if (grown > 40)
		printf("%ld MB more\n", grown);
	return 0;
}

static atomic_uint handled;

static void handler(int sig)
{
	(void)sig;
	handled++;
	call(TFH_FN_cuMemcpyHtoD_v2);
}

/* A signal handler that makes hooked calls, at any point of an append. */
static int life_signal(void)
{
	struct sigaction sa = {.sa_handler = handler};
	struct itimerval every = {{0, 50}, {0, 50}};
	int made = 0;

	call(TFH_FN_cuLaunchKernel);
	sigaction(SIGALRM, &sa, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
	while (handled < 5000)
		for (int i = 0; i < 10; i++, made++) {
			call(TFH_FN_cuLaunchKernel);
			for (volatile int k = 0; k < 100; k++)
				;
		}
	every = (struct itimerval){{0, 0}, {0, 0}};
	setitimer(ITIMER_REAL, &every, NULL);
	printf("%u\n", made + 1 + handled);
	return 0;
}

/* A call that does not return: seen after 100 ms. */
static int life_hang(void)
{
	uint64_t begin;

	calls(3);
	tfh_enter(TFH_FN_cuCtxSynchronize, 42, &begin);
	usleep(400000);
	kill(getpid(), SIGKILL);
	return 0;
}

static pthread_key_t late_key;

static void late(void *arg)
{
	calls(2);
	if ((intptr_t)arg < 3)
		pthread_setspecific(late_key, (void *)((intptr_t)arg + 1));
}

static void *with_destructor(void *arg)
{
	pthread_setspecific(late_key, arg);
	calls(1);
	return NULL;
}

/* Calls made by destructors of thread-local data, after ours ran. */
static int life_late(void)
{
	pthread_t t;

	calls(1);
	pthread_key_create(&late_key, late);
	pthread_create(&t, NULL, with_destructor, (void *)1);
	pthread_join(t, NULL);
	return 0;
}

/* Names, allocations; segments that repeat them. argument: rounds of 10,000 launches */
static int life_names(void)
{
	for (uint64_t h = 1; h <= 500; h++) {
		uint64_t begin;
		struct tfh_self *self = tfh_enter(TFH_FN_cuMemAlloc_v2, 0, &begin);
		struct tfh_rec *rec;
		char text[128];

		if (!self)
			return 1;
		int n = snprintf(text, sizeof(text),
				 "kernel_%llu_with_a_name_longer_than_one_record_holds",
				 (unsigned long long)h);
		tfh_handle_new(self, TFT_NAME_FUNCTION, h * 4096, 7, text, (size_t)n);
		rec = tfh_leave(self, begin, TFH_FN_cuMemAlloc_v2, TFT_ALLOC);
		if (rec) {
			rec->w[0] = 100;
			rec->w[1] = h << 20;
			tfh_publish(self, 1);
		}
	}
	for (int i = 0; i < 500000; i++) {
		uint64_t begin;
		struct tfh_self *self = tfh_enter(TFH_FN_cuLaunchKernel, 0, &begin);
		struct tfh_rec *rec;
		uint32_t id;

		if (!self)
			return 1;
		id = tfh_handle_known(self, TFT_NAME_FUNCTION, (uint64_t)(i % 500 + 1) * 4096);
		if (!id)
			return 1;
		rec = tfh_leave(self, begin, TFH_FN_cuLaunchKernel, TFT_CALL);
		if (rec) {
			rec->w[0] = id;
			rec->w[1] = (uint64_t)rand() << 32 | (uint64_t)rand();
			rec->w[2] = (uint64_t)rand() << 32 | (uint64_t)rand();
			tfh_publish(self, 1);
		}
		if (i % 500 == 0)
			usleep(1000);
	}
	return 0;
}

static uint32_t text_id(struct tfh_self *self, const char *text)
{
	return tfh_text_id(self, TFT_NAME_STRING, text, strlen(text));
}

/* Texts without an id of their own are the same only if they differ in nothing but numbers. */
static bool told_apart(struct tfh_self *self)
{
	uint32_t id = text_id(self, "program=17,part 2");

	return id && id == text_id(self, "program=8,part 305") &&
	       id != text_id(self, "program=17,piece 2") && id != text_id(self, "iteration 139999");
}

/* More texts and graphs than there are ids, then a kernel. */
static int life_texts(void)
{
	uint64_t begin;

	call(TFH_FN_cuLaunchKernel);
	for (uint64_t i = 1; i <= 140000; i++) {
		struct tfh_self *self = tfh_enter(TFH_FN_mark_range, 0, &begin);
		char text[32];
		int n = snprintf(text, sizeof(text), "iteration %llu", (unsigned long long)i);

		if (!self || !tfh_text_id(self, TFT_NAME_STRING, text, (size_t)n))
			return 1;
		tfh_handle_new(self, TFT_NAME_GRAPH, i * 64, 0, NULL, 0);
		tfh_leave_quiet(self, begin);
		if (i % 200 == 0)
			tfh_flush_now(1000);
	}
	struct tfh_self *self = tfh_enter(TFH_FN_cuLaunchKernel, 0, &begin);
	uint32_t id = self ? tfh_handle_new(self, TFT_NAME_FUNCTION, 4096, 0, "kernel", 6) : 0;
	uint32_t stream = self ? tfh_handle_new(self, TFT_NAME_STREAM, 4096, 0, NULL, 0) : 0;
	bool apart = self && told_apart(self);

	if (self)
		tfh_leave_quiet(self, begin);
	return !id || !stream || !apart;
}

static int life_steps(void)
{
	for (int i = 0; i < 400; i++) {
		call(TFH_FN_tf_getnext_op);
		calls(5);
		usleep(1000);
	}
	return 0;
}

static int life_busy(void)
{
	for (int i = 0; i < 2000; i++) {
		calls(5);
		usleep(1000);
	}
	return 0;
}

static int life_limit(void)
{
	calls(1000);
	usleep(200000);
	calls(1000);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(void);
	} lives[] = {{"cold", life_cold},	    {"warm", life_warm},
		     {"unhooked", life_unhooked},   {"rank", life_rank},
		     {"rank_late", life_rank_late}, {"fork", life_fork},
		     {"inside", life_fork_inside},  {"vfork", life_vfork},
		     {"storm", life_storm},	    {"threads", life_threads},
		     {"exit", life_exit},	    {"exit_first", life_exit_first},
		     {"execs", life_execs},	    {"signal", life_signal},
		     {"hang", life_hang},	    {"late", life_late},
		     {"names", life_names},	    {"steps", life_steps},
		     {"texts", life_texts},	    {"busy", life_busy},
		     {"limit", life_limit}};

	if (argc > 2)
		many = atoi(argv[2]);
	for (size_t i = 0; argc > 1 && i < sizeof(lives) / sizeof(lives[0]); i++)
		if (!strcmp(argv[1], lives[i].name))
			return lives[i].run();
	return 2;
}
