#include "sampling/lines.h"

/* 3.8 and 3.9: pairs of bytes, code advance and signed line advance; several pairs if either is too
 * large for one. */
static int32_t lnotab(const uint8_t *p, const uint8_t *end, int32_t line, int32_t at)
{
	for (int32_t address = 0; end - p >= 2; p += 2) {
		address += p[0];
		if (address > at)
			break;
		line += (int8_t)p[1];
	}
	return line;
}

/* 3.10: the same, but a line advance comes with the bytes that it applies to; -128 means that they
 * have no line. */
static int32_t linetable(const uint8_t *p, const uint8_t *end, int32_t line, int32_t at)
{
	for (int32_t address = 0; end - p >= 2; p += 2) {
		int8_t on = (int8_t)p[1];

		address += p[0];
		if (on != -128)
			line += on;
		if (address > at)
			return on == -128 ? 0 : line;
	}
	return 0;
}

/* Six bits per byte, low bits first; bit 6 means that more follow. */
static uint32_t number(const uint8_t **p, const uint8_t *end)
{
	uint32_t value = 0;

	for (unsigned shift = 0; *p < end && shift < 32; shift += 6) {
		uint8_t byte = *(*p)++;

		value |= (uint32_t)(byte & 63) << shift;
		if (!(byte & 64))
			break;
	}
	return value;
}

/*
 * From 3.11 on: an entry begins with a byte whose top bit is set. It holds a kind and the number of
 * code units (2 bytes each) that the entry covers. In kinds 13 and 14, a number follows by which
 * the line advances; its lowest bit is the sign. Kinds 10 to 12 advance the line by 0 to 2, kind 15
 * means no line, and the others keep the line. The columns that follow are skipped.
 */
static int32_t locations(const uint8_t *p, const uint8_t *end, int32_t line, int32_t at)
{
	for (int32_t address = 0; p < end;) {
		unsigned kind = *p >> 3 & 15;

		address += ((*p++ & 7) + 1) * 2;
		if (kind == 13 || kind == 14) {
			uint32_t on = number(&p, end);

			line = (int32_t)((uint32_t)line + (on & 1 ? 0 - (on >> 1) : on >> 1));
		} else if (kind >= 10 && kind <= 12) {
			line += (int32_t)kind - 10;
		}
		if (address > at)
			return kind == 15 ? 0 : line;
		while (p < end && !(*p & 0x80))
			p++;
	}
	return 0;
}

int32_t tfh_py_line(enum tfh_py_lines kind, const uint8_t *table, size_t bytes, int32_t first,
		    int32_t at)
{
	if (at < 0)
		return first;
	if (kind == TFH_PY_LNOTAB)
		return lnotab(table, table + bytes, first, at);
	return kind == TFH_PY_LINETABLE ? linetable(table, table + bytes, first, at)
					: locations(table, table + bytes, first, at);
}

/* The source range of an instruction; from < 0: the table does not show it. */
struct columns {
	int32_t line, end_line, from, to;
};

static bool same_columns(const struct columns *a, const struct columns *b)
{
	return a->line == b->line && a->end_line == b->end_line && a->from == b->from &&
	       a->to == b->to;
}

/* Reads the next entry of such a table, with its columns; *address: the end of its code. Returns
 * false if there is none. */
static bool next_columns(const uint8_t **p, const uint8_t *end, int32_t *address, int32_t *line,
			 struct columns *s)
{
	unsigned kind;
	uint32_t on;

	if (*p >= end || *address < 0)
		return false;
	kind = **p >> 3 & 15;
	*address = (int32_t)((uint32_t)*address + ((*(*p)++ & 7) + 1u) * 2);
	if (kind == 13 || kind == 14) {
		on = number(p, end);
		*line = (int32_t)((uint32_t)*line + (on & 1 ? 0 - (on >> 1) : on >> 1));
	} else if (kind >= 10 && kind <= 12) {
		*line += (int32_t)kind - 10;
	}
	*s = (struct columns){*line, *line, -1, -1};
	if (kind == 14) {
		s->end_line = (int32_t)((uint32_t)*line + number(p, end));
		s->from = (int32_t)number(p, end) - 1;
		s->to = (int32_t)number(p, end) - 1;
	} else if (kind >= 10 && kind <= 12 && end - *p >= 2) {
		s->from = (*p)[0];
		s->to = (*p)[1];
		*p += 2;
	} else if (kind < 10 && *p < end) {
		s->from = (int32_t)kind * 8 + (**p >> 4 & 7);
		s->to = s->from + (**p & 15);
		++*p;
	}
	return true;
}

/*
 * The source range of a call begins where that of its function's name does, and ends after it; its
 * arguments begin later. Consecutive entries with the same range are one instruction that was too
 * long for an entry.
 */
int32_t tfh_py_callee_at(const uint8_t *table, size_t bytes, int32_t at)
{
	struct columns call = {0, 0, -1, -1}, s, before = call;
	int32_t address = 0, line = 0, begin = 0, found = -1;
	const uint8_t *p = table;

	while (address <= at && next_columns(&p, table + bytes, &address, &line, &call))
		;
	if (address <= at || call.from < 0)
		return -1;
	p = table;
	line = 0;
	for (int32_t from = address = 0; from <= at; from = address, before = s) {
		if (!next_columns(&p, table + bytes, &address, &line, &s))
			break;
		if (!same_columns(&s, &before))
			begin = from;
		if (s.line == call.line && s.from == call.from && !same_columns(&s, &call))
			found = begin;
	}
	return found;
}
