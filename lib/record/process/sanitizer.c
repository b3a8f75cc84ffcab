#include "record/process/sanitizer.h"

/* The runtimes' own functions, which the loader resolves if there is a runtime. */
#define RUNTIME __attribute__((weak, visibility("default")))
RUNTIME void AnnotateIgnoreReadsBegin(const char *file, int line);
RUNTIME void AnnotateIgnoreReadsEnd(const char *file, int line);
RUNTIME void AnnotateIgnoreWritesBegin(const char *file, int line);
RUNTIME void AnnotateIgnoreWritesEnd(const char *file, int line);
RUNTIME void __msan_scoped_disable_interceptor_checks(void);
RUNTIME void __msan_scoped_enable_interceptor_checks(void);

void tfh_sanitizer_ignore_begin(void)
{
	if (AnnotateIgnoreReadsBegin && AnnotateIgnoreReadsEnd)
		AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
	if (AnnotateIgnoreWritesBegin && AnnotateIgnoreWritesEnd)
		AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
	if (__msan_scoped_disable_interceptor_checks && __msan_scoped_enable_interceptor_checks)
		__msan_scoped_disable_interceptor_checks();
}

void tfh_sanitizer_ignore_end(void)
{
	if (AnnotateIgnoreReadsBegin && AnnotateIgnoreReadsEnd)
		AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
	if (AnnotateIgnoreWritesBegin && AnnotateIgnoreWritesEnd)
		AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
	if (__msan_scoped_disable_interceptor_checks && __msan_scoped_enable_interceptor_checks)
		__msan_scoped_enable_interceptor_checks();
}
