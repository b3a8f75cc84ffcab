#include "cli/start_seen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

#define LINES 512u
#define FRAMES 48u
#define SHOWN 3
#define ENOUGH 20u /* samples; with fewer, a share's error exceeds 20 % of the whole */
#define LEAST 0.03 /* smallest share that is shown */

/* Frameworks that do not mark steps themselves: part of their files' paths, and what would be
 * recorded. */
static const struct unmarked {
	const char *file, *why;
} unmarked[] = {
	{"/jax/_src/",
	 "JAX on the CPU does not show its steps; on a GPU, or with input from tf.data or a PyTorch DataLoader, they can be found"},
};
#define UNMARKED (sizeof(unmarked) / sizeof(*unmarked))

struct start_line {
	struct tfh_model_line at;
	uint64_t us;
};

struct tfh_start_seen {
	struct start_line line[LINES];
	uint32_t n, samples;
	uint64_t us;
	bool unmarked[UNMARKED];
};

struct tfh_start_seen *tfh_start_seen_new(void)
{
	return calloc(1, sizeof(struct tfh_start_seen));
}

static struct start_line *line_of(struct tfh_start_seen *s, const struct tfh_model_line *at)
{
	for (uint32_t i = 0; i < s->n; i++)
		if (s->line[i].at.line == at->line && !strcmp(s->line[i].at.file, at->file) &&
		    !strcmp(s->line[i].at.function, at->function))
			return &s->line[i];
	if (s->n == LINES)
		return NULL;
	s->line[s->n].at = *at;
	return &s->line[s->n++];
}

void tfh_start_seen_add(struct tfh_start_seen *s, const struct tfh_start_places *p, uint32_t place,
			uint32_t us)
{
	struct tfh_model_line frame[FRAMES];
	uint32_t n = tfh_start_place_frames(p, place, frame, FRAMES);
	struct start_line *l = n ? line_of(s, &frame[tfh_place_lead(frame, n)]) : NULL;

	s->samples++;
	s->us += us;
	if (l)
		l->us += us;
	for (uint32_t i = 0; i < n; i++)
		for (size_t k = 0; k < UNMARKED; k++)
			s->unmarked[k] |= strstr(frame[i].file, unmarked[k].file) != NULL;
}

static int by_time(const void *a, const void *b)
{
	const struct start_line *x = a, *y = b;

	return x->us < y->us ? 1 : x->us > y->us ? -1 : 0;
}

void tfh_start_seen_say(struct tfh_start_seen *s)
{
	const struct start_line *line = s->line;
	char text[1024];
	size_t at = 0;

	for (size_t k = 0; k < UNMARKED; k++)
		if (s->unmarked[k])
			tfh_say("%s", unmarked[k].why);
	if (s->samples < ENOUGH || !s->us)
		return;
	qsort(s->line, s->n, sizeof(*s->line), by_time);
	for (uint32_t i = 0; i < s->n && i < SHOWN && (double)line[i].us >= LEAST * (double)s->us;
	     i++) {
		int n = snprintf(text + at, sizeof(text) - at, "%s%.0f %% at %s:%u %s",
				 at ? ", " : "", 100.0 * (double)line[i].us / (double)s->us,
				 tfh_short_file(line[i].at.file), line[i].at.line,
				 strcmp(line[i].at.function, "<module>") != 0 ? line[i].at.function
									      : "(top level)");
		if (n < 0 || (size_t)n >= sizeof(text) - at)
			break;
		at += (size_t)n;
	}
	text[at] = '\0';
	if (at)
		tfh_say("samples of its main thread (%u): %s", s->samples, text);
}
