/* The job installs a system call filter (process/filters.h). If the filter would end the process
 * for one of the recorder's calls, the recording is closed first, as at an exit. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "record/life/life.h"
#include "record/process/filters.h"
#include "record/watch/nvml_thread.h"

#define NAP_NS 1000000l
#define NAPS 200

/* How many threads of this process are the recorder's. */
static unsigned own_threads(void)
{
	DIR *threads = opendir("/proc/self/task");
	char path[64], name[32];
	struct dirent *e;
	unsigned n = 0;

	while (threads && (e = readdir(threads))) {
		snprintf(path, sizeof(path), "/proc/self/task/%.20s/comm", e->d_name);
		tfh_read_small(path, name, sizeof(name));
		n += !strncmp(name, "tfhook-", strlen("tfhook-"));
	}
	if (threads)
		closedir(threads);
	return n;
}

/* Waits until the recorder's threads have ended, since the filter may apply to all threads and a
 * thread needs system calls to end. The thread that reads devices does not end; it is held. */
static void wait_for_threads(void)
{
	const struct timespec nap = {0, NAP_NS};
	unsigned stays = tfh_devices_threads();

	for (int i = 0; i < NAPS && own_threads() > stays; i++)
		nanosleep(&nap, NULL);
}

static void close_recording(void)
{
	tfh_devices_hold();
	tfh_finish(true);
	__atomic_store_n(&tfh_mode, TFH_MODE_DEAD, __ATOMIC_SEQ_CST);
	/* From here on nothing checks whether this is the recorded process, which would take a
	 * system call. */
	__atomic_store_n(&tfh_recorder.start_state, TFH_START_FAILED, __ATOMIC_SEQ_CST);
	wait_for_threads();
}

void tfh_filter_coming(const long *install, bool answered_elsewhere)
{
	int saved = errno;

	if (tfh_confined(&tfh_self) ||
	    __atomic_load_n(&tfh_mode, __ATOMIC_ACQUIRE) == TFH_MODE_DEAD)
		return;
	tfh_start_wait(TFH_START_MS);
	if (!tfh_recording())
		tfh_filters_changed();
	else if (answered_elsewhere || !tfh_filters_allow_more(install))
		close_recording();
	errno = saved;
}
