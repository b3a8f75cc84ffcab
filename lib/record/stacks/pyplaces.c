#include "record/stacks/pyplaces.h"

#include <string.h>
#include <sys/mman.h>

#include "base/hash.h"
#include "base/installed.h"
#include "base/map.h"
#include "format/table.h"
#include "format/tft_write.h"
#include "record/process/recorder.h"

/* A program of 100,000 lines has about 5,000 functions, of which some hundreds are met. Those that
 * do not fit are counted. */
#define CODES 6144u
#define CODE_SLOTS 8192u
#define FRAMES 24576u
#define FRAME_SLOTS 32768u
#define KNOWN 16384u
#define TEXT_BYTES (2u << 20)
#define CODE_ROWS 256u
#define FRAME_ROWS 4096u
#define HEAP_BYTES                                                                                 \
	(1u + CODE_ROWS * (TFH_PLACE_FILE + sizeof(TFH_INSTALLED_MARK) + TFH_PLACE_NAME + 2))

/* Numbers are assigned in order, from 1. An entry is filled before its number can be found by its
 * key. */
struct code {
	uint32_t ready; /* atomic: the other fields are filled */
	/* text: offset of the file name, NUL, function name, NUL; or NO_TEXT. */
	uint32_t text, first;
};
#define NO_TEXT UINT32_MAX

struct frame {
	uint32_t ready;
	uint32_t caller, code, line;
};

/* A word holds the upper 48 bits of a key and a number. The key's lower bits select its place in
 * the table. */
#define NUMBER_MASK 0xffffull

/* In a separate mapping; pages are touched as needed. */
struct places {
	uint64_t code_slot[CODE_SLOTS], frame_slot[FRAME_SLOTS]; /* atomic; 0: free */
	uint64_t known[KNOWN]; /* atomic; marks, newer ones replace older ones */
	struct code code[CODES];
	struct frame frame[FRAMES];
	char text[TEXT_BYTES];
	/* of the chunk that is being written */
	struct tft_pyco_row code_row[CODE_ROWS];
	struct tft_pyfr_row frame_row[FRAME_ROWS];
	char heap[HEAP_BYTES], path[TFH_PLACE_FILE + sizeof(TFH_INSTALLED_MARK)];
	struct tfh_installed installed;
	uint8_t payload[sizeof(struct tft_pyfr_row) * FRAME_ROWS + HEAP_BYTES + 4096];
};

static const struct tfh_place_source *source;
static struct places *table;		   /* atomic */
static uint32_t codes, frames, text_bytes; /* atomic: taken */
static uint32_t unplaced;		   /* atomic */
static uint32_t put_codes, put_frames;	   /* those that the segment has */
static bool said;

void tfh_places_attach(const struct tfh_place_source *s)
{
	source = s;
}

/* ---- in the job's threads ---- */

uint32_t tfh_place_here(const struct tfh_self *self)
{
	return __atomic_load_n(&table, __ATOMIC_ACQUIRE) ? source->here(self) : 0;
}

bool tfh_place_python(void)
{
	return !__atomic_load_n(&table, __ATOMIC_ACQUIRE) || source->exists();
}

/* A quarter of the places is reserved for calls. */
static bool has_room(void)
{
	return table && __atomic_load_n(&frames, __ATOMIC_RELAXED) < FRAMES / 4 * 3 &&
	       __atomic_load_n(&codes, __ATOMIC_RELAXED) < CODES / 4 * 3;
}

uint32_t tfh_place_there(uint32_t tid, uint64_t pthread, struct tfh_place_seen *seen)
{
	return has_room() ? source->there(tid, pthread, seen) : 0;
}

uint32_t tfh_place_other(uint64_t random, const uint32_t *but, uint32_t n_but,
			 struct tfh_place_other *out)
{
	return has_room() ? source->other(random, but, n_but, out) : 0;
}

uint32_t tfh_place_child(struct tfh_place_child *c)
{
	return has_room() ? source->child(c) : 0;
}

static uint32_t full(void)
{
	__atomic_fetch_add(&unplaced, 1, __ATOMIC_RELAXED);
	return 0;
}

/* The number stored under this key; 0: none. */
static uint32_t find(const uint64_t *slot, uint32_t slots, uint64_t key)
{
	for (uint32_t i = 0; i < slots; i++) {
		uint64_t has = __atomic_load_n(&slot[(key + i) % slots], __ATOMIC_ACQUIRE);

		if (!has)
			break;
		if ((has ^ key) <= NUMBER_MASK)
			return (uint32_t)(has & NUMBER_MASK);
	}
	return 0;
}

/* Stores a number under a key. If another thread was first, returns that thread's number. */
static uint32_t enter(uint64_t *slot, uint32_t slots, uint64_t key, uint32_t number)
{
	for (uint32_t i = 0; i < slots; i++) {
		uint64_t *at = &slot[(key + i) % slots];
		uint64_t has = 0;

		/* release: a thread that finds the number finds the entry */
		if (__atomic_compare_exchange_n(at, &has, (key & ~NUMBER_MASK) | number, false,
						__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			return number;
		if ((has ^ key) <= NUMBER_MASK)
			return (uint32_t)(has & NUMBER_MASK);
	}
	return 0;
}

/* The next of `most` numbers; 0: none is left. */
static uint32_t next_number(uint32_t *taken, uint32_t most)
{
	uint32_t number = __atomic_add_fetch(taken, 1, __ATOMIC_RELAXED);

	if (number <= most)
		return number;
	__atomic_fetch_sub(taken, 1, __ATOMIC_RELAXED);
	return full();
}

uint32_t tfh_place_code(uint64_t key)
{
	return find(table->code_slot, CODE_SLOTS, key);
}

static uint32_t keep_texts(const struct tfh_place_texts *t)
{
	uint32_t bytes = t->file_bytes + t->name_bytes + 2;
	uint32_t at = __atomic_fetch_add(&text_bytes, bytes, __ATOMIC_RELAXED);

	if (at > TEXT_BYTES - bytes) {
		__atomic_fetch_sub(&text_bytes, bytes, __ATOMIC_RELAXED);
		return NO_TEXT;
	}
	memcpy(table->text + at, t->file, t->file_bytes);
	memcpy(table->text + at + t->file_bytes + 1, t->name, t->name_bytes);
	return at;
}

uint32_t tfh_place_code_new(uint64_t key, const struct tfh_place_texts *texts)
{
	uint32_t number = next_number(&codes, CODES);
	struct code *c;

	if (!number)
		return 0;
	c = &table->code[number - 1];
	c->text = keep_texts(texts);
	c->first = texts->first;
	__atomic_store_n(&c->ready, 1, __ATOMIC_RELEASE);
	return enter(table->code_slot, CODE_SLOTS, key, number);
}

uint32_t tfh_place_frame(uint32_t caller, uint32_t code, uint32_t line)
{
	uint64_t key = tfh_hash_add(tfh_hash_add(caller, code), line);
	uint32_t number = find(table->frame_slot, FRAME_SLOTS, key);
	struct frame *f;

	if (number || !(number = next_number(&frames, FRAMES)))
		return number;
	f = &table->frame[number - 1];
	f->caller = caller;
	f->code = code;
	f->line = line;
	__atomic_store_n(&f->ready, 1, __ATOMIC_RELEASE);
	return enter(table->frame_slot, FRAME_SLOTS, key, number);
}

uint32_t tfh_place_known(uint64_t mark)
{
	uint64_t has = __atomic_load_n(&table->known[mark % KNOWN], __ATOMIC_RELAXED);

	return (has ^ mark) <= NUMBER_MASK ? (uint32_t)(has & NUMBER_MASK) : 0;
}

void tfh_place_keep(uint64_t mark, uint32_t place)
{
	__atomic_store_n(&table->known[mark % KNOWN], (mark & ~NUMBER_MASK) | place,
			 __ATOMIC_RELAXED);
}

uint32_t tfh_places_unplaced(void)
{
	return __atomic_load_n(&unplaced, __ATOMIC_RELAXED);
}

/* ---- the flusher ---- */

void tfh_places_open(void)
{
	struct places *map;

	if (!source || table || !tfh_opt_bool(&tfh_recorder.options, TFH_OPT_PYTHON))
		return;
	source->look();
	map = tfh_map(sizeof(*table));
	/* release: a thread that sees the table may use it */
	__atomic_store_n(&table, map, __ATOMIC_RELEASE);
}

void tfh_places_look(void)
{
	/* without places, too: PyTorch's ranges ask for the interpreter (hook/python/handled.h) */
	if (source && tfh_opt_bool(&tfh_recorder.options, TFH_OPT_PYTHON))
		source->look();
}

bool tfh_places_waiting(void)
{
	return table && (put_codes != __atomic_load_n(&codes, __ATOMIC_RELAXED) ||
			 put_frames != __atomic_load_n(&frames, __ATOMIC_RELAXED) ||
			 (!said && source->refusal()));
}

static uint32_t add_text(uint32_t *bytes, const char *text)
{
	uint32_t at = *bytes, n = (uint32_t)strlen(text);

	if (!n)
		return 0;
	memcpy(table->heap + at, text, n);
	table->heap[at + n] = '\0';
	*bytes += n + 1;
	return at;
}

static int put_rows(struct tft_writer *w, uint32_t type, const struct tft_table *t,
		    const void *rows, uint32_t n, uint32_t heap_bytes, uint64_t now)
{
	const struct tft_table_extra extra = {.heap = table->heap, .heap_bytes = heap_bytes};
	size_t len = tft_table_pack(t, rows, n, &extra, table->payload);

	return tft_write_chunk_at(w, type, table->payload, (uint32_t)len, now, now);
}

/* How many codes go into a chunk. A code that is still being filled, and those after it, can
 * wait. */
static uint32_t code_rows(uint32_t *heap_bytes)
{
	uint32_t n = 0;

	*heap_bytes = 1;
	for (uint32_t i = put_codes; i < CODES && n < CODE_ROWS; i++, n++) {
		const struct code *c = &table->code[i];

		if (!__atomic_load_n(&c->ready, __ATOMIC_ACQUIRE))
			break;
		table->code_row[n] = (struct tft_pyco_row){.code = i + 1, .first = c->first};
		if (c->text != NO_TEXT) {
			const char *file = table->text + c->text;
			tfh_installed_path(&table->installed, file, table->path);
			table->code_row[n].file = add_text(heap_bytes, table->path);
			table->code_row[n].name = add_text(heap_bytes, file + strlen(file) + 1);
		}
	}
	return n;
}

static uint32_t frame_rows(void)
{
	uint32_t n = 0;

	for (uint32_t i = put_frames; i < FRAMES && n < FRAME_ROWS; i++, n++) {
		const struct frame *f = &table->frame[i];

		if (!__atomic_load_n(&f->ready, __ATOMIC_ACQUIRE))
			break;
		table->frame_row[n] = (struct tft_pyfr_row){i + 1, f->caller, f->code, f->line};
	}
	return n;
}

static int write_codes(struct tft_writer *w, uint64_t now)
{
	uint32_t n, heap_bytes;
	int err = 0;

	while (!err && (n = code_rows(&heap_bytes))) {
		err = put_rows(w, TFT_PYCO, &tft_pyco, table->code_row, n, heap_bytes, now);
		put_codes += err ? 0 : n;
	}
	return err;
}

static int write_frames(struct tft_writer *w, uint64_t now)
{
	uint32_t n;
	int err = 0;

	while (!err && (n = frame_rows())) {
		err = put_rows(w, TFT_PYFR, &tft_pyfr, table->frame_row, n, 0, now);
		put_frames += err ? 0 : n;
	}
	return err;
}

static int say(struct tft_writer *w)
{
	const char *why = source->refusal();
	char text[256];
	int n = snprintf(text, sizeof(text), "python.why=%s\n", why ? why : "");

	if (said || !why)
		return 0;
	said = true;
	return tft_write_chunk(w, TFT_NOTE, text, (uint32_t)n);
}

int tfh_places_put(struct tft_writer *w, uint64_t now)
{
	int err;

	if (!tfh_places_waiting())
		return 0;
	err = write_codes(w, now);
	if (!err)
		err = write_frames(w, now);
	return err ? err : say(w);
}

void tfh_places_new_segment(void)
{
	put_codes = put_frames = 0;
	said = false;
}

void tfh_places_forget(void)
{
	if (table)
		madvise(table, sizeof(*table), MADV_DONTNEED);
	codes = frames = text_bytes = unplaced = 0;
	tfh_places_new_segment();
}
