/* Prints what the analysis says of a run in one line of key=value words (and, with --steps, one
 * line per step), for scripts that compare verdicts with what a job was made to be. usage: judge
 * [--steps] DIR */
#include <stdio.h>
#include <string.h>

#include "judge/judge.h"
#include "report/words/words.h"

static void print_step(const struct tfh_step *s)
{
	printf("step %llu start=%.6f dur=%.6f segment=%s class=%s cause=%s",
	       (unsigned long long)s->index, s->start_s, s->dur_s, tfh_segment_name(s->segment),
	       tfh_class_name(s->cls), s->cause >= 0 ? tfh_cause_name(s->cause) : "-");
	for (int p = 0; p < TFH_PART_COUNT; p++)
		printf(" %s=%.6f", tfh_part_name(p), (double)s->breakdown[p]);
	putchar('\n');
}

static void print_more(const struct tfh_result *r)
{
	for (int p = 0; p < TFH_PART_COUNT; p++)
		printf("part %s share=%.4f s=%.6f\n", tfh_part_name(p), r->breakdown[p].share,
		       r->breakdown[p].s_per_step);
	for (int c = 0; c < TFH_CLASS_COUNT; c++)
		if (r->steps.classes[c].count)
			printf("class %s count=%u time_share=%.3f median=%.6f\n", tfh_class_name(c),
			       r->steps.classes[c].count, r->steps.classes[c].time_share,
			       r->steps.classes[c].median_s);
	for (uint32_t i = 0; i < r->n_input; i++)
		printf("stage %s%s self=%.6f calls=%.2f capacity=%.2f parallelism=%u\n",
		       r->input[i].prefix, r->input[i].guilty ? " GUILTY" : "",
		       r->input[i].self_s_per_step, r->input[i].calls_per_step,
		       r->input[i].capacity_per_s, r->input[i].parallelism);
	for (uint32_t i = 0; i < r->n_transfers; i++)
		printf("transfer %s dir=%d pageable=%d calls=%.2f bytes=%.0f bw=%.3g\n",
		       r->transfers[i].fn, (int)r->transfers[i].dir, r->transfers[i].pageable,
		       r->transfers[i].calls_per_step, r->transfers[i].bytes_per_step,
		       r->transfers[i].bytes_per_s);
	for (uint32_t i = 0; i < r->n_kernels && i < 5; i++)
		printf("kernel %s calls=%.2f\n", r->kernels[i].name, r->kernels[i].calls_per_step);
	for (uint32_t i = 0; i < r->n_segments; i++)
		printf("segment %s count=%u total=%.3f\n", tfh_segment_name(r->segments[i].kind),
		       r->segments[i].count, r->segments[i].total_s);
	for (uint32_t i = 0; i < r->n_whatif; i++)
		printf("whatif remove=%s step=%.6f low=%.6f high=%.6f ceiling=%.3f\n",
		       tfh_remove_name(r->whatif[i].remove), r->whatif[i].step_s,
		       r->whatif[i].low_s, r->whatif[i].high_s, r->whatif[i].ceiling_speedup);
	const struct tfh_in_flight *f;
	for (uint32_t i = 0, n = r->run ? tfh_run_in_flight(r->run, &f) : 0; i < n; i++)
		printf("in-flight %s open=%.3f %s\n", f[i].fn, f[i].open_s, f[i].detail);
}

static void print_words(const struct tfh_wording *w)
{
	for (uint32_t i = 0; i < w->n_evidence; i++)
		printf("evidence %s\n", w->evidence[i]);
	for (uint32_t i = 0; i < w->n_advice; i++)
		printf("advice %s | %s | %s\n", w->advice[i].finding, w->advice[i].evidence,
		       w->advice[i].todo);
	for (uint32_t i = 0; i < w->n_remark; i++)
		printf("remark %s\n", w->remark[i]);
}

/* How often the calls of the run were decoded. */
static double decoded(const struct tfh_run *run)
{
	const struct tfh_process *p;
	double calls = 0;

	for (uint32_t i = 0, n = tfh_run_processes(run, &p); i < n; i++)
		calls += (double)p[i].events;
	return (double)tfh_run_unpacked(run) / calls;
}

int main(int argc, char **argv)
{
	bool steps = argc > 2 && !strcmp(argv[1], "--steps");
	const char *path = argc > 1 ? argv[argc - 1] : "";
	struct tfh_run *run;
	struct tfh_result *r;
	struct tfh_wording words;
	struct tfh_err err = {0};
	int rc = tfh_run_open(&path, argc > 1, &run, &err);

	if (!rc && (rc = tfh_analyze(run, &r, &err)))
		tfh_run_close(run);
	if (rc) {
		printf("error=%d %s\n", rc, err.text);
		return 1;
	}
	tfh_wording_make(&words, r);
	printf("class=%s cause=%s share=%.3f confidence=%s tier=%c steps=%llu total=%llu "
	       "warmup=%llu unclassified=%llu "
	       "median=%.6f clock=%s per_execution=%.1f events=%llu dropped=%llu end=%s/%d "
	       "decoded=%.1f text=%s\n",
	       tfh_class_name(r->verdict.cls),
	       r->verdict.cause >= 0 ? tfh_cause_name(r->verdict.cause) : "-", r->verdict.share,
	       tfh_confidence_name(r->verdict.confidence), r->verdict.tier,
	       (unsigned long long)r->steps.count, (unsigned long long)r->steps.total,
	       (unsigned long long)r->steps.warmup, (unsigned long long)r->steps.unclassified,
	       r->steps.median_s,
	       r->steps.clock >= 0 ? tfh_step_clock_name(r->steps.clock) : "none",
	       r->steps.per_execution, (unsigned long long)r->quality.events,
	       (unsigned long long)r->quality.dropped, r->end >= 0 ? tfh_end_name(r->end) : "?",
	       r->end_code, decoded(run), words.text);
	print_more(r);
	print_words(&words);
	for (uint64_t i = 0; steps && i < r->n_step; i++)
		print_step(&r->step[i]);
	tfh_wording_free(&words);
	tfh_result_free(r);
	tfh_run_close(run);
	return 0;
}
