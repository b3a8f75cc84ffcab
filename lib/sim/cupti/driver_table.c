/* How this library finds the simulated driver and its settings; versions; names of functions. */
#include "sim/cupti/sim_cupti.h"

#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

/* 12 or 13: the Makefile builds one library for each. */
extern const int sim_cupti_generation;

static const struct sim_tools_table *table;
static pid_t attached_in;

static void find(void)
{
	CUresult (*get)(const void **, const CUuuid *);
	const void *found = NULL;
	CUuuid id;
	void *lib = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
	if (!lib)
		return;
	*(void **)&get = dlsym(lib, "cuGetExportTable");
	memcpy(id.bytes, SIM_TOOLS_UUID, sizeof(id.bytes));
	if (!get || get(&found, &id) || !found)
		return;
	table = found;
	if (table->version != SIM_TOOLS_VERSION || table->size < sizeof(*table))
		table = NULL;
}

const struct sim_tools_table *sim_cupti_driver(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, find);
	return table;
}

const struct sim_cupti_config *sim_cupti_config(void)
{
	static const struct sim_cupti_config none;
	return sim_cupti_driver() ? table->config : &none;
}

uint32_t sim_cupti_version(void)
{
	int set = sim_cupti_config()->version;
	if (set)
		return (uint32_t)set;
	return sim_cupti_generation == 12 ? 28 : 130001;
}

CUptiResult sim_cupti_begin(const char *name)
{
	return sim_cupti_driver() ? (CUptiResult)(int)table->injected(name) : CUPTI_SUCCESS;
}

CUptiResult sim_cupti_attach(void)
{
	if (!sim_cupti_driver() || sim_cupti_forked() || table->state() == SIM_EXITED)
		return CUPTI_ERROR_UNKNOWN;
	if (!attached_in) {
		attached_in = getpid();
		table->attach(&sim_events);
	}
	return CUPTI_SUCCESS;
}

void sim_cupti_detach(void)
{
	if (!attached_in || sim_cupti_forked())
		return;
	table->attach(NULL);
	attached_in = 0;
}

uint32_t sim_cupti_pid(void)
{
	return (uint32_t)attached_in;
}

bool sim_cupti_forked(void)
{
	return attached_in && attached_in != getpid();
}

static const char *const names[CBID_COUNT] = {
#define SIM_CBID(name, id) [id] = #name,
#include "sim/cupti/cbids.def"
#undef SIM_CBID
};

/* Looks a name up in a hash table with open addressing. A name never moves, so two threads may fill
 * the table at the same time. */
int sim_cupti_cbid(const char *name)
{
	enum { SLOTS = 4096 };
	static short slots[SLOTS];
	unsigned h = 5381;
	for (const char *p = name; *p; p++)
		h = h * 33 + (unsigned char)*p;
	for (unsigned i = h % SLOTS;; i = (i + 1) % SLOTS) {
		short id = __atomic_load_n(&slots[i], __ATOMIC_RELAXED);
		if (id && !strcmp(names[id], name))
			return id;
		if (id)
			continue;
		for (short k = 1; k < CBID_COUNT && !id; k++)
			if (names[k] && !strcmp(names[k], name))
				id = k;
		if (!id)
			return 0;
		short none = 0;
		if (__atomic_compare_exchange_n(&slots[i], &none, id, false, __ATOMIC_RELAXED,
						__ATOMIC_RELAXED))
			return id;
		i--;
	}
}

const char *sim_cupti_cbid_name(uint32_t id)
{
	return id < CBID_COUNT ? names[id] : NULL;
}

CUPTI_API(cuptiGetVersion, (uint32_t * version), (version))
{
	if (!version)
		return CUPTI_ERROR_INVALID_PARAMETER;
	*version = sim_cupti_version();
	return CUPTI_SUCCESS;
}

static const struct {
	int code;
	const char *name;
} results[] = {
#define SIM_CUPTI_RESULT(name, value) {value, #name},
#include "sim/cupti/results.def"
#undef SIM_CUPTI_RESULT
};

CUPTI_API(cuptiGetResultString, (CUptiResult r, const char **text), (r, text))
{
	if (!text)
		return CUPTI_ERROR_INVALID_PARAMETER;
	for (size_t i = 0; i < sizeof(results) / sizeof(results[0]); i++) {
		if (results[i].code == (int)r) {
			*text = results[i].name;
			return CUPTI_SUCCESS;
		}
	}
	return CUPTI_ERROR_INVALID_PARAMETER;
}

CUPTI_API(cuptiGetErrorMessage, (CUptiResult r, const char **text), (r, text))
{
	return do_cuptiGetResultString(r, text);
}
