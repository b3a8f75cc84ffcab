/* Who recorded what, and when: HEAD of the segments, and the journal's own header. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "record/ring/journal.h"
#include "record/run/rundir.h"
#include "record/write/write.h"
#include "tfhook/version.h"

void tfh_head_fill(struct tft_head *h, uint32_t segment)
{
	struct tfh_clock_info clock;

	tfh_clock_init(&clock);
	memset(h, 0, sizeof(*h));
	h->version = TFT_VERSION;
	h->pid = (uint32_t)tfh_recorder.pid;
	h->ppid = (uint32_t)getppid();
	h->rank = tfh_recorder.rank.rank;
	h->world = tfh_recorder.rank.world;
	h->local_rank = tfh_recorder.rank.local_rank;
	h->segment = segment;
	h->host = tfh_recorder.host;
	h->exe = tfh_recorder.exe;
	h->command = tfh_recorder.command;
	h->boot_id = tfh_recorder.boot_id;
	h->tfhook_version = TFHOOK_VERSION;
	h->job = tfh_dir.job;
	h->start_realtime_ns = tfh_recorder.first.realtime_ns;
	h->start_ticks = tfh_recorder.first.ticks;
	h->tick_hz = tfh_tick_hz();
	h->ticks_are_ns = clock.source == TFH_CLOCK_MONOTONIC;
	h->fn_count = TFH_FN_COUNT;
	h->fn = tfh_fn_table;
	h->journal_path = tfh_journal.path;
	h->journal_start = tfh_recorder.process_start;
}

/* A second copy differs only in numbers, so a concurrent reader finds either the old or the new
 * ones. */
void tfh_head_copy(void)
{
	struct tft_journal *j = tfh_journal.head;
	struct tft_head head;
	size_t n;

	j->rank = tfh_recorder.rank.rank;
	tfh_head_fill(&head, 0);
	n = tft_head_pack(&head, tfh_journal.base + j->head_off, TFT_JOURNAL_HEAD_CAP);
	if (n <= TFT_JOURNAL_HEAD_CAP)
		__atomic_store_n(&j->head_bytes, (uint32_t)n, __ATOMIC_RELEASE);
}

/* The first character comes last, so a reader finds all of it or none. */
void tfh_describe_directory(void)
{
	char *dir = tfh_journal.head->run_dir; /* as large as tfh_dir.path */
	const char *given = tfh_opt_str(&tfh_recorder.options, TFH_OPT_RUN), *path = tfh_dir.path;

	/* Until it is open, only a directory that was given is certain. */
	if (!tfh_dir.opened && !given[0])
		path = "";
	__atomic_store_n(dir, '\0', __ATOMIC_RELEASE);
	if (*path)
		memcpy(dir + 1, path + 1, strlen(path)); /* with its end */
	__atomic_store_n(dir, *path, __ATOMIC_RELEASE);
}

void tfh_describe_journal(void)
{
	struct tft_journal *j = tfh_journal.head;
	struct tfh_clock_info clock;
	struct stat root;

	tfh_clock_init(&clock);
	j->pid = (uint32_t)tfh_recorder.pid;
	j->ppid = (uint32_t)getppid();
	j->process_start = tfh_recorder.process_start;
	if (clock.source == TFH_CLOCK_MONOTONIC)
		j->flags |= TFT_JF_TICKS_ARE_NS;
	j->start = tfh_recorder.first;
	snprintf(j->boot_id, sizeof(j->boot_id), "%s", tfh_recorder.boot_id);
	snprintf(j->host, sizeof(j->host), "%s", tfh_recorder.host);
	tfh_read_small("/proc/self/comm", j->comm, sizeof(j->comm));
	j->comm[strcspn(j->comm, "\n")] = '\0';
	tfh_describe_directory();
	snprintf(j->prefix, sizeof(j->prefix), "%s", tfh_dir.prefix);
	j->pid_ns = tfh_namespace("pid");
	j->mnt_ns = tfh_namespace("mnt");
	if (!stat("/", &root)) {
		j->root_dev = root.st_dev;
		j->root_ino = root.st_ino;
	}
	tfh_take_clock();
	tfh_head_copy();
	j->heartbeat_ns = (uint64_t)tfh_clock_ns(CLOCK_MONOTONIC);
	j->state = TFT_JOURNAL_RUNNING;
	__atomic_store_n(&j->magic, TFT_JOURNAL_MAGIC, __ATOMIC_RELEASE);
}
