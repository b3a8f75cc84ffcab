/* Writes start.json (format/FORMAT.md, 5). */
#include <stddef.h>
#include <stdio.h>

#include "cli/start_outside.h"

/* Writes one digit per sample, from the byte at `offset` in it. */
static void write_digits(const struct tfh_start_samples *s, uint32_t at, const char *key,
			 size_t offset, struct tfh_json *j)
{
	static char text[TFH_OUTSIDE_SAMPLES];
	size_t n = 0;

	for (uint32_t i = 0; i < s->n; i++)
		if (s->sample[i].process == at)
			text[n++] = (char)('0' + ((const uint8_t *)&s->sample[i])[offset]);
	tfh_json_key(j, key);
	tfh_json_strn(j, text, n);
}

/* How far loops had come; samples are numbered as in `looks`. */
static void write_loops(const struct tfh_start_samples *s, uint32_t at, struct tfh_json *j)
{
	uint32_t number = 0;

	tfh_json_key(j, "loops");
	tfh_json_array(j);
	for (uint32_t i = 0; i < s->n; i++)
		if (s->sample[i].process == at)
			tfh_start_loops_write(&s->loops, s->sample[i].loops, number++, j);
	tfh_json_end(j);
}

/* Writes what counted each of these loops, as one digit each: enum tfh_py_count. */
static void write_counts(const struct tfh_start_samples *s, uint32_t at, struct tfh_json *j)
{
	static char text[TFH_START_LOOPS];
	size_t n = 0;

	for (uint32_t i = 0; i < s->n; i++)
		if (s->sample[i].process == at)
			n += tfh_start_loops_counts(&s->loops, s->sample[i].loops, text + n);
	tfh_json_key(j, "counted");
	tfh_json_strn(j, text, n);
}

static void write_process(const struct tfh_start_samples *s, uint32_t at, struct tfh_json *j)
{
	const struct tfh_outside_process *p = &s->process[at];

	tfh_json_object(j);
	tfh_json_ki64(j, "pid", p->pid);
	tfh_json_ku64(j, "start", p->start);
	tfh_json_kstr(j, "why", *p->why ? p->why : NULL);
	tfh_json_kbool(j, "recorded", p->records);
	tfh_json_key(j, "looks");
	tfh_json_array(j);
	for (uint32_t i = 0; i < s->n; i++) {
		const struct tfh_outside_sample *k = &s->sample[i];
		const uint64_t of[] = {k->us, k->state, k->place, k->weight_us};
		if (k->process == at)
			tfh_json_u64s(j, of, sizeof(of) / sizeof(*of));
	}
	tfh_json_end(j);
	write_digits(s, at, "gil", offsetof(struct tfh_outside_sample, gil), j);
	write_digits(s, at, "others_ran", offsetof(struct tfh_outside_sample, others), j);
	write_loops(s, at, j);
	write_counts(s, at, j);
	tfh_start_others_write(&s->others, at, j);
	tfh_json_end(j);
}

void tfh_outside_write(struct tfh_start_samples *s)
{
	bool any = false, records = false;
	struct tfh_json j;
	FILE *out = NULL;

	s->done = true;
	for (uint32_t p = 0; p < s->n_process; p++) {
		any |= tfh_outside_is_worth(&s->process[p]);
		records |= s->process[p].records;
	}
	if (!any || tfh_place_create(s->to, "start.json", &out))
		return;
	tfh_json_init(&j, out, 0);
	tfh_json_object(&j);
	tfh_json_kstr(&j, "format", "tfhook.start/1");
	tfh_start_places_write(s->places, &j);
	tfh_json_key(&j, "processes");
	tfh_json_array(&j);
	for (uint32_t p = 0; p < s->n_process; p++)
		if (records ? s->process[p].records : tfh_outside_is_worth(&s->process[p]))
			write_process(s, p, &j);
	tfh_json_end(&j);
	tfh_json_end(&j);
	s->kept = !tfh_json_finish(&j);
	fclose(out);
}
