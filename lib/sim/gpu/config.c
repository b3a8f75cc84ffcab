/* Settings: defaults, then the file named by SIM_CONFIG, then SIM_<KEY> variables. */
#include "sim/gpu/entry/variant.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * Lower than a real link's rate (12 to 50 GB/s): the CPU really moves the bytes, and a rate that it
 * cannot reach would make pinned and pageable copies equally fast.
 */
struct sim_config sim_cfg = {
	.devices = 1,
	.cc_major = 8,
	.cc_minor = 0,
	.queue_depth = 1024,
	.h2d_gbps = 4,
	.d2h_gbps = 4,
	.d2d_gbps = 100,
	.p2p_gbps = 4,
	.pageable_factor = 0.4,
	.copy_latency_ns = 6000,
	.launch_ns = 2000,
	.alloc_ns = 5000,
	.kernel_ns = 5000,
	.concurrent_kernels = 1,
	.condition = -1,
	.while_count = 1,
	.poll_ns = 1000,
	.total_memory = 16ull << 30,
	.staging = 64 << 10,
	.nccl = {.gbps = 10, .latency_ns = 20000},
	.cupti = {.subscribers = 1, .zero_times = -1, .last_wins = true, .forced_incomplete = true},
};

struct where {
	const char *file;
	int line;
};

static void fail(const struct where *w, const char *fmt, ...)
{
	if (sim_cfg.error[0])
		return;
	int n = w->line ? snprintf(sim_cfg.error, sizeof(sim_cfg.error), "%s:%d: ", w->file,
				   w->line)
			: snprintf(sim_cfg.error, sizeof(sim_cfg.error), "%s: ", w->file);
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(sim_cfg.error + n, sizeof(sim_cfg.error) - (size_t)n, fmt, ap);
	va_end(ap);
}

static bool number(const struct where *w, const char *v, double lo, double hi, double *out)
{
	char *end;
	double d = strtod(v, &end);
	if (end == v || *end || !(d >= lo && d <= hi)) {
		fail(w, "'%s' is not a number from %g to %g", v, lo, hi);
		return false;
	}
	*out = d;
	return true;
}

/* "20us", "1.5 ms", "300ns", "2s" */
static bool duration(const struct where *w, const char *v, uint64_t *ns)
{
	static const struct {
		const char *unit;
		double ns;
	} units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
	char *end;
	double d = strtod(v, &end);
	if (end != v && d >= 0 && d < 1e9) {
		while (isspace((unsigned char)*end))
			end++;
		for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
			if (!strcmp(end, units[i].unit)) {
				*ns = (uint64_t)(d * units[i].ns);
				return true;
			}
		}
	}
	fail(w, "'%s' is not a duration such as 20us (units ns, us, ms, s)", v);
	return false;
}

/* "GLOB[@X[,Y[,Z]]] DURATION" */
static void add_rule(const struct where *w, char *v)
{
	struct sim_rule r = {0};
	char *sp = strpbrk(v, " \t");
	if (!sp) {
		fail(w, "kernel rule '%s' is not of the form GLOB[@X,Y,Z] DURATION", v);
		return;
	}
	*sp++ = 0;
	while (isspace((unsigned char)*sp))
		sp++;
	if (!duration(w, sp, &r.ns))
		return;
	char *at = strrchr(v, '@');
	if (at) {
		*at = 0;
		r.ngrid = sscanf(at + 1, "%u,%u,%u", &r.grid[0], &r.grid[1], &r.grid[2]);
		if (r.ngrid < 1) {
			fail(w, "'%s' is not a grid", at + 1);
			return;
		}
	}
	r.glob = strdup(v);
	sim_cfg.rules = realloc(sim_cfg.rules, (size_t)(sim_cfg.nrules + 1) * sizeof(r));
	sim_cfg.rules[sim_cfg.nrules++] = r;
}

/* "NAME:N:CODE": the N-th call of NAME fails with CODE; N = *: every call */
static void add_fail(const struct where *w, char *v)
{
	char name[128], nth[24], *end;
	struct sim_fail f = {0};
	bool good = sscanf(v, "%127[^:]:%23[0-9*]:%d", name, nth, &f.code) == 3;
	f.nth = good && strcmp(nth, "*") ? strtoull(nth, &end, 10) : 0;
	if (!good || (strcmp(nth, "*") && (*end || !f.nth))) {
		fail(w, "'%s' is not of the form NAME:N:CODE", v);
		return;
	}
	f.name = strdup(name);
	sim_cfg.fails = realloc(sim_cfg.fails, (size_t)(sim_cfg.nfails + 1) * sizeof(f));
	sim_cfg.fails[sim_cfg.nfails++] = f;
}

static void each(const struct where *w, char *v, void (*add)(const struct where *, char *))
{
	char *save = NULL;
	for (char *t = strtok_r(v, ";", &save); t; t = strtok_r(NULL, ";", &save)) {
		while (isspace((unsigned char)*t))
			t++;
		char *e = t + strlen(t);
		while (e > t && isspace((unsigned char)e[-1]))
			*--e = 0;
		if (*t)
			add(w, t);
	}
}

enum type {
	T_INT,
	T_REAL,
	T_TIME,
	T_BOOL,
	T_MIB,
	T_KIB,
	T_BYTES,
	T_COUNT,
	T_TEXT,
	T_CLOCK,
	T_CC,
	T_RULES,
	T_FAILS
};

static const struct {
	const char *key;
	enum type type;
	void *to;
	double lo, hi;
} keys[] = {
	{"devices", T_INT, &sim_cfg.devices, 0, SIM_MAX_DEVICES},
	{"driver_version", T_INT, &sim_cfg.driver_version, 2000, 99990},
	{"compute_capability", T_CC, NULL, 0, 0},
	{"total_memory_mb", T_MIB, &sim_cfg.total_memory, 16, 1 << 20},
	{"h2d_gbps", T_REAL, &sim_cfg.h2d_gbps, 1e-6, 1e5},
	{"d2h_gbps", T_REAL, &sim_cfg.d2h_gbps, 1e-6, 1e5},
	{"d2d_gbps", T_REAL, &sim_cfg.d2d_gbps, 1e-6, 1e5},
	{"p2p_gbps", T_REAL, &sim_cfg.p2p_gbps, 1e-6, 1e5},
	{"pageable_factor", T_REAL, &sim_cfg.pageable_factor, 1e-6, 1},
	{"staging_kb", T_KIB, &sim_cfg.staging, 0, 1 << 20},
	{"copy_latency", T_TIME, &sim_cfg.copy_latency_ns, 0, 0},
	{"launch_cost", T_TIME, &sim_cfg.launch_ns, 0, 0},
	{"alloc_cost", T_TIME, &sim_cfg.alloc_ns, 0, 0},
	{"module_load", T_TIME, &sim_cfg.module_load_ns, 0, 0},
	{"kernel_default", T_TIME, &sim_cfg.kernel_ns, 0, 0},
	{"kernel_thread_ns", T_REAL, &sim_cfg.kernel_thread_ns, 0, 1e9},
	{"kernel", T_RULES, NULL, 0, 0},
	{"queue_depth", T_INT, &sim_cfg.queue_depth, 1, 1 << 24},
	{"concurrent_kernels", T_INT, &sim_cfg.concurrent_kernels, 1, SIM_MAX_SLOTS},
	{"others_turn", T_TIME, &sim_cfg.turn_ns, 0, 0},
	{"others_take", T_TIME, &sim_cfg.taken_ns, 0, 0},
	{"lazy_load", T_TIME, &sim_cfg.lazy_load_ns, 0, 0},
	{"init_delay", T_TIME, &sim_cfg.init_delay_ns, 0, 0},
	{"condition", T_INT, &sim_cfg.condition, -1, 1 << 20},
	{"while_count", T_INT, &sim_cfg.while_count, 0, 1 << 20},
	{"rendezvous", T_TEXT, &sim_cfg.rendezvous, 0, 0},
	{"rendezvous_timeout", T_TIME, &sim_cfg.rendezvous_timeout_ns, 0, 0},
	{"time", T_CLOCK, NULL, 0, 0},
	{"poll_cost", T_TIME, &sim_cfg.poll_ns, 0, 0},
	{"abort_after", T_COUNT, &sim_cfg.abort_after, 0, 1e15},
	{"self_lookup", T_BOOL, &sim_cfg.self_lookup, 0, 0},
	{"hang_after", T_COUNT, &sim_cfg.hang_after, 0, 1e15},
	{"fail", T_FAILS, NULL, 0, 0},
	{"interp", T_BOOL, &sim_cfg.interp, 0, 0},
	{"gpa_strict", T_BOOL, &sim_cfg.gpa_strict, 0, 0},
	{"truth", T_TEXT, &sim_cfg.truth, 0, 0},
	{"nccl_gbps", T_REAL, &sim_cfg.nccl.gbps, 1e-6, 1e5},
	{"nccl_latency", T_TIME, &sim_cfg.nccl.latency_ns, 0, 0},
	{"nccl_dir", T_TEXT, &sim_cfg.nccl.dir, 0, 0},
	{"nvml_lowered_power", T_REAL, &sim_cfg.nvml.lowered_power, 0, 1},
	{"nvml_lowered_heat", T_REAL, &sim_cfg.nvml.lowered_heat, 0, 1},
	{"nvml_xid", T_INT, &sim_cfg.nvml.xid, 0, 1000},
	{"nvml_others", T_INT, &sim_cfg.nvml.others, 0, 16},
	{"nvml_nvlink", T_INT, &sim_cfg.nvml.nvlink, 0, 5},
	{"nvml_links", T_INT, &sim_cfg.nvml.links, 0, 18},
	{"nvml_links_down", T_INT, &sim_cfg.nvml.links_down, 0, 18},
	{"nvml_fabric", T_TEXT, &sim_cfg.nvml.fabric, 0, 0},
	{"nvml_delay", T_TIME, &sim_cfg.nvml.delay_ns, 0, 0},
	{"nvml_hang", T_TEXT, &sim_cfg.nvml.hang, 0, 0},
	{"cupti_version", T_INT, &sim_cfg.cupti.version, 0, 999999},
	{"cupti_subscribers", T_INT, &sim_cfg.cupti.subscribers, 1, 8},
	{"cupti_last_wins", T_BOOL, &sim_cfg.cupti.last_wins, 0, 0},
	{"cupti_drop_after", T_INT, &sim_cfg.cupti.drop_after, 0, 1 << 30},
	{"cupti_buffer_bytes", T_BYTES, &sim_cfg.cupti.buffer_bytes, 0, 1 << 30},
	{"cupti_node_bytes", T_BYTES, &sim_cfg.cupti.node_bytes, 0, 1 << 30},
	{"cupti_empty_buffers", T_BOOL, &sim_cfg.cupti.empty_buffers, 0, 0},
	{"cupti_zero_times", T_INT, &sim_cfg.cupti.zero_times, -1, 1},
	{"cupti_forced_incomplete", T_BOOL, &sim_cfg.cupti.forced_incomplete, 0, 0},
	{"cupti_shuffle", T_INT, &sim_cfg.cupti.shuffle, 0, 1 << 20},
	{"cupti_worker", T_BOOL, &sim_cfg.cupti.worker, 0, 0},
	{"cupti_fork_hang", T_BOOL, &sim_cfg.cupti.fork_hang, 0, 0},
	{"cupti_clock_offset_us", T_REAL, &sim_cfg.cupti.clock_offset_us, -1e15, 1e15},
	{"cupti_clock_drift_ppm", T_REAL, &sim_cfg.cupti.clock_drift_ppm, -1e5, 1e5},
};

static void store_number(const struct where *w, size_t k, const char *v)
{
	double d;
	if (!number(w, v, keys[k].lo, keys[k].hi, &d))
		return;
	switch (keys[k].type) {
	case T_INT:
		*(int *)keys[k].to = (int)d;
		break;
	case T_REAL:
		*(double *)keys[k].to = d;
		break;
	case T_COUNT:
		*(uint64_t *)keys[k].to = (uint64_t)d;
		break;
	case T_BYTES:
		*(size_t *)keys[k].to = (size_t)d;
		break;
	case T_MIB:
		*(size_t *)keys[k].to = (size_t)(d * 1048576);
		break;
	default:
		*(size_t *)keys[k].to = (size_t)(d * 1024);
	}
}

static void store(const struct where *w, size_t k, char *v)
{
	switch (keys[k].type) {
	case T_TIME:
		duration(w, v, keys[k].to);
		break;
	case T_BOOL:
		if (strcmp(v, "0") && strcmp(v, "1"))
			fail(w, "'%s' is neither 0 nor 1", v);
		*(bool *)keys[k].to = *v == '1';
		break;
	case T_TEXT:
		*(char **)keys[k].to = strdup(v);
		break;
	case T_CLOCK:
		if (strcmp(v, "real") && strcmp(v, "virtual"))
			fail(w, "'%s' is neither real nor virtual", v);
		sim_cfg.virtual_time = *v == 'v';
		break;
	case T_CC:
		if (sscanf(v, "%d.%d", &sim_cfg.cc_major, &sim_cfg.cc_minor) != 2 ||
		    sim_cfg.cc_major < 1)
			fail(w, "'%s' is not a compute capability such as 8.0", v);
		break;
	case T_RULES:
		each(w, v, add_rule);
		break;
	case T_FAILS:
		each(w, v, add_fail);
		break;
	default:
		store_number(w, k, v);
	}
}

/* Edit distance between a and b, where swapping neighbours counts as one change; gives up beyond
 * `left`. */
static int distance(const char *a, const char *b, int left)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	if (!*a && !*b)
		return 0;
	if (!left)
		return 1;
	int best = left;
	if (*a)
		best = distance(a + 1, b, left - 1);
	if (*b) {
		int d = distance(a, b + 1, left - 1);
		best = d < best ? d : best;
	}
	if (*a && *b) {
		int d = distance(a + 1, b + 1, left - 1);
		best = d < best ? d : best;
		d = a[0] == b[1] && a[1] == b[0] ? distance(a + 2, b + 2, left - 1) : d;
		best = d < best ? d : best;
	}
	return 1 + best;
}

/* Spelling suggestion for a setting. */
static const char *nearest(const char *word)
{
	enum { MOST = 2 };
	const char *best = NULL;
	int least = MOST + 1;
	for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]); k++) {
		int d = distance(word, keys[k].key, MOST);
		if (d < least) {
			least = d;
			best = keys[k].key;
		}
	}
	return best;
}

static void read_line(const struct where *w, char *line)
{
	char *s = line + strspn(line, " \t");
	char *e = s + strcspn(s, "#\n");
	while (e > s && isspace((unsigned char)e[-1]))
		e--;
	*e = 0;
	if (!*s)
		return;
	char *eq = strchr(s, '=');
	if (!eq) {
		fail(w, "'%s' is not of the form key = value", s);
		return;
	}
	char *v = eq + 1 + strspn(eq + 1, " \t");
	while (eq > s && isspace((unsigned char)eq[-1]))
		eq--;
	*eq = 0;
	for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]); k++) {
		if (!strcmp(keys[k].key, s)) {
			store(w, k, v);
			return;
		}
	}
	const char *meant = nearest(s);
	if (meant)
		fail(w, "unknown setting '%s': did you mean '%s'?", s, meant);
	else
		fail(w, "unknown setting '%s'", s);
}

static void read_file(const char *path)
{
	struct where w = {path, 0};
	FILE *f = fopen(path, "re");
	if (!f) {
		fail(&w, "cannot be read (SIM_CONFIG)");
		return;
	}
	char *line = NULL;
	size_t cap = 0;
	while (getline(&line, &cap, f) >= 0) {
		w.line++;
		read_line(&w, line);
	}
	free(line);
	fclose(f);
}

static void read_environment(void)
{
	for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]); k++) {
		char name[64] = "SIM_";
		size_t n = 4;
		for (const char *p = keys[k].key; *p; p++)
			name[n++] = (char)toupper((unsigned char)*p);
		name[n] = 0;
		const char *v = getenv(name);
		if (!v || !*v)
			continue;
		struct where w = {name, 0};
		char *copy = strdup(v);
		/* Rules from the environment come before those of the file: the first match
		 * counts. */
		struct sim_rule *old = sim_cfg.rules;
		int nold = sim_cfg.nrules;
		if (keys[k].type == T_RULES) {
			sim_cfg.rules = NULL;
			sim_cfg.nrules = 0;
		}
		store(&w, k, copy);
		if (keys[k].type == T_RULES && nold) {
			sim_cfg.rules = realloc(sim_cfg.rules,
						(size_t)(sim_cfg.nrules + nold) * sizeof(*old));
			memcpy(sim_cfg.rules + sim_cfg.nrules, old, (size_t)nold * sizeof(*old));
			sim_cfg.nrules += nold;
			free(old);
		}
		free(copy);
	}
}

/* Other programs may use SIM_ variables; one that resembles a setting is reported as a typing
 * error. */
static void check_environment(void)
{
	for (char **e = environ; *e; e++) {
		char name[64];
		size_t n = 0;
		if (strncmp(*e, "SIM_", 4))
			continue;
		for (const char *p = *e + 4; *p && *p != '=' && n + 1 < sizeof(name); p++)
			name[n++] = (char)tolower((unsigned char)*p);
		name[n] = 0;
		const char *meant = strcmp(name, "config") ? nearest(name) : NULL;
		struct where w = {"environment", 0};
		if (meant && strcmp(name, meant))
			fail(&w, "unknown setting '%.*s': did you mean '%s'?", (int)n + 4, *e,
			     meant);
	}
}

static void load(void)
{
	sim_cfg.driver_version = sim_variant_version;
	const char *path = getenv("SIM_CONFIG");
	if (path && *path)
		read_file(path);
	read_environment();
	check_environment();
}

void sim_config_load(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, load);
}
