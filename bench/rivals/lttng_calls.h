/* The tracepoints of lttng_calls.c: entry with the launch's arguments, exit with its result. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER calls
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./lttng_calls.h"
#if !defined(LTTNG_CALLS_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define LTTNG_CALLS_H
#include <lttng/tracepoint.h>
#include <stdint.h>

LTTNG_UST_TRACEPOINT_EVENT(
	calls, launch_entry,
	LTTNG_UST_TP_ARGS(uint64_t, function, uint32_t, grid, uint32_t, block, uint64_t, stream),
	LTTNG_UST_TP_FIELDS(lttng_ust_field_integer_hex(uint64_t, function, function)
				    lttng_ust_field_integer(uint32_t, grid, grid)
					    lttng_ust_field_integer(uint32_t, block, block)
						    lttng_ust_field_integer_hex(uint64_t, stream,
										stream)))
LTTNG_UST_TRACEPOINT_EVENT(calls, launch_exit, LTTNG_UST_TP_ARGS(int, result),
			   LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(int, result, result)))
#endif
#include <lttng/tracepoint-event.h>
