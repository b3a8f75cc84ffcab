#include "report/json_places.h"

#include "model/symbols/backtraces.h"
#include "report/words/words.h"

#define PYTHON_FRAMES 256
#define NATIVE_FRAMES 64

void tfh_json_line(struct tfh_json *j, const char *file, uint32_t line, const char *function)
{
	tfh_json_kstr(j, "file", file);
	tfh_json_ku64(j, "line", line);
	tfh_json_kstr(j, "function", function);
}

bool tfh_json_begin_line(struct tfh_json *j, const char *key, const char *file, uint32_t line,
			 const char *function)
{
	if (!tfh_json_kobject_if(j, key, file))
		return false;
	tfh_json_line(j, file, line, function);
	return true;
}

static void write_python(struct tfh_json *j, const struct tfh_model_line *frame, uint32_t n)
{
	tfh_json_key(j, "python");
	tfh_json_array(j);
	for (uint32_t i = 0; i < n; i++) {
		tfh_json_object(j);
		tfh_json_line(j, frame[i].file, frame[i].line, frame[i].function);
		tfh_json_kbool(j, "library", frame[i].library);
		tfh_json_end(j);
	}
	tfh_json_end(j);
}

void tfh_json_open_place(struct tfh_json *j, const struct tfh_result *r,
			 const struct tfh_in_flight *open)
{
	struct tfh_model_line frame[PYTHON_FRAMES];
	uint32_t n = tfh_run_place(r->run, open->process, open->place, frame, PYTHON_FRAMES);
	const char *state = open->look_ns ? tfh_state_words(open->state) : "";
	char where[512];

	tfh_place_text(frame, n, where, sizeof(where));
	tfh_json_kstr(j, "where", *where ? where : NULL);
	tfh_json_kstr(j, "state", *state ? state : NULL);
	write_python(j, frame, n);
}

void tfh_json_frames(struct tfh_json *j, const struct tfh_result *r, uint32_t stack)
{
	struct tfh_model_line python[PYTHON_FRAMES];
	struct tfh_model_frame native[NATIVE_FRAMES];
	uint32_t n_python =
		r->run ? tfh_run_python(r->run, r->process, stack, python, PYTHON_FRAMES) : 0;
	uint32_t n_native =
		r->run ? tfh_run_stack(r->run, r->process, stack, native, NATIVE_FRAMES) : 0;

	write_python(j, python, n_python);
	tfh_json_key(j, "native");
	tfh_json_array(j);
	for (uint32_t i = 0; i < n_native; i++) {
		tfh_json_object(j);
		tfh_json_kstr(j, "function", *native[i].function ? native[i].function : NULL);
		tfh_json_kstr(j, "module", native[i].module);
		tfh_json_ku64(j, "offset", native[i].offset);
		tfh_json_kstr(j, "file", native[i].line ? native[i].file : NULL);
		tfh_json_ku64_if(j, "line", native[i].line, native[i].line);
		tfh_json_end(j);
	}
	tfh_json_end(j);
}

void tfh_json_places(struct tfh_json *j, const struct tfh_result *r)
{
	struct tfh_call_place place[TFH_CALL_PLACES];
	uint32_t n = tfh_call_places(r, place);

	tfh_json_key(j, "places");
	tfh_json_array(j);
	for (uint32_t i = 0; i < n; i++) {
		const struct tfh_call_site *site = place[i].site;
		tfh_json_object(j);
		tfh_json_kstr(j, "of", place[i].name);
		tfh_json_kstr(j, "fn", *site->fn ? site->fn : NULL);
		tfh_json_kstr(j, "where", site->where);
		tfh_json_frames(j, r, site->stack);
		tfh_json_end(j);
	}
	tfh_json_end(j);
}

static void write_lines(struct tfh_json *j, const char *name, const struct tfh_computed_line *line)
{
	tfh_json_key(j, name);
	tfh_json_array(j);
	for (int i = 0; i < TFH_COMPUTED_LINES && line[i].file; i++) {
		tfh_json_object(j);
		tfh_json_kstr(j, "file", line[i].file);
		if (line[i].line)
			tfh_json_ku64(j, "line", line[i].line);
		tfh_json_kstr(j, "function", line[i].function);
		tfh_json_kf64(j, "s_per_step", line[i].s_per_step);
		tfh_json_ku64(j, "samples", line[i].samples);
		if (line[i].steps)
			tfh_json_ku64(j, "steps", line[i].steps);
		tfh_json_end(j);
	}
	tfh_json_end(j);
}

void tfh_json_computed(struct tfh_json *j, const struct tfh_result *r)
{
	static const char *const name[TFH_COMPUTES_COUNT] = {
		[TFH_COMPUTES_BACKWARD] = "backward", [TFH_COMPUTES_FORWARD] = "forward",
		[TFH_COMPUTES_UPDATE] = "optimizer",  [TFH_COMPUTES_FUNCTION] = "tf.function",
		[TFH_COMPUTES_OTHER] = "other",	      [TFH_COMPUTES_EVALUATION] = "evaluation",
	};
	const struct tfh_computed *c = &r->found.computed;
	double all_s = 0;

	for (int k = 0; k < TFH_COMPUTES_COUNT; k++)
		all_s += c->part[k].s_per_step;
	if (!tfh_json_kobject_if(j, "computing", all_s > 0))
		return;
	tfh_json_key(j, "parts");
	tfh_json_array(j);
	for (int k = 0; k < TFH_COMPUTES_COUNT; k++) {
		if (!(c->part[k].s_per_step > 0))
			continue;
		tfh_json_object(j);
		tfh_json_kstr(j, "part", name[k]);
		tfh_json_kf64(j, "s_per_step", c->part[k].s_per_step);
		tfh_json_kf64(j, "off_s", c->part[k].off_s);
		tfh_json_ku64(j, "samples", c->part[k].samples);
		tfh_json_end(j);
	}
	tfh_json_end(j);
	write_lines(j, "forward", c->forward);
	write_lines(j, "evaluate", c->evaluate);
	write_lines(j, "backward", c->backward);
	write_lines(j, "layers", c->layer);
	tfh_json_kstr(j, "function", c->function);
	tfh_json_end(j);
}
