/*
 * A line table is a program for a small machine, which makes rows of address, file and line. A
 * sequence of rows covers a range of addresses. Opening runs all programs once, to find the
 * sequences; an answer runs one of them again. In a damaged table an answer may be wrong, but every
 * length is checked against the section.
 */
#include "model/symbols/debug_lines.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/bisect.h"
#include "model/opened.h"
#include "model/symbols/dwarf_span.h"

/* Bytes of line tables of all files together. Those of the largest programs are half of it. */
#define LINES_MOST (256u << 20)
#define SEQUENCES_MOST (1u << 20)
/* Bytes of programs run for answers, after which there are none. A sequence is a function's, or a
 * source file's of some kilobytes. */
#define WORK_MOST (512u << 20)
/* Sequences that begin before an address and are looked at: they hardly ever overlap. */
#define OVERLAPS 8

/* dwarf.h belongs to elfutils; these are from the standard. */
enum { LNS_COPY = 1, LNS_ADVANCE_PC, LNS_ADVANCE_LINE, LNS_SET_FILE, LNS_COLUMN, LNS_STMT };
enum { LNS_BLOCK = 7, LNS_CONST_ADD_PC, LNS_FIXED_ADVANCE_PC };
enum { LNE_END_SEQUENCE = 1, LNE_SET_ADDRESS };
enum { LNCT_PATH = 1, LNCT_DIRECTORY };

struct unit {
	struct tfh_dwarf_span tables, program;
	unsigned version, address_bytes, offset_bytes;
	uint8_t least_bytes, line_range, first_special; /* least_bytes: of an instruction */
	int8_t line_base;
	const uint8_t *operands; /* of standard opcodes, from opcode 1 on */
};

struct dwarf_row {
	uint64_t address, file, line;
	bool end; /* the sequence ends in front of the address */
};

struct machine {
	const struct unit *unit;
	struct tfh_dwarf_span at;
	struct dwarf_row row;
};

struct dwarf_sequence {
	uint64_t low, high;
	size_t unit, program; /* places in the section */
};

struct tfh_debug_lines {
	uint8_t *line, *text; /* .debug_line, .debug_line_str */
	size_t line_bytes, text_bytes, work;
	struct dwarf_sequence *sequence; /* by low */
	uint32_t n, cap;
};

static size_t held; /* bytes of all tables; used only by the thread that resolves names */

/* ---- units ---- */

/* Reads the head of the unit at a place in the section; `next` is that of the next one. False: it
 * is damaged, or of an unknown version; without `next` nothing can be read after it. */
static bool read_unit(const struct tfh_debug_lines *d, size_t place, struct unit *u, size_t *next)
{
	struct tfh_dwarf_span s = {d->line + place, d->line + d->line_bytes, false};

	*u = (struct unit){.address_bytes = 8};
	*next = d->line_bytes;
	if (!tfh_dwarf_unit(&s, &u->offset_bytes, &u->version))
		return false;
	*next = (size_t)(s.end - d->line);
	if (u->version < 2 || u->version > 5)
		return false;
	if (u->version == 5) {
		u->address_bytes = (unsigned)tfh_dwarf_number(&s, 1);
		tfh_dwarf_take(&s, 1); /* size of segment selectors, which these processors lack */
	}
	uint64_t length = tfh_dwarf_number(&s, u->offset_bytes);
	u->program = s;
	if (!tfh_dwarf_take(&u->program, length))
		return false;
	s.end = u->program.at;
	u->least_bytes = (uint8_t)tfh_dwarf_number(&s, 1);
	tfh_dwarf_take(&s, u->version >= 4
				   ? 2
				   : 1); /* operations of an instruction; whether lines begin */
	u->line_base = (int8_t)tfh_dwarf_number(&s, 1);
	u->line_range = (uint8_t)tfh_dwarf_number(&s, 1);
	u->first_special = (uint8_t)tfh_dwarf_number(&s, 1);
	u->operands = u->first_special ? tfh_dwarf_take(&s, u->first_special - 1u) : NULL;
	u->tables = s;
	return !s.bad && u->operands && u->line_range && u->address_bytes <= 8;
}

/* ---- programs ---- */

static void start(struct machine *m, const struct unit *u, const uint8_t *at)
{
	*m = (struct machine){.unit = u, .at = {at, u->program.end, false}, .row = {.file = 1}};
	m->row.line = 1;
}

static void advance(struct machine *m, uint64_t instructions)
{
	m->row.address += instructions * m->unit->least_bytes;
}

/* Returns whether there is a row. */
static bool run_special(struct machine *m, uint8_t code)
{
	uint8_t by = code - m->unit->first_special;

	advance(m, by / m->unit->line_range);
	m->row.line += (uint64_t)(int64_t)(m->unit->line_base + by % m->unit->line_range);
	return true;
}

static bool run_extended(struct machine *m)
{
	uint64_t length = tfh_dwarf_uleb(&m->at);
	const uint8_t *at = tfh_dwarf_take(&m->at, length);
	struct tfh_dwarf_span s = {at, at + (at ? length : 0), false};

	if (!at || !length)
		return false;
	switch (tfh_dwarf_number(&s, 1)) {
	case LNE_END_SEQUENCE:
		m->row.end = true;
		return true;
	case LNE_SET_ADDRESS:
		if (length - 1 <= 8)
			m->row.address = tfh_dwarf_number(&s, (unsigned)length - 1);
		return false;
	default:
		return false;
	}
}

static bool run_standard(struct machine *m, uint8_t code)
{
	switch (code) {
	case LNS_COPY:
		return true;
	case LNS_ADVANCE_PC:
		advance(m, tfh_dwarf_uleb(&m->at));
		return false;
	case LNS_ADVANCE_LINE:
		m->row.line += (uint64_t)tfh_dwarf_sleb(&m->at);
		return false;
	case LNS_SET_FILE:
		m->row.file = tfh_dwarf_uleb(&m->at);
		return false;
	case LNS_CONST_ADD_PC:
		advance(m, (255u - m->unit->first_special) / m->unit->line_range);
		return false;
	case LNS_FIXED_ADVANCE_PC:
		m->row.address += tfh_dwarf_number(&m->at, 2);
		return false;
	default:
		for (unsigned n = m->unit->operands[code - 1]; n; n--)
			tfh_dwarf_uleb(&m->at);
		return false;
	}
}

/* Runs up to the next row. False: the program ends. */
static bool next_row(struct machine *m)
{
	if (m->row.end)
		m->row = (struct dwarf_row){.file = 1, .line = 1};
	while (m->at.at < m->at.end && !m->at.bad) {
		uint8_t code = *m->at.at++;
		if (code >= m->unit->first_special ? run_special(m, code)
		    : code			   ? run_standard(m, code)
						   : run_extended(m))
			return !m->at.bad;
	}
	return false;
}

/* ---- sequences ---- */

/* Adds a sequence, unless the linker left its code out: it then begins at address 0, or at the
 * highest address. Returns false if there is no room. */
static bool add(struct tfh_debug_lines *d, struct dwarf_sequence s)
{
	if (!s.low || s.high <= s.low)
		return true;
	if (d->n == SEQUENCES_MOST ||
	    tfh_room_for((void **)&d->sequence, &d->cap, d->n, sizeof(*d->sequence)))
		return false;
	d->sequence[d->n++] = s;
	return true;
}

static bool add_unit(struct tfh_debug_lines *d, size_t place, const struct unit *u)
{
	struct dwarf_sequence s = {.unit = place, .program = (size_t)(u->program.at - d->line)};
	struct machine m;
	bool first = true;

	start(&m, u, u->program.at);
	while (next_row(&m)) {
		if (first)
			s.low = m.row.address;
		first = m.row.end;
		if (!m.row.end)
			continue;
		s.high = m.row.address;
		if (!add(d, s))
			return false;
		s.program = (size_t)(m.at.at - d->line);
	}
	return true;
}

static int by_low(const void *a, const void *b)
{
	const struct dwarf_sequence *x = a, *y = b;

	return x->low < y->low ? -1 : x->low > y->low;
}

static bool find_sequences(struct tfh_debug_lines *d)
{
	struct unit u;

	for (size_t at = 0, next; at < d->line_bytes; at = next)
		if (read_unit(d, at, &u, &next) && !add_unit(d, at, &u))
			return false;
	if (d->n)
		qsort(d->sequence, d->n, sizeof(*d->sequence), by_low);
	return d->n;
}

struct tfh_debug_lines *tfh_debug_lines_open(const struct tfh_elf *e)
{
	struct tfh_debug_lines *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->line = tfh_elf_section(e, ".debug_line", LINES_MOST - held, &d->line_bytes);
	held += d->line_bytes;
	d->text = tfh_elf_section(e, ".debug_line_str", LINES_MOST - held, &d->text_bytes);
	held += d->text_bytes;
	if (d->line && find_sequences(d))
		return d;
	tfh_debug_lines_close(d);
	return NULL;
}

void tfh_debug_lines_close(struct tfh_debug_lines *d)
{
	if (!d)
		return;
	held -= d->line_bytes + d->text_bytes;
	free(d->sequence);
	free(d->line);
	free(d->text);
	free(d);
}

/* ---- files ---- */

/* Of a row in a unit's table of folders or files. */
struct entry {
	const char *name;
	uint64_t folder;
};

static const char *line_text(const struct tfh_debug_lines *d, uint64_t at)
{
	struct tfh_dwarf_span s = {d->text + at, d->text + d->text_bytes, false};

	return at < d->text_bytes ? tfh_dwarf_text(&s) : "";
}

static void skip_form(struct tfh_dwarf_span *s, uint64_t form, unsigned offset_bytes)
{
	static const uint8_t bytes[] = {[FORM_DATA1] = 1,
					[FORM_DATA2] = 2,
					[FORM_DATA4] = 4,
					[FORM_DATA8] = 8,
					[FORM_DATA16] = 16,
					/* lengths of blocks */
					[FORM_BLOCK1] = 1,
					[FORM_BLOCK2] = 2,
					[FORM_BLOCK4] = 4};

	switch (form) {
	case FORM_STRING:
		tfh_dwarf_text(s);
		break;
	case FORM_STRP:
	case FORM_LINE_STRP:
		tfh_dwarf_take(s, offset_bytes);
		break;
	case FORM_UDATA:
		tfh_dwarf_uleb(s);
		break;
	case FORM_BLOCK:
		tfh_dwarf_take(s, tfh_dwarf_uleb(s));
		break;
	case FORM_BLOCK1:
	case FORM_BLOCK2:
	case FORM_BLOCK4:
		tfh_dwarf_take(s, tfh_dwarf_number(s, bytes[form]));
		break;
	default:
		if (form < sizeof(bytes) && bytes[form])
			tfh_dwarf_take(s, bytes[form]);
		else
			s->bad = true;
	}
}

static void read_field(const struct tfh_debug_lines *d, const struct unit *u,
		       struct tfh_dwarf_span *s, uint64_t content, uint64_t form, struct entry *out)
{
	struct tfh_dwarf_span was = *s;

	skip_form(s, form, u->offset_bytes);
	if (content == LNCT_PATH && form == FORM_STRING)
		out->name = tfh_dwarf_text(&was);
	else if (content == LNCT_PATH && form == FORM_LINE_STRP)
		out->name = line_text(d, tfh_dwarf_number(&was, u->offset_bytes));
	else if (content == LNCT_DIRECTORY && form == FORM_UDATA)
		out->folder = tfh_dwarf_uleb(&was);
	else if (content == LNCT_DIRECTORY && (form == FORM_DATA1 || form == FORM_DATA2))
		out->folder = tfh_dwarf_number(&was, form == FORM_DATA1 ? 1 : 2);
}

/* Reads a table of version 5 up to its end, and the row of that number, if it has it. */
static struct entry read_table(const struct tfh_debug_lines *d, const struct unit *u,
			       struct tfh_dwarf_span *s, uint64_t wanted)
{
	struct entry e, found = {"", 0};
	unsigned fields = (unsigned)tfh_dwarf_number(s, 1);
	struct tfh_dwarf_span formats = *s;

	for (unsigned i = 0; i < fields; i++) {
		tfh_dwarf_uleb(s);
		tfh_dwarf_uleb(s);
	}
	uint64_t n = tfh_dwarf_uleb(s);
	/* Every row has a byte at least. */
	for (uint64_t i = 0; i < n && fields && !s->bad; i++) {
		struct tfh_dwarf_span f = formats;
		e = (struct entry){"", 0};
		for (unsigned k = 0; k < fields && !s->bad; k++) {
			uint64_t content = tfh_dwarf_uleb(&f);
			read_field(d, u, s, content, tfh_dwarf_uleb(&f), &e);
		}
		if (i == wanted && !s->bad)
			found = e;
	}
	return found;
}

/* The same of versions 2 to 4, whose tables count from 1 and end with an empty name. */
static struct entry read_old_table(struct tfh_dwarf_span *s, bool files, uint64_t wanted)
{
	struct entry found = {"", 0};

	for (uint64_t i = 1; !s->bad; i++) {
		struct entry e = {tfh_dwarf_text(s), 0};
		if (!*e.name)
			break;
		if (files) {
			e.folder = tfh_dwarf_uleb(s);
			tfh_dwarf_uleb(s); /* when it was changed */
			tfh_dwarf_uleb(s); /* its size */
		}
		if (i == wanted && !s->bad)
			found = e;
	}
	return found;
}

static struct entry read_file(const struct tfh_debug_lines *d, const struct unit *u,
			      struct tfh_dwarf_span tables, uint64_t file, const char **folder,
			      const char **top)
{
	struct tfh_dwarf_span again = tables, first = tables;
	bool old = u->version < 5;
	struct entry e;

	if (old)
		read_old_table(&tables, false, 0);
	else
		read_table(d, u, &tables, UINT64_MAX);
	e = old ? read_old_table(&tables, true, file) : read_table(d, u, &tables, file);
	*folder =
		(old ? read_old_table(&again, false, e.folder) : read_table(d, u, &again, e.folder))
			.name;
	*top = old || !e.folder ? "" : read_table(d, u, &first, 0).name;
	return e;
}

static bool name_file(const struct tfh_debug_lines *d, const struct unit *u, uint64_t file,
		      char *out, size_t size)
{
	const char *folder, *top, *name = read_file(d, u, u->tables, file, &folder, &top).name;

	if (!*name)
		return false;
	if (*name == '/')
		folder = "";
	if (!*folder || *folder == '/')
		top = "";
	int n = snprintf(out, size, "%s%s%s%s%s", top, *top ? "/" : "", folder, *folder ? "/" : "",
			 name);
	return n > 0 && (size_t)n < size;
}

/* ---- answers ---- */

/* The last row at or before an address, if the sequence covers it. */
static bool row_at(struct tfh_debug_lines *d, const struct unit *u, const struct dwarf_sequence *s,
		   uint64_t address, struct dwarf_row *out)
{
	const uint8_t *begin = d->line + s->program;
	struct dwarf_row before = {.address = UINT64_MAX};
	struct machine m;
	bool found = false;

	start(&m, u, begin);
	while (!found && next_row(&m)) {
		found = before.address <= address && address < m.row.address;
		if (found)
			*out = before;
		else if (m.row.end)
			break;
		before = m.row;
	}
	d->work += (size_t)(m.at.at - begin);
	return found;
}

/* The unit and the row of an address; false: unknown. */
static bool find_row(struct tfh_debug_lines *d, uint64_t address, struct unit *u, size_t *table,
		     struct dwarf_row *row)
{
	size_t i = TFH_BISECT(k, 0, d->n, d->sequence[k].low <= address), next;

	for (unsigned looked = 0; i-- > 0 && looked < OVERLAPS && d->work < WORK_MOST; looked++) {
		const struct dwarf_sequence *s = &d->sequence[i];

		if (address >= s->high || !read_unit(d, s->unit, u, &next) ||
		    !row_at(d, u, s, address, row))
			continue;
		d->work += (size_t)(u->tables.end - u->tables.at);
		*table = s->unit;
		return true;
	}
	return false;
}

static bool name_line(const struct tfh_debug_lines *d, const struct unit *u,
		      const struct dwarf_row *row, char *file, size_t size, uint32_t *line)
{
	*line = (uint32_t)row->line;
	return row->line && row->line <= UINT32_MAX && name_file(d, u, row->file, file, size);
}

bool tfh_debug_lines_find(struct tfh_debug_lines *d, uint64_t address, char *file, size_t size,
			  uint32_t *line)
{
	struct dwarf_row row;
	struct unit u;
	size_t table;

	return find_row(d, address, &u, &table, &row) && name_line(d, &u, &row, file, size, line);
}

bool tfh_debug_lines_call(struct tfh_debug_lines *d, struct tfh_debug_inlined *inlined,
			  uint64_t address, char *file, size_t size, uint32_t *line)
{
	struct dwarf_row row;
	struct unit u;
	size_t table;

	return find_row(d, address, &u, &table, &row) &&
	       tfh_debug_inlined_call(inlined, table, address, &row.file, &row.line) &&
	       name_line(d, &u, &row, file, size, line);
}
