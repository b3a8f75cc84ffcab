/*
 * dlsym and dlvsym as the job sees them. They ask a filter; if it declines, they jump to the real
 * function with the caller's return address and registers unchanged. RTLD_NEXT and RTLD_DEFAULT
 * refer to the calling object, which glibc derives from the return address: with a wrapper written
 * in C, every caller would look like tfhook.
 */
#include "hook/entries.h"

	.text

	FILTERED dlsym, 2, tfh_filter_dlsym, tfh_next_dlsym
	FILTERED dlvsym, 3, tfh_filter_dlvsym, tfh_next_dlvsym

	.section .note.GNU-stack, "", %progbits
