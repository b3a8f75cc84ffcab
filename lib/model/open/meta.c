/*
 * Reads run.json and end.json, written by `tfhook run` or the first recording process. Only known
 * keys are looked up, so a scanner that skips values is enough; it is not a complete JSON parser.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model/open/opening.h"

#define MAX_FILE (1u << 20)
#define MAX_ARGS 4096u

FILE *tfh_open_facts(const char *dir, const char *name)
{
	char path[4500];
	struct stat st;
	FILE *f;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	f = fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) ? fdopen(fd, "r") : NULL;
	if (!f && fd >= 0)
		close(fd);
	return f;
}

char *tfh_facts_text(struct tfh_arena *arena, const char *dir, const char *name)
{
	FILE *f = tfh_open_facts(dir, name);
	char *text = NULL;

	if (!f)
		return NULL;
	text = tfh_arena_alloc(arena, MAX_FILE);
	if (text)
		text[fread(text, 1, MAX_FILE - 1, f)] = 0;
	fclose(f);
	return text;
}

const char *tfh_facts_blanks(const char *p)
{
	return p + strspn(p, " \t\r\n");
}

static size_t utf8(unsigned c, char *out)
{
	if (c < 0x80) {
		out[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		out[0] = (char)(0xc0 | c >> 6);
		out[1] = (char)(0x80 | (c & 63));
		return 2;
	}
	out[0] = (char)(0xe0 | c >> 12);
	out[1] = (char)(0x80 | (c >> 6 & 63));
	out[2] = (char)(0x80 | (c & 63));
	return 3;
}

/* Upper bound on the bytes of a string, from the byte after its opening quote. */
static size_t string_room(const char *s)
{
	const char *p = s;

	while (*p && *p != '"')
		p += *p == '\\' && p[1] ? 2 : 1;
	return (size_t)(p - s) + 4;
}

char *tfh_facts_string(struct tfh_arena *arena, const char **p)
{
	const char *s = *p;
	size_t n = 0;

	if (*s++ != '"')
		return NULL;
	char *out = tfh_arena_alloc(arena, string_room(s));
	while (out && *s && *s != '"') {
		static const char from[] = "nrtbf", to[] = "\n\r\t\b\f";
		if (*s != '\\') {
			out[n++] = *s++;
			continue;
		}
		s++;
		const char *at = *s ? strchr(from, *s) : NULL;
		if (*s == 'u' && strnlen(s, 5) == 5) {
			char hex[5] = {s[1], s[2], s[3], s[4], 0};
			n += utf8((unsigned)strtoul(hex, NULL, 16), out + n);
			s += 5;
		} else if (*s) {
			out[n++] = at ? to[at - from] : *s;
			s++;
		}
	}
	if (!out || *s != '"')
		return NULL;
	*p = s + 1;
	return out;
}

const char *tfh_facts_value(const char *text, const char *key)
{
	size_t n = strlen(key);
	int depth = 0;

	for (const char *p = text; p && *p; p++) {
		if (*p == '{' || *p == '[')
			depth++;
		if (*p == '}' || *p == ']')
			depth--;
		if (*p != '"')
			continue;
		const char *begin = p + 1;
		for (p = begin; *p && *p != '"'; p++)
			if (*p == '\\' && p[1])
				p++;
		if (!*p)
			return NULL;
		const char *after = tfh_facts_blanks(p + 1);
		if (depth == 1 && *after == ':' && (size_t)(p - begin) == n &&
		    !memcmp(begin, key, n))
			return tfh_facts_blanks(after + 1);
	}
	return NULL;
}

static void command(struct tfh_arena *arena, const char *p, struct tfh_meta *meta)
{
	if (!p || *p != '[')
		return;
	meta->argv = tfh_arena_array(arena, MAX_ARGS, sizeof(*meta->argv));
	for (p = tfh_facts_blanks(p + 1); meta->argv && *p == '"' && meta->argc < MAX_ARGS;) {
		const char *s = tfh_facts_string(arena, &p);
		if (!s)
			return;
		meta->argv[meta->argc++] = s;
		p = tfh_facts_blanks(p);
		if (*p == ',')
			p = tfh_facts_blanks(p + 1);
	}
}

/* Converts "2026-11-22T17:27:48.564Z" to ns since 1970; 0 if the text is no such time. */
static int64_t utc(const char *text)
{
	struct tm tm = {0};
	const char *end = text ? strptime(text, "%Y-%m-%dT%H:%M:%S", &tm) : NULL;
	double fraction = end && *end == '.' ? strtod(end, NULL) : 0;

	return end ? (int64_t)timegm(&tm) * 1000000000 + (int64_t)(fraction * 1e9) : 0;
}

void tfh_meta_read(struct tfh_arena *arena, const char *dir, struct tfh_meta *meta)
{
	const char *run = tfh_facts_text(arena, dir, "run.json"),
		   *end = tfh_facts_text(arena, dir, "end.json");
	const char *p;

	memset(meta, 0, sizeof(*meta));
	meta->end = TFH_END_NONE;
	if (run) {
		command(arena, tfh_facts_value(run, "command"), meta);
		p = tfh_facts_value(run, "host");
		meta->host = p ? tfh_facts_string(arena, &p) : NULL;
		p = tfh_facts_value(run, "start_utc");
		meta->start_ns = utc(p ? tfh_facts_string(arena, &p) : NULL);
	}
	if (end) {
		p = tfh_facts_value(end, "how");
		const char *how = p ? tfh_facts_string(arena, &p) : NULL;
		meta->has_end = how != NULL;
		meta->end = tfh_end_find(how);
		p = tfh_facts_value(end, meta->end == TFH_END_SIGNAL ? "signal" : "code");
		meta->number = p ? atoi(p) : 0;
		p = tfh_facts_value(end, "wall_s");
		meta->wall_s = p ? strtod(p, NULL) : 0;
	}
}
