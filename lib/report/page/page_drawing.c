/* Data for the script, as JSON: steps along the run and by length, and the timelines of a few
 * steps. The script takes figures that are in the report's own JSON from there; the page holds it,
 * too. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/print.h"
#include "base/text.h"
#include "report/page/along.h"
#include "report/page/page_parts.h"

static void write_parts(struct tfh_json *j)
{
	tfh_json_key(j, "parts");
	tfh_json_array(j);
	for (int p = 0; p < TFH_PART_COUNT; p++) {
		tfh_json_array(j);
		tfh_json_str(j, tfh_part_name((enum tfh_part)p));
		tfh_json_str(j, tfh_part_words((enum tfh_part)p));
		tfh_json_end(j);
	}
	tfh_json_end(j);
}

/* ---- along the run ---- */

static double value_of(const struct tfh_along_point *t, int what)
{
	switch (what) {
	case 0:
		return t->start_s;
	case 1:
		return (double)t->first;
	case 2:
		return t->least_s;
	case 3:
		return t->median_s;
	case 4:
		return t->most_s;
	default:
		return t->part_s[what - 5];
	}
}

static void write_points(struct tfh_json *j, const struct tfh_along *s)
{
	static const char *const name[] = {"start", "first", "least", "median", "most"};

	tfh_json_key(j, "stretches");
	tfh_json_object(j);
	tfh_json_ku64(j, "steps", s->n);
	tfh_json_ku64(j, "together", s->together);
	for (int what = 0; what < 5 + TFH_PART_COUNT; what++) {
		tfh_json_key(j, what < 5 ? name[what] : tfh_part_name((enum tfh_part)(what - 5)));
		tfh_json_array(j);
		for (uint32_t i = 0; i < s->n_point; i++)
			tfh_json_f64(j, tfh_whole_ns(value_of(&s->point[i], what)));
		tfh_json_end(j);
	}
	tfh_json_end(j);
	tfh_json_key(j, "lengths");
	tfh_json_object(j);
	tfh_json_kf64(j, "low", tfh_whole_ns(s->low_s));
	tfh_json_kf64(j, "width", s->width_s);
	tfh_json_key(j, "count");
	tfh_json_array(j);
	for (uint32_t i = 0; i < TFH_ALONG_BINS; i++)
		tfh_json_u64(j, s->bin[i]);
	tfh_json_end(j);
	tfh_json_ku64(j, "longer", s->longer);
	tfh_json_end(j);
}

/* ---- timelines ---- */

/* Texts shared by many bars. Each is written once, and referred to by its number. */
struct texts {
	TFH_VEC(const char *) v;
};

static uint64_t number_of(struct texts *t, const char *text)
{
	for (size_t i = t->v.n; i--;)
		if (t->v.v[i] == text || !strcmp(t->v.v[i], text))
			return i;
	return TFH_PUSH(t->v, text) ? 0 : t->v.n - 1;
}

static void write_track_name(struct tfh_json *j, const struct tfh_html_page *s,
			     const struct tfh_track *t)
{
	const struct tfh_thread_info *threads;
	char name[160], tid[32];

	if (t->kind == TFH_TRACK_STREAM)
		snprintf(name, sizeof(name), "GPU %u stream %u", t->of, t->row);
	else if (t->of < tfh_run_threads(s->r->run, &threads)) {
		const char *own = threads[t->of].name ? threads[t->of].name : "";
		snprintf(tid, sizeof(tid), "thread %u ", threads[t->of].tid);
		/* other profilers name threads by their numbers */
		snprintf(name, sizeof(name), "%s%s%.96s",
			 t->kind == TFH_TRACK_STAGES ? "stages, " : "",
			 !tfh_starts_with(own, "thread ") ? tid : "", own);
	} else {
		snprintf(name, sizeof(name), "a thread");
	}
	tfh_json_kstr(j, "name", name);
}

static void write_track(struct tfh_json *j, const struct tfh_html_page *s,
			const struct tfh_track *t, int64_t zero, struct texts *texts)
{
	tfh_json_object(j);
	write_track_name(j, s, t);
	tfh_json_ku64(j, "kind", t->kind);
	tfh_json_ku64(j, "of", t->of);
	tfh_json_ku64(j, "row", t->row);
	tfh_json_ki64(j, "busy", t->busy_ns);
	tfh_json_key(j, "bars");
	tfh_json_array(j);
	for (size_t i = 0; i < t->bar.n; i++) {
		const struct tfh_bar *b = &t->bar.v[i];
		tfh_json_i64(j, b->t0 - zero);
		tfh_json_i64(j, b->t1 - b->t0);
		tfh_json_u64(j, b->calls);
		tfh_json_i64(j, b->part);
		tfh_json_u64(j, number_of(texts, b->what));
		tfh_json_u64(j, number_of(texts, b->where));
	}
	tfh_json_end(j);
	tfh_json_end(j);
}

/* The words that the chain's table would have for a single link. */
static const char *words_of(const struct tfh_html_page *s, const struct tfh_shown_step *k,
			    const struct tfh_link *l)
{
	struct tfh_chain_row row = {.t0 = l->t0, .t1 = l->t1, .links = 1, .first = l};
	char text[512];

	tfh_chain_row_words(s->words, &row, k->step, text, sizeof(text));
	return tfh_phrase(s->words, "%s", text);
}

static void write_links(struct tfh_json *j, const struct tfh_html_page *s,
			const struct tfh_shown_step *k, int64_t zero, struct texts *texts)
{
	const struct tfh_chain *c = &k->chain;

	tfh_json_key(j, "chain");
	tfh_json_array(j);
	for (size_t i = 0; i < c->link.n; i++) {
		const struct tfh_link *l = &c->link.v[i];
		enum tfh_part part =
			l->cause == TFH_CAUSE_NONE ? TFH_PART_COMPUTE : tfh_cause_part(l->cause);
		tfh_json_i64(j, l->t0 - zero);
		tfh_json_i64(j, l->t1 - l->t0);
		tfh_json_i64(j, part);
		tfh_json_u64(j, number_of(texts, l->what));
		tfh_json_u64(j, number_of(texts, words_of(s, k, l)));
	}
	tfh_json_end(j);
}

static void write_timelines(struct tfh_json *j, const struct tfh_html_page *s)
{
	struct texts texts = {{NULL, 0, 0}};

	tfh_json_key(j, "timelines");
	tfh_json_array(j);
	for (uint32_t i = 0; i < s->shown->n; i++) {
		const struct tfh_shown_step *k = &s->shown->step[i];
		int64_t zero = (int64_t)(k->step->start_s * 1e9);
		tfh_json_object(j);
		tfh_json_kstr(j, "kind", k->kind);
		tfh_json_ku64(j, "step", k->step->index);
		tfh_json_ki64(j, "from", k->drawn.from - zero);
		tfh_json_ki64(j, "to", k->drawn.to - zero);
		tfh_json_ki64(j, "took", (int64_t)(k->step->dur_s * 1e9));
		tfh_json_key(j, "tracks");
		tfh_json_array(j);
		for (size_t t = 0; t < k->drawn.track.n; t++)
			write_track(j, s, &k->drawn.track.v[t], zero, &texts);
		tfh_json_end(j);
		write_links(j, s, k, zero, &texts);
		tfh_json_end(j);
	}
	tfh_json_end(j);
	tfh_json_key(j, "texts");
	tfh_json_array(j);
	for (size_t i = 0; i < texts.v.n; i++)
		tfh_json_str(j, texts.v.v[i]);
	tfh_json_end(j);
	free(texts.v.v);
}

int tfh_page_drawing(const struct tfh_html_page *s)
{
	struct tfh_json j;
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	int rc = f ? 0 : -ENOMEM;

	if (!rc) {
		tfh_json_init(&j, f, 0);
		tfh_json_object(&j);
		write_parts(&j);
		write_points(&j, s->along);
		write_timelines(&j, s);
		tfh_json_end(&j);
		rc = tfh_json_finish(&j);
		rc = fclose(f) && !rc ? -ENOMEM : rc;
	}
	if (!rc) {
		tfh_put("<script type=\"application/json\" id=\"drawing\">", s->out);
		tfh_html_json(s->out, text);
		tfh_put("</script>\n", s->out);
	}
	free(text);
	return rc;
}
