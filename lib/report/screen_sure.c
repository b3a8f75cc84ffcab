/* The first screen: what the result is based on. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/print.h"
#include "report/text_parts.h"

struct sentence {
	char text[TFH_SURE];
	size_t n;
};

__attribute__((format(printf, 2, 3))) static void say(struct sentence *s, const char *fmt, ...)
{
	va_list args;
	int n;

	if (s->n && s->n < sizeof(s->text))
		s->n += (size_t)snprintf(s->text + s->n, sizeof(s->text) - s->n, "; ");
	if (s->n >= sizeof(s->text))
		return;
	va_start(args, fmt);
	n = vsnprintf(s->text + s->n, sizeof(s->text) - s->n, fmt, args);
	va_end(args);
	s->n += n > 0 ? (size_t)n : 0;
}

static void say_steps(struct sentence *s, const struct tfh_result *r)
{
	/* If the verdict is about something else that recurs, the steps have their own class. */
	enum tfh_class cls = r->lead ? r->steady.cls : r->verdict.cls;
	char a[TFH_TEXT], b[TFH_TEXT];

	const struct tfh_class_count *k = cls == TFH_CLASS_NONE ? NULL : &r->steps.classes[cls];

	if (!r->steps.count || (k && !k->count)) {
		say(s, "no step could be judged");
		return;
	}
	if (!k)
		return;
	/* The verdict may be that of a few long steps with most of the time, or of one step in each
	 * round. That the other steps have another class is then no reason for doubt. */
	if (!r->lead && 2 * k->count < r->steps.count && (k->time_share > 0.5 || r->steps.rounds))
		say(s, "%s of %s steps are %s", tfh_fmt_count(a, k->count),
		    tfh_fmt_count(b, r->steps.count), tfh_class_name(cls));
	else
		say(s, "%s of %s %s%s%s", tfh_fmt_count(a, k->count),
		    tfh_fmt_count(b, r->steps.count),
		    r->lead && r->steps.count < r->steps.total ? "judged " : "",
		    r->steps.count == 1 ? "step agrees" : "steps agree",
		    r->lead ? " on the steps' class" : "");
	if (k->count < r->steps.count)
		s->n += (size_t)snprintf(s->text + s->n, sizeof(s->text) - s->n, ", %s of %s",
					 tfh_fmt_share(a, k->time_share), tfh_training_words(r));
}

static void say_times(struct sentence *s, const struct tfh_result *r)
{
	const struct tfh_findings *f = &r->found;
	char a[TFH_TEXT], b[TFH_TEXT];

	if (r->verdict.tier != 'C' && f->windows_timed < f->windows)
		say(s, "device times of %s of all %s (tier %c)", tfh_fmt_count(a, f->windows_timed),
		    tfh_fmt_count(b, f->windows), r->verdict.tier);
	else if (r->verdict.tier != 'C')
		say(s, "device times of all (tier %c)", r->verdict.tier);
	else if (f->cpu_only)
		say(s, f->imported ? "the trace shows no device (tier C)"
				   : "no device was used (tier C)");
	else if (f->device_times && r->steps.count)
		say(s, "device times of no step (tier C)");
	else if (f->no_device_times && *f->no_device_times)
		say(s, "no device times (tier C), %s", f->no_device_times);
	else if (!f->device_times)
		say(s, "no device times (tier C)");
}

static void say_records(struct sentence *s, const struct tfh_result *r)
{
	const struct tfh_quality *q = &r->quality;
	char a[TFH_TEXT], b[TFH_TEXT];

	if (q->dropped)
		say(s, "%s of %s records lost", tfh_fmt_count(a, q->dropped),
		    tfh_fmt_count(b, q->events + q->dropped));
	else
		say(s, "0 records lost");
	if (q->files_complete < q->files)
		say(s, "%u of %u files complete", q->files_complete, q->files);
	if (q->holes)
		say(s, "records missing in %u place%s", q->holes, q->holes == 1 ? "" : "s");
	if (r->ranks_seen < r->ranks)
		say(s, "%u of %u ranks recorded", r->ranks_seen, r->ranks);
}

void tfh_sure_words(const struct tfh_result *r, char out[TFH_SURE])
{
	const struct tfh_quality *q = &r->quality;
	struct sentence s = {.n = 0};
	char share[TFH_TEXT];

	if (r->found.sampled.samples) {
		const struct tfh_step_loop *l = &r->found.sampled.loop;
		const char *by = l->counter ? "a variable of its loop" : "its loop's iterator";

		say(&s, "%s samples of %s, from outside",
		    tfh_fmt_count(share, r->found.sampled.samples),
		    r->found.sampled.pool.file ? "the workers" : "the main thread");
		if (l->file)
			say(&s, "steps are %s by %s%s", l->exact ? "counted" : "estimated",
			    r->found.sampled.pool.file ? "the main thread: " : "", by);
		else
			say(&s, "they do not tell steps");
		memcpy(out, s.text, sizeof(s.text));
		return;
	}
	say_steps(&s, r);
	if (q->crowded)
		say(&s, "a crowded machine distorts the times");
	say_times(&s, r);
	say_records(&s, r);
	if (!isnan(q->unattributed_share) && r->steps.count)
		say(&s, "%s of a step unattributed", tfh_fmt_share(share, q->unattributed_share));
	if (!isnan(q->overhead_share))
		say(&s, "recording cost %s", tfh_fmt_share(share, q->overhead_share));
	memcpy(out, s.text, sizeof(s.text));
}

static void put(const struct tfh_page *page, const void *text)
{
	tfh_wrap_from(page, strlen("SURE   "), "       ", text);
}

/* Keeps as many whole sentences as there are lines for; half a sentence is no use. */
static void shorten(const struct tfh_page *page, char *text)
{
	size_t lines = page->style.lines;
	bool fits = !lines;

	while (!fits) {
		char *wrapped = tfh_in_memory(page, put, text), *last = strrchr(text, ';');
		fits = !wrapped || !last || tfh_lines_of(wrapped) <= lines;
		if (!fits)
			*last = '\0';
		free(wrapped);
	}
}

void tfh_screen_sure(const struct tfh_page *page)
{
	char text[TFH_SURE];

	tfh_sure_words(page->r, text);
	shorten(page, text);
	tfh_put("\n", page->out);
	tfh_tinted(page, TFH_BOLD, "SURE");
	tfh_put("   ", page->out);
	tfh_wrap_most(page, strlen("SURE   "), "       ", text);
}
