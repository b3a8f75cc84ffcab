/*
 * Samples (looks) divide the time of pauses by what was seen in similar pauses, within what the CPU
 * clock allows. Waiting before a copy to the device is input; the same waiting elsewhere is not.
 * Without samples nothing changes. Samples never create or lose time. Where nothing but marks is
 * recorded, those that last as long as their steps divide them likewise.
 */
#include "../analyze_gen.h"
#include "judge/chain.h"

static void sample(struct gen *g, double t, enum tft_state state, uint32_t name, uint64_t fd)
{
	struct tfh_event *ev = gen_sample(g, 0, t, state, 0, 10);

	ev->stream = name;
	ev->w[1] = fd << 32;
}

/* What a step of 20 ms does before its copy and behind its launch: 10 ms each, of which the thread
 * waits, then runs for `run`. */
struct part {
	enum tft_state state;
	double run;
	uint32_t name;
};

/* One look in every second pause, at places that cover it evenly. */
static double seen_pause(struct gen *g, double t, struct part p, double *cpu, int *phase)
{
	double at = fmod(++*phase * 6.18, 10);

	if (*phase / 2 % 2)
		sample(g, t + at, at < 10 - p.run ? p.state : TFT_STATE_RUNNING, p.name,
		       0xffffffff);
	*cpu += p.run;
	gen_cpu(g, 0, t + 10, *cpu, 0);
	return t + 10;
}

static struct tfh_result *judge(struct part before, struct part behind, bool samples)
{
	struct gen *g = gen_new();
	double t = 100, cpu = 0;
	int phase = 0;

	g->name[TFT_NAME_STRING][7] = "/logs/train.log";
	g->name[TFT_NAME_STRING][8] = "/ckpt/model.pt";
	gen_cpu(g, 0, t - 1, 0, 0);
	for (int i = 0; i < 200; i++) {
		t = seen_pause(g, t, before, &cpu, &phase);
		gen_copy(g, TFH_FN_cuMemcpyHtoD_v2, t, t + 0.5, 1 << 20, false);
		gen_call(g, 0, TFH_FN_cuLaunchKernel, t + 0.51, t + 0.52)->w[0] = 1;
		gen_call(g, 0, TFH_FN_cuStreamSynchronize, t + 0.53, t + 1);
		cpu += 0.9;
		gen_cpu(g, 0, t + 1, cpu, 0);
		t = seen_pause(g, t + 1, behind, &cpu, &phase);
		gen_call(g, 0, TFH_FN_cuLaunchKernel, t, t + 0.01)->w[0] = 2;
		gen_call(g, 0, TFH_FN_cuStreamSynchronize, t + 0.02, t + 0.2);
		cpu += 0.2;
		t += 0.2;
	}
	if (!samples) {
		size_t n = 0;
		for (size_t i = 0; i < g->n; i++)
			if (g->ev[i].kind != TFT_STATE)
				g->ev[n++] = g->ev[i];
		g->n = n;
	}
	return gen_judge(g);
}

static double ms(const struct tfh_result *r, enum tfh_cause cause)
{
	return 1e3 * r->found.cause_s[cause];
}

static void about(double value, double expected, double off)
{
	if (!(value > expected - off && value < expected + off))
		fail_msg("%g where %g was expected", value, expected);
}

static void closed(const struct tfh_result *r)
{
	double sum = 0;

	for (int p = 0; p < TFH_PART_COUNT; p++)
		sum += r->breakdown[p].share;
	about(sum, 1, 1e-6);
}

static void test_shares(void **state)
{
	(void)state;
	struct tfh_result *r = judge((struct part){TFT_STATE_PIPE, 2, 0},
				     (struct part){TFT_STATE_SLEEP, 4, 0}, true);

	about(ms(r, TFH_CAUSE_INPUT_UNKNOWN), 8, 0.6);
	about(ms(r, TFH_CAUSE_HOST_SLEEP), 6, 0.6);
	about(ms(r, TFH_CAUSE_HOST_PYTHON), 6, 1);
	about(ms(r, TFH_CAUSE_HOST_UNKNOWN), 0, 0.3);
	assert_true(r->found.seen.samples > 150);
	closed(r);
	tfh_result_free(r);
}

/* The same waits behind the batch's copy are no input. */
static void test_elsewhere(void **state)
{
	(void)state;
	struct tfh_result *r = judge((struct part){TFT_STATE_GIL, 5, 0},
				     (struct part){TFT_STATE_PIPE, 5, 0}, true);

	about(ms(r, TFH_CAUSE_HOST_GIL), 5, 0.6);
	about(ms(r, TFH_CAUSE_HOST_WAIT), 5, 0.6);
	about(ms(r, TFH_CAUSE_INPUT_UNKNOWN), 0, 0.1);
	closed(r);
	tfh_result_free(r);
}

static void test_files(void **state)
{
	(void)state;
	struct tfh_result *r = judge((struct part){TFT_STATE_READ, 1, 0},
				     (struct part){TFT_STATE_WRITE, 1, 8}, true);

	about(ms(r, TFH_CAUSE_INPUT_READ), 9, 0.6);
	about(ms(r, TFH_CAUSE_HOST_CHECKPOINT), 9, 0.6);
	tfh_result_free(r);
	r = judge((struct part){TFT_STATE_LOCK, 1, 0}, (struct part){TFT_STATE_WRITE, 1, 7}, true);
	about(ms(r, TFH_CAUSE_INPUT_UNKNOWN), 9, 0.6);
	about(ms(r, TFH_CAUSE_HOST_LOGGING), 9, 0.6);
	closed(r);
	tfh_result_free(r);
}

static void test_without(void **state)
{
	(void)state;
	struct tfh_result *r = judge((struct part){TFT_STATE_PIPE, 2, 0},
				     (struct part){TFT_STATE_SLEEP, 4, 0}, false);

	about(ms(r, TFH_CAUSE_HOST_UNKNOWN), 20, 1);
	assert_int_equal(r->found.seen.samples, 0);
	tfh_result_free(r);
}

static struct tfh_chain *sampled_with; /* attached to the feed of sampled_pauses() */

/* 100 steps of 10 ms that pause at their end; in each of the first `looks` pauses one look, of ten in a row `ones` at `one` and the rest at
 * `other`. */
static struct tfh_result *sampled_pauses(double pause, int samples, int ones, enum tft_state one,
					 enum tft_state other)
{
	struct gen *g = gen_new();

	for (int i = 0; i < 100; i++) {
		double t = 100 + 10.0 * i, end = t + 10 - pause;
		gen_call(g, 0, TFH_FN_cuLaunchKernel, t, t + 0.01)->w[0] = 1;
		gen_call(g, 0, TFH_FN_cuStreamSynchronize, t + 0.02, end);
		if (i < samples)
			sample(g, end + pause * (0.15 + 0.075 * (i % 10)),
			       i * 3 % 10 < ones ? one : other, 0, 0xffffffff);
	}
	g->feed.chain = sampled_with;
	return gen_judge(g);
}

/* What enough samples saw is the verdict. Where they saw too little, computing is, if it takes more; where there are none, nothing is
 * known against the host. Two causes of which neither leads leave doubt. */
static void test_borne_out(void **state)
{
	(void)state;
	static const struct {
		int samples;
		enum tft_state one, other;
		enum tfh_class cls;
		enum tfh_confidence confidence;
	} row[] = {
		{40, TFT_STATE_SLEEP, TFT_STATE_SLEEP, TFH_CLASS_HOST_BOUND, TFH_CONFIDENCE_HIGH},
		{40, TFT_STATE_OTHER, TFT_STATE_OTHER, TFH_CLASS_COMPUTE_BOUND,
		 TFH_CONFIDENCE_MEDIUM},
		{3, TFT_STATE_SLEEP, TFT_STATE_SLEEP, TFH_CLASS_COMPUTE_BOUND,
		 TFH_CONFIDENCE_MEDIUM},
		{40, TFT_STATE_SLEEP, TFT_STATE_LOCK, TFH_CLASS_HOST_BOUND, TFH_CONFIDENCE_MEDIUM},
		{0, TFT_STATE_SLEEP, TFT_STATE_SLEEP, TFH_CLASS_HOST_BOUND, TFH_CONFIDENCE_HIGH},
	};

	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct tfh_result *r =
			sampled_pauses(2, row[i].samples, 5, row[i].one, row[i].other);
		if (r->verdict.cls != row[i].cls || r->verdict.confidence != row[i].confidence)
			fail_msg("row %zu: %s %d", i, tfh_class_name(r->verdict.cls),
				 (int)r->verdict.confidence);
		assert_int_equal(r->verdict.n_also, row[i].cls == TFH_CLASS_COMPUTE_BOUND);
		assert_int_equal(r->steps.classes[row[i].cls].count, r->steps.count);
		tfh_result_free(r);
	}
}

/* 40 steps on the processor: a batch, 8 ops of 30 us each that are 45 us apart or, where they follow at once, a pause of 0.6 ms behind them.
 * In the first `looks` steps one look, at the thread running in the pauses. */
static struct tfh_result *on_processor(bool apart, int samples)
{
	struct gen *g = gen_new();

	g->name[TFT_NAME_FUNCTION][1] = "MatMul";
	for (int i = 0; i < 40; i++) {
		double t = 100 + (apart ? 0.66 : 0.89) * i;
		gen_get(g, 0, 1, 1, t, t + 0.01);
		for (int k = 0; k < 8; k++, t += apart ? 0.075 : 0.03)
			gen_exec(g, 1, t + 0.05, t + 0.08);
		if (i < samples)
			sample(g, t + 0.05 + (apart ? -0.02 : 0.5), TFT_STATE_RUNNING, 0,
			       0xffffffff);
	}
	return gen_judge(g);
}

/* Without a device nothing is launched: only samples tell that what passes between ops is their issue, and ten must. Where a pause stands tells
 * that it is behind the step, but not what is done there: without ten samples that is not sure, either. */
static void test_few_samples(void **state)
{
	(void)state;
	static const struct {
		bool apart;
		int samples;
		enum tfh_cause cause;
		enum tfh_confidence confidence;
	} row[] = {
		{true, 30, TFH_CAUSE_HOST_LAUNCH, TFH_CONFIDENCE_HIGH},
		{true, 7, TFH_CAUSE_HOST_LAUNCH, TFH_CONFIDENCE_MEDIUM},
		{false, 30, TFH_CAUSE_HOST_CALLBACK, TFH_CONFIDENCE_HIGH},
		{false, 7, TFH_CAUSE_HOST_CALLBACK, TFH_CONFIDENCE_MEDIUM},
	};

	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct tfh_result *r = on_processor(row[i].apart, row[i].samples);
		gen_expect(r, TFH_CLASS_HOST_BOUND, row[i].cause);
		if (r->verdict.confidence != row[i].confidence)
			fail_msg("row %zu: confidence %d", i, (int)r->verdict.confidence);
		tfh_result_free(r);
	}
}

/* What several causes take together is no verdict where computing takes more: no single fix gains it. It is one where a single cause takes
 * 15 %, or all of them a fifth. */
static void test_spread(void **state)
{
	(void)state;
	static const struct {
		double pause;
		int ones;
		enum tfh_class cls;
	} row[] = {
		{1.8, 7, TFH_CLASS_COMPUTE_BOUND},
		{1.8, 10, TFH_CLASS_HOST_BOUND},
		{2.2, 7, TFH_CLASS_HOST_BOUND},
	};

	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct tfh_result *r = sampled_pauses(row[i].pause, 100, row[i].ones,
						      TFT_STATE_SLEEP, TFT_STATE_LOCK);
		if (r->verdict.cls != row[i].cls)
			fail_msg("row %zu: %s", i, tfh_class_name(r->verdict.cls));
		bool spread = row[i].cls == TFH_CLASS_COMPUTE_BOUND;
		about(r->verdict.share, (spread ? 10 - row[i].pause : row[i].pause) / 10, 0.01);
		assert_int_equal(r->verdict.confidence,
				 spread ? TFH_CONFIDENCE_MEDIUM : TFH_CONFIDENCE_HIGH);
		assert_true(spread ==
			    (r->verdict.n_also && r->verdict.also[0] == TFH_CLASS_HOST_BOUND));
		tfh_result_free(r);
	}
}

/* What a step waited for, moment by moment, has each part of the step's account with its time: samples divide its
 * pauses in both. Here 2 ms of 10, of which half was asleep and half behind a lock. */
static void test_chain_as_account(void **state)
{
	(void)state;
	struct tfh_chain chain;
	double sleep = 0, lock = 0, all = 0;

	tfh_chain_init(&chain, 0, 50);
	sampled_with = &chain;
	struct tfh_result *r = sampled_pauses(2, 100, 5, TFT_STATE_SLEEP, TFT_STATE_LOCK);
	sampled_with = NULL;
	for (size_t i = 0; i < chain.link.n; i++) {
		const struct tfh_link *l = &chain.link.v[i];
		double ms = (double)(l->t1 - l->t0) / 1e6;
		sleep += l->cause == TFH_CAUSE_HOST_SLEEP ? ms : 0;
		lock += l->cause == TFH_CAUSE_HOST_LOCK ? ms : 0;
		all += ms;
	}
	about(all, 10, 0.01);
	about(sleep, 1, 0.02);
	about(lock, 1, 0.02);
	about(sleep, ms(r, TFH_CAUSE_HOST_SLEEP), 0.02);
	tfh_chain_free(&chain);
	tfh_result_free(r);
}

/* Seconds of the 4 s by which the 51st step pauses that are charged to sleeping. In all other pauses the thread runs, by its CPU clock; it is read at a
 * pause's end, at the long one's end `late` ms before the call (0: not at all). */
static double slept_s(double late)
{
	struct gen *g = gen_new();
	struct tfh_chain chain;
	double t = 100, cpu = 0, sleep = 0;

	tfh_chain_init(&chain, 0, 51);
	for (int i = 0; i < 100; i++) {
		double pause = i == 50 ? 4000 : 2;
		gen_call(g, 0, TFH_FN_cuLaunchKernel, t, t + 0.01)->w[0] = 1;
		gen_call(g, 0, TFH_FN_cuStreamSynchronize, t + 0.02, t + 8);
		gen_cpu(g, 0, t + 8, cpu, 0);
		for (int k = 0; i == 50 && k < 60; k++)
			sample(g, t + 10 + 66.0 * k, TFT_STATE_SLEEP, 0, 0xffffffff);
		if (i % 2)
			sample(g, t + 9, TFT_STATE_RUNNING, 0, 0xffffffff);
		t += 8 + pause;
		cpu += 2;
		if (i != 50 || late > 0)
			gen_cpu(g, 0, t - (i == 50 ? late : 0.001), cpu, 0);
	}
	g->feed.chain = &chain;
	struct tfh_result *r = gen_judge(g);
	for (size_t i = 0; i < chain.link.n; i++)
		if (chain.link.v[i].cause == TFH_CAUSE_HOST_SLEEP)
			sleep += (double)(chain.link.v[i].t1 - chain.link.v[i].t0) / 1e9;
	tfh_chain_free(&chain);
	tfh_result_free(r);
	return sleep;
}

/* What samples saw in a pause of another length than all others is not overruled by what the CPU clock tells of those, whether the pause has a reading
 * too early to be its own (the thread lost its CPU between the reading and the call) or none. */
static void test_stall(void **state)
{
	(void)state;
	about(slept_s(2), 4, 0.3);
	about(slept_s(0), 4, 0.3);
}

static const gen_stack at_fsync[] = {
	[9] = {{"<builtin>", "fsync", 0, true}, {"/job/train.py", "note", 12, false}},
};

/* 100 steps that compute for 8 ms and are for 4 in one line of Python; of its looks one in six saw the thread wait in the system call `call`, the
 * others saw it run there, or at another line. The CPU clock says that it ran for 3 ms. named: CPython tells that the line calls fsync(). */
static struct tfh_result *writing(uint64_t call, bool same_line, bool named)
{
	struct gen *g = gen_new();
	double cpu = 0;

	if (named)
		GEN_STACKS(&g->feed, at_fsync);
	g->name[TFT_NAME_STRING][7] = "/logs/train.log";
	for (int i = 0; i < 100; i++) {
		double t = 100 + 12.0 * i;
		gen_call(g, 0, TFH_FN_cuLaunchKernel, t, t + 0.01)->w[0] = 1;
		gen_call(g, 0, TFH_FN_cuStreamSynchronize, t + 0.02, t + 8);
		gen_cpu(g, 0, t + 8.001, cpu, 0);
		bool waits = i % 6 == 0;
		sample(g, t + 8.3 + 0.3 * (i % 10), waits ? TFT_STATE_WRITE : TFT_STATE_RUNNING,
		       waits ? 7 : 0, waits ? 3 : 0xffffffff);
		g->ev[g->n - 1].w[1] |= waits ? call : 0xffff;
		g->ev[g->n - 1].stack = waits || same_line ? 9 : 10;
		cpu += 3;
		gen_cpu(g, 0, t + 12, cpu, 0);
	}
	return gen_judge(g);
}

/* A thread that was seen to wait in fsync() at a line is in it, too, when it runs there: the kernel works, or waits for a processor. Not so at
 * another line, or where it waited in write(): what the line makes and what it writes are both in it. Where the line is known to call fsync(),
 * the file that the waits tell of still decides what is written. */
static void test_written_through(void **state)
{
	(void)state;
	enum { WRITE = 1, FSYNC = 74 };
	struct tfh_result *through = writing(FSYNC, true, false),
			  *elsewhere = writing(FSYNC, false, false),
			  *written = writing(WRITE, true, false),
			  *named = writing(FSYNC, true, true);

	about(ms(through, TFH_CAUSE_HOST_LOGGING), 4, 0.3);
	about(ms(through, TFH_CAUSE_HOST_PYTHON), 0, 0.3);
	assert_true(ms(elsewhere, TFH_CAUSE_HOST_PYTHON) > 2.5);
	assert_true(ms(written, TFH_CAUSE_HOST_PYTHON) > 2.5);
	about(ms(named, TFH_CAUSE_HOST_LOGGING), 4, 0.3);
	about(ms(named, TFH_CAUSE_HOST_CHECKPOINT), 0, 0.3);
	closed(through);
	tfh_result_free(named);
	tfh_result_free(through);
	tfh_result_free(elsewhere);
	tfh_result_free(written);
}

static void test_scopes(void **state)
{
	(void)state;
	struct gen *g = gen_new();
	double t = 100, cpu = 0;
	int phase = 0;

	gen_cpu(g, 0, t - 1, 0, 0);
	for (int i = 0; i < 400; i++) {
		double begin = t;
		t = seen_pause(g, t, (struct part){TFT_STATE_LOCK, 2, 0}, &cpu, &phase);
		gen_call(g, 0, TFH_FN_mark_step, begin, t)->kind = TFT_MARK;
		t += 0.005;
	}
	struct tfh_result *r = gen_judge(g);
	assert_int_equal(r->steps.total, 400);
	about(ms(r, TFH_CAUSE_HOST_LOCK), 8, 0.6);
	about(ms(r, TFH_CAUSE_HOST_PYTHON) + ms(r, TFH_CAUSE_HOST_CODE), 2, 0.6);
	tfh_result_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shares),	    cmocka_unit_test(test_borne_out),
		cmocka_unit_test(test_elsewhere),   cmocka_unit_test(test_files),
		cmocka_unit_test(test_without),	    cmocka_unit_test(test_written_through),
		cmocka_unit_test(test_spread),	    cmocka_unit_test(test_chain_as_account),
		cmocka_unit_test(test_few_samples), cmocka_unit_test(test_scopes),
		cmocka_unit_test(test_stall),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
