/*
 * How much may be written: how much of the file system and of quotas stays free, and how much all
 * processes of a run on this host may use together. The processes do not communicate. Each counts
 * the files in the run directory, rarely enough to cost nothing, and keeps to its share.
 */
#include "record/run/rundir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/quota.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/refused.h"
#include "record/run/place.h"

#ifndef SYS_quotactl_fd
#define SYS_quotactl_fd 443
#endif

#define KEEP_FREE_BYTES (2ull << 30)
#define KEEP_FREE_SHARE 20 /* 1/20 = 5 % */
#define RUN_BYTES (16ull << 30)
/* Nothing in a container shows how much it may write before it is evicted. */
#define RUN_BYTES_CONTAINER (1ull << 30)
/* A process's smallest share, so that many short ones leave something for the others: 16 MiB of 1
 * GiB. */
#define SHARE_LEAST 64
#define COUNT_NS 2000000000ull
/* Directories with very many files on slow file systems are counted less often: counting takes 1 %
 * of the time. */
#define COUNT_COST 100

static struct {
	uint64_t run;	    /* TFHOOK_RUN_SIZE or its default */
	uint64_t bytes;	    /* size of the run on this host at the last count */
	uint64_t others;    /* bytes of other processes */
	double pace;	    /* bytes that the others write per ns */
	uint64_t own;	    /* bytes this process had written then */
	uint32_t processes; /* processes with files there, including ended ones */
	uint64_t counted_ns, next_ns;
	bool no_quota; /* checked once: there is no quota, or the kernel does not report it */
} budget;

void tfh_budget_forget(void)
{
	memset(&budget, 0, sizeof(budget));
}

static uint64_t keep_of(uint64_t whole)
{
	uint64_t keep = whole / KEEP_FREE_SHARE;

	return keep < KEEP_FREE_BYTES ? KEEP_FREE_BYTES : keep;
}

/* ---- quotas ---- */

/* Returns -EDQUOT if a chunk would come near the limit, 1 if there is a quota with more room, 0 if
 * there is none. */
static int quota_check(int dir, int type, int id)
{
	struct dqblk q;
	uint64_t limit, keep;

	/* QCMD shifts Q_GETQUOTA's highest bit out of an int. */
	if (!tfh_may_call(TFH_CALL_QUOTA) ||
	    syscall(SYS_quotactl_fd, dir, QCMD((unsigned)Q_GETQUOTA, (unsigned)type), id, &q))
		return 0;
	/* Above the soft limit, the job's own writes fail some days later. */
	limit = (q.dqb_bsoftlimit ? q.dqb_bsoftlimit : q.dqb_bhardlimit) * 1024;
	if (!limit)
		return 0;
	keep = keep_of(limit);
	if (keep > limit / 4) /* part of a small quota is used, or nothing would ever be recorded */
		keep = limit / 4;
	return q.dqb_curspace + keep + TFH_CHUNK_BYTES > limit ? -EDQUOT : 1;
}

/* If the first query finds no quota, it is not repeated: a sandbox that the job enters later may
 * kill the process for this call. */
static int quotas_check(void)
{
	int dir, user, group, saved = errno;

	if (budget.no_quota)
		return 0;
	dir = tfh_rundir_fd(&tfh_dir);
	if (dir < 0)
		return 0;
	user = quota_check(dir, USRQUOTA, (int)geteuid());
	group = quota_check(dir, GRPQUOTA, (int)getegid());
	tfh_close(dir);
	errno = saved;
	budget.no_quota = !user && !group;
	return user < 0 ? user : group < 0 ? group : 0;
}

/* ---- the run's budget ---- */

static uint64_t run_size(void)
{
	if (!budget.run)
		budget.run = (uint64_t)tfh_opt_int(&tfh_recorder.options, TFH_OPT_RUN_SIZE);
	if (!budget.run)
		budget.run = tfh_in_container() ? RUN_BYTES_CONTAINER : RUN_BYTES;
	return budget.run;
}

/* Whether p.<host>.<pid>.<n>.tft or r<rank>.<host>... is a file of this host. */
static bool of_this_host(const char *name)
{
	const char *host = strchr(name, '.');
	size_t n = strlen(tfh_recorder.host);

	return host && !strncmp(host + 1, tfh_recorder.host, n) && host[n + 1] == '.';
}

static bool of_this_process(const char *name)
{
	size_t n = strlen(tfh_dir.prefix);

	return !strncmp(name, tfh_dir.prefix, n) && name[n] == '.';
}

static bool is_first_segment(const char *name)
{
	size_t n = strlen(name);

	return n > 6 && !strcmp(name + n - 6, ".0.tft");
}

static void count(uint64_t own)
{
	int dir = tfh_rundir_fd(&tfh_dir);
	DIR *d = dir >= 0 ? fdopendir(dir) : NULL;
	struct dirent *e;
	struct stat st;

	budget.bytes = budget.others = budget.processes = 0;
	budget.own = own;
	while (d && (e = readdir(d))) {
		if (!of_this_host(e->d_name) ||
		    fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW))
			continue;
		budget.bytes += (uint64_t)st.st_blocks * 512;
		if (!of_this_process(e->d_name))
			budget.others += (uint64_t)st.st_blocks * 512;
		budget.processes += is_first_segment(e->d_name);
	}
	if (d)
		closedir(d);
	else if (dir >= 0)
		tfh_close(dir);
	if (!budget.processes)
		budget.processes = 1;
}

/* Counts again and measures how fast the others write. Files that existed at the first count may
 * belong to ended processes, so they say nothing about that rate. */
static void count_again(uint64_t now, uint64_t own)
{
	uint64_t before = budget.others, since = now - budget.counted_ns;

	count(own);
	if (!budget.counted_ns)
		budget.pace = 0;
	else if (since >= COUNT_NS)
		budget.pace = budget.others > before
				      ? (double)(budget.others - before) / (double)since
				      : 0;
	budget.counted_ns = now;
	now = (uint64_t)tfh_clock_ns(CLOCK_MONOTONIC);
	budget.next_ns = now + COUNT_NS + (now - budget.counted_ns) * COUNT_COST;
}

/* Bytes of the run on this host, as far as known. The others are assumed to go on at the rate
 * between the last two counts. */
static uint64_t run_bytes(uint64_t own)
{
	uint64_t now = (uint64_t)tfh_clock_ns(CLOCK_MONOTONIC);

	if (now >= budget.next_ns)
		count_again(now, own);
	return budget.bytes + (own > budget.own ? own - budget.own : 0) +
	       (uint64_t)(budget.pace * (double)(now - budget.counted_ns));
}

uint64_t tfh_budget_segment(uint64_t own, uint64_t *limit)
{
	uint64_t run = run_size(), share;

	*limit = (uint64_t)tfh_opt_int(&tfh_recorder.options, TFH_OPT_MAX_SIZE);
	if (run_bytes(own) > run / 2) {
		share = run / (budget.processes < SHARE_LEAST ? budget.processes : SHARE_LEAST);
		if (*limit > share)
			*limit = share;
	}
	/* Segments are small enough that the first, the newest and one in between fit into a
	 * share. */
	return run / SHARE_LEAST < *limit / 4 ? run / SHARE_LEAST : *limit / 4;
}

/* ---- the whole check ---- */

int tfh_budget_check(uint64_t own)
{
	struct statvfs fs;
	int err;

	if (statvfs(tfh_dir.path, &fs))
		return -errno;
	if ((uint64_t)fs.f_bavail * fs.f_frsize <
	    keep_of((uint64_t)fs.f_blocks * fs.f_frsize) + TFH_CHUNK_BYTES)
		return -ENOSPC;
	err = quotas_check();
	if (err)
		return err;
	return run_bytes(own) > run_size() ? -EOVERFLOW : 0;
}

void tfh_budget_freed(void)
{
	budget.next_ns = 0;
}
