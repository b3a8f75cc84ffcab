/* Queries of an opened run. */
#include "model/opened.h"

enum tfh_source tfh_run_source(const struct tfh_run *run)
{
	return run->source;
}

bool tfh_run_is_built(const struct tfh_run *run)
{
	return run->built != NULL;
}

const char *tfh_run_path(const struct tfh_run *run)
{
	return run->path ? run->path : "";
}

uint32_t tfh_run_command(const struct tfh_run *run, const char *const **argv)
{
	*argv = run->argv;
	return run->argc;
}

const char *tfh_run_host(const struct tfh_run *run)
{
	return run->host;
}

int64_t tfh_run_start_realtime_ns(const struct tfh_run *run)
{
	return run->start_realtime;
}

void tfh_run_decoders(struct tfh_run *run, uint32_t n)
{
	run->decoders = n;
}

uint64_t tfh_run_unpacked(const struct tfh_run *run)
{
	return run->unpacked ? __atomic_load_n(run->unpacked, __ATOMIC_RELAXED) : 0;
}

int64_t tfh_run_wall_ns(const struct tfh_run *run)
{
	return run->wall;
}

int64_t tfh_run_end_ns(const struct tfh_run *run)
{
	return run->end_ns;
}

enum tfh_end tfh_run_end(const struct tfh_run *run, int *code_or_signal)
{
	if (code_or_signal)
		*code_or_signal = run->end_number;
	return run->end;
}

uint32_t tfh_run_in_flight(const struct tfh_run *run, const struct tfh_in_flight **out)
{
	*out = run->flight;
	return run->n_flight;
}

uint32_t tfh_run_processes(const struct tfh_run *run, const struct tfh_process **out)
{
	*out = run->process;
	return run->n_proc;
}

uint32_t tfh_run_threads(const struct tfh_run *run, const struct tfh_thread_info **out)
{
	*out = run->thread;
	return run->n_thread;
}

uint32_t tfh_run_unhooked(const struct tfh_run *run, const char *const **names)
{
	*names = run->unhooked;
	return run->n_unhooked;
}

uint32_t tfh_run_unreadable(const struct tfh_run *run, const char *const **why)
{
	*why = run->unreadable;
	return run->n_unreadable;
}

uint32_t tfh_run_holes(const struct tfh_run *run, const struct tfh_hole **out)
{
	*out = run->hole;
	return run->n_hole;
}

uint32_t tfh_run_samples(const struct tfh_run *run, uint32_t process, const struct tfh_sample **out)
{
	*out = NULL;
	if (process >= run->n_proc)
		return 0;
	*out = run->proc[process].sample;
	return run->proc[process].n_sample;
}

uint32_t tfh_run_meters(const struct tfh_run *run, uint32_t process,
			const struct tfh_meter_line **out)
{
	*out = NULL;
	if (process >= run->n_proc)
		return 0;
	*out = run->proc[process].meter;
	return run->proc[process].n_meter;
}

const char *tfh_run_name(const struct tfh_run *run, uint32_t process, enum tft_name kind,
			 uint32_t id, uint64_t *handle, uint64_t *extra)
{
	static const struct tfh_name none = {"", 0, 0};
	const struct tfh_name *name = &none;

	if (process < run->n_proc && (uint32_t)kind < TFH_MODEL_NAME_KINDS &&
	    id < run->proc[process].names.n[kind] && run->proc[process].names.v[kind][id].text)
		name = &run->proc[process].names.v[kind][id];
	if (handle)
		*handle = name->handle;
	if (extra)
		*extra = name->extra;
	return name->text;
}
