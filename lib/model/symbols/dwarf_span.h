/* Reading DWARF's numbers and texts. Where the section is damaged, what is read is 0 or "". */
#ifndef TFH_MODEL_SYMBOLS_DWARF_SPAN_H
#define TFH_MODEL_SYMBOLS_DWARF_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* How values are stored; dwarf.h belongs to elfutils, these are from the standard. */
enum {
	FORM_ADDR = 0x01,
	FORM_BLOCK2 = 0x03,
	FORM_BLOCK4,
	FORM_DATA2,
	FORM_DATA4,
	FORM_DATA8,
	FORM_STRING,
	FORM_BLOCK,
	FORM_BLOCK1,
	FORM_DATA1,
	FORM_FLAG,
	FORM_SDATA,
	FORM_STRP,
	FORM_UDATA,
	FORM_REF_ADDR,
	FORM_REF1,
	FORM_REF2,
	FORM_REF4,
	FORM_REF8,
	FORM_REF_UDATA,
	FORM_INDIRECT,
	FORM_SEC_OFFSET,
	FORM_EXPRLOC,
	FORM_FLAG_PRESENT,
	FORM_STRX,
	FORM_ADDRX,
	FORM_REF_SUP4,
	FORM_STRP_SUP,
	FORM_DATA16,
	FORM_LINE_STRP,
	FORM_REF_SIG8,
	FORM_IMPLICIT_CONST,
	FORM_LOCLISTX,
	FORM_RNGLISTX,
	FORM_REF_SUP8,
	FORM_STRX1,
	FORM_STRX2,
	FORM_STRX3,
	FORM_STRX4,
	FORM_ADDRX1,
	FORM_ADDRX2,
	FORM_ADDRX3,
	FORM_ADDRX4
};

/* Where something is read, up to its end. Anything after that reads as 0, and sets `bad`. */
struct tfh_dwarf_span {
	const uint8_t *at, *end;
	bool bad;
};

static inline const uint8_t *tfh_dwarf_take(struct tfh_dwarf_span *s, uint64_t n)
{
	const uint8_t *at = s->at;

	if (n > (uint64_t)(s->end - s->at)) {
		s->bad = true;
		s->at = s->end;
		return NULL;
	}
	s->at += n;
	return at;
}

/* A number of up to eight bytes, the lowest first. */
static inline uint64_t tfh_dwarf_number(struct tfh_dwarf_span *s, unsigned bytes)
{
	const uint8_t *at = tfh_dwarf_take(s, bytes);
	uint64_t v = 0;

	if (at)
		memcpy(&v, at, bytes);
	return v;
}

static inline uint64_t tfh_dwarf_uleb(struct tfh_dwarf_span *s)
{
	uint64_t v = 0;

	for (unsigned shift = 0; s->at < s->end; shift += 7) {
		uint8_t byte = *s->at++;
		if (shift < 64)
			v |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return v;
	}
	s->bad = true;
	return 0;
}

static inline int64_t tfh_dwarf_sleb(struct tfh_dwarf_span *s)
{
	uint64_t v = 0;

	for (unsigned shift = 0; s->at < s->end;) {
		uint8_t byte = *s->at++;
		if (shift < 64)
			v |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
		if (byte & 0x80)
			continue;
		if (shift < 64 && (byte & 0x40))
			v |= ~0ull << shift;
		return (int64_t)v;
	}
	s->bad = true;
	return 0;
}

static inline const char *tfh_dwarf_text(struct tfh_dwarf_span *s)
{
	const uint8_t *at = s->at,
		      *nul = at < s->end ? memchr(at, '\0', (size_t)(s->end - at)) : NULL;

	if (!nul) {
		s->bad = true;
		s->at = s->end;
		return "";
	}
	s->at = nul + 1;
	return (const char *)at;
}

/* Reads the length and the version that a unit of a section begins with. The span ends with the
 * unit then. False: the unit does not end within the span. */
static inline bool tfh_dwarf_unit(struct tfh_dwarf_span *s, unsigned *offset_bytes,
				  unsigned *version)
{
	uint64_t length = tfh_dwarf_number(s, 4);

	*offset_bytes = 4;
	if (length == 0xffffffff) {
		*offset_bytes = 8;
		length = tfh_dwarf_number(s, 8);
	}
	if (s->bad || length > (uint64_t)(s->end - s->at))
		return false;
	s->end = s->at + length;
	*version = (unsigned)tfh_dwarf_number(s, 2);
	return true;
}

#endif
