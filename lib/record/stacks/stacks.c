/*
 * The table of backtraces. Job threads add to it without a lock: an entry is claimed by its hash,
 * then filled. The flusher writes filled entries. A killed process loses only those not yet
 * written, at most the new ones of the last second.
 */
#include "record/stacks/stacks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/environ.h"
#include "base/hash.h"
#include "base/proc.h"
#include "base/rules.h"
#include "format/table.h"
#include "format/tft_write.h"
#include "record/process/log.h"
#include "record/process/recorder.h"
#include "record/process/steady.h"
#include "record/stacks/walked_stacks.h"
#include "record/stacks/modules.h"
#include "record/stacks/pyplaces.h"

/* Programs have some hundreds of places that call the driver. Those that do not fit are counted. */
#define STACKS 8192u
#define STACKS_MOST (STACKS / 4 * 3)
/* A quarter of them is reserved for slow calls. */
#define STACKS_OF_PAUSES (STACKS_MOST / 4 * 3)
#define CHUNK_STACKS 256u
/* libunwind needs 11 KiB of stack when it meets a function for the first time, libgcc 8. */
#define STACK_NEED_PAGES 5
/* Many short calls add up. Among calls of at least this length, one every few milliseconds gets
 * Python's frames: at most 4 us in 5 ms. */
#define SHORT_NS 20000u
#define SHORT_APART_NS 5000000u
/* Backtraces of pauses and short calls are taken unasked, so they use at most this part of a
 * thread's time: 0.5 %. Some may be taken in advance of it, since a thread's first one takes
 * longest. */
#define WALK_SHARE 200u
#define WALK_AHEAD_NS 1000000000u

struct stack {
	uint64_t hash;	/* atomic; 0: free */
	uint16_t n;	/* number of frames */
	uint16_t ready; /* atomic: the frames are filled */
	uint32_t written;
	uint32_t place; /* place of the Python frames */
	uint64_t frame[TFH_STACK_FRAMES];
};

/* In a separate mapping; pages are touched as needed. */
struct stacks {
	struct stack stack[STACKS];
	struct tfh_walked_stack walked[TFH_WALKED_STACKS];
	struct tft_btrc_row row[CHUNK_STACKS * TFH_STACK_FRAMES];
	uint8_t payload[CHUNK_STACKS * TFH_STACK_FRAMES * sizeof(struct tft_btrc_row) + 4096];
};

uint64_t tfh_stack_ticks = TFH_NEVER;

static const struct tfh_stack_source *source;
static struct stacks *table;
static struct tfh_stack_rule rule;
static uint64_t slow_ticks;  /* rule.least_ns in ticks */
static uint64_t short_ticks; /* SHORT_NS in ticks, unless slow calls are shorter */
static uint64_t short_apart; /* SHORT_APART_NS in ticks */
static uint64_t walk_ahead;  /* WALK_AHEAD_NS in ticks */
static uint32_t used;	     /* atomic: entries claimed */
static uint32_t unplaced;    /* atomic: backtraces that found no free entry */
static uint32_t made;	     /* atomic: entries filled */
static uint32_t put;	     /* filled entries that the segment has */
static uint32_t of_segment;  /* number of that segment */
static pid_t owner;
static const char *by; /* NULL: nothing walks the stacks, so there are only Python frames */
static bool said;
static bool valgrind; /* the process runs in it */

void tfh_stacks_attach(const struct tfh_stack_source *s)
{
	const char *preload = tfh_env("LD_PRELOAD");

	source = s;
	valgrind = preload && strstr(preload, "/vgpreload_");
}

/* ---- in the job's threads ---- */

static bool wanted(uint16_t fn, uint64_t ticks)
{
	uint8_t family = tfh_fn_table[fn].family;

	if (ticks >= slow_ticks)
		return true;
	if (family == TFH_FAM_COPY || family == TFH_FAM_SYNC)
		return rule.copies;
	return rule.launches && tfh_family_launches(family);
}

static bool on_main_stack(const struct tfh_self *self, const void *here)
{
	return self->ring->tid == (uint32_t)owner &&
	       tfh_main_stack_left(here) > (STACK_NEED_PAGES + 1) * TFH_PAGE;
}

/* Some programs give their threads hardly more stack than they need. The main thread's stack grows;
 * for others, the pages below are probed, which valgrind would report to the user as an error of
 * the program. */
static bool stack_left(uintptr_t here)
{
	bool left = !valgrind;

	for (unsigned i = 1; i <= STACK_NEED_PAGES && left; i++)
		left = tfh_readable((const void *)((here & ~7ul) - i * TFH_PAGE));
	return left;
}

/* Number of the backtrace with these frames and Python frames; a new one if necessary. */
static uint32_t number_of(void *const *frame, uint32_t n, uint32_t place)
{
	uint64_t hash = tfh_hash_add(tfh_hash_bytes(frame, n * sizeof(*frame)), place) | 1;

	for (uint32_t i = 0; i < STACKS; i++) {
		uint32_t at = (uint32_t)(hash >> 1) + i;
		struct stack *s = &table->stack[at %= STACKS];
		uint64_t has = __atomic_load_n(&s->hash, __ATOMIC_ACQUIRE);
		if (!has) {
			if (__atomic_fetch_add(&used, 1, __ATOMIC_RELAXED) >= STACKS_MOST)
				break;
			if (__atomic_compare_exchange_n(&s->hash, &has, hash, false,
							__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
				if (n)
					memcpy(s->frame, frame, n * sizeof(*frame));
				s->n = (uint16_t)n;
				s->place = place;
				__atomic_store_n(&s->ready, 1, __ATOMIC_RELEASE);
				__atomic_fetch_add(&made, 1, __ATOMIC_RELEASE);
				return at + 1;
			}
			__atomic_fetch_sub(&used, 1, __ATOMIC_RELAXED);
		}
		if (has == hash)
			return at + 1;
	}
	__atomic_fetch_sub(&used, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&unplaced, 1, __ATOMIC_RELAXED);
	return 0;
}

/* Walks the stack. `here`: the frame of the caller of this function, which returns to `caller`. */
static uint32_t walked(struct tfh_self *self, uint32_t place, void *here, const void *caller)
{
	bool main = on_main_stack(self, here);
	void *frame[TFH_STACK_FRAMES];
	uint32_t number, above = 0;
	int n = 0;

	if (main || stack_left((uintptr_t)here))
		n = source->walk(frame, TFH_STACK_FRAMES);
	if (n <= 0)
		return place ? number_of(NULL, 0, place) : 0;
	number = number_of(frame, (uint32_t)n, place);
	while (above < (uint32_t)n && frame[above] != caller)
		above++;
	if (main && number && above < (uint32_t)n)
		tfh_keep_walk(table->walked, (uintptr_t)here, place, frame + above,
			      (uint32_t)n - above, number);
	return number;
}

static uint32_t __attribute__((noinline)) stack_here(struct tfh_self *self, uint32_t place)
{
	void *here = __builtin_frame_address(0);
	uint32_t number = 0;
	struct tfh_steady steady;
	int saved = errno;

	if (self->ring->tid == (uint32_t)owner)
		number = tfh_walked_stack(table->walked, (uintptr_t)here, place);
	if (number)
		return number;
	tfh_steady_begin(&steady);
	tfh_guard_begin(self);
	number = walked(self, place, here, __builtin_return_address(0));
	tfh_guard_end(self);
	tfh_steady_end(&steady);
	errno = saved;
	return number;
}

/* The backtrace in a process without Python, as long as such backtraces keep to their part of the
 * thread's time. */
static uint32_t cheap_walk(struct tfh_self *self)
{
	uint64_t begin = tfh_ticks(), paid = self->walks_paid;
	uint32_t number;

	if (!by || begin < paid || tfh_place_python() ||
	    __atomic_load_n(&used, __ATOMIC_RELAXED) >= STACKS_OF_PAUSES)
		return 0;
	number = stack_here(self, 0);
	paid = paid + walk_ahead < begin ? begin - walk_ahead : paid;
	self->walks_paid = paid + (tfh_ticks() - begin) * WALK_SHARE;
	return number;
}

/* For a short call that has just ended: only one per SHORT_APART_NS gets a place. */
static uint32_t sampled(struct tfh_self *self)
{
	uint32_t place;

	if (self->last_end - self->placed < short_apart)
		return 0;
	self->placed = self->last_end;
	place = tfh_place_here(self);
	if (place)
		return number_of(NULL, 0, place);
	/* If the setting asks for backtraces of very slow calls only, short calls get none. */
	return slow_ticks <= short_apart ? cheap_walk(self) : 0;
}

uint32_t tfh_stack_of(struct tfh_self *self, uint16_t fn, uint64_t ticks)
{
	uint32_t place;

	if (self->guard) /* a call inside our own code, or from the unwinder itself */
		return 0;
	if (!wanted(fn, ticks))
		return ticks >= short_ticks ? sampled(self) : 0;
	place = tfh_place_here(self);
	if (!by)
		return place ? number_of(NULL, 0, place) : 0;
	return stack_here(self, place);
}

uint32_t tfh_stack_of_pause(struct tfh_self *self)
{
	uint32_t place;

	if (!__atomic_load_n(&table, __ATOMIC_ACQUIRE) || self->guard)
		return 0;
	place = tfh_place_here(self);
	return place ? number_of(NULL, 0, place) : cheap_walk(self);
}

uint32_t tfh_stacks_unplaced(void)
{
	return __atomic_load_n(&unplaced, __ATOMIC_RELAXED);
}

/* ---- the flusher ---- */

void tfh_stacks_open(void)
{
	const char *text = tfh_opt_str(&tfh_recorder.options, TFH_OPT_STACKS);
	bool run = *tfh_opt_str(&tfh_recorder.options, TFH_OPT_RUN) != '\0';
	void *map;
	int err;

	if (!source || table)
		return;
	tfh_stack_rule_parse(text, run, &rule);
	if (rule.least_ns == UINT64_MAX)
		return;
	err = source->open(&by);
	if (err) {
		by = NULL;
		tfh_log(1, "no backtraces of machine code: %s", strerror(-err));
	}
	map = mmap(NULL, sizeof(*table), PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (map == MAP_FAILED)
		return;
	owner = tfh_recorder.pid;
	walk_ahead = (uint64_t)((double)WALK_AHEAD_NS * (double)tfh_tick_hz() / 1e9);
	/* release: a thread that sees the table may use it */
	__atomic_store_n(&table, map, __ATOMIC_RELEASE);
	tfh_places_open();
	slow_ticks = (uint64_t)((double)rule.least_ns * (double)tfh_tick_hz() / 1e9);
	short_ticks = (uint64_t)((double)SHORT_NS * (double)tfh_tick_hz() / 1e9);
	short_ticks = short_ticks < slow_ticks ? short_ticks : slow_ticks;
	short_apart = (uint64_t)((double)SHORT_APART_NS * (double)tfh_tick_hz() / 1e9);
	/* release: a thread that sees the limit sees the table */
	__atomic_store_n(&tfh_stack_ticks, rule.copies ? 0 : short_ticks, __ATOMIC_RELEASE);
	tfh_notable_from(tfh_stack_ticks);
}

void tfh_stacks_look(void)
{
	if (by && tfh_modules_unloaded())
		source->forget();
}

static uint32_t rows_of(const struct stack *s, uint32_t id, struct tft_btrc_row *row)
{
	row[0] = (struct tft_btrc_row){.stack = id};
	for (uint32_t i = 0; i < s->n; i++) {
		row[i] = (struct tft_btrc_row){
			.address = s->frame[i], .stack = id, .index = (uint16_t)i};
		tfh_modules_use(s->frame[i]);
	}
	row[0].place = s->place;
	return s->n ? s->n : 1;
}

static int put_chunk(struct tft_writer *w, uint32_t from, uint32_t to, uint32_t n, uint64_t now)
{
	static const struct tft_table_extra none;
	size_t len = tft_table_pack(&tft_btrc, table->row, n, &none, table->payload);
	int err = tft_write_chunk_at(w, TFT_BTRC, table->payload, (uint32_t)len, now, now);

	for (uint32_t i = from; i < to && !err; i++)
		if (table->stack[i].written == 1) {
			table->stack[i].written = 2;
			put++;
		}
	return err;
}

static int say(struct tft_writer *w)
{
	char text[80];
	int n = snprintf(text, sizeof(text), "stacks.by=%s\n", by ? by : "nothing");

	said = true;
	return tft_write_chunk(w, TFT_NOTE, text, (uint32_t)n);
}

static void new_segment(void)
{
	put = 0;
	said = false;
	for (uint32_t i = 0; table && i < STACKS; i++)
		if (table->stack[i].written)
			table->stack[i].written = 0;
	tfh_modules_new_segment();
	tfh_places_new_segment();
}

bool tfh_stacks_waiting(uint32_t segment)
{
	if (segment != of_segment)
		new_segment();
	of_segment = segment;
	return table && (put != __atomic_load_n(&made, __ATOMIC_ACQUIRE) || tfh_places_waiting());
}

int tfh_stacks_put(struct tft_writer *w, uint32_t segment)
{
	uint64_t now = tfh_ticks();
	uint32_t from = 0, stacks = 0, n = 0;
	int err = 0;

	if (!tfh_stacks_waiting(segment))
		return 0;
	/* Written before the backtraces that refer to them, so a killed process leaves complete
	 * data. */
	err = tfh_places_put(w, now);
	tfh_modules_look(now);
	for (uint32_t i = 0; i < STACKS && !err; i++) {
		struct stack *s = &table->stack[i];
		if (s->written != 2 && __atomic_load_n(&s->ready, __ATOMIC_ACQUIRE)) {
			n += rows_of(s, i + 1, table->row + n);
			s->written = 1;
			stacks++;
		}
		if (stacks == CHUNK_STACKS || (stacks && i + 1 == STACKS)) {
			err = put_chunk(w, from, i + 1, n, now);
			from = i + 1;
			stacks = n = 0;
		}
	}
	if (!err)
		err = tfh_modules_put(w, now);
	return err || said ? err : say(w);
}

/* In a forked child, another thread of the parent may hold a lock of the unwinder for ever, or may
 * have been about to fill an entry. So the child reads only Python frames, into empty tables. */
void tfh_stacks_forget(void)
{
	if (table && owner != tfh_recorder.pid) {
		by = NULL;
		owner = tfh_recorder.pid;
		madvise(table, sizeof(*table), MADV_DONTNEED);
		used = made = unplaced = 0;
		tfh_places_forget();
	}
	new_segment();
}
