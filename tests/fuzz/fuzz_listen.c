/*
 * Fuzzed input: what a client sends to `tfhook top --listen`. Byte 1 stands for the right Host, byte 2 for the token. Whatever it
 * sends, it gets nothing or one whole answer of a known status, and metrics only for the token with that Host.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz.h"
#include "top/listen.h"

#define METRICS "# served\n"
#define TOKEN "0123456789abcdef-token"
#define MOST 16384u

static uint16_t port;
static char host[32];

/* Once for all inputs, at the first free port. */
static struct tfh_listener *listener(void)
{
	static struct tfh_listener *l;
	char path[128];

	if (l || !tfh_fuzz_place())
		return l;
	tfh_fuzz_write("token", TOKEN, sizeof(TOKEN) - 1);
	snprintf(path, sizeof(path), "%s/token", tfh_fuzz_place());
	port = (uint16_t)(20000 + getpid() % 12000);
	for (int i = 0; i < 100 && tfh_listener_new(port, path, &l, NULL); i++)
		port++;
	if (l)
		tfh_listener_offer(l, strdup(METRICS), sizeof(METRICS) - 1);
	snprintf(host, sizeof(host), "127.0.0.1:%u", port);
	return l;
}

static size_t put(char *out, size_t at, const char *text, size_t n)
{
	if (n > MOST - 1 - at)
		n = MOST - 1 - at;
	memcpy(out + at, text, n);
	return at + n;
}

static size_t expand(char out[MOST], const uint8_t *data, size_t size)
{
	size_t n = 0;

	for (size_t i = 0; i < size; i++)
		if (data[i] == 1)
			n = put(out, n, host, strlen(host));
		else if (data[i] == 2)
			n = put(out, n, TOKEN, sizeof(TOKEN) - 1);
		else
			n = put(out, n, (const char *)data + i, 1);
	return n;
}

/* Sends it all, then reads to the end. -1: there is no connection. */
static ssize_t ask(const char *request, size_t n, char answer[MOST])
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port)};
	const struct linger now = {.l_onoff = 1}; /* leaves the kernel nothing to remember */
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ssize_t have = 0, got;

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0)
		return -1;
	if (connect(fd, (struct sockaddr *)&at, sizeof(at))) {
		close(fd);
		return -1;
	}
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	if (send(fd, request, n, MSG_NOSIGNAL) >= 0)
		shutdown(fd, SHUT_WR);
	while ((got = recv(fd, answer + have, MOST - 1 - (size_t)have, 0)) > 0)
		have += got;
	close(fd);
	answer[have] = '\0';
	return have;
}

static bool holds(const char *text, size_t n, const char *part)
{
	return memmem(text, n, part, strlen(part));
}

static void check(const char *request, size_t n, const char *answer, size_t size)
{
	static const char *const known[] = {"200 OK", "401 Unauthorized", "403 Forbidden",
					    "404 Not Found", "405 Method Not Allowed"};
	const char *body = strstr(answer, "\r\n\r\n"), *length = strstr(answer, "Content-Length: ");
	bool is_known = false;

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		is_known |= size > 9 && !strncmp(answer, "HTTP/1.1 ", 9) &&
			    !strncmp(answer + 9, known[i], strlen(known[i]));
	if (!is_known || !body || !length || size != strlen(answer) ||
	    strlen(body + 4) != strtoul(length + 16, NULL, 10)) {
		fprintf(stderr, "fuzz: no whole answer: %s\n", answer);
		abort();
	}
	bool right = !strncmp(request, "GET /metrics ", 13) && holds(request, n, TOKEN) &&
		     holds(request, n, host + strlen("127.0.0.1"));
	if ((body[4] || answer[9] == '2') && !right) {
		fprintf(stderr, "fuzz: answered to one who has no token: %s\n", answer);
		abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char request[MOST], answer[MOST];
	double begin = tfh_fuzz_clock();

	if (!listener())
		return 0;
	size_t n = expand(request, data, size);
	request[n] = '\0';
	ssize_t got = ask(request, n, answer);
	if (got > 0)
		check(request, n, answer, (size_t)got);
	tfh_fuzz_bound(begin, size);
	return 0;
}
