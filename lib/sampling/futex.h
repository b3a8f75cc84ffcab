/*
 * What a thread that sleeps in futex() waits for. Locks, condition variables, semaphores and the
 * ends of threads are all futexes; the kernel shows the operation, the value that the word had and
 * the instruction that made the call.
 */
#ifndef TFH_SAMPLING_FUTEX_H
#define TFH_SAMPLING_FUTEX_H

#include <stdbool.h>
#include <stdint.h>

#include "format/waits.h"

/* The numbers that the kernel shows of a system call: six arguments, stack pointer, instruction. */
enum { TFH_CALL_STACK = 6, TFH_CALL_AT = 7, TFH_CALL_WORDS = 8 };

/* Sets glibc's own syscall(), where a hook has that name. Called once, at load. */
void tfh_futex_syscall(void *glibc);
/* Finds out where this process' C library is. Until then, and where it is not glibc 2.25 or newer,
 * every wait is TFT_WAIT_ANY. */
void tfh_futex_begin(void);
/* How a thread of this process waits, by the numbers of its call. Of TFT_WAIT_END, the third
 * argument is the thread whose end it waits for. */
enum tft_wait tfh_futex_kind(const uint64_t call[TFH_CALL_WORDS], uint32_t tid);
/* Where in a thread's structure its number is; 0: not known. */
uint32_t tfh_futex_number_at(void);

/* ---- for tests ---- */

/* What operation and value of a call say; `libc`: it is one that glibc's own functions make, and
 * not a program through syscall(). TFT_WAIT_END: perhaps. */
enum tft_wait tfh_futex_says(uint64_t operation, uint64_t value, bool libc);

#endif
