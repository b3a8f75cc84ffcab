/* NOTE chunks: what a reader should know about the recording itself, as lines of key=value. */
#include "record/write/write.h"

#include "record/ring/journal.h"
#include "record/ring/rings.h"
#include "record/watch/stack_samples.h"
#include "record/watch/nvml_thread.h"
#include "record/stacks/pyplaces.h"
#include "record/stacks/stacks.h"
#include "record/watch/workers.h"

#include "base/bound.h"
#include "base/map.h"
#include "base/priced.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define UNHOOKED_MAX 256
#define UNHOOKED_TEXT 80
#define BOUND_BYTES 1024

/* Names that the driver resolved but no hook covers. Any thread adds to it, one entry per name. */
static struct {
	char name[UNHOOKED_TEXT];
	uint32_t ready; /* atomic */
} unhooked[UNHOOKED_MAX];
static uint32_t unhooked_count; /* atomic; may exceed the size of the table */
static uint32_t unhooked_written;

static bool unhooked_known(const char *name, uint32_t n)
{
	for (uint32_t i = 0; i < n && i < UNHOOKED_MAX; i++)
		if (__atomic_load_n(&unhooked[i].ready, __ATOMIC_ACQUIRE) &&
		    !strncmp(unhooked[i].name, name, UNHOOKED_TEXT - 1))
			return true;
	return false;
}

void tfh_unhooked(const char *name)
{
	uint32_t n = __atomic_load_n(&unhooked_count, __ATOMIC_ACQUIRE);

	if (n >= UNHOOKED_MAX || unhooked_known(name, n))
		return;
	n = __atomic_fetch_add(&unhooked_count, 1, __ATOMIC_ACQ_REL);
	if (n >= UNHOOKED_MAX)
		return;
	strncpy(unhooked[n].name, name, UNHOOKED_TEXT - 1);
	__atomic_store_n(&unhooked[n].ready, 1, __ATOMIC_RELEASE);
}

static const char *torch, *torch_written; /* torch: atomic */

void tfh_note_torch(const char *what)
{
	__atomic_store_n(&torch, what, __ATOMIC_RELEASE);
}

struct text {
	char buf[32 << 10];
	size_t len;
};

__attribute__((format(printf, 2, 3))) static void add(struct text *t, const char *fmt, ...)
{
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(t->buf + t->len, sizeof(t->buf) - t->len, fmt, args);
	va_end(args);
	if (n > 0)
		t->len += (size_t)n;
	if (t->len >= sizeof(t->buf))
		t->len = sizeof(t->buf) - 1;
}

static void add_options(struct text *t)
{
	for (int i = 0; i < TFH_OPT_COUNT; i++) {
		const struct tfh_option_spec *spec = &tfh_option_specs[i];

		if (!tfh_recorder.options.given[i])
			continue;
		if (tfh_option_is_text(spec))
			add(t, "option.%s=%s\n", spec->name,
			    tfh_opt_str(&tfh_recorder.options, (enum tfh_option)i));
		else
			add(t, "option.%s=%lld\n", spec->name,
			    (long long)tfh_opt_int(&tfh_recorder.options, (enum tfh_option)i));
	}
}

static void add_priced(struct text *t)
{
	char bound[BOUND_BYTES];

	tfh_bound_here(bound, sizeof(bound));
	add(t, "bound=%s\n", bound);
	for (uint32_t i = 0; i < tfh_priced_count; i++)
		if (tfh_recorder.priced >> i & 1)
			add(t, "priced=%s=%s\n", tfh_priced[i].variable, tfh_priced[i].value);
}

static size_t notes_written;

/* The text only grows: libraries are hardly ever unloaded, and devices stay where they are. */
static bool notes_new(void)
{
	return strlen(tfh_devices_notes()) != notes_written;
}

static void add_device_notes(struct text *t)
{
	notes_written = strlen(tfh_devices_notes());
	add(t, "%s", tfh_devices_notes());
}

static uint32_t unhooked_ready(void)
{
	uint32_t n = __atomic_load_n(&unhooked_count, __ATOMIC_ACQUIRE), ready = 0;

	for (uint32_t i = 0; i < n && i < UNHOOKED_MAX; i++)
		ready += __atomic_load_n(&unhooked[i].ready, __ATOMIC_ACQUIRE);
	return ready;
}

static void add_unhooked(struct text *t)
{
	uint32_t n = __atomic_load_n(&unhooked_count, __ATOMIC_ACQUIRE);

	unhooked_written = 0;
	for (uint32_t i = 0; i < n && i < UNHOOKED_MAX; i++)
		if (__atomic_load_n(&unhooked[i].ready, __ATOMIC_ACQUIRE)) {
			add(t, "unhooked=%s\n", unhooked[i].name);
			unhooked_written++;
		}
}

static uint64_t unnamed_written;

static void add_unnamed(struct text *t)
{
	unnamed_written = tfh_names_left_out();
	if (unnamed_written)
		add(t, "unnamed=%llu\n", (unsigned long long)unnamed_written);
}

static bool torch_new(void)
{
	return __atomic_load_n(&torch, __ATOMIC_ACQUIRE) != torch_written;
}

static void add_torch(struct text *t)
{
	torch_written = __atomic_load_n(&torch, __ATOMIC_ACQUIRE);
	if (torch_written)
		add(t, "torch=%s\n", torch_written);
}

static const struct tfh_setting_at *settings[TFH_SETTINGS_AT_MOST]; /* atomic */
static uint32_t settings_taken;					    /* atomic */
static int32_t settings_written[TFH_SETTINGS_AT_MOST];		    /* value + 1; 0: none */

void tfh_note_setting(const struct tfh_setting_at *at)
{
	uint32_t i = __atomic_fetch_add(&settings_taken, 1, __ATOMIC_RELAXED);

	if (i < TFH_SETTINGS_AT_MOST)
		__atomic_store_n(&settings[i], at, __ATOMIC_RELEASE);
}

/* The setting's value + 1; 0: unknown, or a value without a name. */
static int32_t setting_now(uint32_t i)
{
	const struct tfh_setting_at *s = __atomic_load_n(&settings[i], __ATOMIC_ACQUIRE);
	uint32_t value;

	if (!s || (s->there && !__atomic_load_n(s->there, __ATOMIC_ACQUIRE)))
		return 0;
	value = s->bytes == 1 ? *(const volatile uint8_t *)s->at
			      : *(const volatile uint32_t *)s->at;
	return value < TFH_SETTING_VALUES && s->value[value] ? (int32_t)value + 1 : 0;
}

static bool settings_new(void)
{
	for (uint32_t i = 0; i < TFH_SETTINGS_AT_MOST; i++)
		if (setting_now(i) != settings_written[i])
			return true;
	return false;
}

static void add_settings(struct text *t)
{
	for (uint32_t i = 0; i < TFH_SETTINGS_AT_MOST; i++) {
		settings_written[i] = setting_now(i);
		if (settings_written[i])
			add(t, "setting=%s=%s\n", settings[i]->name,
			    settings[i]->value[settings_written[i] - 1]);
	}
}

static struct text *text; /* only the flusher writes notes */

static bool begin_text(void)
{
	if (!tfh_map_once(&text, sizeof(*text)))
		return false;
	text->len = 0;
	return true;
}

static int write_text(struct tft_writer *w)
{
	return tft_write_chunk(w, TFT_NOTE, text->buf, (uint32_t)text->len);
}

int tfh_notes_write(struct tft_writer *w)
{
	struct tfh_clock_info clock;

	tfh_clock_init(&clock);
	if (!begin_text())
		return -ENOMEM;
	add(text, "journal=%s\n", tfh_journal.anonymous ? "memory" : tfh_journal.path);
	add(text, "clock=%s\n", clock.source == TFH_CLOCK_MONOTONIC ? "monotonic" : "counter");
	add(text, "clocksource=%s\nclock_trust=%d\n", clock.clocksource, (int)clock.trust);
	add(text, "rank_source=%s\n", tfh_recorder.rank.source ? tfh_recorder.rank.source : "none");
	if (tfh_sampling_why())
		add(text, "looks.why=%s\n", tfh_sampling_why());
	if (tfh_sampling_why_no_lines())
		add(text, "looks.lines=%s\n", tfh_sampling_why_no_lines());
	add_options(text);
	add_priced(text);
	add_device_notes(text);
	add_torch(text);
	add_settings(text);
	add_unhooked(text);
	add_unnamed(text);
	return write_text(w);
}

int tfh_notes_more(struct tft_writer *w)
{
	bool first_unnamed = !unnamed_written && tfh_names_left_out();

	if (unhooked_written == unhooked_ready() && !first_unnamed && !notes_new() &&
	    !torch_new() && !settings_new())
		return 0;
	if (!begin_text())
		return -ENOMEM;
	add_unhooked(text);
	add_unnamed(text);
	if (notes_new())
		add_device_notes(text);
	if (torch_new())
		add_torch(text);
	if (settings_new())
		add_settings(text);
	return write_text(w);
}

int tfh_notes_last(struct tft_writer *w)
{
	const struct tft_journal *head = tfh_journal.head;

	if (!begin_text())
		return -ENOMEM;
	add(text, "end.events=%llu\nend.dropped=%llu\nend.flusher_cpu_ns=%lld\n",
	    (unsigned long long)head->events_written, (unsigned long long)head->dropped,
	    (long long)tfh_clock_ns(CLOCK_THREAD_CPUTIME_ID));
	if (tfh_live.lost)
		add(text, "end.live_lost=%llu\n", (unsigned long long)tfh_live.lost);
	if (tfh_places_unplaced())
		add(text, "python.unplaced=%u\n", tfh_places_unplaced());
	if (tfh_stacks_unplaced())
		add(text, "stacks.unplaced=%u\n", tfh_stacks_unplaced());
	if (tfh_sampling_why())
		add(text, "looks.why=%s\n", tfh_sampling_why());
	if (tfh_workers_why())
		add(text, "looks.children=%s\n", tfh_workers_why());
	if (unhooked_written != unhooked_ready())
		add_unhooked(text);
	add_unnamed(text);
	if (notes_new())
		add_device_notes(text);
	add_settings(text);
	return write_text(w);
}
