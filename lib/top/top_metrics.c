/*
 * The live view as OpenMetrics, for node_exporter's textfile collector and other readers. All are
 * gauges, whose lines are the same in Prometheus' older text format.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clean.h"
#include "base/json.h"
#include "base/print.h"
#include "top/gauges.h"

#define LABEL 512

struct metrics_text {
	FILE *out;
	const char *name; /* of the gauge */
};

/* A label's value: cleaned, then with the format's two escapes. */
static const char *escaped(char out[LABEL], const char *text)
{
	char clean[LABEL / 2];
	size_t n = 0;

	tfh_clean(clean, sizeof(clean), text, strlen(text));
	for (const char *p = clean; *p; p++) {
		if (*p == '\\' || *p == '"')
			out[n++] = '\\';
		out[n++] = *p;
	}
	out[n] = '\0';
	return out;
}

static void put_gauge(void *arg, const char *name, const char *help)
{
	struct metrics_text *t = arg;

	t->name = name;
	tfh_print(t->out, "# TYPE %s gauge\n# HELP %s %s\n", name, name, help);
}

static void put_point(void *arg, const struct tfh_label *label, uint32_t n, double v)
{
	const struct metrics_text *t = arg;
	char text[LABEL], number[32];

	tfh_print(t->out, "%s{", t->name);
	for (uint32_t i = 0; i < n; i++)
		tfh_print(t->out, "%s%s=\"%s\"", i ? "," : "", label[i].name,
			  escaped(text, label[i].value));
	tfh_json_format_double(number, v);
	tfh_print(t->out, "} %s\n", number);
}

int tfh_top_metrics(FILE *out, const struct tfh_watch *w)
{
	struct metrics_text text = {.out = out};
	const struct tfh_gauge_sink to = {&text, put_gauge, put_point};

	tfh_top_gauges(w, &to);
	tfh_put("# EOF\n", out);
	return ferror(out) ? -EIO : 0;
}

/* A reader sees the old file or the new one, never part of one. */
int tfh_top_metrics_file(const char *path, const struct tfh_watch *w)
{
	size_t n = strlen(path) + 16;
	char *temporary = malloc(n);
	int rc = temporary ? 0 : -ENOMEM, fd = -1;

	if (!rc) {
		snprintf(temporary, n, "%s.XXXXXX", path);
		fd = mkstemp(temporary);
		rc = fd < 0 ? -errno : 0;
	}
	if (rc) {
		free(temporary);
		return rc;
	}
	/* The collector may run as another user. */
	FILE *out = fchmod(fd, 0644) ? NULL : fdopen(fd, "w");
	if (out) {
		rc = tfh_top_metrics(out, w);
		if (fclose(out) && !rc)
			rc = -errno;
	} else {
		rc = -errno;
		close(fd);
	}
	if (!rc && rename(temporary, path))
		rc = -errno;
	if (rc)
		unlink(temporary);
	free(temporary);
	return rc;
}
