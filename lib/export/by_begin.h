/*
 * A process' calls in order of their begin. Of two that begin together the longer one comes first,
 * so that a call precedes the calls inside it. The model has calls in order of their ends; a first
 * pass finds the few that are too long to be sorted in a bounded buffer.
 */
#ifndef TFH_EXPORT_BY_BEGIN_H
#define TFH_EXPORT_BY_BEGIN_H

#include "model/model.h"

struct tfh_by_begin;

/* Calls, ranges, marks and aggregates that overlap t0 to t1. 0 or -errno. */
int tfh_by_begin_open(struct tfh_run *run, uint32_t process, int64_t t0, int64_t t1,
		      struct tfh_by_begin **out, struct tfh_err *err);
/* The next call, valid until the next request; NULL at the end or on error. */
const struct tfh_event *tfh_by_begin_next(struct tfh_by_begin *b);
int tfh_by_begin_error(const struct tfh_by_begin *b, struct tfh_err *err);
/* An id for call `number` of a thread (index in the run): unique in the process, and not 0. */
uint64_t tfh_by_begin_id(const struct tfh_by_begin *b, uint32_t thread, uint64_t number);
void tfh_by_begin_close(struct tfh_by_begin *b);

#endif
