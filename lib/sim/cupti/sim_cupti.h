/*
 * Internal interface of the simulated CUPTI. Lock order: the driver's (sim_mu), then `lock` of
 * client_buffers.c. A client's functions are called with neither held.
 */
#ifndef TFH_SIM_CUPTI_SIM_CUPTI_H
#define TFH_SIM_CUPTI_SIM_CUPTI_H

#include "sim/gpu/tools.h"

typedef enum CUptiResult {
#define SIM_CUPTI_RESULT(name, value) name = value,
#include "sim/cupti/results.def"
#undef SIM_CUPTI_RESULT
} CUptiResult;

#define CUPTI_EXPORTED __attribute__((visibility("default")))
/*
 * An exported function: CUPTI_API(name, (parameters), (arguments)) { body returning CUptiResult }.
 * The setting `fail` applies to each.
 */
#define CUPTI_API(name, params, args)                                                              \
	static CUptiResult do_##name params;                                                       \
	CUPTI_EXPORTED CUptiResult name params;                                                    \
	CUptiResult name params                                                                    \
	{                                                                                          \
		CUptiResult r_ = sim_cupti_begin(#name);                                           \
		return r_ ? r_ : do_##name args;                                                   \
	}                                                                                          \
	static CUptiResult do_##name params

enum sim_cupti_kind {
	KIND_MEMCPY = 1,
	KIND_MEMSET = 2,
	KIND_KERNEL = 3,
	KIND_DRIVER = 4,
	KIND_RUNTIME = 5,
	KIND_CONCURRENT_KERNEL = 10,
	KIND_OVERHEAD = 17,
	KIND_MEMCPY2 = 22,
	KIND_SYNCHRONIZATION = 38,
	KIND_EXTERNAL_CORRELATION = 39,
	KIND_GRAPH_TRACE = 51,
	KIND_COUNT = 64
};

enum { CBID_COUNT = 1024 };

/* ---- the driver and the settings (driver_table.c) ---- */
/* The driver's table; NULL if there is no simulated driver. */
const struct sim_tools_table *sim_cupti_driver(void);
/* Never NULL: all zero without a driver. */
const struct sim_cupti_config *sim_cupti_config(void);
/* Version of the interface: the setting, else that of this library. */
uint32_t sim_cupti_version(void);
CUptiResult sim_cupti_begin(const char *name);
/* Attaches to the driver; CUPTI_ERROR_UNKNOWN if there is none, like the real library. */
CUptiResult sim_cupti_attach(void);
void sim_cupti_detach(void);
/* Pid of the process that attached, 0: none. Only that process has records. */
uint32_t sim_cupti_pid(void);
/* True in a child of the process that attached. */
bool sim_cupti_forked(void);
int sim_cupti_cbid(const char *name);
const char *sim_cupti_cbid_name(uint32_t id);

/* ---- time (timestamps.c) ---- */
/* A time of CLOCK_MONOTONIC as the client's time, ns. */
uint64_t sim_cupti_time(uint64_t mono);
uint64_t sim_cupti_now(void);
/* Takes a reading of the client's clock, if it has one, for sim_cupti_time(). */
void sim_cupti_clock_sample(void);
/* Kernels have no times: a fault of real versions when the client has a clock. */
bool sim_cupti_clock_broken(void);

/* ---- records (layouts.c) ---- */
/* Data of a future record. It is encoded when it goes into a client's buffer, because the real
 * library converts times then. */
struct sim_record {
	enum sim_cupti_kind kind;
	union {
		struct sim_tools_op op; /* kernels, copies, sets, graphs */
		struct {
			uint64_t start, end; /* client's time */
			uint32_t id, thread, correlation, result;
			uint32_t context, stream; /* synchronisations */
			uint64_t external;
		} host;
	};
};
/* Size of a record of this kind in this version; 0 if there is none. */
size_t sim_record_size(enum sim_cupti_kind kind);
void sim_record_encode(const struct sim_record *r, unsigned char *out);

/* ---- buffers (client_buffers.c) ---- */
typedef void (*sim_requested_fn)(unsigned char **buffer, size_t *size, size_t *max_records);
typedef void (*sim_completed_fn)(CUcontext ctx, uint32_t stream, unsigned char *buffer, size_t size,
				 size_t valid);
CUptiResult sim_buffers_register(sim_requested_fn requested, sim_completed_fn completed);
/* Queues r for the shared buffer. Any thread, with any lock of the driver held. */
void sim_buffers_add(const struct sim_record *r);
/* Puts r into the calling thread's buffer. No locks held. */
void sim_buffers_add_mine(const struct sim_record *r);
/* Moves queued records into the client's buffers and delivers full ones. No locks held. */
void sim_buffers_pump(void);
/* Delivers everything. */
void sim_buffers_flush(bool also_empty);
/* Delivers full buffers every `ms` ms from a thread of ours; 0 stops that. */
CUptiResult sim_buffers_period(uint32_t ms);
size_t sim_buffers_dropped(void);
CUptiResult sim_attribute(int attribute, size_t *size, void *value, bool set);

/* ---- what is recorded (activity.c) ---- */
bool sim_kind_on(enum sim_cupti_kind kind);
/* Whether an executable graph was instantiated before GRAPH_TRACE was first on. */
bool sim_graph_before_trace(uint32_t exec);
bool sim_api_on(int cbid);
uint32_t sim_thread_id(void);
void sim_external_add(uint32_t correlation);

/* ---- subscribers (callbacks.c) ---- */
extern bool sim_subscribed;
void sim_callbacks(struct sim_tools_call *c, bool leave);
void sim_subscribers_clear(void);

/* ---- the driver's events (events.c) ---- */
extern const struct sim_tools_client sim_events;
void sim_events_forced(void);

#endif
