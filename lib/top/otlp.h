/*
 * Sends the live view's metrics to a collector by OTLP over HTTP, in the JSON form of
 * opentelemetry-proto's ExportMetricsServiceRequest. libcurl does the sending (TLS, proxies,
 * redirects). It is loaded on demand, so that the command does not need it otherwise.
 */
#ifndef TFH_TOP_OTLP_H
#define TFH_TOP_OTLP_H

#include "base/err.h"
#include "top/watch.h"

struct tfh_otlp;

/* For http://HOST[:PORT][/PATH] or https://...; the default path is /v1/metrics.
 * OTEL_EXPORTER_OTLP_HEADERS ("name=value,...") is sent along. -EINVAL: not such an address;
 * -ENOSYS: libcurl is missing. 0 or -errno with `err`. */
int tfh_otlp_new(const char *url, struct tfh_otlp **out, struct tfh_err *err);
void tfh_otlp_free(struct tfh_otlp *o);
/* Sends the present metrics, within five seconds. After a failure, it sends nothing for half a
 * minute and returns 0. 0 or -EIO with `err`. */
int tfh_otlp_send(struct tfh_otlp *o, const struct tfh_watch *w, struct tfh_err *err);
/* Writes only the document. 0 or -errno. */
int tfh_otlp_write(FILE *out, const struct tfh_watch *w, int64_t unix_ns);

#endif
