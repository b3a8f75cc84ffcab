/*
 * What must hold for any job: random steps of get-nexts, copies, kernels on several streams,
 * events, waits, graphs, allocations and pauses. Accounts add up, shares lie between 0 and 1, and
 * predictions lie in their intervals and above their floors. Removing everything but compute gains
 * at least as much as any single removal, and removing something that a job does not have gains
 * nothing. (Removing something that blocks nothing may gain: what follows it on its thread may then
 * hide behind the computing instead.)
 */
#include <inttypes.h>

#include "devgen.h"

#define JOBS 1000
#define ROW_JOBS 100
#define STEPS 40
#define VERBS 12

static uint64_t seed;

static uint32_t draw(uint32_t n)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(seed >> 33) % n;
}

/* Between a and b, more often small. */
static double spread(double a, double b)
{
	double x = draw(1 << 20) / (double)(1 << 20);

	return a * pow(b / a, x);
}

struct verb {
	uint32_t what, stream, event, n, every;
	double ms;
};

static struct verb any_verb(uint32_t streams)
{
	return (struct verb){.what = draw(12),
			     .stream = 1 + draw(streams),
			     .event = draw(4),
			     .n = 1 + draw(40),
			     .every = draw(4) ? 1 : 1 + draw(9),
			     .ms = spread(3 * US, 8)};
}

static void act(struct dg *d, const struct verb *v, double ms)
{
	switch (v->what) {
	case 0:
		dg_get(d, 0, ms);
		break;
	case 1:
		dg_copy(d, 0, v->stream, draw(2) ? TFH_DIR_H2D : TFH_DIR_D2H, 1 << 16, ms);
		break;
	case 2:
		dg_copy_blocking(d, 0, v->stream, v->n % 2 ? TFH_DIR_H2D : TFH_DIR_D2H, 1 << 16,
				 ms);
		break;
	case 3:
		dg_record(d, 0, v->event, v->stream);
		break;
	case 4:
		dg_wait(d, 0, v->stream, v->event);
		break;
	case 5:
		dg_sync(d, 0, v->stream);
		break;
	case 6:
		dg_sync_event(d, 0, v->event);
		break;
	case 7:
		dg_code(d, 0, ms);
		break;
	case 8:
		dg_graph(d, 0, v->stream, (int)v->n, ms / v->n, 2 * US);
		break;
	case 9:
		dg_call(d, 0, TFH_FN_cuMemAlloc_v2, ms / 10)->w[0] = 1 << 20;
		break;
	case 10:
		dg_collective(d, 0, v->stream, ms);
		break;
	default:
		for (uint32_t k = 0; k < v->n; k++)
			dg_launch(d, 0, v->stream, ms / v->n);
	}
}

/* Every step: a batch, some of the verbs, a kernel, and a wait now and then. */
static struct dg *make_job(uint64_t number, bool has[TFH_REMOVE_COUNT])
{
	struct dg *d = dg_new();
	struct verb verb[VERBS];

	seed = number * 0x9e3779b97f4a7c15ull + 1;
	uint32_t n = 1 + draw(VERBS - 1), streams = 1 + draw(3), lag = draw(3);
	double get = spread(10 * US, 5), kernel = spread(20 * US, 8), shake = draw(2) ? 0 : 0.3;
	for (uint32_t i = 0; i < n; i++)
		verb[i] = any_verb(streams);
	for (uint32_t i = 0; i < n; i++) {
		has[TFH_REMOVE_TRANSFER] |= verb[i].what == 1 || verb[i].what == 2;
		has[TFH_REMOVE_COMMUNICATION] |= verb[i].what == 10;
	}
	for (uint32_t i = 0; i < STEPS; i++) {
		dg_get(d, 0, get);
		for (uint32_t k = 0; k < n; k++)
			if (i % verb[k].every == 0)
				act(d, &verb[k], verb[k].ms * (1 + shake * (draw(100) / 50.0 - 1)));
		dg_launch(d, 0, 1, kernel);
		if (!lag) {
			dg_sync_all(d, 0);
		} else {
			dg_record(d, 0, 10 + i % 8, 1);
			if (i >= lag)
				dg_sync_event(d, 0, 10 + (i - lag) % 8);
		}
	}
	return d;
}

static struct tfh_result *job(uint64_t number, bool has[TFH_REMOVE_COUNT])
{
	return dg_judge(make_job(number, has));
}

static bool sound(const struct tfh_whatif *w, double step)
{
	bool point = !isnan(w->step_s);
	double near = 1e-9 * step;

	return w->low_s >= 0 && w->low_s <= w->high_s && w->high_s <= step + near &&
	       w->floor_s >= 0 && w->floor_s <= w->low_s + near &&
	       (isnan(w->ceiling_speedup) || w->ceiling_speedup >= 1) && isfinite(w->high_s) &&
	       (!point || (w->low_s <= w->step_s && w->step_s <= w->high_s &&
			   fabs(w->speedup * w->step_s - step) < 1e-6 * step &&
			   w->speedup <= w->ceiling_speedup * (1 + 1e-9)));
}

static void check_shares(const struct tfh_result *r)
{
	for (int p = 0; p < TFH_PART_COUNT; p++)
		assert_true(r->breakdown[p].share >= 0 && r->breakdown[p].share <= 1 &&
			    r->breakdown[p].s_per_step >= 0);
	assert_true(r->verdict.share >= 0 && r->verdict.share <= 1);
	for (int c = 0; c < TFH_CLASS_COUNT; c++)
		assert_true(r->steps.classes[c].count == 0 ||
			    (r->steps.classes[c].time_share >= 0 &&
			     r->steps.classes[c].time_share <= 1));
	for (uint32_t i = 0; i < r->n_kernels; i++)
		assert_true(r->kernels[i].share_of_busy >= 0 && r->kernels[i].share_of_busy <= 1);
	for (int s = 0; s < TFH_STAGE_COUNT; s++)
		assert_true(!(r->stages[s].exposed_s < 0) && !(r->stages[s].hidden_s < 0));
}

static void test_any_job(void **state)
{
	(void)state;
	uint32_t judged = 0, points = 0, bad = 0;

	for (uint64_t k = 1; k <= JOBS; k++) {
		bool has[TFH_REMOVE_COUNT] = {0};
		has[TFH_REMOVE_INPUT] = has[TFH_REMOVE_LAUNCH] = has[TFH_REMOVE_HOST] = true;
		has[TFH_REMOVE_SYNC] = has[TFH_REMOVE_EVERYTHING_BUT_COMPUTE] = true;
		struct tfh_result *r = job(k, has);
		double step = dg_step_ms(r) / 1e3;
		gen_closed(r);
		if (r->verdict.tier != 'A' || !(step > 0)) {
			tfh_result_free(r);
			continue;
		}
		judged++;
		check_shares(r);
		const struct tfh_whatif *all = dg_whatif(r, TFH_REMOVE_EVERYTHING_BUT_COMPUTE);
		bool given = false; /* the recorded steps could be timed anew */
		for (uint32_t i = 0; i < r->n_whatif; i++) {
			const struct tfh_whatif *w = &r->whatif[i];
			bool point = !isnan(w->step_s);
			given |= point;
			points += point;
			bool more = all && point && !isnan(all->step_s) &&
				    all->step_s > w->step_s * 1.01;
			if (sound(w, step) && !more)
				continue;
			bad++;
			print_message(
				"job %u: without %s %.4f (%.4f to %.4f) of %.4f ms, floor %.4f, "
				"ceiling %.3f; nothing but computing: %.4f\n",
				(unsigned)k, tfh_remove_name(w->remove), w->step_s * 1e3,
				w->low_s * 1e3, w->high_s * 1e3, step * 1e3, w->floor_s * 1e3,
				w->ceiling_speedup, all ? all->step_s * 1e3 : NAN);
		}
		for (int what = 0; what < TFH_REMOVE_COUNT && given; what++) {
			if (has[what] || !(fabs(r->need_s[what] - step) > 0.1 * step))
				continue; /* rare far steps are cut */
			bad++;
			print_message("job %u: there is no %s; without it %.4f of %.4f ms\n",
				      (unsigned)k, tfh_remove_name(what), r->need_s[what] * 1e3,
				      step * 1e3);
		}
		tfh_result_free(r);
	}
	print_message("%u of %u jobs judged from device times, %u points\n", judged, JOBS, points);
	assert_int_equal(bad, 0);
	assert_true(judged > JOBS * 3 / 4 && points > judged);
}

/* All steps of a job as text, with or without device times, whose events are read one by one, or
 * several at hand. */
static char *steps_of(uint64_t number, bool timed, bool rows)
{
	bool has[TFH_REMOVE_COUNT] = {0};
	struct dg *d = make_job(number, has);
	struct tfh_err err = {0};
	struct tfh_result *r;
	size_t length;
	char *text;
	FILE *out = open_memstream(&text, &length);

	const struct tfh_feed *made = dg_feed(d);
	struct tfh_feed feed = *made;
	if (!rows)
		feed.peek = NULL;
	if (!timed) {
		feed.gpu = NULL;
		feed.rewind_ops = feed.rewind_brief = NULL;
		feed.next_op = NULL;
		feed.borrow_op = NULL;
		feed.ops_error = NULL;
	}
	assert_int_equal(tfh_analyze_feed(&feed, &r, &err), 0);
	for (uint64_t i = 0; i < r->n_step; i++) {
		const struct tfh_step *s = &r->step[i];
		fprintf(out, "%.9f %.9f %c %d %d %d", s->start_s, s->dur_s, s->tier, s->segment,
			s->cls, s->cause);
		for (int p = 0; p < TFH_PART_COUNT; p++)
			fprintf(out, " %.9f", (double)s->breakdown[p]);
		fprintf(out, "\n");
	}
	for (uint32_t i = 0; i < r->n_kernels; i++)
		fprintf(out, "%s %f\n", r->kernels[i].name, r->kernels[i].calls_per_step);
	fprintf(out, "%" PRIu64 "\n", r->quality.events);
	fclose(out);
	tfh_result_free(r);
	dg_free(d);
	return text;
}

/* Launches at hand are read in rows, which changes no step. */
static void test_rows(void **state)
{
	(void)state;
	for (uint64_t k = 1; k <= ROW_JOBS; k++)
		for (int timed = 0; timed < 2; timed++) {
			char *rows = steps_of(k, timed, true), *single = steps_of(k, timed, false);
			assert_string_equal(rows, single);
			free(rows);
			free(single);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_any_job),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
