#include "sampling/holder.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/refused.h"
#include "sampling/frames.h"

#define OWNER_AT 8u   /* in a mutex, in 2.25 to 2.42 */
#define FREE_VALUE 2u /* of a locked mutex that is not robust: its word has no owner */
/* In a thread's structure, the list of threads is in front of its number, and the function with
 * which it began after it. */
#define LIST_BEFORE 16u
#define THREAD_BYTES 0x6c0u
#define THREADS_MOST 1024u
#define STACK_BYTES 512u /* from the system call up to the call of pthread_mutex_lock() */
#define CALL_BYTES 8u	 /* that are looked at before a return address */
#define TEXTS 64u	 /* different ones, for the names of a recording are few */
#define KNOWN 16u

static struct {
	uint32_t tid_at, begin_at; /* 0: not known */
	uint64_t list;		   /* of the thread that samples */
	pid_t pid;
	/* Owners that were looked at, and return addresses: of a call of pthread_mutex_lock()? */
	struct owner {
		uint32_t tid;
		uint64_t number_at, begins; /* number_at: address of its number */
		char name[16];
	} owner[KNOWN];
	uint64_t caller, text[TEXTS];
} holder;

static bool copy(uint64_t from, void *to, size_t bytes)
{
	struct iovec into = {to, bytes}, at = {(void *)(uintptr_t)from, bytes};

	return from >= TFH_PY_PAGE &&
	       tfh_copy_memory(holder.pid, &into, 1, &at, 1) == (ssize_t)bytes;
}

void tfh_holder_begin(uint64_t function)
{
	uint64_t self = 0, word = 0, next[2], back[2];
	pthread_t thread = pthread_self();

	memcpy(&self, &thread, sizeof(self));
	memset(&holder, 0, sizeof(holder));
	holder.pid = getpid();
	holder.tid_at = tfh_futex_number_at();
	holder.list = self + holder.tid_at - LIST_BEFORE;
	for (uint32_t at = holder.tid_at; holder.tid_at && at < THREAD_BYTES && !holder.begin_at;
	     at += sizeof(word))
		if (copy(self + at, &word, sizeof(word)) && word == function)
			holder.begin_at = at;
	/* A list entry's neighbours refer back to it; otherwise this is no such list. */
	if (!holder.begin_at || !copy(holder.list, next, sizeof(next)) ||
	    !copy(next[0], back, sizeof(back)) || back[1] != holder.list)
		holder.begin_at = 0;
}

/* ---- the owner ---- */

static uint32_t owner_of(const uint64_t call[TFH_CALL_WORDS])
{
	int command = (int)call[1] & FUTEX_CMD_MASK;
	uint32_t word = (uint32_t)call[2];

	if (command == FUTEX_WAIT && word == FREE_VALUE)
		return copy(call[0] + OWNER_AT, &word, sizeof(word)) ? word : 0;
	if (command != FUTEX_WAIT && !copy(call[0], &word, sizeof(word)))
		return 0;
	return word & FUTEX_TID_MASK;
}

static void read_name(struct owner *o)
{
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%u/comm", o->tid);
	fd = tfh_open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? 0 : tfh_pread(fd, o->name, sizeof(o->name) - 1, 0);
	if (fd >= 0)
		tfh_close(fd);
	o->name[n > 0 ? n - (o->name[n - 1] == '\n') : 0] = '\0';
}

/* Finds the structure of a thread in glibc's list of those that it made. */
static void find(struct owner *o)
{
	struct {
		uint64_t next, before;
		uint32_t tid, other;
	} node;
	uint64_t at = holder.list;

	for (uint32_t i = 0; holder.begin_at && i < THREADS_MOST; i++) {
		if (!copy(at, &node, sizeof(node)) || (node.next == holder.list && i))
			return;
		if (node.tid == o->tid) {
			o->number_at = at + LIST_BEFORE;
			if (!copy(o->number_at - holder.tid_at + holder.begin_at, &o->begins,
				  sizeof(o->begins)))
				o->begins = 0;
			return;
		}
		at = node.next;
	}
}

static struct owner *look_up(uint32_t tid)
{
	struct owner *o = &holder.owner[tid % KNOWN];
	uint32_t number;

	if (o->tid == tid && o->number_at && copy(o->number_at, &number, sizeof(number)) &&
	    number == tid)
		return o;
	*o = (struct owner){.tid = tid};
	read_name(o);
	if ((pid_t)tid != holder.pid)
		find(o);
	return o;
}

static bool runs(uint32_t tid)
{
	char path[64], text[8] = "";
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%u/syscall", tid);
	fd = tfh_open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	tfh_pread(fd, text, sizeof(text) - 1, 0);
	tfh_close(fd);
	return *text == 'r';
}

/* ---- the caller ---- */

#if defined(__x86_64__)
static uint64_t offset_at(const uint8_t *at, uint64_t end)
{
	return end + (uint64_t)(int64_t)tfh_py_int(at);
}

/* Whether what is called jumps to pthread_mutex_lock(): it is an entry of the table of a module's
 * functions. */
static bool leads_to(uint64_t target, uint64_t function)
{
	static const uint8_t marked[] = {0xf3, 0x0f, 0x1e, 0xfa};
	uint8_t code[16];
	uint64_t to = 0;
	uint32_t i = 0;

	if (target == function || !copy(target, code, sizeof(code)))
		return target == function;
	i += memcmp(code, marked, sizeof(marked)) ? 0 : sizeof(marked);
	i += code[i] == 0xf2;
	return code[i] == 0xff && code[i + 1] == 0x25 &&
	       copy(offset_at(code + i + 2, target + i + 6), &to, sizeof(to)) && to == function;
}

static bool calls_lock(const uint8_t before[CALL_BYTES], uint64_t back)
{
	uint64_t function = (uint64_t)(uintptr_t)&pthread_mutex_lock, to = 0,
		 at = offset_at(before + 4, back);

	if (before[3] == 0xe8)
		return leads_to(at, function);
	return before[2] == 0xff && before[3] == 0x15 && copy(at, &to, sizeof(to)) &&
	       to == function;
}

static uint64_t caller_of(uint64_t stack)
{
	uint64_t word[STACK_BYTES / 8], at[STACK_BYTES / 8], code[STACK_BYTES / 8];
	uint32_t n = 0;

	if (!copy(stack, word, sizeof(word)))
		return 0;
	for (uint32_t i = 0; i < STACK_BYTES / 8; i++) {
		if (word[i] == holder.caller && word[i])
			return word[i];
		if (word[i] >= TFH_PY_PAGE + CALL_BYTES && word[i] < TFH_ARCH_ADDRESSES &&
		    word[i] - stack >= STACK_BYTES)
			word[n++] = word[i];
	}
	for (uint32_t i = 0; i < n; i++)
		at[i] = word[i] - CALL_BYTES;
	tfh_py_words(holder.pid, at, code, n);
	for (uint32_t i = 0; i < n; i++)
		if (calls_lock((const uint8_t *)&code[i], word[i]))
			return holder.caller = word[i];
	return 0;
}
#else
static uint64_t caller_of(uint64_t stack)
{
	(void)stack;
	return 0;
}
#endif

/* ---- both ---- */

static bool has_room(uint64_t hash)
{
	uint32_t i = 0;

	while (i < TEXTS && holder.text[i] && holder.text[i] != hash)
		i++;
	if (i < TEXTS)
		holder.text[i] = hash;
	return i < TEXTS;
}

void tfh_holder_of(const uint64_t call[TFH_CALL_WORDS], uint32_t tid, char *text, size_t size)
{
	uint32_t number = owner_of(call);
	uint64_t caller;
	struct owner *o;
	bool at_work;

	if (!holder.pid || !number || number == tid)
		return;
	o = look_up(number);
	if (!*o->name) /* no thread of this process */
		return;
	caller = caller_of(call[TFH_CALL_STACK]);
	at_work = runs(number);
	if (has_room((caller * 31 + o->begins) * 31 + 2 * number + at_work + 1))
		snprintf(text, size, "mutex %d %u %llx %llx %s", at_work, number,
			 (unsigned long long)caller, (unsigned long long)o->begins, o->name);
}
