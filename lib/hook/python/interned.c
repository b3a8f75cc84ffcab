/* Frames as places (record/stacks/pyplaces.h). */
#include "hook/python/interned.h"
#include "record/stacks/pyplaces.h"

/* Called once per function; its texts need 1.5 KB of stack. */
static uint32_t __attribute__((noinline)) new_number(const struct tfh_py_code *code)
{
	char file[TFH_PLACE_FILE], name[TFH_PLACE_NAME];

	return tfh_place_code_new(
		code->key, &(struct tfh_place_texts){
				   .file = file,
				   .name = name,
				   .file_bytes = tfh_py_utf8(&code->file, file, sizeof(file)),
				   .name_bytes = tfh_py_utf8(&code->name, name, sizeof(name)),
				   .first = (uint32_t)code->first,
			   });
}

/* The place of a frame. *none: its address holds no code object. *marked: the code object's mark
 * identifies it. */
static uint32_t read_place(const struct tfh_py *py, tfh_py_view view, void *how,
			   const struct tfh_py_frame *frame, uint32_t caller, bool *none,
			   bool *marked)
{
	struct tfh_py_code code;
	uint32_t number;

	*none = !tfh_py_code(py, frame->code, view, how, &code);
	if (*none)
		return 0;
	*marked = view == tfh_py_straight || tfh_py_marked(py, &code);
	number = tfh_place_code(code.key);
	return tfh_place_frame(caller, number ? number : new_number(&code),
			       (uint32_t)tfh_py_line_at(py, &code, frame->at));
}

uint32_t tfh_py_place_of(const struct tfh_py *py, tfh_py_view view, void *how,
			 const struct tfh_py_frame *frame, uint32_t n, struct tfh_py_placed *out)
{
	bool copied = view != tfh_py_straight, has_texts = !copied;
	uint32_t place = 0;

	*out = (struct tfh_py_placed){0};
	if (copied)
		tfh_py_fetch_heads(py, how, frame, n);
	while (n--) {
		const uint8_t *code = view(how, frame[n].code, py->at.code_bytecode);
		uint64_t mark;
		uint32_t known;
		bool none = false, marked = false;

		if (code && tfh_py_own_code(&py->at, code))
			continue; /* before anything else is read of it */
		mark = copied ? tfh_py_copied_mark(py, &frame[n], how, place)
			      : tfh_py_mark(py, &frame[n], place);
		known = mark ? tfh_place_known(mark) : 0;
		if (!known) {
			if (!has_texts)
				tfh_py_fetch_codes(py, how, frame, n + 1);
			has_texts = true;
			known = read_place(py, view, how, &frame[n], place, &none, &marked);
			out->gap |= none;
			if (none)
				continue;
			mark = marked ? mark : 0;
			if (mark && known)
				tfh_place_keep(mark, known);
		}
		out->mark = mark;
		place = known;
		if (!place)
			break; /* the table is full: a partial stack would be taken for the whole */
	}
	return place;
}
