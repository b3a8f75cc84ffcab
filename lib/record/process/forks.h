/*
 * A fork copies some locks of the C library as they are: the lock on the loader's list of objects
 * (dl_iterate_phdr, dlopen, stack walks) and the lock on the exit handlers. If a thread of ours
 * held one at that moment, the child would wait for it for ever in its next dlopen, exception or
 * exit. So a fork waits at most a second for such calls, and they wait for a fork.
 */
#ifndef TFH_RECORD_PROCESS_FORKS_H
#define TFH_RECORD_PROCESS_FORKS_H

/* Enclose such a call, on any thread. The call may be made in any case. No system call is made
 * unless another thread is forking. Preserve errno. */
void tfh_unforked_begin(void);
void tfh_unforked_end(void);

/* Called before a fork, after it in the parent, and in the child. */
void tfh_forks_begin(void);
void tfh_forks_end(void);
void tfh_forks_forked(void);

#endif
