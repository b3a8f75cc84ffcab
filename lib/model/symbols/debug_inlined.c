/*
 * Debug information is a tree of entries for each unit (source file). An abbreviation tells the
 * kind of an entry, and how its attributes are stored. Opening reads the first entry of each unit;
 * an answer reads those of one unit up to the function in question. In a damaged file an answer may
 * be wrong, but every length is checked against the section.
 */
#include "model/symbols/debug_inlined.h"

#include <stdlib.h>

#include "model/opened.h"
#include "model/symbols/dwarf_span.h"

/* Bytes of the sections of all files together, and bytes read for answers about one file. Beyond
 * these there are no answers: an entry of one byte may have an abbreviation of megabytes. */
#define INFO_MOST (256u << 20)
#define WORK_MOST (256u << 20)
#define UNITS_MOST (1u << 20)
#define CODES_MOST (1u << 16)
/* Entries of a list of address ranges. */
#define RANGES_MOST 4096

enum { TAG_LEXICAL_BLOCK = 0x0b, TAG_INLINED = 0x1d, TAG_FUNCTION = 0x2e, TAG_NAMESPACE = 0x39 };
enum {
	AT_SIBLING = 0x01,
	AT_STMT_LIST = 0x10,
	AT_LOW_PC,
	AT_HIGH_PC,
	AT_RANGES = 0x55,
	AT_CALL_FILE = 0x58,
	AT_CALL_LINE,
	AT_ADDR_BASE = 0x73,
	AT_RNGLISTS_BASE
};
enum {
	RLE_END,
	RLE_BASE_ADDRESSX,
	RLE_STARTX_ENDX,
	RLE_STARTX_LENGTH,
	RLE_OFFSET_PAIR,
	RLE_BASE_ADDRESS,
	RLE_START_END,
	RLE_START_LENGTH
};
enum { UNIT_COMPILE = 1, UNIT_PARTIAL = 3 };

enum section { INFO, ABBREV, RANGES, RNGLISTS, ADDR, SECTIONS };

/* As stored: addresses and lists may be numbers in a table. */
struct info_value {
	uint64_t v, form; /* form 0: there is none */
};

struct info_entry {
	uint64_t tag; /* 0: the end of a list of children */
	bool children;
	struct info_value sibling, table, low, high, ranges, file, line, addresses, lists;
};

struct abbreviation {
	size_t at; /* of its attributes in the section; 0: none */
	uint64_t tag;
	bool children;
};

struct info_unit {
	size_t at; /* in the section */
	struct tfh_dwarf_span entries;
	unsigned version, address_bytes, offset_bytes;
	uint64_t abbreviations;
	struct info_entry first;
};

struct unit_place {
	uint64_t table;
	size_t at;
};

struct tfh_debug_inlined {
	uint8_t *section[SECTIONS];
	size_t bytes[SECTIONS], held, work;
	struct unit_place *unit;
	uint32_t n, cap;
	struct abbreviation code[CODES_MOST]; /* of the table at `codes_at`, UINT64_MAX: none */
	uint64_t codes_at;
};

static size_t held; /* bytes of all files; used only by the thread that resolves names */

static struct tfh_dwarf_span span_at(const struct tfh_debug_inlined *d, enum section section,
				     uint64_t at)
{
	size_t bytes = d->bytes[section];

	return at < bytes ? (struct tfh_dwarf_span){d->section[section] + at,
						    d->section[section] + bytes, false}
			  : (struct tfh_dwarf_span){NULL, NULL, true};
}

/* ---- values ---- */

static unsigned fixed_bytes(const struct info_unit *u, uint64_t form)
{
	static const uint8_t bytes[] = {
		[FORM_DATA1] = 1,  [FORM_DATA2] = 2,	[FORM_DATA4] = 4,    [FORM_DATA8] = 8,
		[FORM_FLAG] = 1,   [FORM_REF1] = 1,	[FORM_REF2] = 2,     [FORM_REF4] = 4,
		[FORM_REF8] = 8,   [FORM_REF_SUP4] = 4, [FORM_REF_SIG8] = 8, [FORM_REF_SUP8] = 8,
		[FORM_STRX1] = 1,  [FORM_STRX2] = 2,	[FORM_STRX3] = 3,    [FORM_STRX4] = 4,
		[FORM_ADDRX1] = 1, [FORM_ADDRX2] = 2,	[FORM_ADDRX3] = 3,   [FORM_ADDRX4] = 4};

	switch (form) {
	case FORM_ADDR:
		return u->address_bytes;
	case FORM_STRP:
	case FORM_REF_ADDR:
	case FORM_SEC_OFFSET:
	case FORM_STRP_SUP:
	case FORM_LINE_STRP:
		return u->offset_bytes;
	default:
		return form < sizeof(bytes) ? bytes[form] : 0;
	}
}

/* Reads a value; of texts and blocks 0. */
static struct info_value read_value(const struct info_unit *u, struct tfh_dwarf_span *s,
				    uint64_t form, int64_t implicit)
{
	struct info_value value = {0, form};
	unsigned bytes;

	switch (form) {
	case FORM_IMPLICIT_CONST:
		value.v = (uint64_t)implicit;
		break;
	case FORM_FLAG_PRESENT:
		break;
	case FORM_SDATA:
		value.v = (uint64_t)tfh_dwarf_sleb(s);
		break;
	case FORM_UDATA:
	case FORM_REF_UDATA:
	case FORM_STRX:
	case FORM_ADDRX:
	case FORM_LOCLISTX:
	case FORM_RNGLISTX:
		value.v = tfh_dwarf_uleb(s);
		break;
	case FORM_STRING:
		tfh_dwarf_text(s);
		break;
	case FORM_DATA16:
		tfh_dwarf_take(s, 16);
		break;
	case FORM_BLOCK:
	case FORM_EXPRLOC:
		tfh_dwarf_take(s, tfh_dwarf_uleb(s));
		break;
	case FORM_BLOCK1:
		tfh_dwarf_take(s, tfh_dwarf_number(s, 1));
		break;
	case FORM_BLOCK2:
		tfh_dwarf_take(s, tfh_dwarf_number(s, 2));
		break;
	case FORM_BLOCK4:
		tfh_dwarf_take(s, tfh_dwarf_number(s, 4));
		break;
	default:
		bytes = fixed_bytes(u, form);
		s->bad |= !bytes;
		value.v = tfh_dwarf_number(s, bytes);
	}
	return value;
}

static bool is_index(const struct info_value *v)
{
	return v->form == FORM_ADDRX || (v->form >= FORM_ADDRX1 && v->form <= FORM_ADDRX4);
}

/* The n-th address of a unit's table; 0: unknown. */
static uint64_t indexed(const struct tfh_debug_inlined *d, const struct info_unit *u, uint64_t n)
{
	struct tfh_dwarf_span s;

	if (n > d->bytes[ADDR])
		return 0;
	s = span_at(d, ADDR, u->first.addresses.v + n * u->address_bytes);
	return tfh_dwarf_number(&s, u->address_bytes);
}

static uint64_t address_of(const struct tfh_debug_inlined *d, const struct info_unit *u,
			   const struct info_value *v)
{
	return is_index(v) ? indexed(d, u, v->v) : v->v;
}

/* ---- entries ---- */

static struct info_value *attribute(struct info_entry *e, uint64_t name)
{
	switch (name) {
	case AT_SIBLING:
		return &e->sibling;
	case AT_STMT_LIST:
		return &e->table;
	case AT_LOW_PC:
		return &e->low;
	case AT_HIGH_PC:
		return &e->high;
	case AT_RANGES:
		return &e->ranges;
	case AT_CALL_FILE:
		return &e->file;
	case AT_CALL_LINE:
		return &e->line;
	case AT_ADDR_BASE:
		return &e->addresses;
	case AT_RNGLISTS_BASE:
		return &e->lists;
	default:
		return NULL;
	}
}

/* The next pair of an abbreviation's list; false: it ends. */
static bool next_pair(struct tfh_dwarf_span *s, uint64_t *name, uint64_t *form, int64_t *implicit)
{
	*name = tfh_dwarf_uleb(s);
	*form = tfh_dwarf_uleb(s);
	*implicit = *form == FORM_IMPLICIT_CONST ? tfh_dwarf_sleb(s) : 0;
	return !s->bad && (*name || *form);
}

/* The next abbreviation of a table, and its code; 0: the table ends. */
static uint64_t next_abbreviation(const struct tfh_debug_inlined *d, struct tfh_dwarf_span *s,
				  struct abbreviation *out)
{
	uint64_t code = tfh_dwarf_uleb(s), name, form;
	int64_t implicit;

	if (!code || s->bad)
		return 0;
	out->tag = tfh_dwarf_uleb(s);
	out->children = tfh_dwarf_number(s, 1) != 0;
	out->at = (size_t)(s->at - d->section[ABBREV]);
	while (next_pair(s, &name, &form, &implicit))
		;
	return s->bad ? 0 : code;
}

static void read_attributes(struct tfh_debug_inlined *d, const struct info_unit *u,
			    const struct abbreviation *a, struct tfh_dwarf_span *s,
			    struct info_entry *out)
{
	struct tfh_dwarf_span pairs = span_at(d, ABBREV, a->at);
	const uint8_t *begin = pairs.at, *from = s->at;
	uint64_t name, form;
	int64_t implicit;

	*out = (struct info_entry){.tag = a->tag, .children = a->children};
	while (!s->bad && next_pair(&pairs, &name, &form, &implicit)) {
		if (form == FORM_INDIRECT)
			form = tfh_dwarf_uleb(s);
		struct info_value value = read_value(u, s, form, implicit);
		struct info_value *to = attribute(out, name);
		if (to)
			*to = value;
	}
	d->work += (size_t)(pairs.at - begin) + (size_t)(s->at - from);
	s->bad |= pairs.bad;
}

/* ---- units ---- */

/* Reads the head of the unit at a place and its first entry; `next` is that of the next one. False:
 * it is damaged, or of a kind or version that has no code. */
static bool read_unit(struct tfh_debug_inlined *d, size_t place, struct info_unit *u, size_t *next)
{
	struct tfh_dwarf_span s = span_at(d, INFO, place), table;
	struct abbreviation a;
	uint64_t kind = UNIT_COMPILE, code, wanted;

	*u = (struct info_unit){.at = place};
	*next = d->bytes[INFO];
	if (!tfh_dwarf_unit(&s, &u->offset_bytes, &u->version))
		return false;
	*next = (size_t)(s.end - d->section[INFO]);
	if (u->version == 5) {
		kind = tfh_dwarf_number(&s, 1);
		u->address_bytes = (unsigned)tfh_dwarf_number(&s, 1);
	}
	u->abbreviations = tfh_dwarf_number(&s, u->offset_bytes);
	if (u->version < 5)
		u->address_bytes = (unsigned)tfh_dwarf_number(&s, 1);
	if (s.bad || u->version < 4 || u->version > 5 || u->address_bytes > 8 ||
	    (kind != UNIT_COMPILE && kind != UNIT_PARTIAL))
		return false;
	u->entries = s;
	wanted = tfh_dwarf_uleb(&s);
	table = span_at(d, ABBREV, u->abbreviations);
	const uint8_t *begin = table.at;
	while ((code = next_abbreviation(d, &table, &a)) && code != wanted)
		;
	d->work += (size_t)(table.at - begin);
	if (!code)
		return false;
	read_attributes(d, u, &a, &s, &u->first);
	return !s.bad && u->first.table.form;
}

static bool find_units(struct tfh_debug_inlined *d)
{
	struct info_unit u;

	for (size_t at = 0, next; at < d->bytes[INFO] && d->work < WORK_MOST; at = next) {
		if (!read_unit(d, at, &u, &next))
			continue;
		if (d->n == UNITS_MOST ||
		    tfh_room_for((void **)&d->unit, &d->cap, d->n, sizeof(*d->unit)))
			return false;
		d->unit[d->n++] = (struct unit_place){u.first.table.v, at};
	}
	return d->n;
}

struct tfh_debug_inlined *tfh_debug_inlined_open(const struct tfh_elf *e)
{
	static const char *const name[] = {[INFO] = ".debug_info",
					   [ABBREV] = ".debug_abbrev",
					   [RANGES] = ".debug_ranges",
					   [RNGLISTS] = ".debug_rnglists",
					   [ADDR] = ".debug_addr"};
	struct tfh_debug_inlined *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->codes_at = UINT64_MAX;
	for (int i = 0; i < SECTIONS; i++) {
		d->section[i] = tfh_elf_section(e, name[i], INFO_MOST - held, &d->bytes[i]);
		held += d->bytes[i];
	}
	if (d->section[INFO] && d->section[ABBREV] && find_units(d))
		return d;
	tfh_debug_inlined_close(d);
	return NULL;
}

void tfh_debug_inlined_close(struct tfh_debug_inlined *d)
{
	if (!d)
		return;
	for (int i = 0; i < SECTIONS; i++) {
		held -= d->bytes[i];
		free(d->section[i]);
	}
	free(d->unit);
	free(d);
}

/* ---- addresses ---- */

struct address_range {
	uint64_t low, high;
};

/* The next range of a list of version 5. False: there is none, and the list ends if *ends. */
static bool next_range(const struct tfh_debug_inlined *d, const struct info_unit *u,
		       struct tfh_dwarf_span *s, uint64_t *base, struct address_range *r,
		       bool *ends)
{
	uint64_t kind = tfh_dwarf_number(s, 1);

	*ends = kind == RLE_END || kind > RLE_START_LENGTH || s->bad;
	switch (kind) {
	case RLE_BASE_ADDRESSX:
		*base = indexed(d, u, tfh_dwarf_uleb(s));
		return false;
	case RLE_BASE_ADDRESS:
		*base = tfh_dwarf_number(s, u->address_bytes);
		return false;
	case RLE_STARTX_ENDX:
		r->low = indexed(d, u, tfh_dwarf_uleb(s));
		r->high = indexed(d, u, tfh_dwarf_uleb(s));
		return true;
	case RLE_STARTX_LENGTH:
		r->low = indexed(d, u, tfh_dwarf_uleb(s));
		r->high = r->low + tfh_dwarf_uleb(s);
		return true;
	case RLE_OFFSET_PAIR:
		r->low = *base + tfh_dwarf_uleb(s);
		r->high = *base + tfh_dwarf_uleb(s);
		return true;
	case RLE_START_END:
		r->low = tfh_dwarf_number(s, u->address_bytes);
		r->high = tfh_dwarf_number(s, u->address_bytes);
		return true;
	case RLE_START_LENGTH:
		r->low = tfh_dwarf_number(s, u->address_bytes);
		r->high = r->low + tfh_dwarf_uleb(s);
		return true;
	default:
		return false;
	}
}

/* The same of version 4. */
static bool next_old_range(const struct info_unit *u, struct tfh_dwarf_span *s, uint64_t *base,
			   struct address_range *r, bool *ends)
{
	uint64_t all = u->address_bytes == 8 ? UINT64_MAX : UINT32_MAX;

	r->low = tfh_dwarf_number(s, u->address_bytes);
	r->high = tfh_dwarf_number(s, u->address_bytes);
	*ends = s->bad || (!r->low && !r->high);
	if (r->low == all) {
		*base = r->high;
		return false;
	}
	r->low += *base;
	r->high += *base;
	return !*ends;
}

/* Where an entry's list of ranges is. */
static struct tfh_dwarf_span ranges_of(const struct tfh_debug_inlined *d, const struct info_unit *u,
				       const struct info_value *ranges)
{
	uint64_t lists = u->first.lists.v;

	if (u->version < 5)
		return span_at(d, RANGES, ranges->v);
	if (ranges->form != FORM_RNGLISTX)
		return span_at(d, RNGLISTS, ranges->v);
	if (ranges->v > d->bytes[RNGLISTS])
		return span_at(d, RNGLISTS, UINT64_MAX);
	struct tfh_dwarf_span s = span_at(d, RNGLISTS, lists + ranges->v * u->offset_bytes);
	return span_at(d, RNGLISTS, lists + tfh_dwarf_number(&s, u->offset_bytes));
}

static bool contains(struct tfh_debug_inlined *d, const struct info_unit *u,
		     const struct info_entry *e, uint64_t address)
{
	uint64_t low = address_of(d, u, &e->low), base = address_of(d, u, &u->first.low);
	struct address_range r;
	bool ends = false;

	if (!e->ranges.form) {
		r.high = e->high.form == FORM_ADDR || is_index(&e->high)
				 ? address_of(d, u, &e->high)
				 : low + e->high.v;
		return e->low.form && e->high.form && low <= address && address < r.high;
	}
	struct tfh_dwarf_span s = ranges_of(d, u, &e->ranges);
	for (unsigned i = 0; i < RANGES_MOST && !ends && !s.bad; i++) {
		d->work += 2 * u->address_bytes;
		if ((u->version < 5 ? next_old_range(u, &s, &base, &r, &ends)
				    : next_range(d, u, &s, &base, &r, &ends)) &&
		    r.low <= address && address < r.high)
			return true;
	}
	return false;
}

/* ---- answers ---- */

static void read_abbreviations(struct tfh_debug_inlined *d, const struct info_unit *u)
{
	struct tfh_dwarf_span s = span_at(d, ABBREV, u->abbreviations);
	const uint8_t *begin = s.at;
	struct abbreviation a;
	uint64_t code;

	if (d->codes_at == u->abbreviations)
		return;
	memset(d->code, 0, sizeof(d->code));
	while ((code = next_abbreviation(d, &s, &a)))
		if (code < CODES_MOST)
			d->code[code] = a;
	d->codes_at = u->abbreviations;
	d->work += sizeof(d->code) + (size_t)(s.at - begin);
}

static bool read_entry(struct tfh_debug_inlined *d, const struct info_unit *u,
		       struct tfh_dwarf_span *s, struct info_entry *out)
{
	uint64_t code = tfh_dwarf_uleb(s);

	*out = (struct info_entry){0};
	if (!code)
		return !s->bad;
	if (code >= CODES_MOST || !d->code[code].at)
		return false;
	read_attributes(d, u, &d->code[code], s, out);
	return !s->bad;
}

/* Passes over an entry's children if it says where they end. Otherwise they are read next. */
static void pass_children(const struct tfh_debug_inlined *d, const struct info_unit *u,
			  const struct info_entry *e, struct tfh_dwarf_span *s, unsigned *depth)
{
	const uint8_t *unit = d->section[INFO] + u->at;

	if (!e->children)
		return;
	if (e->sibling.form && e->sibling.v < (uint64_t)(s->end - unit) &&
	    unit + e->sibling.v > s->at)
		s->at = unit + e->sibling.v;
	else
		++*depth;
}

/* Finds the function and, in it, the first entry of an inlined call that has the address: entries
 * of calls within that one follow it. */
static bool find_call(struct tfh_debug_inlined *d, const struct info_unit *u, uint64_t address,
		      struct tfh_dwarf_span *s, struct info_entry *e)
{
	unsigned depth = 0, function = 0; /* depth of the function's children */

	while (s->at < s->end && d->work < WORK_MOST && read_entry(d, u, s, e)) {
		bool there = (e->tag == TAG_FUNCTION || e->tag == TAG_INLINED) &&
			     contains(d, u, e, address);
		if (!e->tag) {
			if (!depth-- || (function && depth < function))
				return false;
		} else if (function && there && e->tag == TAG_INLINED) {
			return true;
		} else if (!depth || there || e->tag == TAG_LEXICAL_BLOCK ||
			   e->tag == TAG_NAMESPACE) {
			depth += e->children;
			function = there && e->children ? depth : function;
		} else {
			pass_children(d, u, e, s, &depth);
		}
	}
	return false;
}

bool tfh_debug_inlined_call(struct tfh_debug_inlined *d, uint64_t table, uint64_t address,
			    uint64_t *file, uint64_t *line)
{
	for (uint32_t i = 0; i < d->n && d->work < WORK_MOST; i++) {
		struct info_unit u;
		struct info_entry e = {0};
		size_t next;

		if (d->unit[i].table != table || !read_unit(d, d->unit[i].at, &u, &next))
			continue;
		read_abbreviations(d, &u);
		struct tfh_dwarf_span s = u.entries;
		bool found = find_call(d, &u, address, &s, &e);
		*file = e.file.v;
		*line = e.line.v;
		if (found)
			return e.file.form && e.line.form;
	}
	return false;
}
