/* One line per step: text, CSV, JSON lines. */
#include <math.h>

#include "base/json.h"
#include "base/print.h"
#include "report/format.h"
#include "model/big.h"
#include "report/text_parts.h"

static int32_t rank_of(const struct tfh_result *r)
{
	const struct tfh_process *processes;
	uint32_t n = tfh_run_processes(r->run, &processes);

	return r->process < n ? processes[r->process].rank : -1;
}

const struct tfh_step *tfh_report_step(const struct tfh_result *r, uint64_t index)
{
	TFH_EACH (i, r->n_step)
		if (r->step[i].index == index)
			return &r->step[i];
	return NULL;
}

const struct tfh_step *tfh_report_median_step(const struct tfh_result *r)
{
	const struct tfh_step *best = NULL;

	TFH_EACH (i, r->n_step) {
		const struct tfh_step *s = &r->step[i];
		bool alike = s->cls == (int8_t)r->verdict.cls;
		bool was = best && best->cls == (int8_t)r->verdict.cls;
		if (s->segment != (int8_t)TFH_SEGMENT_TRAIN || (was && !alike))
			continue;
		if (!best || alike != was ||
		    fabs(s->dur_s - r->steps.median_s) < fabs(best->dur_s - r->steps.median_s))
			best = s;
	}
	return best;
}

static const char *word(const char *name)
{
	return name ? name : "-";
}

void tfh_report_steps_text(FILE *out, const struct tfh_result *r)
{
	tfh_print(out, "%8s %10s %9s  %-10s %-19s %s\n", "step", "start", "time", "segment",
		  "class", "cause");
	TFH_EACH (i, r->n_step) {
		const struct tfh_step *s = &r->step[i];
		char start[TFH_TEXT], dur[TFH_TEXT];
		tfh_print(out, "%8llu %10s %9s  %-10s %-19s %s\n", (unsigned long long)s->index,
			  tfh_fmt_time(start, tfh_into_run(r, s->start_s)),
			  tfh_fmt_time(dur, s->dur_s),
			  word(tfh_segment_name((enum tfh_segment)(int8_t)s->segment)),
			  word(tfh_class_name((enum tfh_class)(int8_t)s->cls)),
			  word(tfh_cause_name((enum tfh_cause)(int8_t)s->cause)));
	}
}

void tfh_report_step_text(FILE *out, const struct tfh_result *r, const struct tfh_step *s)
{
	char start[TFH_TEXT], dur[TFH_TEXT], mean[TFH_TEXT], usual[TFH_TEXT];

	tfh_print(out, "step %llu   %s, %s after the start   %s\n  %s   %s\n\n",
		  (unsigned long long)s->index, tfh_fmt_time(dur, s->dur_s),
		  tfh_fmt_time(start, tfh_into_run(r, s->start_s)),
		  word(tfh_segment_name((enum tfh_segment)s->segment)),
		  word(tfh_class_name((enum tfh_class)s->cls)),
		  word(tfh_cause_name((enum tfh_cause)s->cause)));
	tfh_print(out, "%-16s %9s        %14s\n", "WHERE IT WENT", "", "usual step");
	for (int p = 0; p < TFH_PART_COUNT; p++) {
		double share = (double)s->breakdown[p] / s->dur_s;
		if (!(share >= 0.005) && !(r->breakdown[p].share >= 0.005))
			continue;
		tfh_print(out, "  %-14s %9s %3.0f %%  %14s %3.0f %%\n",
			  tfh_part_words((enum tfh_part)p),
			  tfh_fmt_time(mean, (double)s->breakdown[p]), 100 * share,
			  tfh_fmt_time(usual, r->breakdown[p].s_per_step),
			  isnan(r->breakdown[p].share) ? 0 : 100 * r->breakdown[p].share);
	}
}

void tfh_report_steps_csv(FILE *out, const struct tfh_result *r)
{
	tfh_put("rank,index,start_s,dur_s,segment,class,cause", out);
	for (int p = 0; p < TFH_PART_COUNT; p++)
		tfh_print(out, ",%s_s", tfh_part_name((enum tfh_part)p));
	tfh_put("\n", out);
	int32_t rank = rank_of(r);
	TFH_EACH (i, r->n_step) {
		const struct tfh_step *s = &r->step[i];
		const char *cause = tfh_cause_name((enum tfh_cause)(int8_t)s->cause);
		const char *cls = tfh_class_name((enum tfh_class)(int8_t)s->cls);
		if (rank >= 0)
			tfh_print(out, "%d", rank);
		tfh_print(out, ",%llu,%.9f,%.9f,%s,%s,%s", (unsigned long long)s->index, s->start_s,
			  s->dur_s, word(tfh_segment_name((enum tfh_segment)(int8_t)s->segment)),
			  cls ? cls : "", cause ? cause : "");
		for (int p = 0; p < TFH_PART_COUNT; p++)
			tfh_print(out, ",%.9f", (double)s->breakdown[p]);
		tfh_put("\n", out);
	}
}

int tfh_report_steps_json(FILE *out, const struct tfh_result *r)
{
	int32_t rank = rank_of(r);

	TFH_EACH (i, r->n_step) {
		const struct tfh_step *s = &r->step[i];
		struct tfh_json j;
		tfh_json_init(&j, out, 0);
		tfh_json_object(&j);
		tfh_json_ki64_if(&j, "rank", rank >= 0, rank);
		tfh_json_ku64(&j, "index", s->index);
		tfh_json_kf64(&j, "start_s", tfh_whole_ns(s->start_s));
		tfh_json_kf64(&j, "dur_s", tfh_whole_ns(s->dur_s));
		tfh_json_kstr(&j, "segment",
			      tfh_segment_name((enum tfh_segment)(int8_t)s->segment));
		tfh_json_kstr(&j, "class", tfh_class_name((enum tfh_class)(int8_t)s->cls));
		tfh_json_kstr(&j, "cause", tfh_cause_name((enum tfh_cause)(int8_t)s->cause));
		tfh_json_key(&j, "breakdown");
		tfh_json_object(&j);
		for (int p = 0; p < TFH_PART_COUNT; p++)
			tfh_json_kf64(&j, tfh_part_name((enum tfh_part)p),
				      tfh_whole_ns(s->breakdown[p]));
		tfh_json_end(&j);
		tfh_json_end(&j);
		int err = tfh_json_finish(&j);
		if (err)
			return err;
	}
	return 0;
}
