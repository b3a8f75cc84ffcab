/*
 * Some locks of the C library are copied by a fork as they are: that of the loader's list of objects (dl_iterate_phdr, dlopen,
 * stack walks) and that of the exit handlers. If a thread of ours held one at that moment, the child would wait for it for
 * ever, in its next dlopen, exception or exit. So a fork waits for such calls, a second at most, and they wait for a fork.
 */
#ifndef TFH_RECORD_FORKS_H
#define TFH_RECORD_FORKS_H

/* Around such a call, on any thread; it may be made in any case. No system call, unless another thread forks. Preserve errno. */
void tfh_unforked_begin(void);
void tfh_unforked_end(void);

/* Before a fork, in the parent after it, in the child. */
void tfh_forks_begin(void);
void tfh_forks_end(void);
void tfh_forks_forked(void);

#endif
