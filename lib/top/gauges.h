/* The live view's measurements as gauges with labels, for OpenMetrics (top_metrics.c) and OTLP
 * (otlp.c). */
#ifndef TFH_TOP_GAUGES_H
#define TFH_TOP_GAUGES_H

#include "top/watch.h"

struct tfh_label {
	const char *name, *value; /* value: any text */
};

struct tfh_gauge_sink {
	void *arg;
	/* Starts a gauge, whose points follow. Both texts are constants. */
	void (*gauge)(void *arg, const char *name, const char *help);
	/* Never NAN. */
	void (*point)(void *arg, const struct tfh_label *label, uint32_t n, double value);
};

void tfh_top_gauges(const struct tfh_watch *w, const struct tfh_gauge_sink *to);

#endif
