#include "base/bound.h"

#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/proc.h"
#include "base/refused.h"

#define NODES 1024ul /* the kernel's largest configurable number */
#define WORD_BITS (8 * sizeof(unsigned long))
#define LIST_BYTES 256
#define STATUS_BYTES 8192 /* lists of thousands of CPUs and nodes also come in hex */

/* MPOL_DEFAULT and so on. The upper bits of a mode only refine it. */
static const char *const modes[] = {
	"default",	  "preferred",		"bind", "interleave", "local",
	"preferred-many", "weighted-interleave"};
#define MODE_BITS 0xffu

/* The text of a line "KEY:\tTEXT", "?" if there is none. */
static void text_of(const char *status, const char *key, char *out, size_t size)
{
	const char *at = strstr(status, key);

	at = at ? at + strlen(key) + strspn(at + strlen(key), "\t ") : "?";
	snprintf(out, size, "%.*s", (int)strcspn(at, "\n\t"), at);
}

/* Bits as "0-2,5". */
static void list(const unsigned long *mask, char *out, size_t size)
{
	size_t n = 0;

	for (unsigned long i = 0, from; i < NODES && n < size; i++) {
		if (!(mask[i / WORD_BITS] >> i % WORD_BITS & 1))
			continue;
		for (from = i;
		     i + 1 < NODES && mask[(i + 1) / WORD_BITS] >> (i + 1) % WORD_BITS & 1;)
			i++;
		n += (size_t)snprintf(out + n, size - n, from == i ? "%s%lu" : "%s%lu-%lu",
				      n ? "," : "", from, i);
	}
}

static void policy(char *out, size_t size)
{
	unsigned long mask[NODES / WORD_BITS] = {0};
	char nodes[LIST_BYTES] = "";
	int mode = 0;

	if (!tfh_may_call(TFH_CALL_POLICY) ||
	    syscall(SYS_get_mempolicy, &mode, mask, NODES + 1, NULL, 0ul)) {
		snprintf(out, size, "?");
		return;
	}
	list(mask, nodes, sizeof(nodes));
	mode &= (int)MODE_BITS;
	snprintf(out, size, "%s%s%s",
		 mode < (int)(sizeof(modes) / sizeof(modes[0])) ? modes[mode] : "?",
		 nodes[0] ? ":" : "", nodes);
}

void tfh_bound_here(char *out, size_t size)
{
	char status[STATUS_BYTES], cpus[LIST_BYTES], nodes[LIST_BYTES], how[LIST_BYTES + 32];

	tfh_read_small("/proc/self/status", status, sizeof(status));
	text_of(status, "Cpus_allowed_list:", cpus, sizeof(cpus));
	text_of(status, "Mems_allowed_list:", nodes, sizeof(nodes));
	policy(how, sizeof(how));
	snprintf(out, size, "%s\t%s\t%s", cpus, nodes, how);
}
