#include "base/redact.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/map.h"

#define TEXT_BYTES 65536 /* of a text; the rest is cut off */

enum rule_kind {
	RULE_SECRET,
	RULE_ENDING,
	RULE_MAYBE,
	RULE_BEFORE,
	RULE_AFTER,
	RULE_PLACE,
	RULE_USER,
	RULE_SHAPE,
	RULE_RECORDED
};

static const struct rule {
	enum rule_kind kind;
	const char *text;
	size_t least;
	const char *others;
} rules[] = {
#define SECRET(word) {RULE_SECRET, word, 0, ""},
#define ENDING(word) {RULE_ENDING, word, 0, ""},
#define MAYBE(word) {RULE_MAYBE, word, 0, ""},
#define BEFORE(word) {RULE_BEFORE, word, 0, ""},
#define AFTER(word) {RULE_AFTER, word, 0, ""},
#define PLACE(word) {RULE_PLACE, word, 0, ""},
#define USER(name) {RULE_USER, name, 0, ""},
#define SHAPE(prefix, least, others) {RULE_SHAPE, prefix, least, others},
#define RECORDED(name) {RULE_RECORDED, name, 0, ""},
#include "base/redact.def"
};
#define N_RULES (sizeof(rules) / sizeof(rules[0]))

/* A substring. */
struct text_part {
	const char *at;
	size_t len;
};

static bool same(const struct text_part *p, const char *word)
{
	return strlen(word) == p->len && !strncasecmp(p->at, word, p->len);
}

static bool ends(const struct text_part *p, const char *tail)
{
	size_t n = strlen(tail);

	return p->len >= n && !strncasecmp(p->at + p->len - n, tail, n);
}

static bool listed(enum rule_kind kind, const struct text_part *word)
{
	for (size_t i = 0; i < N_RULES; i++)
		if (rules[i].kind == kind &&
		    (kind == RULE_ENDING ? ends(word, rules[i].text) : same(word, rules[i].text)))
			return true;
	return false;
}

/* ---- names ---- */

#define MOST_WORDS 32

static bool letter_or_digit(char c)
{
	return isalnum((unsigned char)c);
}

static bool capital(char c)
{
	return isupper((unsigned char)c);
}

/* "hfToken", "HF_TOKEN", "HFToken": "hf", "token" */
static size_t words_of(const char *name, size_t len, struct text_part *words)
{
	size_t n = 0;

	for (size_t i = 0; i < len && n < MOST_WORDS;) {
		size_t begin = i;
		while (i < len && letter_or_digit(name[i])) {
			bool hump = i > begin && capital(name[i]) &&
				    (!capital(name[i - 1]) ||
				     (i + 1 < len && islower((unsigned char)name[i + 1])));
			if (hump)
				break;
			i++;
		}
		if (i > begin)
			words[n++] = (struct text_part){name + begin, i - begin};
		else
			i++;
	}
	return n;
}

/* Whether the value of this name is a secret. */
static bool secret_name(const char *name, size_t len)
{
	struct text_part words[MOST_WORDS];
	size_t n = words_of(name, len, words);

	if (n && listed(RULE_PLACE, &words[n - 1]))
		return false;
	for (size_t i = 0; i < n; i++) {
		if (listed(RULE_SECRET, &words[i]))
			return true;
		if (!listed(RULE_MAYBE, &words[i])) {
			if (listed(RULE_ENDING, &words[i]))
				return true;
			continue;
		}
		if (!(i && listed(RULE_BEFORE, &words[i - 1])) &&
		    !(i + 1 < n && listed(RULE_AFTER, &words[i + 1])))
			return true;
	}
	return false;
}

/* Names whose 40 hexadecimal digits are a version, not a key. */
static bool version_name(const char *name, size_t len)
{
	static const char *const versions[] = {"commit", "revision", "rev", "sha", "sha1", "hash"};
	struct text_part words[MOST_WORDS];
	size_t n = words_of(name, len, words);

	for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++)
		if (n && same(&words[n - 1], versions[i]))
			return true;
	return false;
}

bool tfh_env_recorded(const char *name, size_t length)
{
	if (secret_name(name, length))
		return false;
	for (size_t i = 0; i < N_RULES; i++) {
		size_t n = strlen(rules[i].text);
		if (rules[i].kind != RULE_RECORDED)
			continue;
		bool prefix = rules[i].text[n - 1] == '*';
		if (prefix ? length >= n - 1 && !strncmp(name, rules[i].text, n - 1)
			   : length == n && !strncmp(name, rules[i].text, n))
			return true;
	}
	return false;
}

/* ---- texts ---- */

/* A text read from `at` on, and its redacted copy. */
struct scan {
	const char *begin, *at, *end;
	struct text_part name; /* the last name before `at`: "--revision" */
	char *out;
	size_t n, size;
	bool hidden; /* something was redacted */
};

static void tell(struct scan *s, const char *upto)
{
	size_t len = (size_t)(upto - s->at);

	if (len > s->size - s->n)
		len = s->size - s->n;
	memcpy(s->out + s->n, s->at, len);
	s->n += len;
	s->at = upto;
}

static void hide(struct scan *s, const char *upto)
{
	const char *from = s->at;

	s->at = TFH_REDACTED;
	tell(s, s->at + strlen(TFH_REDACTED));
	s->at = upto;
	s->hidden |= upto > from;
}

static bool name_char(char c)
{
	return letter_or_digit(c) || c == '_' || c == '-' || c == '.';
}

static bool blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static const char *skip(const char *p, const char *end, const char *set)
{
	while (p < end && *p && strchr(set, *p))
		p++;
	return p;
}

/* End of "..." or '...', of [...] or {...}. */
static const char *closed(const char *p, const char *end)
{
	char quote = *p == '"' || *p == '\'' ? *p : 0;
	int depth = 0;

	for (; p < end; p++) {
		if (quote) {
			if (depth && *p == quote)
				return p + 1;
			depth = 1;
			p += *p == '\\' && p + 1 < end;
			continue;
		}
		depth += (*p == '[' || *p == '{') - (*p == ']' || *p == '}');
		if (!depth)
			return p + 1;
	}
	return end;
}

/* Whether a comma at p ends the value: a further name follows, or nothing. */
static bool next_begins(const char *p, const char *end)
{
	p = skip(p, end, " \t\"'");
	if (p == end)
		return true;
	const char *name = p;
	while (p < end && name_char(*p))
		p++;
	p = skip(p, end, "\"'");
	return p > name && p < end && (*p == '=' || *p == ':');
}

static const char *word_end(const char *p, const char *end)
{
	for (; p < end; p++) {
		if (blank(*p) || strchr("\"'`)}]|<>", *p))
			break;
		if (strchr(",;&", *p) && next_begins(p + 1, end))
			break;
	}
	return p;
}

static bool scheme(const char *p, size_t len)
{
	static const char *const schemes[] = {"Bearer", "Basic", "Digest", "Token", "Negotiate"};
	const struct text_part word = {p, len};

	for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++)
		if (same(&word, schemes[i]))
			return true;
	return false;
}

/* End of a secret that begins at p. */
static const char *value_end(const char *p, const char *end)
{
	if (p < end && strchr("\"'[{", *p))
		return closed(p, end);
	if (p + 1 < end && *p == '\\' && p[1] == '"') { /* JSON within JSON */
		for (p += 2; p + 1 < end && !(*p == '\\' && p[1] == '"'); p++)
			;
		return p + 1 < end ? p + 2 : end;
	}
	const char *stop = word_end(p, end);
	if (scheme(p, (size_t)(stop - p)))
		stop = word_end(skip(stop, end, " \t"), end);
	return stop;
}

/* Start of the value that follows a name that ends at p: "=x", ": x", "\": x", or " x" for options;
 * NULL: none. */
static const char *value_of(const struct scan *s, const char *p)
{
	const char *after = skip(p, s->end, "\\\"'");
	const char *sign = skip(after, s->end, " \t");

	if (sign < s->end && *sign == '=')
		return skip(sign, s->end, "= \t");
	if (sign < s->end && *sign == ':' && !(sign + 1 < s->end && sign[1] == ':'))
		return skip(sign + 1, s->end, " \t");
	if (*s->name.at == '-' && p < s->end && blank(*p)) {
		const char *value = skip(p, s->end, " \t");
		if (value < s->end && strncmp(value, "--", 2))
			return value;
	}
	return NULL;
}

/* "user:password" */
static const char *password_of(const char *p, const char *end)
{
	const char *stop = word_end(skip(p, end, "\"'"), end);
	const char *colon = memchr(p, ':', (size_t)(stop - p));
	bool ids = true;

	for (const char *c = p; c < stop; c++)
		ids &= isdigit((unsigned char)*c) || *c == ':';
	return colon && colon + 1 < stop && !ids && colon[1] != '/' ? colon + 1 : NULL;
}

/* "https://user:password@host", at the "://". Returns where the password begins; *upto is its end.
 */
static const char *password_of_url(const char *p, const char *end, bool web, const char **upto)
{
	const char *from = p + 3, *stop = from, *at = NULL;

	for (; stop < end && !blank(*stop) && !strchr("/?#\"'<>", *stop); stop++)
		if (*stop == '@')
			at = stop;
	*upto = at;
	if (!at)
		return NULL;
	const char *colon = memchr(from, ':', (size_t)(at - from));
	return colon ? colon + 1 : web ? from : NULL;
}

static size_t run_of(const char *p, const char *end, const char *others)
{
	size_t n = 0;

	while (p + n < end && p[n] && (letter_or_digit(p[n]) || strchr(others, p[n])))
		n++;
	return n;
}

/* Length of the secret at p, recognised by its form; 0: none. */
static size_t looks_secret(const struct scan *s, const char *p)
{
	static const char pem[] = "-----BEGIN ", pem_end[] = "-----END ";
	size_t left = (size_t)(s->end - p), hex = 0;

	for (size_t i = 0; i < N_RULES; i++) {
		size_t n = strlen(rules[i].text);
		if (rules[i].kind != RULE_SHAPE || left < n || memcmp(p, rules[i].text, n))
			continue;
		size_t run = run_of(p + n, s->end, rules[i].others);
		bool plain = true; /* words joined by dashes are a name */
		for (size_t k = 0; k < run; k++)
			plain &= !isdigit((unsigned char)p[n + k]) && !capital(p[n + k]);
		if (run >= rules[i].least && !plain)
			return n + run;
	}
	if (left > sizeof(pem) && !memcmp(p, pem, sizeof(pem) - 1)) {
		const char *key = memmem(p, left < 64 ? left : 64, "PRIVATE KEY", 11);
		const char *stop = memmem(p, left, pem_end, sizeof(pem_end) - 1);
		if (key && stop)
			stop = memmem(stop + 9, (size_t)(s->end - stop) - 9, "-----", 5);
		if (key)
			return stop ? (size_t)(stop + 5 - p) : left;
	}
	while (hex < left && isxdigit((unsigned char)p[hex]))
		hex++;
	bool alone = hex == left || !name_char(p[hex]);
	return hex == 40 && alone && !version_name(s->name.at, s->name.len) ? hex : 0;
}

/* "-pPASSWORD" of database clients, unless it is a number or a plain word. */
static bool short_password(const struct text_part *word)
{
	bool plain = true, number = true;

	if (word->len < 3 || word->at[0] != '-' || word->at[1] != 'p')
		return false;
	for (size_t i = 2; i < word->len; i++) {
		plain &= islower((unsigned char)word->at[i]) || word->at[i] == '-';
		number &= isdigit((unsigned char)word->at[i]) || word->at[i] == '.';
	}
	return !plain && !number;
}

/* A name at `at`, and its value. */
static void take_name(struct scan *s)
{
	const char *p = s->at, *upto;

	while (p < s->end && name_char(*p))
		p++;
	const struct text_part name = {s->at, (size_t)(p - s->at)};
	if (s->end - p > 3 && !memcmp(p, "://", 3)) {
		bool web = name.len >= 4 && !strncasecmp(name.at, "http", 4);
		const char *secret = password_of_url(p, s->end, web, &upto);
		tell(s, secret ? secret : p + 3);
		if (secret)
			hide(s, upto);
		return;
	}
	bool separate = s->at == s->begin || blank(s->at[-1]);
	if (separate && short_password(&name) && !(p < s->end && *p == '=')) {
		tell(s, s->at + 2);
		hide(s, word_end(p, s->end));
		return;
	}
	s->name = name;
	const char *value = value_of(s, p);
	const struct text_part bare = {skip(name.at, p, "-"), (size_t)(p - skip(name.at, p, "-"))};
	if (!value || value == s->end) {
		/* "Bearer x" without a header's name before it */
		const struct text_part word = {name.at, name.len};
		if (same(&word, "Bearer") && s->end - p > 8 && *p == ' ') {
			tell(s, p + 1);
			hide(s, word_end(p + 1, s->end));
			return;
		}
		tell(s, p);
	} else if (secret_name(name.at, name.len)) {
		/* In an argument of its own, the value is all that follows, whatever it
		 * contains. */
		bool whole = name.at == s->begin && *p == '=';
		tell(s, value);
		hide(s, whole ? s->end : value_end(value, s->end));
	} else if (listed(RULE_USER, &bare) && (upto = password_of(value, s->end))) {
		tell(s, upto);
		hide(s, word_end(upto, s->end));
	} else {
		tell(s, p);
	}
}

static void read_text(struct scan *s)
{
	while (s->at < s->end) {
		bool begins = s->at == s->begin || !name_char(s->at[-1]);
		size_t n = begins ? looks_secret(s, s->at) : 0;
		if (n)
			hide(s, s->at + n);
		else if (begins && name_char(*s->at))
			take_name(s);
		else
			tell(s, s->at + 1);
	}
}

/* `option`: the name, without dashes, of the option whose value the text is; empty: none. */
static const char *redact(const char *text, const struct text_part *option)
{
	static char *out; /* the recorder calls this on stacks of any size */
	struct scan s = {.begin = text,
			 .at = text,
			 .end = text + strlen(text),
			 .name = *option,
			 .out = tfh_map_once(&out, TEXT_BYTES),
			 .size = TEXT_BYTES - 1};
	if (!s.out)
		return "";
	const char *password = listed(RULE_USER, option) ? password_of(s.at, s.end) : NULL;

	if (secret_name(option->at, option->len)) {
		hide(&s, s.end);
	} else if (password) {
		tell(&s, password);
		hide(&s, s.end);
	}
	read_text(&s);
	out[s.n] = '\0';
	return s.hidden ? out : text;
}

const char *tfh_redact_arg(char *const *argv, size_t i)
{
	const char *before = i ? argv[i - 1] : "";
	size_t dashes = strspn(before, "-");
	struct text_part option = {before + dashes, strlen(before) - dashes};

	if (!dashes || strchr(before, '=') || !strncmp(argv[i], "--", 2))
		option.len = 0;
	return redact(argv[i], &option);
}

const char *tfh_redact_entry(const char *entry)
{
	const struct text_part none = {entry, 0};

	return redact(entry, &none);
}
