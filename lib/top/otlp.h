/*
 * Sends the live view's metrics to a collector by OTLP over HTTP, in the JSON form of opentelemetry-proto's
 * ExportMetricsServiceRequest. libcurl does the sending (TLS, proxies, redirects); it is looked for when it is needed, so that the
 * command does without it otherwise.
 */
#ifndef TFH_TOP_OTLP_H
#define TFH_TOP_OTLP_H

#include "base/err.h"
#include "top/watch.h"

struct tfh_otlp;

/* For http://HOST[:PORT][/PATH] or https://...; without a path it is /v1/metrics. OTEL_EXPORTER_OTLP_HEADERS ("name=value,...") is
 * sent along. -EINVAL: no such address; -ENOSYS: there is no libcurl here. 0 or -errno with `err`. */
int tfh_otlp_new(const char *url, struct tfh_otlp **out, struct tfh_err *err);
void tfh_otlp_free(struct tfh_otlp *o);
/* Sends what there is now, in five seconds at most. After a failure nothing is tried for half a minute, and 0 is returned. 0 or
 * -EIO with `err`. */
int tfh_otlp_send(struct tfh_otlp *o, const struct tfh_watch *w, struct tfh_err *err);
/* The document alone. 0 or -errno. */
int tfh_otlp_write(FILE *out, const struct tfh_watch *w, int64_t unix_ns);

#endif
