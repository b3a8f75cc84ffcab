/*
 * NVML: what the job's devices do. It is opened on the thread of record/watch/nvml_thread.h once
 * the job has a context, so it wakes no device that the job has not woken. Only the job's devices
 * are queried, by their bus address (nvmlInit_v2 initialises no device by itself). NVML is never
 * shut down or unloaded: a shutdown frees memory that a running call still reads, and the driver
 * keeps addresses of the library. nvmlDeviceGetPcieThroughput is not called, because it takes 20 ms
 * per direction.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/meters.h"
#include "hook/driver/driver.h"
#include "record/watch/device_place.h"
#include "record/watch/nvml_thread.h"
#include "record/process/settings.h"

/* ---- the used part of nvml.h, whose numbers and layouts are stable ---- */

typedef struct nvml_device_handle *nvml_device;
typedef struct nvml_events_handle *nvml_events;

struct nvml_field {
	uint32_t id, scope;
	int64_t time_us, latency_us;
	uint32_t type, result;
	uint64_t value; /* 32-bit types use the lower half */
};

struct nvml_event {
	nvml_device device;
	uint64_t type, data;
	uint32_t instance[2];
};

enum { NVML_NOT_SUPPORTED = 3, NVML_NO_PERMISSION = 4, NVML_GPU_IS_LOST = 15, NVML_ABSENT = 999 };
/* Layout of versions 2 and 3 of the query. */
struct nvml_process {
	uint32_t pid;
	uint64_t bytes; /* UINT64_MAX: not known */
	uint32_t instance[2];
};

/* Layout of the first version of the query, which has no version field. */
struct nvml_fabric {
	unsigned char cluster[16];
	int status;
	uint32_t clique;
	unsigned char state;
};
enum { NVML_FABRIC_COMPLETED = 3 };
enum { NVML_LINKS = 36, NVML_LINK_TO_GPU = 0, NVML_LINK_TO_SWITCH = 2 };

enum { NVML_CLOCK_SM = 1, NVML_CLOCK_MEMORY = 2 };
enum { NVML_SLOWDOWN = 1, NVML_XID = 8 };
enum { NVML_ULONG = 2, NVML_ULONGLONG = 3 };
enum {
	NVML_BY_POWER = 0x4 | 0x80,
	NVML_BY_HEAT = 0x20 | 0x40,
	NVML_BY_SETTING = 0x2,
	NVML_BY_OTHER = 0x8 | 0x10
};

/* X(id, name, name before it was renamed or NULL, parameters) */
#define NVML_LIST(X)                                                                               \
	X(INIT, "nvmlInit_v2", NULL, (void))                                                       \
	X(BY_BUS, "nvmlDeviceGetHandleByPciBusId_v2", NULL, (const char *, nvml_device *))         \
	X(BUSY, "nvmlDeviceGetUtilizationRates", NULL, (nvml_device, uint32_t *))                  \
	X(MEMORY, "nvmlDeviceGetMemoryInfo", NULL, (nvml_device, uint64_t *))                      \
	X(CLOCK, "nvmlDeviceGetClockInfo", NULL, (nvml_device, int, uint32_t *))                   \
	X(MAX_CLOCK, "nvmlDeviceGetMaxClockInfo", NULL, (nvml_device, int, uint32_t *))            \
	X(REASONS, "nvmlDeviceGetCurrentClocksEventReasons",                                       \
	  "nvmlDeviceGetCurrentClocksThrottleReasons", (nvml_device, uint64_t *))                  \
	X(POWER, "nvmlDeviceGetPowerUsage", NULL, (nvml_device, uint32_t *))                       \
	X(POWER_LIMIT, "nvmlDeviceGetEnforcedPowerLimit", NULL, (nvml_device, uint32_t *))         \
	X(HEAT, "nvmlDeviceGetTemperature", NULL, (nvml_device, int, uint32_t *))                  \
	X(HEAT_LIMIT, "nvmlDeviceGetTemperatureThreshold", NULL, (nvml_device, int, uint32_t *))   \
	X(FIELDS, "nvmlDeviceGetFieldValues", NULL, (nvml_device, int, struct nvml_field *))       \
	X(PROCESSES, "nvmlDeviceGetComputeRunningProcesses_v3",                                    \
	  "nvmlDeviceGetComputeRunningProcesses_v2",                                               \
	  (nvml_device, uint32_t *, struct nvml_process *))                                        \
	X(LINK, "nvmlDeviceGetNvLinkState", NULL, (nvml_device, uint32_t, int *))                  \
	X(LINK_TO, "nvmlDeviceGetNvLinkRemoteDeviceType", NULL, (nvml_device, uint32_t, int *))    \
	X(FABRIC, "nvmlDeviceGetGpuFabricInfo", NULL, (nvml_device, struct nvml_fabric *))         \
	X(EVENTS, "nvmlEventSetCreate", NULL, (nvml_events *))                                     \
	X(EVENT_TYPES, "nvmlDeviceGetSupportedEventTypes", NULL, (nvml_device, uint64_t *))        \
	X(REGISTER, "nvmlDeviceRegisterEvents", NULL, (nvml_device, uint64_t, nvml_events))        \
	X(WAIT, "nvmlEventSetWait_v2", "nvmlEventSetWait",                                         \
	  (nvml_events, struct nvml_event *, uint32_t))

enum {
#define X(id, name, before, parameters) NVML_##id,
	NVML_LIST(X)
#undef X
		NVML_FUNCTIONS
};
#define X(id, name, before, parameters) typedef int(*nvml_##id) parameters;
NVML_LIST(X)
#undef X

enum { PROCESSES_MOST = 64 }; /* more are not counted */

static void *function[NVML_FUNCTIONS];
static nvml_events events;

static struct nvml_state {
	nvml_device handle;
	bool tried;
	uint32_t refused;  /* one bit per function: the device does not support it */
	uint32_t most[3];  /* maximum clocks, by NVML_CLOCK_*; 0: unknown */
	uint32_t slowdown; /* slowdown temperature in degrees Celsius; 0: unknown */
	uint64_t xids, last_xid;
} device[TFH_DEVICES_MOST];

static int left(int result)
{
	tfh_devices_leave();
	return result;
}

#define CALL(id, ...)                                                                              \
	(function[NVML_##id] && tfh_devices_enter()                                                \
		 ? left(((nvml_##id)function[NVML_##id])(__VA_ARGS__))                             \
		 : NVML_ABSENT)

/* Whether a query succeeded. Notes functions that the device does not support, so that they are not
 * called again. */
static bool got(struct nvml_state *d, int id, int result)
{
	if (result == NVML_NOT_SUPPORTED || result == NVML_NO_PERMISSION || result == NVML_ABSENT)
		d->refused |= 1u << id;
	if (result == NVML_GPU_IS_LOST)
		d->handle = NULL;
	return !result;
}

#define ASK(d, id, ...)                                                                            \
	((d)->handle && !((d)->refused & 1u << NVML_##id) &&                                       \
	 got(d, NVML_##id, CALL(id, (d)->handle, __VA_ARGS__)))

/* ---- opening ---- */

static void *open_library(void)
{
	void *library;

	if (!tfh_devices_enter())
		return NULL;
	library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	if (!library)
		dlerror();
	tfh_devices_leave();
	return library;
}

static bool ready(void)
{
	static const char *const name[][2] = {
#define X(id, name, before, parameters) {name, before},
		NVML_LIST(X)
#undef X
	};
	static bool tried, fine;
	void *library;

	if (tried)
		return fine;
	tried = true;
	library = tfh_setting(TFH_OPT_NVML) ? open_library() : NULL;
	tfh_lookup_init();
	for (int i = 0; library && i < NVML_FUNCTIONS; i++)
		for (int k = 0; k < 2 && name[i][k] && !function[i]; k++)
			if (!(function[i] = tfh_next_dlsym(library, name[i][k])))
				dlerror();
	fine = !CALL(INIT);
	if (fine && CALL(EVENTS, &events))
		events = NULL;
	return fine;
}

/* How many NVLinks are up, and what they lead to. Links beyond those of the device are invalid
 * arguments. */
static int read_links(struct nvml_state *d, const char **to)
{
	int up, kind, n = 0, known = 0;

	*to = "";
	for (uint32_t i = 0; i < NVML_LINKS; i++) {
		if (!ASK(d, LINK, i, &up))
			continue;
		known++;
		n += up == 1;
		if (up == 1 && !**to && ASK(d, LINK_TO, i, &kind))
			*to = kind == NVML_LINK_TO_SWITCH ? "switch"
			      : kind == NVML_LINK_TO_GPU  ? "gpu"
							  : "";
	}
	return known ? n : -1;
}

/* The NVLink domain (cluster and clique), which may span several hosts. Empty: none. */
static void read_fabric(struct nvml_state *d, char out[64])
{
	struct nvml_fabric f = {.state = 0};
	bool any = false;
	size_t n = 0;

	*out = '\0';
	if (!ASK(d, FABRIC, &f) || f.state != NVML_FABRIC_COMPLETED || f.status)
		return;
	for (size_t i = 0; i < sizeof(f.cluster); i++) {
		any |= f.cluster[i];
		n += (size_t)snprintf(out + n, 64 - n, "%02x", f.cluster[i]);
	}
	snprintf(out + n, 64 - n, "/%u", f.clique);
	if (!any) /* one host by itself */
		*out = '\0';
}

static void tell_place(struct nvml_state *d, int ordinal, const char *bus)
{
	struct tfh_device_place at = {.node = -1};
	char fabric[64], line[256];
	const char *to;
	int links = read_links(d, &to);

	read_fabric(d, fabric);
	if (tfh_devices_enter()) {
		tfh_device_place("/sys", bus, &at);
		tfh_devices_leave();
	}
	snprintf(line, sizeof(line), "device=%d\t%s\t%d\t%s\t%s\t%d\t%s\t%s\n", ordinal, bus,
		 at.node, at.pcie, at.nic, links, to, fabric);
	tfh_devices_told(line, at.node);
}

static void register_events(struct nvml_state *d)
{
	uint64_t types;

	if (events && ASK(d, EVENT_TYPES, &types) && types & NVML_XID)
		CALL(REGISTER, d->handle, NVML_XID, events);
}

static void open_device(struct nvml_state *d, int ordinal)
{
	CUresult (*ask)(char *, int, int) =
		(CUresult(*)(char *, int, int))tfh_driver_symbol("cuDeviceGetPCIBusId");
	char bus[32] = "";

	d->tried = true;
	if (!ask || !tfh_devices_enter())
		return;
	if (left((int)ask(bus, sizeof(bus), ordinal)) || CALL(BY_BUS, bus, &d->handle)) {
		d->handle = NULL;
		return;
	}
	for (int type = NVML_CLOCK_SM; type <= NVML_CLOCK_MEMORY; type++)
		if (!ASK(d, MAX_CLOCK, type, &d->most[type]))
			d->most[type] = 0;
	if (!ASK(d, HEAT_LIMIT, NVML_SLOWDOWN, &d->slowdown))
		d->slowdown = 0;
	tell_place(d, ordinal, bus);
	register_events(d);
}

/* ---- reading ---- */

struct nvml_rows {
	struct tft_sample_thread *at;
	uint32_t ordinal;
};

static void put(struct nvml_rows *r, enum tfh_meter meter, uint64_t first, uint64_t second)
{
	if (first != UINT64_MAX || second != UINT64_MAX)
		*r->at++ = (struct tft_sample_thread){TFT_SAMPLE_NO_THREAD,
						      tfh_meters[meter].number | r->ordinal << 16,
						      first, second};
}

static uint64_t known(uint32_t value)
{
	return value ? value : UINT64_MAX;
}

static void read_clocks(struct nvml_state *d, struct nvml_rows *r)
{
	static const enum tfh_meter meter[] = {[NVML_CLOCK_SM] = TFH_METER_GPU_CLOCK,
					       [NVML_CLOCK_MEMORY] = TFH_METER_GPU_MEMORY_CLOCK};
	uint64_t why;
	uint32_t mhz;

	for (int type = NVML_CLOCK_SM; type <= NVML_CLOCK_MEMORY; type++)
		if (ASK(d, CLOCK, type, &mhz))
			put(r, meter[type], mhz, known(d->most[type]));
	if (!ASK(d, REASONS, &why))
		return;
	put(r, TFH_METER_GPU_LOWERED, !!(why & NVML_BY_POWER), !!(why & NVML_BY_HEAT));
	/* Slowdowns caused by power or heat have their own bits as well. */
	if (why & (NVML_BY_POWER | NVML_BY_HEAT))
		why &= ~(uint64_t)NVML_BY_OTHER;
	put(r, TFH_METER_GPU_LOWERED_ELSE, !!(why & NVML_BY_SETTING), !!(why & NVML_BY_OTHER));
}

static void read_power(struct nvml_state *d, struct nvml_rows *r)
{
	uint32_t value, limit;

	if (ASK(d, POWER, &value))
		put(r, TFH_METER_GPU_POWER, value,
		    ASK(d, POWER_LIMIT, &limit) ? limit : UINT64_MAX);
	if (ASK(d, HEAT, 0, &value))
		put(r, TFH_METER_GPU_HEAT, value, known(d->slowdown));
}

/* Fields are added up over all links where their scope is NVML_ALL_LINKS. NVLink counted KiB up to
 * its fourth generation, and counts bytes from the fifth on. */
#define NVML_ALL_LINKS UINT32_MAX
#define NVML_FIELDS(X)                                                                             \
	X(ECC_SINGLE_BIT, 3, 0) /* since the driver was loaded */                                  \
	X(ECC_DOUBLE_BIT, 4, 0)                                                                    \
	X(NVLINK_SENT_KIB, 138, NVML_ALL_LINKS)                                                    \
	X(NVLINK_RECEIVED_KIB, 139, NVML_ALL_LINKS)                                                \
	X(PCIE_SENT, 197, 0)                                                                       \
	X(PCIE_RECEIVED, 198, 0)                                                                   \
	X(NVLINK_SENT, 202, NVML_ALL_LINKS)                                                        \
	X(NVLINK_RECEIVED, 204, NVML_ALL_LINKS)

enum {
#define X(name, id, scope) NVML_##name,
	NVML_FIELDS(X)
#undef X
		NVML_FIELD_COUNT
};

/* A 32-bit counter may wrap around more than once a second; such values are dropped. */
static uint64_t counter(const struct nvml_field *f)
{
	return !f->result && (f->type == NVML_ULONG || f->type == NVML_ULONGLONG) ? f->value
										  : UINT64_MAX;
}

static uint64_t link_kib(const struct nvml_field *kib, const struct nvml_field *bytes)
{
	uint64_t n = counter(bytes);

	if (counter(kib) != UINT64_MAX)
		return counter(kib);
	return n == UINT64_MAX ? n : n >> 10;
}

static void read_counters(struct nvml_state *d, struct nvml_rows *r)
{
	struct nvml_field f[] = {
#define X(name, number, of) {.id = (number), .scope = (of), .result = NVML_ABSENT},
		NVML_FIELDS(X)
#undef X
	};

	if (!ASK(d, FIELDS, NVML_FIELD_COUNT, f))
		return;
	put(r, TFH_METER_GPU_PCIE, counter(&f[NVML_PCIE_RECEIVED]), counter(&f[NVML_PCIE_SENT]));
	put(r, TFH_METER_GPU_NVLINK,
	    link_kib(&f[NVML_NVLINK_RECEIVED_KIB], &f[NVML_NVLINK_RECEIVED]),
	    link_kib(&f[NVML_NVLINK_SENT_KIB], &f[NVML_NVLINK_SENT]));
	put(r, TFH_METER_GPU_ECC, counter(&f[NVML_ECC_SINGLE_BIT]),
	    counter(&f[NVML_ECC_DOUBLE_BIT]));
}

/* Counts the processes that use the device, and adds up the memory of the others. In a container
 * the list may be empty or have pids of another namespace; the memory is then unknown. */
static void read_processes(struct nvml_state *d, struct nvml_rows *r)
{
	struct nvml_process p[PROCESSES_MOST];
	uint32_t n = PROCESSES_MOST;
	uint64_t others = 0;
	bool listed = false;

	if (!ASK(d, PROCESSES, &n, p) || !n || n > PROCESSES_MOST)
		return;
	for (uint32_t i = 0; i < n; i++) {
		bool own = p[i].pid == (uint32_t)getpid();
		listed |= own;
		if (!own)
			others = p[i].bytes == UINT64_MAX || others == UINT64_MAX
					 ? UINT64_MAX
					 : others + p[i].bytes;
	}
	put(r, TFH_METER_GPU_PROCESSES, n, listed ? others : UINT64_MAX);
}

/* Takes the events since the last call, without waiting. */
static void take_events(void)
{
	struct nvml_event e = {0};

	for (int i = 0; events && i < 64 && !CALL(WAIT, events, &e, 0); i++)
		for (uint32_t k = 0; e.type == NVML_XID && k < TFH_DEVICES_MOST; k++)
			if (device[k].handle && device[k].handle == e.device) {
				device[k].xids++;
				device[k].last_xid = e.data;
			}
}

static void read_device(struct nvml_state *d, struct nvml_rows *r)
{
	uint32_t busy[2];
	uint64_t bytes[3]; /* total, free, used */

	if (ASK(d, BUSY, busy))
		put(r, TFH_METER_GPU_BUSY, busy[0], busy[1]);
	if (ASK(d, MEMORY, bytes))
		put(r, TFH_METER_GPU_MEMORY, bytes[2], bytes[0]);
	read_clocks(d, r);
	read_power(d, r);
	read_counters(d, r);
	read_processes(d, r);
	if (d->xids)
		put(r, TFH_METER_GPU_XID, d->xids, d->last_xid);
}

static uint32_t read_devices(uint32_t mask, struct tft_sample_thread *out)
{
	struct nvml_rows r = {out, 0};

	if (!ready())
		return 0;
	for (uint32_t i = 0; i < TFH_DEVICES_MOST; i++)
		if (mask & 1u << i && !device[i].tried)
			open_device(&device[i], (int)i);
	take_events();
	for (r.ordinal = 0; r.ordinal < TFH_DEVICES_MOST; r.ordinal++)
		if (device[r.ordinal].handle)
			read_device(&device[r.ordinal], &r);
	return (uint32_t)(r.at - out);
}

__attribute__((constructor)) static void on_load(void)
{
	tfh_devices_attach(read_devices);
}
