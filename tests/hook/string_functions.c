/* The hook's own functions of memory and strings do what libc's do: every length and overlap up to
 * some hundred bytes, long ones, and drawn texts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define OWN(name) own_##name
#define memcpy OWN(memcpy)
#define memmove OWN(memmove)
#define memset OWN(memset)
#define memcmp OWN(memcmp)
#define memchr OWN(memchr)
#define strlen OWN(strlen)
#define strnlen OWN(strnlen)
#define strcmp OWN(strcmp)
#define strncmp OWN(strncmp)
#define strcasecmp OWN(strcasecmp)
#define strncasecmp OWN(strncasecmp)
#define strchr OWN(strchr)
#define strrchr OWN(strrchr)
#define strspn OWN(strspn)
#define strcspn OWN(strcspn)
#define strstr OWN(strstr)
#define strncpy OWN(strncpy)
#define memmem OWN(memmem)
void *memcpy(void *restrict, const void *restrict, size_t);
void *memmove(void *, const void *, size_t);
void *memset(void *, int, size_t);
size_t strnlen(const char *, size_t);
size_t strlen(const char *);
char *strchr(const char *, int);
int strncmp(const char *, const char *, size_t);
int memcmp(const void *, const void *, size_t);
#include "hook/string_functions.c"
#undef memcpy
#undef memmove
#undef memset
#undef memcmp
#undef memchr
#undef strlen
#undef strnlen
#undef strcmp
#undef strncmp
#undef strcasecmp
#undef strncasecmp
#undef strchr
#undef strrchr
#undef strspn
#undef strcspn
#undef strstr
#undef strncpy
#undef memmem

#define SIZE 1400

static int wrong;

static void same(const char *what, size_t a, size_t b, int yes)
{
	if (!yes && !wrong++)
		printf("%s differs at %zu, %zu\n", what, a, b);
}

static int sign(int n)
{
	return (n > 0) - (n < 0);
}

static void check_memory(void)
{
	static char source[SIZE], ours[SIZE], theirs[SIZE];

	for (size_t i = 0; i < SIZE; i++)
		source[i] = (char)(i * 7 + i / 256);
	for (size_t n = 0; n < 1200; n += n < 140 ? 1 : 97) {
		for (size_t shift = 0; shift < 40; shift++) {
			memcpy(ours, source, SIZE);
			memcpy(theirs, source, SIZE);
			own_memmove(ours + shift, ours + 20, n);
			memmove(theirs + shift, theirs + 20, n);
			same("memmove", n, shift, !memcmp(ours, theirs, SIZE));
			own_memcpy(ours + shift, source + 3, n);
			memcpy(theirs + shift, source + 3, n);
			same("memcpy", n, shift, !memcmp(ours, theirs, SIZE));
			own_memset(ours + shift, 0x1a5, n);
			memset(theirs + shift, 0x1a5, n);
			same("memset", n, shift, !memcmp(ours, theirs, SIZE));
			ours[shift + n / 2] ^= 0x80;
			same("memcmp", n, shift,
			     sign(own_memcmp(ours, theirs, n)) == sign(memcmp(ours, theirs, n)));
			same("memchr", n, shift,
			     own_memchr(source, (int)shift, n) == memchr(source, (int)shift, n));
		}
	}
}

static void draw(char *text, size_t most)
{
	size_t n = (size_t)rand() % most;

	for (size_t i = 0; i < n; i++)
		text[i] = "abAB\xe4"[rand() % 5];
	text[n] = '\0';
}

static void check_strings(void)
{
	for (size_t i = 0; i < 20000; i++) {
		char a[12], b[6], ours[16], theirs[16];
		size_t n = (size_t)rand() % 12;

		draw(a, sizeof(a));
		draw(b, sizeof(b));
		same("strlen", i, n, own_strlen(a) == strlen(a));
		same("strnlen", i, n, own_strnlen(a, n) == strnlen(a, n));
		same("strcmp", i, n, sign(own_strcmp(a, b)) == sign(strcmp(a, b)));
		same("strncmp", i, n, sign(own_strncmp(a, b, n)) == sign(strncmp(a, b, n)));
		same("strcasecmp", i, n, sign(own_strcasecmp(a, b)) == sign(strcasecmp(a, b)));
		same("strncasecmp", i, n,
		     sign(own_strncasecmp(a, b, n)) == sign(strncasecmp(a, b, n)));
		same("strchr", i, n, own_strchr(a, b[0]) == strchr(a, b[0]));
		same("strrchr", i, n, own_strrchr(a, b[0]) == strrchr(a, b[0]));
		same("strspn", i, n, own_strspn(a, b) == strspn(a, b));
		same("strcspn", i, n, own_strcspn(a, b) == strcspn(a, b));
		same("strstr", i, n, own_strstr(a, b) == strstr(a, b));
		same("memmem", i, n,
		     own_memmem(a, strlen(a), b, strlen(b)) == memmem(a, strlen(a), b, strlen(b)));
		memset(ours, 1, sizeof(ours));
		memset(theirs, 1, sizeof(theirs));
		own_strncpy(ours, a, n);
		memcpy(theirs, a, strnlen(a, n));
		memset(theirs + strnlen(a, n), 0, n - strnlen(a, n));
		same("strncpy", i, n, !memcmp(ours, theirs, sizeof(ours)));
	}
}

int main(void)
{
	check_memory();
	check_strings();
	return wrong != 0;
}
