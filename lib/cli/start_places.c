#include "cli/start_places.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/installed.h"

#define FUNCTIONS 2048u
#define PLACES 8192u
#define SLOTS 16384u /* twice as many as are used */
#define FRAMES 48u
#define FILE_BYTES 512u /* longer paths keep their end, longer names their beginning */
#define NAME_BYTES 128u
#define TEXT_BYTES (256u << 10)

struct start_function {
	uint64_t key;
	uint32_t file, name; /* in `text` */
	bool importing;	     /* part of the import machinery */
};

struct start_place {
	uint32_t caller, function, line;
};

struct tfh_start_places {
	struct start_function function[FUNCTIONS];
	struct start_place place[PLACES];
	uint32_t functions, places, text_bytes;
	uint32_t function_slot[SLOTS], place_slot[SLOTS]; /* numbers from 1, 0: free */
	char text[TEXT_BYTES];
	struct tfh_installed installed;
};

struct tfh_start_places *tfh_start_places_new(void)
{
	return calloc(1, sizeof(struct tfh_start_places));
}

/* Stores a text and returns its offset; UINT32_MAX: no room. */
static uint32_t keep(struct tfh_start_places *p, const char *s, uint32_t bytes)
{
	uint32_t at = p->text_bytes;

	if (bytes + 1 > TEXT_BYTES - at)
		return UINT32_MAX;
	memcpy(p->text + at, s, bytes);
	p->text[at + bytes] = '\0';
	p->text_bytes += bytes + 1;
	return at;
}

static uint32_t new_function(struct tfh_start_places *p, const struct tfh_py_code *code)
{
	struct start_function *f = &p->function[p->functions];
	char text[4096], path[sizeof(text) + sizeof(TFH_INSTALLED_MARK)];
	uint32_t n = tfh_py_utf8(&code->file, text, sizeof(text) - 1), from;

	if (p->functions == FUNCTIONS)
		return 0;
	text[n] = '\0';
	n = (uint32_t)tfh_installed_path(&p->installed, text, path);
	from = n > FILE_BYTES ? n - FILE_BYTES : 0;
	f->key = code->key;
	f->file = keep(p, path + from, n - from);
	f->importing = n > 17 && !memcmp(path, "<frozen importlib", 17);
	f->name = keep(p, text, tfh_py_utf8(&code->name, text, NAME_BYTES));
	if (f->file == UINT32_MAX || f->name == UINT32_MAX)
		return 0;
	return ++p->functions;
}

static uint32_t function_of(struct tfh_start_places *p, const struct tfh_py_code *code)
{
	uint32_t at = (uint32_t)(code->key % SLOTS);

	for (; p->function_slot[at]; at = (at + 1) % SLOTS)
		if (p->function[p->function_slot[at] - 1].key == code->key)
			return p->function_slot[at];
	return p->function_slot[at] = new_function(p, code);
}

static uint32_t place_of(struct tfh_start_places *p, const struct start_place *want)
{
	uint32_t at =
		(uint32_t)(tfh_hash_add(tfh_hash_add(want->caller, want->function), want->line) %
			   SLOTS);

	for (; p->place_slot[at]; at = (at + 1) % SLOTS)
		if (!memcmp(&p->place[p->place_slot[at] - 1], want, sizeof(*want)))
			return p->place_slot[at];
	if (p->places == PLACES)
		return 0;
	p->place[p->places] = *want;
	return p->place_slot[at] = ++p->places;
}

uint32_t tfh_start_place(struct tfh_start_places *p, const struct tfh_py *py,
			 struct tfh_py_copies *copies, const struct tfh_py_frame *frame, uint32_t n)
{
	uint32_t place = 0, kept = 0;

	while (n-- && kept < FRAMES) {
		struct start_place want = {.caller = place};
		struct tfh_py_code code;
		uint32_t next;
		int32_t line;

		if (!tfh_py_code(py, frame[n].code, tfh_py_copied, copies, &code))
			continue;
		want.function = function_of(p, &code);
		if (!want.function)
			break;
		if (n && p->function[want.function - 1].importing)
			continue;
		/* A frame that changed while it was read may have any line. */
		line = tfh_py_line_at(py, &code, frame[n].at);
		want.line = line > 0 ? (uint32_t)line : 0;
		next = place_of(p, &want);
		if (!next)
			break;
		place = next;
		kept++;
	}
	return place;
}

void tfh_start_places_write(const struct tfh_start_places *p, struct tfh_json *j)
{
	tfh_json_key(j, "functions");
	tfh_json_array(j);
	for (uint32_t i = 0; i < p->functions; i++) {
		tfh_json_array(j);
		tfh_json_str(j, p->text + p->function[i].file);
		tfh_json_str(j, p->text + p->function[i].name);
		tfh_json_end(j);
	}
	tfh_json_end(j);
	tfh_json_key(j, "places");
	tfh_json_array(j);
	for (uint32_t i = 0; i < p->places; i++) {
		tfh_json_array(j);
		tfh_json_u64(j, p->place[i].caller);
		tfh_json_u64(j, p->place[i].function);
		tfh_json_u64(j, p->place[i].line);
		tfh_json_end(j);
	}
	tfh_json_end(j);
}
