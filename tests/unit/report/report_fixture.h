/*
 * A hand-made result, and a run that consists only of the answers of the model's accessors, so that
 * it is known in advance what the reports print.
 */
#ifndef TFH_TEST_REPORT_FIXTURE_H
#define TFH_TEST_REPORT_FIXTURE_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/report.h"

static const char *fixture_argv[] = {"python3", "-u", "/data/my job/train.py", "--lr", "0.1"};
static struct tfh_thread_info fixture_threads[] = {
	{.process = 0, .tid = 4711, .index = 0, .name = "python3"}};
static struct tfh_process fixture_processes[8] = {
	{.host = "node1", .exe = "python3", .pid = 4711, .rank = 3}};
static struct tfh_in_flight fixture_open[] = {
	{.fn = "cuCtxSynchronize", .thread = 0, .open_s = 12.3, .detail = "stream 7"}};
static uint32_t fixture_in_flight;

uint32_t tfh_run_command(const struct tfh_run *run, const char *const **argv)
{
	(void)run;
	*argv = fixture_argv;
	return 5;
}

bool tfh_run_is_built(const struct tfh_run *run)
{
	(void)run;
	return false;
}

const char *tfh_run_path(const struct tfh_run *run)
{
	(void)run;
	return "rec";
}

const char *tfh_run_host(const struct tfh_run *run)
{
	(void)run;
	return "node1";
}

int64_t tfh_run_wall_ns(const struct tfh_run *run)
{
	(void)run;
	return 372000000000;
}

int64_t tfh_run_start_realtime_ns(const struct tfh_run *run)
{
	(void)run;
	return 1763650800123456000; /* 2025-11-20T15:00:00.123456Z */
}

enum tfh_source tfh_run_source(const struct tfh_run *run)
{
	(void)run;
	return TFH_SRC_TFT;
}

uint32_t tfh_run_meters(const struct tfh_run *run, uint32_t process,
			const struct tfh_meter_line **out)
{
	(void)run;
	(void)process;
	*out = NULL;
	return 0;
}

uint32_t tfh_run_threads(const struct tfh_run *run, const struct tfh_thread_info **out)
{
	(void)run;
	*out = fixture_threads;
	return 1;
}

uint32_t tfh_run_processes(const struct tfh_run *run, const struct tfh_process **out)
{
	(void)run;
	*out = fixture_processes;
	return 1;
}

uint32_t tfh_run_in_flight(const struct tfh_run *run, const struct tfh_in_flight **out)
{
	(void)run;
	*out = fixture_open;
	return fixture_in_flight;
}

static struct tfh_input_stage fixture_input[] = {
	{.name = "Prefetch",
	 .prefix = "Iterator::Root::Prefetch",
	 .self_s_per_step = 0.0000012,
	 .calls_per_step = 1,
	 .capacity_per_s = NAN,
	 .async = true},
	{.name = "ParallelMapV2",
	 .prefix = "Iterator::Root::Prefetch::BatchV2::ParallelMapV2",
	 .self_s_per_step = 0.0714,
	 .calls_per_step = 32,
	 .capacity_per_s = 181.4,
	 .parallelism = 2,
	 .async = true,
	 .guilty = true},
};
static struct tfh_kernel fixture_kernels[] = {
	{.name = "void "
		 "cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_256x128_16x3_tn_align4>(Params)",
	 .calls_per_step = 96,
	 .median_s = 0.00031,
	 .s_per_step = 0.0298,
	 .share_of_busy = 0.38},
	{.name = "r_32_16",
	 .calls_per_step = 2.5,
	 .median_s = NAN,
	 .s_per_step = NAN,
	 .share_of_busy = NAN},
};
static struct tfh_transfer fixture_transfers[] = {
	{.fn = "cuMemcpyHtoDAsync_v2",
	 .dir = TFH_DIR_H2D,
	 .pageable = 1,
	 .calls_per_step = 4,
	 .bytes_per_step = 77.1e6,
	 .bytes_per_s = 7.9e9,
	 .calls = 8400,
	 .blocking_calls = 8400,
	 .where = ""},
	{.fn = "cuMemcpyDtoH_v2",
	 .dir = TFH_DIR_D2H,
	 .pageable = -1,
	 .calls_per_step = 1,
	 .bytes_per_step = 8,
	 .bytes_per_s = NAN,
	 .calls = 2100,
	 .blocking_calls = 2100,
	 .where = "train.py:40"},
};
static struct tfh_step fixture_step[] = {
	{.index = 0,
	 .start_s = 1.5,
	 .dur_s = 0.9,
	 .segment = TFH_SEGMENT_WARMUP,
	 .cls = (uint8_t)TFH_CLASS_NONE,
	 .cause = (uint8_t)TFH_CAUSE_NONE},
	{.index = 1,
	 .start_s = 2.4,
	 .dur_s = 0.174,
	 .segment = TFH_SEGMENT_TRAIN,
	 .cls = TFH_CLASS_INPUT_BOUND,
	 .cause = TFH_CAUSE_INPUT_MAP,
	 .breakdown = {0.0789f, 0.0716f, 0.0103f, 0, 0.0062f, 0.007f, 0, 0}},
};

static void fixture_numbers(struct tfh_result *r)
{
	static const double share[TFH_PART_COUNT] = {0.454, 0.411, 0.059, 0, 0.036, 0.040, 0, 0};
	static const struct tfh_class_count classes[TFH_CLASS_COUNT] = {
		[TFH_CLASS_INPUT_BOUND] =
			{2098, 0.985, 0.175, 0.302, {0.454, 0.411, 0.059, 0, 0.036, 0.040, 0, 0}},
		[TFH_CLASS_TRANSFER_BOUND] =
			{21, 0.010, 0.148, 0.160, {0.4, 0.03, 0.51, 0, 0.03, 0.03, 0, 0}},
		[TFH_CLASS_COMPUTE_BOUND] =
			{11, 0.005, 0.119, 0.121, {0.88, 0.02, 0.05, 0, 0.02, 0.03, 0, 0}},
	};

	r->steps = (struct tfh_steps){.count = 2130,
				      .warmup = 10,
				      .total = 2140,
				      .median_s = 0.174,
				      .p95_s = 0.301,
				      .total_s = 371.1,
				      .clock = TFH_STEP_CLOCK_ITERATOR,
				      .clock_name = "IteratorGetNextOp::DoCompute",
				      .per_execution = 1};
	memcpy(r->steps.classes, classes, sizeof(classes));
	for (int p = 0; p < TFH_PART_COUNT; p++)
		r->breakdown[p] = (struct tfh_share){share[p] * 0.174, share[p]};
	for (int s = 0; s < TFH_STAGE_COUNT; s++)
		r->stages[s] = (struct tfh_job_stage){NAN, NAN};
	r->stages[TFH_STAGE_COMPUTE] = (struct tfh_job_stage){0.0789, 0.0091};
	r->whatif[0] = (struct tfh_whatif){
		TFH_REMOVE_INPUT, 0.102, 0.095, 0.110, 0.0789, 1.70, 1.72, 154.0, NULL, 0};
	r->whatif[1] = (struct tfh_whatif){
		TFH_REMOVE_TRANSFER, NAN, NAN, NAN, NAN, NAN, 1.06, 21.0, NULL, 0};
	r->n_whatif = 2;
	r->segments[0] = (struct tfh_segment_sum){TFH_SEGMENT_WARMUP, 10, 14.2, NAN};
	r->segments[1] = (struct tfh_segment_sum){TFH_SEGMENT_CHECKPOINT, 3, 4.4, 700};
	r->n_segments = 2;
	r->quality = (struct tfh_quality){.events = 3100000,
					  .unattributed_share = 0,
					  .overhead_share = 0.0008,
					  .clean_end = true,
					  .gpu_times = "none",
					  .clock = "tsc",
					  .clock_residual_s = 4e-7,
					  .files = 8,
					  .files_complete = 8};
}

/* The sentences that belong to the result of fixture(). */
__attribute__((unused)) static struct tfh_wording fixture_words(const struct tfh_result *r)
{
	return (struct tfh_wording){
		.r = r,
		.text = "the training loop waits 71.6 ms of a 174 ms step for its next batch; the "
			"map stage cannot give more",
		.evidence = {"in 2,098 of 2,130 steps after warm-up",
			     "the GPU has nothing to do meanwhile"},
		.n_evidence = 2,
		.advice = {{"The map stage delivers 5.7 batches/s, the rest could take 9.8.", "",
			    "Raise num_parallel_calls of that map, or cache() after it.", 1.70, 0,
			    ""}},
		.n_advice = 1,
	};
}

static struct tfh_result fixture(void)
{
	struct tfh_result r;

	memset(&r, 0, sizeof(r));
	r.ranks = r.ranks_seen = 8;
	r.hosts = 2;
	r.end = TFH_END_EXIT;
	r.steady = r.verdict = (struct tfh_verdict){
		.cls = TFH_CLASS_INPUT_BOUND,
		.cause = TFH_CAUSE_INPUT_MAP,
		.share = 0.411,
		.confidence = TFH_CONFIDENCE_HIGH,
		.tier = 'C',
	};
	fixture_numbers(&r);
	r.input = fixture_input;
	r.n_input = 2;
	r.kernels = fixture_kernels;
	r.n_kernels = 2;
	r.transfers = fixture_transfers;
	r.n_transfers = 2;
	r.step = fixture_step;
	r.n_step = 2;
	return r;
}

/* What a report writes, as a string to be freed. Not inlined: the compiler does not see that
 * open_memstream changes `text` later, and warns. */
__attribute__((noinline)) static char *
fixture_print(void (*print)(FILE *out, const struct tfh_result *r), const struct tfh_result *r)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	print(out, r);
	fclose(out);
	return text;
}

static inline void fixture_text(FILE *out, const struct tfh_result *r)
{
	struct tfh_wording words = fixture_words(r);
	struct tfh_style style = {0};

	tfh_report_text(out, &words, &style);
}

static inline void fixture_screen(FILE *out, const struct tfh_result *r)
{
	struct tfh_wording words = fixture_words(r);
	struct tfh_style style = {0};

	tfh_report_screen(out, &words, &style);
}

/* No line exceeds 80 columns. */
static inline void fixture_lines_fit(const char *text)
{
	while (*text) {
		size_t len = strcspn(text, "\n");
		if (len > 80)
			fail_msg("%zu columns: %.*s", len, (int)len, text);
		text += len + (text[len] == '\n');
	}
}

#endif
