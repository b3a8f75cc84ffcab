#include "record/gpu/gpu_plan.h"

#include <string.h>

#include "record/ring/journal.h"
#include "record/ring/switch.h"

#define SECOND_NS 1000000000ull
/* CUPTI starts as many steps ahead as take this long. */
#define LEAD_SECONDS 2
#define MARGIN 2
#define LEAD_LEAST (MARGIN + 2)
#define TRAIL_NS (3 * SECOND_NS)

enum plan_state { NONE, WAITING, LEADING, OPEN, TRAILING };

static struct {
	enum plan_state state;
	bool off;
	uint64_t asked; /* the requested step: another one in the journal replaces the request */
	uint64_t first, last; /* last UINT64_MAX: no end */
	uint64_t pace;	      /* most steps in a second so far */
	uint64_t pace_ns, pace_steps;
	uint64_t trail_ns; /* when TRAILING began */
} plan;
static uint32_t wants; /* atomic */

static void enter(enum plan_state state)
{
	plan.state = state;
	__atomic_store_n(&wants, !plan.off && (state == LEADING || state == OPEN),
			 __ATOMIC_RELEASE);
}

static uint64_t saturating(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* The first step that can be obeyed in full: the present one is already running. */
static uint64_t next_step(bool off)
{
	return tfh_steps_seen() + (tfh_count_after(1) == 1 ? 2 : 1) + (off ? 0 : MARGIN);
}

static void await(uint64_t begin, uint64_t end)
{
	tfh_await_step(TFH_AWAITED_BEGIN, begin);
	tfh_await_step(TFH_AWAITED_END, end);
}

void tfh_gpu_plan_take(void)
{
	struct tft_journal *head = tfh_journal.head;
	uint64_t control = __atomic_load_n(&head->control, __ATOMIC_ACQUIRE), next;
	uint64_t count = __atomic_load_n(&head->at_count, __ATOMIC_RELAXED), since;

	memset(&plan, 0, sizeof(plan));
	plan.off = control & TFT_CTL_GPU_OFF_AT;
	next = next_step(plan.off);
	plan.asked = __atomic_load_n(&head->at_step, __ATOMIC_ACQUIRE);
	plan.first = plan.asked > next ? plan.asked : next;
	plan.last = plan.off ? plan.first - 1
		    : count  ? saturating(plan.first, count - 1)
			     : UINT64_MAX;
	head->steps = tfh_steps_seen();
	plan.pace_ns = (uint64_t)tfh_clock_ns(CLOCK_MONOTONIC);
	plan.pace_steps = tfh_steps_seen();
	since = plan.pace_ns - tfh_recorder.first.monotonic_ns;
	plan.pace = plan.pace_steps / (since / SECOND_NS + 1);
	enter(WAITING);
	__atomic_store_n(&head->at_answer, plan.first, __ATOMIC_RELEASE);
	__atomic_and_fetch(&head->control, ~(uint64_t)(TFT_CTL_GPU_ON_AT | TFT_CTL_GPU_OFF_AT),
			   __ATOMIC_ACQ_REL);
}

static bool near(uint64_t now_ns)
{
	uint64_t steps = tfh_steps_seen(), ns = now_ns - plan.pace_ns;

	if (ns >= SECOND_NS) {
		uint64_t pace = (uint64_t)((double)(steps - plan.pace_steps) * 1e9 / (double)ns);
		plan.pace = pace > plan.pace ? pace : plan.pace;
		plan.pace_ns = now_ns;
		plan.pace_steps = steps;
	}
	return plan.first <= saturating(steps, LEAD_LEAST + LEAD_SECONDS * plan.pace);
}

/* From now on the control word itself says what was requested for step N. */
static void keep(uint32_t set, uint32_t clear)
{
	uint64_t *control = &tfh_journal.head->control;

	__atomic_and_fetch(control, ~(uint64_t)clear, __ATOMIC_ACQ_REL);
	__atomic_or_fetch(control, set, __ATOMIC_ACQ_REL);
}

/* Starts CUPTI early: a step can be judged only if all ops since the end of the step but one before
 * it are known. */
static enum tfh_gpu_event leads(void)
{
	await(plan.first > MARGIN ? plan.first - MARGIN : 0,
	      plan.last == UINT64_MAX ? UINT64_MAX : tfh_count_after(plan.last));
	enter(plan.off ? OPEN : LEADING);
	return plan.off ? TFH_GPU_EVENT_NONE : TFH_GPU_EVENT_LEADS;
}

static enum tfh_gpu_event begins(uint64_t *tick)
{
	*tick = tfh_awaited_step(TFH_AWAITED_BEGIN).begin;
	if (plan.last == UINT64_MAX)
		keep(TFT_CTL_GPU_ON, TFT_CTL_GPU_OFF);
	enter(plan.last == UINT64_MAX ? NONE : OPEN);
	return TFH_GPU_EVENT_BEGINS;
}

static enum tfh_gpu_event ends(uint64_t now_ns, uint64_t *tick)
{
	*tick = tfh_awaited_step(TFH_AWAITED_END).end;
	if (plan.off)
		keep(TFT_CTL_GPU_OFF, TFT_CTL_GPU_ON);
	plan.trail_ns = now_ns;
	await(tfh_steps_seen() + 1, UINT64_MAX);
	enter(TRAILING);
	return TFH_GPU_EVENT_ENDS;
}

enum tfh_gpu_event tfh_gpu_plan_poll(uint64_t now_ns, uint64_t *tick)
{
	bool begun = tfh_awaited_step(TFH_AWAITED_BEGIN).end;

	if (plan.state == NONE)
		return TFH_GPU_EVENT_NONE;
	if (__atomic_load_n(&tfh_journal.head->at_step, __ATOMIC_ACQUIRE) != plan.asked) {
		enter(NONE); /* withdrawn */
		return TFH_GPU_EVENT_NONE;
	}
	if (plan.state == WAITING && near(now_ns))
		return leads();
	if (plan.state == LEADING && begun)
		return begins(tick);
	if (plan.state == OPEN && tfh_awaited_step(TFH_AWAITED_END).end)
		return ends(now_ns, tick);
	if (plan.state == TRAILING && (begun || now_ns - plan.trail_ns > TRAIL_NS))
		enter(NONE);
	return TFH_GPU_EVENT_NONE;
}

bool tfh_gpu_plan_wants(void)
{
	return __atomic_load_n(&wants, __ATOMIC_ACQUIRE);
}

bool tfh_gpu_plan_waits(void)
{
	return plan.state == WAITING;
}

bool tfh_gpu_plan_leads(void)
{
	return plan.state == LEADING;
}

bool tfh_gpu_plan_trails(void)
{
	return plan.state == TRAILING;
}

uint64_t tfh_gpu_plan_until(uint64_t until)
{
	uint64_t end = tfh_awaited_step(TFH_AWAITED_END).end, last = end ? end : tfh_last_step();

	return plan.state == OPEN && (int64_t)(until - last) > 0 ? last : until;
}

bool tfh_gpu_plan_counting(void)
{
	return plan.state > WAITING;
}

void tfh_gpu_plan_forget(void)
{
	memset(&plan, 0, sizeof(plan));
	wants = 0;
}
