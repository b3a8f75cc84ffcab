/* What samples of the machine and the container show for the whole run, where it is worth a
 * sentence. */
#include <math.h>
#include <string.h>

#include "base/priced.h"
#include "base/text.h"
#include "judge/verdict/verdict.h"

/* The series of a row's first or second value, of the machine or of a device; NULL: not read. */
static const struct tfh_meter_line *line_of(const struct tfh_run *run, uint32_t process, int device,
					    enum tfh_meter meter, uint32_t value)
{
	const struct tfh_meter_line *l;
	uint32_t n = tfh_run_meters(run, process, &l);

	for (; n--; l++)
		if (l->meter == meter && l->value == value && l->device == device)
			return l;
	return NULL;
}

/* The mean of a row's first or second value; NAN: not read, or for too short a time. */
static double mean_of(const struct tfh_run *run, uint32_t process, enum tfh_meter meter,
		      uint32_t value)
{
	const struct tfh_meter_line *l = line_of(run, process, -1, meter, value);

	return l && l->time_s >= TFH_FACTS_LEAST_SAMPLED_S ? l->mean : NAN;
}

/* The value if it is at least `least`, else 0, which means nothing to report. */
static double from(double least, double value)
{
	return value >= least ? value : 0;
}

static double device_mean(const struct tfh_run *run, uint32_t process, int device,
			  enum tfh_meter meter, uint32_t value)
{
	const struct tfh_meter_line *l = line_of(run, process, device, meter, value);

	return l ? l->mean : NAN;
}

/* The highest power in the intervals in which the clock was lowered for power; NAN: not read.
 * NVML's power is the mean of a second, so even a device at its limit shows less if it was idle for
 * part of that. */
static double power_then(const struct tfh_run *run, uint32_t p, int device)
{
	const struct tfh_meter_line *power = line_of(run, p, device, TFH_METER_GPU_POWER, 0);
	const struct tfh_meter_line *lowered = line_of(run, p, device, TFH_METER_GPU_LOWERED, 0);
	double most = NAN;

	for (uint32_t i = 0; power && lowered && i < power->n && i < lowered->n; i++)
		if (lowered->point[i] > 0)
			most = fmax(most, (double)power->point[i]);
	return most;
}

static void find_lowered(const struct tfh_run *run, uint32_t p, int device,
			 struct tfh_gpu_findings *g)
{
	double by[4], most = 0, before = 0, power = power_then(run, p, device),
		      limit = device_mean(run, p, device, TFH_METER_GPU_POWER, 1);

	for (uint32_t i = 0; i < 4; i++) {
		enum tfh_meter meter = i < 2 ? TFH_METER_GPU_LOWERED : TFH_METER_GPU_LOWERED_ELSE;
		by[i] = from(TFH_VERDICT_GPU_LOWERED, device_mean(run, p, device, meter, i % 2));
		if (!i && power < TFH_VERDICT_GPU_POWER * limit)
			by[i] = 0;
		most = fmax(most, by[i]);
		before = fmax(before, g->lowered[i]);
	}
	if (most <= before)
		return;
	g->lowered_device = device;
	memcpy(g->lowered, by, sizeof(by));
	g->power = power;
	g->limit = limit;
}

static void find_errors(const struct tfh_run *run, uint32_t p, int device,
			struct tfh_gpu_findings *g)
{
	const struct tfh_meter_line *events = line_of(run, p, device, TFH_METER_GPU_XID, 0);
	const struct tfh_meter_line *last = line_of(run, p, device, TFH_METER_GPU_XID, 1);
	const struct tfh_meter_line *ecc = line_of(run, p, device, TFH_METER_GPU_ECC, 1);

	if (events && last && events->most > g->xids) {
		g->xid_device = device;
		g->xids = events->most;
		g->last_xid = last->most;
	}
	if (ecc && ecc->mean * ecc->time_s > g->ecc) {
		g->ecc_device = device;
		g->ecc = ecc->mean * ecc->time_s;
	}
}

static void find_processes(const struct tfh_run *run, uint32_t p, int device,
			   struct tfh_gpu_findings *g)
{
	g->processes = fmax(g->processes, device_mean(run, p, device, TFH_METER_GPU_PROCESSES, 0));
}

static void find_devices(const struct tfh_run *run, uint32_t p, struct tfh_gpu_findings *g)
{
	*g = (struct tfh_gpu_findings){.power = NAN, .limit = NAN, .processes = NAN};
	for (int device = 0; device < TFH_METER_DEVICES; device++) {
		find_lowered(run, p, device, g);
		find_errors(run, p, device, g);
		find_processes(run, p, device, g);
	}
}

/* Whether the threads ran on the memory node of a device that they use. */
static void find_far(const struct tfh_run *run, uint32_t p, struct tfh_machine_findings *m)
{
	const struct tfh_process *processes;
	double near = mean_of(run, p, TFH_METER_NEAR, 0), far = mean_of(run, p, TFH_METER_NEAR, 1);

	m->far = from(TFH_VERDICT_FAR, far / (near + far));
	m->device_node = -1;
	if (tfh_run_processes(run, &processes) <= p)
		return;
	for (uint32_t i = processes[p].n_device; i--;)
		if (processes[p].device[i].node >= 0)
			m->device_node = processes[p].device[i].node;
}

/* Who used the CPUs. Processes with records belong to the job; its workers without recorded calls
 * count as others here. */
static void find_busy(const struct tfh_run *run, struct tfh_result *r, double busy)
{
	const struct tfh_process *processes;
	const struct tfh_sample *s;
	uint32_t n = tfh_run_processes(run, &processes);
	double own = 0;

	for (uint32_t p = 0; p < n; p++) {
		uint32_t k = tfh_run_samples(run, p, &s);
		double cpu = 0, wall = k > 1 ? (double)(s[k - 1].t - s[0].t) / 1e9 : 0;
		for (uint32_t i = 1; i < k; i++)
			cpu += s[i].cpu_s;
		own += wall > 0 ? cpu / wall : 0;
	}
	r->found.contended.busy = busy;
	r->found.contended.own = own > 0 ? own : NAN;
}

/* Whether a setting is one of a framework that the process had not loaded. */
static bool is_foreign(const struct tfh_process *p, const char *variable)
{
	static const struct {
		const char *prefix, *software;
	} of[] = {
		{"TF_", "TensorFlow"}, {"TORCH", "PyTorch"},   {"PYTORCH", "PyTorch"},
		{"JAX_", "JAX"},       {"XLA_PYTHON_", "JAX"},
	};

	for (size_t i = 0; p->n_software && i < sizeof(of) / sizeof(*of); i++)
		if (tfh_starts_with(variable, of[i].prefix))
			return !tfh_find_software(p, of[i].software);
	return false;
}

/* The settings that cost the process time, as bits of base/priced.def. */
static uint64_t priced_of(const struct tfh_process *p)
{
	uint64_t priced = p->priced;

	for (uint32_t i = 0; i < tfh_priced_count; i++)
		if (is_foreign(p, tfh_priced[i].variable))
			priced &= ~(1ull << i);
	return priced;
}

void tfh_find_machine(const struct tfh_run *run, struct tfh_result *r)
{
	uint32_t p = r->process;
	const struct tfh_process *processes;
	struct tfh_machine_findings *m = &r->found.machine;
	double busy = mean_of(run, p, TFH_METER_CPU, 0), steal = mean_of(run, p, TFH_METER_CPU, 1);
	double count = mean_of(run, p, TFH_METER_CPU_COUNT, 0);
	double limit = mean_of(run, p, TFH_METER_CPU_COUNT, 1);

	m->processors = count;
	m->limit = limit < count ? limit : 0;
	m->busy = from(TFH_VERDICT_MACHINE_BUSY * count, busy);
	m->steal = from(TFH_VERDICT_MACHINE_STEAL * count, steal);
	m->throttled = from(TFH_VERDICT_MACHINE_THROTTLED, mean_of(run, p, TFH_METER_THROTTLED, 0));
	m->io = from(TFH_VERDICT_MACHINE_IO, fmax(mean_of(run, p, TFH_METER_IO_PRESSURE, 1),
						  mean_of(run, p, TFH_METER_OWN_IO, 1)));
	m->memory =
		from(TFH_VERDICT_MACHINE_MEMORY, fmax(mean_of(run, p, TFH_METER_MEMORY_PRESSURE, 0),
						      mean_of(run, p, TFH_METER_OWN_MEMORY, 0)));
	m->swap = from(TFH_VERDICT_MACHINE_SWAP,
		       mean_of(run, p, TFH_METER_SWAP, 0) + mean_of(run, p, TFH_METER_SWAP, 1));
	find_far(run, p, m);
	find_devices(run, p, &m->gpu);
	find_busy(run, r,
		  line_of(run, p, -1, TFH_METER_CPU, 0)
			  ? line_of(run, p, -1, TFH_METER_CPU, 0)->mean
			  : NAN);
	if (tfh_run_processes(run, &processes) > p)
		r->found.priced = priced_of(&processes[p]);
}
