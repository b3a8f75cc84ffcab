#include "top/otlp.h"

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"
#include "base/text.h"
#include "tfhook/version.h"
#include "top/gauges.h"

/* ---- the document ---- */

struct otlp_text {
	struct tfh_json j;
	char time[24];
	bool open; /* a gauge */
};

static void attribute(struct tfh_json *j, const char *name, const char *value)
{
	tfh_json_object(j);
	tfh_json_kstr(j, "key", name);
	tfh_json_key(j, "value");
	tfh_json_object(j);
	tfh_json_kstr(j, "stringValue", value);
	tfh_json_end(j);
	tfh_json_end(j);
}

static void end_gauge(struct otlp_text *t)
{
	for (int i = 0; t->open && i < 3; i++) /* points, gauge, metric */
		tfh_json_end(&t->j);
	t->open = false;
}

static void put_gauge(void *arg, const char *name, const char *help)
{
	struct otlp_text *t = arg;

	end_gauge(t);
	tfh_json_object(&t->j);
	tfh_json_kstr(&t->j, "name", name);
	tfh_json_kstr(&t->j, "description", help);
	tfh_json_kstr(&t->j, "unit", tfh_ends_with(name, "_seconds") ? "s" : "1");
	tfh_json_key(&t->j, "gauge");
	tfh_json_object(&t->j);
	tfh_json_key(&t->j, "dataPoints");
	tfh_json_array(&t->j);
	t->open = true;
}

static void put_point(void *arg, const struct tfh_label *label, uint32_t n, double value)
{
	struct otlp_text *t = arg;

	tfh_json_object(&t->j);
	tfh_json_key(&t->j, "attributes");
	tfh_json_array(&t->j);
	for (uint32_t i = 0; i < n; i++)
		attribute(&t->j, label[i].name, label[i].value);
	tfh_json_end(&t->j);
	tfh_json_kstr(&t->j, "timeUnixNano", t->time);
	tfh_json_kf64(&t->j, "asDouble", value);
	tfh_json_end(&t->j);
}

int tfh_otlp_write(FILE *out, const struct tfh_watch *w, int64_t unix_ns)
{
	struct otlp_text t = {.open = false};
	const struct tfh_gauge_sink to = {&t, put_gauge, put_point};
	static const char *const lists[] = {"resourceMetrics", "scopeMetrics"};
	char host[256] = "";

	gethostname(host, sizeof(host) - 1);
	snprintf(t.time, sizeof(t.time), "%" PRId64, unix_ns);
	tfh_json_init(&t.j, out, 0);
	tfh_json_object(&t.j);
	tfh_json_key(&t.j, lists[0]);
	tfh_json_array(&t.j);
	tfh_json_object(&t.j);
	tfh_json_key(&t.j, "resource");
	tfh_json_object(&t.j);
	tfh_json_key(&t.j, "attributes");
	tfh_json_array(&t.j);
	attribute(&t.j, "service.name", "tfhook");
	attribute(&t.j, "host.name", host);
	tfh_json_end(&t.j);
	tfh_json_end(&t.j);
	tfh_json_key(&t.j, lists[1]);
	tfh_json_array(&t.j);
	tfh_json_object(&t.j);
	tfh_json_key(&t.j, "scope");
	tfh_json_object(&t.j);
	tfh_json_kstr(&t.j, "name", "tfhook top");
	tfh_json_kstr(&t.j, "version", TFHOOK_VERSION);
	tfh_json_end(&t.j);
	tfh_json_key(&t.j, "metrics");
	tfh_json_array(&t.j);
	tfh_top_gauges(w, &to);
	end_gauge(&t);
	for (int i = 0; i < 6; i++)
		tfh_json_end(&t.j);
	return tfh_json_finish(&t.j);
}

/* ---- libcurl ---- */

/* Part of libcurl's interface, whose numbers never change (curl/curl.h). */
enum {
	CURLOPT_TIMEOUT_MS = 155,
	CURLOPT_CONNECTTIMEOUT_MS = 156,
	CURLOPT_NOSIGNAL = 99,
	CURLOPT_POSTFIELDSIZE = 60,
	CURLOPT_FAILONERROR = 45,
	CURLOPT_PROTOCOLS = 181,
	CURLOPT_URL = 10002,
	CURLOPT_ERRORBUFFER = 10010,
	CURLOPT_POSTFIELDS = 10015,
	CURLOPT_HTTPHEADER = 10023,
	CURLOPT_WRITEFUNCTION = 20011,
	CURL_GLOBAL_DEFAULT = 3,
	CURLPROTO_HTTP = 1,
	CURLPROTO_HTTPS = 2,
	CURL_ERROR_SIZE = 256
};

#define SEND_MS 5000L
#define PAUSE_S 30.0

struct tfh_otlp {
	void *library, *handle, *headers;
	int (*setopt)(void *handle, int option, ...);
	int (*perform)(void *handle);
	const char *(*text_of)(int code);
	void *(*append)(void *list, const char *text);
	void (*free_list)(void *list);
	void (*cleanup)(void *handle);
	char why[CURL_ERROR_SIZE];
	double silent_until_s;
};

static size_t swallow(const char *data, size_t size, size_t n, void *arg)
{
	(void)data;
	(void)arg;
	return size * n;
}

/* POSIX guarantees that a function's address fits a data pointer. */
static bool load(void *library, const char *name, void *function)
{
	void *found = dlsym(library, name);

	memcpy(function, &found, sizeof(found));
	return found;
}

static int open_curl(struct tfh_otlp *o, struct tfh_err *err)
{
	static const char *const names[] = {"libcurl.so.4", "libcurl-gnutls.so.4"};
	int (*init)(long flags) = NULL;
	void *(*make)(void) = NULL;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names) && !o->library; i++)
		o->library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
	if (!o->library || !load(o->library, "curl_global_init", &init) ||
	    !load(o->library, "curl_easy_init", &make) ||
	    !load(o->library, "curl_easy_setopt", &o->setopt) ||
	    !load(o->library, "curl_easy_perform", &o->perform) ||
	    !load(o->library, "curl_easy_strerror", &o->text_of) ||
	    !load(o->library, "curl_slist_append", &o->append) ||
	    !load(o->library, "curl_slist_free_all", &o->free_list) ||
	    !load(o->library, "curl_easy_cleanup", &o->cleanup))
		return tfh_err_set(
			err, -ENOSYS,
			"sending needs libcurl.so.4, which is not installed (Debian: libcurl4, "
			"Fedora: libcurl)");
	if (init(CURL_GLOBAL_DEFAULT) || !(o->handle = make()))
		return tfh_err_set(err, -ENOMEM, "libcurl: out of memory");
	return 0;
}

static void add_header(struct tfh_otlp *o, const char *text)
{
	void *list = o->append(o->headers, text);

	o->headers = list ? list : o->headers;
}

/* Headers as "name=value,name=value", the form that every OpenTelemetry exporter takes. They come
 * from the environment, because secrets must not be on a command line. */
static void add_headers(struct tfh_otlp *o)
{
	const char *text = getenv("OTEL_EXPORTER_OTLP_HEADERS");
	char line[4096];

	add_header(o, "Content-Type: application/json");
	while (text && *text) {
		size_t n = strcspn(text, ","), name = strcspn(text, "=,");
		if (name < n && name && n < sizeof(line) - 2) {
			snprintf(line, sizeof(line), "%.*s: %.*s", (int)name, text,
				 (int)(n - name - 1), text + name + 1);
			if (!strpbrk(line, "\r\n"))
				add_header(o, line);
		}
		text += n + (text[n] == ',');
	}
}

/* The address, with the protocol's path appended if it has none. */
static int address_of(const char *url, char out[2048], struct tfh_err *err)
{
	const char *host = tfh_starts_with(url, "http://")    ? url + 7
			   : tfh_starts_with(url, "https://") ? url + 8
							      : NULL;

	if (!host || !*host || *host == '/' || strlen(url) > 2000)
		return tfh_err_set(
			err, -EINVAL,
			"'%.200s' is not the address of a collector, such as http://HOST:4318",
			url);
	const char *path = strchr(host, '/');
	snprintf(out, 2048, "%s%s", url,
		 !path		      ? "/v1/metrics"
		 : !strcmp(path, "/") ? "v1/metrics"
				      : "");
	return 0;
}

int tfh_otlp_new(const char *url, struct tfh_otlp **out, struct tfh_err *err)
{
	struct tfh_otlp *o = calloc(1, sizeof(*o));
	char address[2048];
	int rc = o ? address_of(url, address, err) : tfh_err_set(err, -ENOMEM, "out of memory");

	*out = NULL;
	if (!rc)
		rc = open_curl(o, err);
	if (rc) {
		tfh_otlp_free(o);
		return rc;
	}
	add_headers(o);
	o->setopt(o->handle, CURLOPT_URL, address); /* copied */
	o->setopt(o->handle, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
	o->setopt(o->handle, CURLOPT_HTTPHEADER, o->headers);
	o->setopt(o->handle, CURLOPT_NOSIGNAL, 1L);
	o->setopt(o->handle, CURLOPT_TIMEOUT_MS, SEND_MS);
	o->setopt(o->handle, CURLOPT_CONNECTTIMEOUT_MS, SEND_MS / 2);
	o->setopt(o->handle, CURLOPT_FAILONERROR, 1L);
	o->setopt(o->handle, CURLOPT_ERRORBUFFER, o->why);
	o->setopt(o->handle, CURLOPT_WRITEFUNCTION, swallow);
	*out = o;
	return 0;
}

void tfh_otlp_free(struct tfh_otlp *o)
{
	if (!o)
		return;
	if (o->handle)
		o->cleanup(o->handle);
	if (o->headers)
		o->free_list(o->headers);
	/* The library stays loaded: it has registered exit handlers. */
	free(o);
}

int tfh_otlp_send(struct tfh_otlp *o, const struct tfh_watch *w, struct tfh_err *err)
{
	struct timespec now;
	char *text = NULL;
	size_t size = 0;

	if (tfh_watch_now() < o->silent_until_s)
		return 0;
	FILE *out = open_memstream(&text, &size);
	if (!out)
		return tfh_err_set(err, -ENOMEM, "out of memory");
	clock_gettime(CLOCK_REALTIME, &now);
	int rc = tfh_otlp_write(out, w, (int64_t)now.tv_sec * 1000000000 + now.tv_nsec);
	if (fclose(out) && !rc)
		rc = -ENOMEM;
	if (!rc) {
		o->why[0] = '\0';
		o->setopt(o->handle, CURLOPT_POSTFIELDSIZE, (long)size);
		o->setopt(o->handle, CURLOPT_POSTFIELDS, text);
		int code = o->perform(o->handle);
		if (code)
			rc = tfh_err_set(err, -EIO, "%s", *o->why ? o->why : o->text_of(code));
		o->silent_until_s = code ? tfh_watch_now() + PAUSE_S : 0;
	}
	free(text);
	return rc;
}
