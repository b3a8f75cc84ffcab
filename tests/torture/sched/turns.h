/*
 * A scheduler for real threads of which one runs at a time: at every point a seed decides who goes
 * on. The same seed gives the same schedule. Time is virtual: it passes with points, and where all
 * wait it jumps to the next moment that somebody waits for.
 *
 * Two policies, by seed: a fair coin now and then, or priorities with a few changes (PCT:
 * Burckhardt et al., 2010), which finds an order of d events with a known probability.
 */
#ifndef TESTS_TORTURE_SCHED_H
#define TESTS_TORTURE_SCHED_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#define SCHED_SECOND 1000000000ull

/* Called with the reason when no schedule may end like this: all wait for ever, or nobody comes to
 * an end. Does not return. */
extern void (*sched_failed)(const char *reason);
/* Runs at some points on a task that allows it, as a signal handler would. */
extern void (*sched_signal)(void);
/* What the recorder registered: the exit handler, the fork handler of a child. */
extern void (*sched_exit_handler)(void), (*sched_fork_child)(void);
/* What getpid says to the recorder. */
extern pid_t sched_pid;

/* The calling thread becomes the first task; ends with all others gone. */
void sched_begin(uint64_t seed);
/* Waits until all other tasks are gone, threads too. */
void sched_end(void);
/* In a forked child: the calling task is the only one. */
void sched_forked(uint64_t seed);
/* Another task; it begins when its turn comes. */
void sched_task(void *(*run)(void *), void *arg);
/* Waits until all tasks made by sched_task are gone. */
void sched_join(void);
/* At the calling task's points from here on, counted from 1: a signal at one (or as soon as it takes
 * signals again), and at one all others run until none can. 0: never. */
void sched_direct(uint32_t signal_at, uint32_t change_at);
/* The points that it passed since; there are no more of them. */
uint32_t sched_direct_end(void);
/* The calling task takes signals from now on, or no more. */
void sched_signals(bool on);
/* Others come before the calling task whenever it has put other memory in the place of what it had mapped. */
void sched_stops(bool on);
uint64_t sched_random(uint64_t below);
/* Points passed so far: the order of what happens. */
uint64_t sched_count(void);
uint64_t sched_now(void);
/* Unmaps what the recorder mapped since sched_begin with this size and not unmapped. */
void sched_unmap(size_t size);

/* What points.h puts in the place of others. */
void sched_point_in(const char *function, int line);
/* The last points before this, where and by whom, go to stderr. */
void sched_trace(void);
/* Shown there after the last point. */
void sched_note(const char *what);
long sched_syscall(long number, ...);
int sched_pass(void);
int sched_nanosleep(const struct timespec *ts, struct timespec *left);
int sched_clock_gettime(clockid_t id, struct timespec *ts);
extern int (**sched_clock_read)(clockid_t, struct timespec *);
/* Of the calling task's signals: all or none, by SIGALRM. */
int sched_sigmask(int how, const sigset_t *set, sigset_t *old);
int sched_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
			 void *arg);
/* Another number for each task: addresses that come back would make two runs of a seed differ. */
pthread_t sched_self(void);
int sched_pthread_key_create(pthread_key_t *key, void (*end)(void *));
int sched_atfork(void (*before)(void), void (*parent)(void), void (*child)(void));
int sched_atexit(void (*handler)(void));
void *sched_mmap(void *at, size_t size, int prot, int flags, int fd, off_t off);
int sched_munmap(void *at, size_t size);
int sched_madvise(void *at, size_t size, int advice);

#endif
