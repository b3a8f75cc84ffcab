/*
 * A simulated NVML for the simulated driver's devices: the functions that tfhook calls, in NVIDIA's
 * layouts. Utilisation, memory and PCIe traffic are those of this process; power, temperature and
 * clocks are derived from them; the rest is set by the settings nvml_*. Where the real library
 * reports all processes, this one knows only its own.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sim/gpu/tools.h"

enum {
	NVML_OK,
	NVML_UNINITIALIZED,
	NVML_INVALID_ARGUMENT,
	NVML_NOT_SUPPORTED,
	NVML_NOT_FOUND = 6,
	NVML_INSUFFICIENT_SIZE = 7,
	NVML_DRIVER_NOT_LOADED = 9,
	NVML_TIMEOUT = 10
};

enum { LEAST_MHZ = 210, MOST_MHZ = 1980, LOWERED_MHZ = 1200, MEMORY_MHZ = 2619 };
enum { IDLE_MW = 70000, MOST_MW = 700000, IDLE_C = 30, SLOWDOWN_C = 90 };
enum { BY_POWER = 0x4, BY_HEAT = 0x20, IDLE = 0x1 };

struct sim_nvml_device {
	int index;
	uint64_t asked; /* number of queries for the reasons of lowered clocks */
	bool capped;	/* power was one of them at the last query */
	uint64_t seen_ns, seen_kernel, seen_copy;
	unsigned busy, copying; /* percent since the previous query */
	bool registered;
};

struct sim_nvml_field {
	unsigned id, scope;
	long long time_us, latency_us;
	int type, result;
	unsigned long long value;
};

struct sim_nvml_process {
	unsigned pid;
	unsigned long long bytes;
	unsigned instance[2];
};

struct sim_nvml_event {
	struct sim_nvml_device *device;
	unsigned long long type, data;
	unsigned instance[2];
};

/* nvmlGpuFabricInfo_t */
struct sim_nvml_fabric {
	unsigned char cluster[16];
	int status;
	unsigned clique;
	unsigned char state;
};

static const struct sim_tools_table *table;
static struct sim_nvml_device device[SIM_MAX_DEVICES];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int users;
static bool xid_told;

static void find(void)
{
	CUresult (*get)(const void **, const CUuuid *);
	const void *found = NULL;
	CUuuid id;
	void *lib = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
	if (!lib)
		return;
	*(void **)&get = dlsym(lib, "cuGetExportTable");
	memcpy(id.bytes, SIM_TOOLS_UUID, sizeof(id.bytes));
	if (get && !get(&found, &id))
		table = found;
	if (table && (table->version != SIM_TOOLS_VERSION || table->size < sizeof(*table)))
		table = NULL;
}

/* As in the real library, a call that hangs blocks all others. */
static int begin(const char *name)
{
	pthread_mutex_lock(&mutex);
	if (!table)
		find();
	if (!table)
		return NVML_DRIVER_NOT_LOADED;
	while (table->nvml->hang && !strcmp(table->nvml->hang, name))
		pause();
	if (table->nvml->delay_ns) {
		struct timespec t = {.tv_sec = (time_t)(table->nvml->delay_ns / 1000000000u),
				     .tv_nsec = (long)(table->nvml->delay_ns % 1000000000u)};
		nanosleep(&t, NULL);
	}
	int failed = (int)table->injected(name);
	return failed					? failed
	       : users || !strncmp(name, "nvmlInit", 8) ? NVML_OK
							: NVML_UNINITIALIZED;
}

#define NVML_API(name, params, args)                                                               \
	static int do_##name params;                                                               \
	__attribute__((visibility("default"))) int name params;                                    \
	int name params                                                                            \
	{                                                                                          \
		int r_ = begin(#name);                                                             \
		if (!r_)                                                                           \
			r_ = do_##name args;                                                       \
		pthread_mutex_unlock(&mutex);                                                      \
		return r_;                                                                         \
	}                                                                                          \
	static int do_##name params

static bool is_device(const struct sim_nvml_device *d)
{
	return d >= device && d < device + SIM_MAX_DEVICES;
}

static struct sim_tools_counters counters_of(const struct sim_nvml_device *d, uint64_t *total)
{
	struct sim_tools_counters c = {0};
	uint64_t unused;
	table->counters(d->index, &c, total ? total : &unused);
	return c;
}

static unsigned percent(uint64_t part, uint64_t whole)
{
	uint64_t value = whole ? part * 100 / whole : 0;
	return value < 100 ? (unsigned)value : 100;
}

static void look(struct sim_nvml_device *d)
{
	uint64_t t = sim_real_now();
	struct sim_tools_counters c = counters_of(d, NULL);
	if (t - d->seen_ns < 10000000)
		return;
	d->busy = percent(c.kernel_ns - d->seen_kernel, t - d->seen_ns);
	d->copying = percent(c.copy_ns - d->seen_copy, t - d->seen_ns);
	d->seen_ns = t;
	d->seen_kernel = c.kernel_ns;
	d->seen_copy = c.copy_ns;
}

/* Whether this reading reports a lowered clock: the n-th does where n times the share passes an
 * integer. */
static bool lowered(const struct sim_nvml_device *d, double share)
{
	return (uint64_t)((double)(d->asked + 1) * share) > (uint64_t)((double)d->asked * share);
}

NVML_API(nvmlInit_v2, (void), ())
{
	users++;
	return NVML_OK;
}

NVML_API(nvmlInitWithFlags, (unsigned flags), (flags))
{
	(void)flags;
	users++;
	return NVML_OK;
}

NVML_API(nvmlShutdown, (void), ())
{
	users--;
	return NVML_OK;
}

NVML_API(nvmlDeviceGetHandleByPciBusId_v2, (const char *bus, struct sim_nvml_device **out),
	 (bus, out))
{
	unsigned domain, number;
	struct sim_tools_counters c;
	uint64_t total;
	if (!bus || !out || sscanf(bus, "%x:%x", &domain, &number) != 2)
		return NVML_INVALID_ARGUMENT;
	if (!table->counters((int)number - 1, &c, &total))
		return NVML_NOT_FOUND;
	*out = &device[number - 1];
	**out = (struct sim_nvml_device){.index = (int)number - 1, .seen_ns = sim_real_now()};
	look(*out);
	return NVML_OK;
}

NVML_API(nvmlDeviceGetUtilizationRates, (struct sim_nvml_device * d, unsigned *rates), (d, rates))
{
	if (!is_device(d) || !rates)
		return NVML_INVALID_ARGUMENT;
	look(d);
	rates[0] = d->busy;
	rates[1] = d->copying;
	return NVML_OK;
}

NVML_API(nvmlDeviceGetMemoryInfo, (struct sim_nvml_device * d, unsigned long long *bytes),
	 (d, bytes))
{
	uint64_t total;
	if (!is_device(d) || !bytes)
		return NVML_INVALID_ARGUMENT;
	bytes[2] = counters_of(d, &total).memory;
	bytes[0] = total;
	bytes[1] = total - bytes[2];
	return NVML_OK;
}

NVML_API(nvmlDeviceGetClockInfo, (struct sim_nvml_device * d, int type, unsigned *mhz),
	 (d, type, mhz))
{
	if (!is_device(d) || !mhz)
		return NVML_INVALID_ARGUMENT;
	bool low = lowered(d, table->nvml->lowered_power) || lowered(d, table->nvml->lowered_heat);
	*mhz = type == 2 ? MEMORY_MHZ : !d->busy ? LEAST_MHZ : low ? LOWERED_MHZ : MOST_MHZ;
	return NVML_OK;
}

NVML_API(nvmlDeviceGetMaxClockInfo, (struct sim_nvml_device * d, int type, unsigned *mhz),
	 (d, type, mhz))
{
	if (!is_device(d) || !mhz)
		return NVML_INVALID_ARGUMENT;
	*mhz = type == 2 ? MEMORY_MHZ : MOST_MHZ;
	return NVML_OK;
}

static int reasons(struct sim_nvml_device *d, unsigned long long *why)
{
	if (!is_device(d) || !why)
		return NVML_INVALID_ARGUMENT;
	*why = d->busy ? 0 : IDLE;
	d->capped = lowered(d, table->nvml->lowered_power);
	if (d->capped)
		*why |= BY_POWER;
	if (lowered(d, table->nvml->lowered_heat))
		*why |= BY_HEAT;
	d->asked++;
	return NVML_OK;
}

NVML_API(nvmlDeviceGetCurrentClocksEventReasons,
	 (struct sim_nvml_device * d, unsigned long long *why), (d, why))
{
	return reasons(d, why);
}

NVML_API(nvmlDeviceGetCurrentClocksThrottleReasons,
	 (struct sim_nvml_device * d, unsigned long long *why), (d, why))
{
	return reasons(d, why);
}

NVML_API(nvmlDeviceGetPowerUsage, (struct sim_nvml_device * d, unsigned *mw), (d, mw))
{
	if (!is_device(d) || !mw)
		return NVML_INVALID_ARGUMENT;
	/* The reasons may be asked for before or afterwards. */
	bool most = d->capped || lowered(d, table->nvml->lowered_power);
	*mw = most ? MOST_MW : IDLE_MW + (MOST_MW - IDLE_MW) / 100 * d->busy;
	return NVML_OK;
}

NVML_API(nvmlDeviceGetEnforcedPowerLimit, (struct sim_nvml_device * d, unsigned *mw), (d, mw))
{
	if (!is_device(d) || !mw)
		return NVML_INVALID_ARGUMENT;
	*mw = MOST_MW;
	return NVML_OK;
}

NVML_API(nvmlDeviceGetTemperature, (struct sim_nvml_device * d, int sensor, unsigned *degrees),
	 (d, sensor, degrees))
{
	if (!is_device(d) || sensor || !degrees)
		return NVML_INVALID_ARGUMENT;
	*degrees = IDLE_C + d->busy / 2;
	return NVML_OK;
}

NVML_API(nvmlDeviceGetTemperatureThreshold,
	 (struct sim_nvml_device * d, int type, unsigned *degrees), (d, type, degrees))
{
	if (!is_device(d) || type != 1 || !degrees)
		return NVML_INVALID_ARGUMENT;
	*degrees = SLOWDOWN_C;
	return NVML_OK;
}

/* The value of a field, or all ones if this device has none. A counter of NVLink is the sum over
 * its links only if it is asked for so. */
static unsigned long long field_of(const struct sim_nvml_device *d, const struct sim_nvml_field *f)
{
	enum {
		ECC_SINGLE = 3,
		ECC_DOUBLE = 4,
		NVLINK_SENT_KIB = 138,
		NVLINK_RECEIVED_KIB = 139,
		PCIE_SENT = 197,
		PCIE_RECEIVED = 198,
		NVLINK_SENT = 202,
		NVLINK_RECEIVED = 204,
		COUNTS_BYTES = 5
	};
	struct sim_tools_counters c = counters_of(d, NULL);
	int nvlink = f->scope == UINT32_MAX ? table->nvml->nvlink : 0;

	if (f->id == ECC_SINGLE || f->id == ECC_DOUBLE)
		return 0;
	if (f->id == PCIE_SENT || (f->id == NVLINK_SENT && nvlink >= COUNTS_BYTES))
		return c.sent;
	if (f->id == PCIE_RECEIVED || (f->id == NVLINK_RECEIVED && nvlink >= COUNTS_BYTES))
		return c.received;
	if (nvlink && nvlink < COUNTS_BYTES && f->id == NVLINK_SENT_KIB)
		return c.sent >> 10;
	if (nvlink && nvlink < COUNTS_BYTES && f->id == NVLINK_RECEIVED_KIB)
		return c.received >> 10;
	return UINT64_MAX;
}

NVML_API(nvmlDeviceGetFieldValues, (struct sim_nvml_device * d, int n, struct sim_nvml_field *f),
	 (d, n, f))
{
	enum { ULONGLONG = 3 };
	if (!is_device(d) || n < 1 || !f)
		return NVML_INVALID_ARGUMENT;
	for (; n--; f++) {
		f->type = ULONGLONG;
		f->value = field_of(d, f);
		f->result = f->value == UINT64_MAX ? NVML_NOT_SUPPORTED : NVML_OK;
	}
	return NVML_OK;
}

/* The links with the highest numbers are those that are down. */
NVML_API(nvmlDeviceGetNvLinkState, (struct sim_nvml_device * d, unsigned link, int *up),
	 (d, link, up))
{
	if (!is_device(d) || !up)
		return NVML_INVALID_ARGUMENT;
	if (!table->nvml->links)
		return NVML_NOT_SUPPORTED;
	if (link >= (unsigned)table->nvml->links)
		return NVML_INVALID_ARGUMENT;
	*up = (int)link < table->nvml->links - table->nvml->links_down;
	return NVML_OK;
}

NVML_API(nvmlDeviceGetNvLinkRemoteDeviceType,
	 (struct sim_nvml_device * d, unsigned link, int *type), (d, link, type))
{
	enum { SWITCH = 2 };
	if (!is_device(d) || !type || link >= (unsigned)table->nvml->links)
		return NVML_INVALID_ARGUMENT;
	*type = SWITCH;
	return NVML_OK;
}

NVML_API(nvmlDeviceGetGpuFabricInfo, (struct sim_nvml_device * d, struct sim_nvml_fabric *f),
	 (d, f))
{
	enum { COMPLETED = 3 };
	const char *text = table->nvml->fabric;
	if (!is_device(d) || !f)
		return NVML_INVALID_ARGUMENT;
	if (!text)
		return NVML_NOT_SUPPORTED;
	*f = (struct sim_nvml_fabric){.state = COMPLETED};
	for (size_t i = 0; i < sizeof(f->cluster); i++, text += 2)
		if (sscanf(text, "%2hhx", &f->cluster[i]) != 1)
			return NVML_INVALID_ARGUMENT;
	return sscanf(text, "/%u", &f->clique) == 1 ? NVML_OK : NVML_INVALID_ARGUMENT;
}

NVML_API(nvmlEventSetCreate, (void **set), (set))
{
	if (!set)
		return NVML_INVALID_ARGUMENT;
	*set = &xid_told;
	return NVML_OK;
}

NVML_API(nvmlDeviceGetSupportedEventTypes, (struct sim_nvml_device * d, unsigned long long *types),
	 (d, types))
{
	enum { ECC = 3, XID = 8 };
	if (!is_device(d) || !types)
		return NVML_INVALID_ARGUMENT;
	*types = ECC | XID;
	return NVML_OK;
}

NVML_API(nvmlDeviceRegisterEvents,
	 (struct sim_nvml_device * d, unsigned long long types, void *set), (d, types, set))
{
	enum { XID = 8 };
	if (!is_device(d) || types != XID || set != &xid_told)
		return NVML_INVALID_ARGUMENT;
	d->registered = true;
	return NVML_OK;
}

static int wait(void *set, struct sim_nvml_event *e, unsigned ms)
{
	enum { XID = 8 };
	if (set != &xid_told || !e || ms)
		return NVML_INVALID_ARGUMENT;
	if (!table->nvml->xid || xid_told || !device[0].registered)
		return NVML_TIMEOUT;
	xid_told = true;
	*e = (struct sim_nvml_event){
		.device = device, .type = XID, .data = (unsigned)table->nvml->xid};
	return NVML_OK;
}

NVML_API(nvmlDeviceGetComputeRunningProcesses_v3,
	 (struct sim_nvml_device * d, unsigned *n, struct sim_nvml_process *p), (d, n, p))
{
	unsigned all = 1 + (unsigned)table->nvml->others;

	if (!is_device(d) || !n)
		return NVML_INVALID_ARGUMENT;
	for (unsigned i = 0; i < all && i < *n && p; i++)
		p[i] = (struct sim_nvml_process){.pid = (unsigned)getpid() + i, .bytes = 500 << 20};
	unsigned room = *n;
	*n = all;
	return room < all || !p ? NVML_INSUFFICIENT_SIZE : NVML_OK;
}

NVML_API(nvmlEventSetWait, (void *set, struct sim_nvml_event *e, unsigned ms), (set, e, ms))
{
	return wait(set, e, ms);
}

NVML_API(nvmlEventSetWait_v2, (void *set, struct sim_nvml_event *e, unsigned ms), (set, e, ms))
{
	return wait(set, e, ms);
}
