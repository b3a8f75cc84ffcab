/* One address, one request at a time, and a token. libmicrohttpd was considered: Debian's needs
 * GnuTLS, and the token, Host and request limits would still be ours. */
#include "top/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/print.h"
#include "base/text.h"

#define TOKEN_LEAST 16u
#define TOKEN_MOST 512u
#define REQUEST_MOST 8192u
#define REQUEST_MS 2000
#define WAKE_MS 250 /* longest time to end */

struct tfh_listener {
	int fd;
	uint16_t port;
	char token[TOKEN_MOST + 1];
	pthread_t thread;
	pthread_mutex_t lock; /* protects what follows */
	bool stop;
	char *text;
	size_t size;
};

/* ---- the token ---- */

static int make_token(int fd, char out[TOKEN_MOST + 1])
{
	unsigned char random[16];
	FILE *file;

	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return -EIO;
	for (size_t i = 0; i < sizeof(random); i++)
		snprintf(out + 2 * i, 3, "%02x", random[i]);
	int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (own < 0 || !(file = fdopen(own, "w"))) {
		int rc = -errno;
		if (own >= 0)
			close(own);
		return rc;
	}
	tfh_print(file, "%s\n", out);
	return fclose(file) ? -errno : 0;
}

static int read_token(int fd, const char *path, char out[TOKEN_MOST + 1], struct tfh_err *err)
{
	struct stat st;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		return tfh_err_set(err, -EINVAL, "%s is not a regular file", path);
	if ((st.st_uid != geteuid() && st.st_uid) || st.st_mode & 077)
		return tfh_err_set(err, -EPERM,
				   "%s: other users can read the token, or own the file: chmod 600",
				   path);
	ssize_t n = read(fd, out, TOKEN_MOST);
	out[n > 0 ? n : 0] = '\0';
	out[strcspn(out, "\r\n")] = '\0';
	if (strlen(out) < TOKEN_LEAST || strpbrk(out, " \t"))
		return tfh_err_set(err, -EINVAL,
				   "%s has no token: a line of %u to %u characters without blanks",
				   path, TOKEN_LEAST, TOKEN_MOST - 1);
	return 0;
}

static int find_token(const char *path, char out[TOKEN_MOST + 1], struct tfh_err *err)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600), rc;

	if (fd >= 0) {
		rc = make_token(fd, out);
		if (rc)
			tfh_err_set(err, rc, "%s: %s", path, strerror(-rc));
	} else if (errno == EEXIST && (fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)) >= 0) {
		rc = read_token(fd, path, out, err);
	} else {
		return tfh_err_set(err, -errno, "%s: %s", path, strerror(errno));
	}
	close(fd);
	return rc;
}

/* Takes the same time wherever the texts differ. */
static bool same_token(const char *a, const char *b, size_t n)
{
	unsigned char differ = 0;

	if (strlen(a) != n)
		return false;
	for (size_t i = 0; i < n; i++)
		differ |= (unsigned char)(a[i] ^ b[i]);
	return !differ;
}

/* ---- a request ---- */

/* Value of a header, without blanks around it; *n 0: there is none. */
static const char *header_of(const char *request, const char *name, size_t *n)
{
	size_t len = strlen(name);

	*n = 0;
	for (const char *p = strstr(request, "\r\n"); p; p = strstr(p + 2, "\r\n")) {
		const char *line = p + 2;
		if (strncasecmp(line, name, len) || line[len] != ':')
			continue;
		line += len + 1;
		line += strspn(line, " \t");
		*n = strcspn(line, "\r\n");
		while (*n && (line[*n - 1] == ' ' || line[*n - 1] == '\t'))
			--*n;
		return line;
	}
	return "";
}

/* Whether Host is a loopback name. In a request from a page that resolves its own name to loopback
 * (DNS rebinding), it is not. */
static bool is_loopback(const struct tfh_listener *l, const char *request)
{
	char names[2][32];
	size_t n;
	const char *host = header_of(request, "Host", &n);

	snprintf(names[0], sizeof(names[0]), "127.0.0.1:%u", l->port);
	snprintf(names[1], sizeof(names[1]), "localhost:%u", l->port);
	for (int i = 0; i < 2; i++)
		if (strlen(names[i]) == n && !strncasecmp(host, names[i], n))
			return true;
	return false;
}

static bool is_allowed(const struct tfh_listener *l, const char *request)
{
	static const char scheme[] = "Bearer ";
	size_t n;
	const char *value = header_of(request, "Authorization", &n);

	return n >= sizeof(scheme) && !strncasecmp(value, scheme, sizeof(scheme) - 1) &&
	       same_token(l->token, value + sizeof(scheme) - 1, n - (sizeof(scheme) - 1));
}

static const char *status_of(const struct tfh_listener *l, const char *request)
{
	if (!is_loopback(l, request))
		return "403 Forbidden";
	if (!is_allowed(l, request))
		return "401 Unauthorized";
	if (!tfh_starts_with(request, "GET "))
		return "405 Method Not Allowed";
	if (!tfh_starts_with(request + 4, "/metrics "))
		return "404 Not Found";
	return "200 OK";
}

static int64_t now_ms(void)
{
	return tfh_clock_ns(CLOCK_MONOTONIC) / 1000000;
}

static bool ready(int fd, short what, int64_t until)
{
	struct pollfd p = {.fd = fd, .events = what};
	int64_t left = until - now_ms();

	return left > 0 && poll(&p, 1, (int)left) == 1;
}

/* Reads up to the empty line; false: none came. */
static bool take_request(int fd, char request[REQUEST_MOST], int64_t until)
{
	size_t have = 0;

	while (have + 1 < REQUEST_MOST && ready(fd, POLLIN, until)) {
		ssize_t n = recv(fd, request + have, REQUEST_MOST - 1 - have, MSG_DONTWAIT);
		if (n <= 0)
			return false;
		have += (size_t)n;
		request[have] = '\0';
		if (strlen(request) < have) /* not a text */
			return false;
		if (strstr(request, "\r\n\r\n"))
			return true;
	}
	return false;
}

static void send_all(int fd, const char *data, size_t n, int64_t until)
{
	while (n && ready(fd, POLLOUT, until)) {
		ssize_t sent = send(fd, data, n, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (sent <= 0)
			return;
		data += sent;
		n -= (size_t)sent;
	}
}

static void answer(struct tfh_listener *l, int fd)
{
	int64_t until = now_ms() + REQUEST_MS;
	char request[REQUEST_MOST], head[512], *body = NULL;
	size_t size = 0;

	if (!take_request(fd, request, until))
		return;
	const char *status = status_of(l, request);
	bool good = *status == '2';
	if (good) {
		pthread_mutex_lock(&l->lock);
		size = l->size;
		body = malloc(size + 1);
		if (body && size)
			memcpy(body, l->text, size);
		pthread_mutex_unlock(&l->lock);
	}
	int n = snprintf(head, sizeof(head),
			 "HTTP/1.1 %s\r\nContent-Length: %zu\r\nConnection: close\r\n"
			 "Cache-Control: no-store\r\n%s\r\n",
			 status, body ? size : 0,
			 good ? "Content-Type: application/openmetrics-text; version=1.0.0; "
				"charset=utf-8\r\n"
			 : *status == '4' && status[2] == '1' ? "WWW-Authenticate: Bearer\r\n"
							      : "");
	send_all(fd, head, (size_t)n, until);
	if (body)
		send_all(fd, body, size, until);
	free(body);
}

/* ---- the thread ---- */

static bool is_stopped(struct tfh_listener *l)
{
	pthread_mutex_lock(&l->lock);
	bool stop = l->stop;
	pthread_mutex_unlock(&l->lock);
	return stop;
}

static void *serve(void *arg)
{
	struct tfh_listener *l = arg;

	while (!is_stopped(l)) {
		if (!ready(l->fd, POLLIN, now_ms() + WAKE_MS))
			continue;
		int fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0)
			continue;
		answer(l, fd);
		close(fd);
	}
	return NULL;
}

static int listen_at(struct tfh_listener *l, struct tfh_err *err)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(l->port)};
	int on = 1;

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	l->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (l->fd < 0 || setsockopt(l->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ||
	    bind(l->fd, (struct sockaddr *)&at, sizeof(at)) || listen(l->fd, 16))
		return tfh_err_set(err, -errno, "port %u: %s", l->port, strerror(errno));
	return 0;
}

int tfh_listener_new(uint16_t port, const char *token, struct tfh_listener **out,
		     struct tfh_err *err)
{
	struct tfh_listener *l = calloc(1, sizeof(*l));

	*out = NULL;
	if (!l)
		return tfh_err_set(err, -ENOMEM, "out of memory");
	l->fd = -1;
	l->port = port;
	pthread_mutex_init(&l->lock, NULL);
	int rc = find_token(token, l->token, err);
	if (!rc)
		rc = listen_at(l, err);
	if (!rc && (rc = -pthread_create(&l->thread, NULL, serve, l)))
		tfh_err_set(err, rc, "%s", strerror(-rc));
	if (!rc) {
		*out = l;
		return 0;
	}
	if (l->fd >= 0)
		close(l->fd);
	free(l);
	return rc;
}

void tfh_listener_free(struct tfh_listener *l)
{
	if (!l)
		return;
	pthread_mutex_lock(&l->lock);
	l->stop = true;
	pthread_mutex_unlock(&l->lock);
	pthread_join(l->thread, NULL);
	close(l->fd);
	free(l->text);
	pthread_mutex_destroy(&l->lock);
	free(l);
}

void tfh_listener_offer(struct tfh_listener *l, char *text, size_t size)
{
	pthread_mutex_lock(&l->lock);
	char *old = l->text;
	l->text = text;
	l->size = size;
	pthread_mutex_unlock(&l->lock);
	free(old);
}
