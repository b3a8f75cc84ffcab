/*
 * Compiled in front of every file of lib/record for the schedule fuzzer, and nowhere else: each
 * atomic operation of the recorder becomes a point at which another thread may go on, and time,
 * futexes, threads and exit handlers are the scheduler's (turns.h). The product's sources say
 * nothing of it.
 *
 * Rings and staging are small here, so that a schedule of some dozen calls fills, wraps and grows
 * them.
 */
#ifndef TESTS_TORTURE_SCHED_POINTS_H
#define TESTS_TORTURE_SCHED_POINTS_H

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "turns.h"

#define sched_point() sched_point_in(__func__, __LINE__)

#define __atomic_load_n(p, o) (sched_point(), __atomic_load_n(p, o))
#define __atomic_store_n(p, v, o) (sched_point(), __atomic_store_n(p, v, o))
#define __atomic_exchange_n(p, v, o) (sched_point(), __atomic_exchange_n(p, v, o))
#define __atomic_compare_exchange_n(p, e, v, w, s, f)                                              \
	(sched_point(), __atomic_compare_exchange_n(p, e, v, w, s, f))
#define __atomic_fetch_add(p, v, o) (sched_point(), __atomic_fetch_add(p, v, o))
#define __atomic_fetch_sub(p, v, o) (sched_point(), __atomic_fetch_sub(p, v, o))
#define __atomic_add_fetch(p, v, o) (sched_point(), __atomic_add_fetch(p, v, o))
#define __atomic_and_fetch(p, v, o) (sched_point(), __atomic_and_fetch(p, v, o))
#define __atomic_or_fetch(p, v, o) (sched_point(), __atomic_or_fetch(p, v, o))
#define __atomic_xor_fetch(p, v, o) (sched_point(), __atomic_xor_fetch(p, v, o))

#define syscall sched_syscall
#define sched_yield sched_pass
#define nanosleep sched_nanosleep
#define clock_gettime sched_clock_gettime
#define tfh_clock_read (*sched_clock_read) /* base/clock.h */
#define pthread_create sched_pthread_create
/* What getpid says here may be another process' number. */
#define process_vm_readv(pid, ...) ((void)(pid), process_vm_readv(getpid(), __VA_ARGS__))
#define pthread_self() sched_self()
#define pthread_detach(thread) ((void)(thread), pthread_detach((pthread_self)()))
#define pthread_sigmask sched_sigmask
#define pthread_key_create sched_pthread_key_create
#define pthread_setname_np(thread, name) ((void)(thread), (void)(name))
#define pthread_atfork sched_atfork
#define atexit sched_atexit
#define mmap sched_mmap
#define munmap sched_munmap
#define madvise sched_madvise

#include "record/ring/journal.h"

#undef TFT_RING_SMALL
#define TFT_RING_SMALL 4096u /* 64 records */
#undef TFT_RING_LARGE
#define TFT_RING_LARGE 8192u /* 128 */
#undef TFT_STAGING_RECORDS
#define TFT_STAGING_RECORDS 96u
#undef TFH_KEPT_NS
#define TFH_KEPT_NS 1
#undef TFH_COLD_RECORDS
#define TFH_COLD_RECORDS 64u

#endif
