/* Internal interface of the simulated NCCL. */
#ifndef TFH_SIM_NCCL_SIM_NCCL_H
#define TFH_SIM_NCCL_SIM_NCCL_H

#include "sim/gpu/native.h"

typedef enum {
	ncclSuccess,
	ncclUnhandledCudaError,
	ncclSystemError,
	ncclInternalError,
	ncclInvalidArgument,
	ncclInvalidUsage,
	ncclRemoteError,
	ncclInProgress,
} ncclResult_t;

enum sim_type { T_I8, T_U8, T_I32, T_U32, T_I64, T_U64, T_F16, T_F32, T_F64, T_BF16, T_COUNT };
enum sim_red { R_SUM, R_PROD, R_MAX, R_MIN, R_AVG, R_COUNT };
enum sim_coll {
	C_ALLREDUCE,
	C_REDUCE,
	C_REDUCESCATTER,
	C_ALLGATHER,
	C_BROADCAST,
	C_SEND,
	C_RECV,
	C_COUNT
};

enum { MAX_RANKS = 128, ID_BYTES = 128, NAME_LEN = 100 };

typedef struct {
	char bytes[ID_BYTES];
} ncclUniqueId;

typedef struct ncclComm *ncclComm_t;

/* The start of the file shared by the ranks. A new file is zeroed. */
struct sim_shared {
	uint32_t ranks, joined, aborted;
	struct {
		uint32_t calls; /* of ncclCommSplit */
		int color[2], key[2];
	} split[MAX_RANKS];
};

struct sim_region {
	char *p;
	size_t mapped, reserved;
	uint64_t uses;
};

struct ncclComm {
	int magic, rank, ranks, device;
	CUcontext ctx;
	CUmodule module;
	CUfunction kernels[C_COUNT][R_COUNT][T_COUNT];
	char name[NAME_LEN];
	int fd;
	struct sim_shared *shared;
	char *groups;
	/* Guards what follows: kernels of one communicator may run in several threads. */
	pthread_mutex_t mu;
	/* Two for the data of each rank, then two for each pair of ranks: (sender, receiver). */
	struct sim_region *regions;
	uint64_t collectives;
	uint64_t *messages; /* of each pair */
	ncclResult_t async;
	char error[200];
};

/* One operation, with the caller's arguments. */
struct sim_task {
	struct ncclComm *comm;
	enum sim_coll coll;
	enum sim_type type;
	enum sim_red red;
	const void *send;
	void *recv;
	size_t count;
	int peer; /* or root */
	CUstream stream;
	struct sim_task *next;
};

/* ---- the driver (driver_functions.c) ---- */
struct sim_nccl_driver {
	CUresult (*init)(unsigned);
	CUresult (*get_current)(CUcontext *);
	CUresult (*set_current)(CUcontext);
	CUresult (*get_device)(CUdevice *);
	CUresult (*device_get)(CUdevice *, int);
	CUresult (*retain)(CUcontext *, CUdevice);
	CUresult (*load)(CUmodule *, const void *);
	CUresult (*get_function)(CUfunction *, CUmodule, const char *);
	CUresult (*launch)(const CUlaunchConfig *, CUfunction, void **, void **);
	CUresult (*alloc)(CUdeviceptr *, size_t);
	CUresult (*free)(CUdeviceptr);
	CUresult (*table)(const void **, const CUuuid *);
	const struct sim_native_table *native;
};
/* NULL when there is no simulated driver. */
const struct sim_nccl_driver *sim_nccl_driver(void);
ncclResult_t sim_nccl_begin(const char *name);
/* Stores an error for ncclGetLastError, of comm if not NULL; returns r. */
ncclResult_t sim_nccl_error(struct ncclComm *comm, ncclResult_t r, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#define NCCL_EXPORTED __attribute__((visibility("default")))
/* Like CUPTI_API of the simulated CUPTI: the setting `fail` applies to each exported function. */
#define NCCL_API(name, params, args)                                                               \
	static ncclResult_t do_##name params;                                                      \
	NCCL_EXPORTED ncclResult_t name params;                                                    \
	ncclResult_t name params                                                                   \
	{                                                                                          \
		ncclResult_t r_ = sim_nccl_begin(#name);                                           \
		return r_ ? r_ : do_##name args;                                                   \
	}                                                                                          \
	static ncclResult_t do_##name params

/* ---- communicators (comm.c) ---- */
bool sim_comm_valid(const struct ncclComm *c);
/* Index of a region: of a rank's data, or of what src sends to dst. */
size_t sim_region_of(const struct ncclComm *c, int rank, bool odd);
size_t sim_region_between(const struct ncclComm *c, int src, int dst, bool odd);
/* Reserves space for the data of region i and its twin in the file. */
ncclResult_t sim_region_reserve(struct ncclComm *c, size_t i, size_t bytes);
/* Maps the first bytes of region i; NULL on failure. */
char *sim_region_map(struct ncclComm *c, size_t i, size_t bytes);
void *sim_group_all(const struct ncclComm *c);
void *sim_group_between(const struct ncclComm *c, int src, int dst);
/* Completes the initialisations that this thread started inside a group. */
ncclResult_t sim_inits_finish(void);

/* ---- operations (collective.c, kernels.c, reduce.c) ---- */
extern const size_t sim_type_size[T_COUNT];
ncclResult_t sim_task_launch(const struct sim_task *t);
ncclResult_t sim_kernel_get(struct ncclComm *c, const struct sim_task *t, CUfunction *f);
void sim_kernel_body(const void *args, bool over);
/* out = n elements of all sources, combined in order of ranks. */
void sim_reduce(void *out, const void *const *sources, int ranks, size_t n, enum sim_type type,
		enum sim_red red);

/* ---- groups (group.c) ---- */
bool sim_group_open(void);
ncclResult_t sim_task_add(const struct sim_task *t);

/* Arguments of a kernel. */
struct sim_args {
	uint64_t group;
	uint32_t rank, ranks;
	uint64_t ns, comm, send, recv, count;
	uint32_t what, peer; /* what: coll, type << 8, red << 16 */
};

#endif
