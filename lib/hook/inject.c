/*
 * Two ways to be loaded without LD_PRELOAD. The driver loads the library named in
 * CUDA_INJECTION64_PATH inside cuInit, and every library that uses NVTX opens the one named in
 * NVTX_INJECTION64_PATH. The first works where LD_PRELOAD is removed; it gives only device times
 * and CUPTI's records of host calls. The second gives the names of ranges.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "hook/cupti/cupti.h"
#include "hook/driver/driver.h"
#include "record/gpu/gpu.h"
#include "record/record.h"
#include "record/process/settings.h"
#include "record/process/steady.h"
#include "tfhook/tfhook.h"

#define EXPORT __attribute__((visibility("default")))
#define NAME_MOST 520

EXPORT int InitializeInjection(void);
EXPORT int InitializeInjectionNvtx2(const void *(*export_table)(uint32_t id));

/* Called within cuInit. Opens nothing yet: recording starts when CUPTI requests its first buffer.
 */
int InitializeInjection(void)
{
	struct tfh_steady steady;

	tfh_init();
	if (tfh_mode == TFH_MODE_DEAD || tfh_setting(TFH_OPT_CUPTI) == TFH_CUPTI_OFF ||
	    tfh_real[TFH_FN_cuInit]) /* preloaded as well: the hooks do everything */
		return 1;
	tfh_cupti_injected();
	tfh_gpu_always();
	tfh_guard_begin(&tfh_self);
	tfh_steady_begin(&steady);
	tfh_cupti_start();
	tfh_steady_end(&steady);
	tfh_guard_end(&tfh_self);
	return 1;
}

/* ---- NVTX ---- */

/* As in NVTX's headers, which are compiled into the libraries that use it. */
enum { ETID_CALLBACKS = 1, MODULE_CORE = 1, MODULE_CORE2 = 5 };
enum {
	CORE_MARK_EX = 1,
	CORE_MARK_A,
	CORE_MARK_W,
	CORE_START_EX,
	CORE_START_A,
	CORE_START_W,
	CORE_END,
	CORE_PUSH_EX,
	CORE_PUSH_A,
	CORE_PUSH_W,
	CORE_POP
};
enum {
	CORE2_MARK_EX = 1,
	CORE2_START_EX,
	CORE2_END,
	CORE2_PUSH_EX,
	CORE2_POP,
	CORE2_REGISTER_A = 10,
	CORE2_REGISTER_W,
	CORE2_CREATE_A,
	CORE2_CREATE_W
};
struct callbacks {
	size_t size;
	int (*module_table)(uint32_t module, void ***table, unsigned *count);
};
struct attributes {
	uint16_t version, size;
	uint32_t category;
	int32_t color_type;
	uint32_t color;
	int32_t payload_type, reserved;
	uint64_t payload;
	int32_t message_type; /* 1 char, 2 wchar_t, 3 registered */
	int32_t padding;
	const void *message;
};
/* What a domain handle or a registered string points to. */
struct injected_text {
	char text[256];
};

static __thread int level __attribute__((tls_model("initial-exec")));

static void narrow(char *out, size_t size, const wchar_t *in)
{
	size_t n = 0;

	for (; in && *in && n + 1 < size; in++)
		out[n++] = *in < 128 ? (char)*in : '?';
	out[n] = '\0';
}

/* Writes "domain: message" to buf. */
static const char *name_of(const struct injected_text *domain, const struct attributes *a,
			   char buf[NAME_MOST])
{
	char wide[256];
	const char *message = "";

	if (a && a->size >= offsetof(struct attributes, message) + sizeof(a->message) &&
	    a->message) {
		if (a->message_type == 1)
			message = a->message;
		else if (a->message_type == 3)
			message = ((const struct injected_text *)a->message)->text;
		else if (a->message_type == 2) {
			narrow(wide, sizeof(wide), a->message);
			message = wide;
		}
	}
	snprintf(buf, NAME_MOST, "%s%s%.255s", domain ? domain->text : "", domain ? ": " : "",
		 message);
	return buf;
}

static int push(const char *name)
{
	tfhook_range_push(name);
	return level++;
}

static int push_a(const char *name)
{
	return push(name ? name : "");
}

static int push_w(const wchar_t *name)
{
	char text[256];

	narrow(text, sizeof(text), name);
	return push(text);
}

static int push_ex(const struct attributes *a)
{
	char buf[NAME_MOST];
	return push(name_of(NULL, a, buf));
}

static int domain_push(const struct injected_text *domain, const struct attributes *a)
{
	char buf[NAME_MOST];
	return push(name_of(domain, a, buf));
}

static int pop(void)
{
	if (level <= 0)
		return -1;
	tfhook_range_pop();
	return --level;
}

static int domain_pop(const struct injected_text *domain)
{
	(void)domain;
	return pop();
}

/* Ranges that begin on one thread and may end on another. */
#define OPEN_RANGES 1024
static struct open_range {
	uint64_t id; /* atomic: 0 free, 1 being filled in */
	uint64_t begin;
	char name[256];
} * open_ranges; /* atomic: [OPEN_RANGES], allocated for the first range */

static uint64_t start(const char *name)
{
	static uint64_t ids = 1;
	uint64_t id = __atomic_add_fetch(&ids, 1, __ATOMIC_RELAXED);
	struct open_range *open =
		tfh_memory(&open_ranges, OPEN_RANGES * sizeof(*open), "NVTX ranges");

	for (unsigned i = 0; open && i < OPEN_RANGES && !tfh_confined(&tfh_self); i++) {
		struct open_range *r = &open[(id + i) % OPEN_RANGES];
		uint64_t none = 0;
		if (!__atomic_compare_exchange_n(&r->id, &none, 1, false, __ATOMIC_ACQ_REL,
						 __ATOMIC_RELAXED))
			continue;
		r->begin = tfh_ticks();
		snprintf(r->name, sizeof(r->name), "%s", name);
		__atomic_store_n(&r->id, id, __ATOMIC_RELEASE);
		break;
	}
	return id;
}

static uint64_t start_a(const char *name)
{
	return start(name ? name : "");
}

static uint64_t start_w(const wchar_t *name)
{
	char text[256];

	narrow(text, sizeof(text), name);
	return start(text);
}

static uint64_t start_ex(const struct attributes *a)
{
	char buf[NAME_MOST];
	return start(name_of(NULL, a, buf));
}

static uint64_t domain_start(const struct injected_text *domain, const struct attributes *a)
{
	char buf[NAME_MOST];
	return start(name_of(domain, a, buf));
}

static void end(uint64_t id)
{
	struct open_range *open = __atomic_load_n(&open_ranges, __ATOMIC_ACQUIRE);

	for (unsigned i = 0; open && i < OPEN_RANGES && id > 1; i++) {
		struct open_range *r = &open[(id + i) % OPEN_RANGES];
		if (__atomic_load_n(&r->id, __ATOMIC_ACQUIRE) != id)
			continue;
		tfh_range(r->name, r->begin);
		__atomic_store_n(&r->id, 0, __ATOMIC_RELEASE);
		return;
	}
}

static void domain_end(const struct injected_text *domain, uint64_t id)
{
	(void)domain;
	end(id);
}

static struct injected_text *keep(const char *name)
{
	struct injected_text *t = calloc(1, sizeof(*t));

	if (t)
		snprintf(t->text, sizeof(t->text), "%s", name ? name : "");
	return t;
}

static struct injected_text *keep_w(const wchar_t *name)
{
	struct injected_text *t = calloc(1, sizeof(*t));

	if (t)
		narrow(t->text, sizeof(t->text), name);
	return t;
}

static struct injected_text *register_a(const struct injected_text *domain, const char *name)
{
	(void)domain;
	return keep(name);
}

static struct injected_text *register_w(const struct injected_text *domain, const wchar_t *name)
{
	(void)domain;
	return keep_w(name);
}

struct injected {
	unsigned id;
	void *fn;
};

static void fill(const struct callbacks *c, uint32_t module, const struct injected *entries,
		 unsigned n)
{
	void ***table = NULL;
	unsigned count = 0;

	if (!c->module_table(module, (void ***)&table, &count))
		return;
	for (unsigned i = 0; i < n; i++)
		if (entries[i].id < count && table[entries[i].id])
			*table[entries[i].id] = entries[i].fn;
}

int InitializeInjectionNvtx2(const void *(*export_table)(uint32_t id))
{
	static const struct injected core[] = {
		{CORE_START_EX, (void *)start_ex}, {CORE_START_A, (void *)start_a},
		{CORE_START_W, (void *)start_w},   {CORE_END, (void *)end},
		{CORE_PUSH_EX, (void *)push_ex},   {CORE_PUSH_A, (void *)push_a},
		{CORE_PUSH_W, (void *)push_w},	   {CORE_POP, (void *)pop}};
	static const struct injected core2[] = {
		{CORE2_START_EX, (void *)domain_start}, {CORE2_END, (void *)domain_end},
		{CORE2_PUSH_EX, (void *)domain_push},	{CORE2_POP, (void *)domain_pop},
		{CORE2_REGISTER_A, (void *)register_a}, {CORE2_REGISTER_W, (void *)register_w},
		{CORE2_CREATE_A, (void *)keep},		{CORE2_CREATE_W, (void *)keep_w}};
	const struct callbacks *c;

	tfh_init();
	c = tfh_mode == TFH_MODE_DEAD ? NULL : export_table(ETID_CALLBACKS);
	if (!c || c->size < sizeof(*c))
		return 0;
	fill(c, MODULE_CORE, core, sizeof(core) / sizeof(*core));
	fill(c, MODULE_CORE2, core2, sizeof(core2) / sizeof(*core2));
	return 1;
}
