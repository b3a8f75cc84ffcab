/* A thread's first ring, and the end of the thread. */
#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>

#include "record/process/requests.h"
#include "record/process/steady.h"
#include "record/ring/journal.h"
#include "record/ring/rings.h"

static pthread_key_t end_key;
static uint32_t end_key_state; /* atomic: 0 none, 1 being created, 2 usable, 3 unavailable */

static bool thread_room(struct tfh_self *self)
{
	void *map = self->room;

	if (!map)
		map = mmap(NULL, sizeof(*self->room), PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (map == MAP_FAILED)
		return false;
	self->room = map;
	return true;
}

static void thread_room_free(struct tfh_self *self)
{
	if (self->room)
		munmap(self->room, sizeof(*self->room));
	self->room = NULL;
}

/* Runs when the thread ends. Calls made by later destructors set the thread up again, a few times.
 */
static void thread_end(void *arg)
{
	struct tfh_self *self = &tfh_self;
	struct tfh_steady steady;
	int saved = errno;

	(void)arg;
	if (tfh_confined(self))
		return;
	tfh_steady_begin(&steady);
	tfh_guard_begin(self);
	if (tfh_own_ring(self)) {
		tfh_agg_flush(self);
		tfh_ring_retire(self->ring);
	}
	tfh_journal_map_leave(self->ring);
	self->ring = NULL;
	self->seen.generation = TFH_NO_RING;
	self->head = self->tail_cache = 0;
	self->rearmed++;
	tfh_self_names_free(self);
	thread_room_free(self);
	/* The thread may have been cancelled inside a call, or in the middle of our own code. */
	self->depth = self->stage = self->in_agg = self->guard = 0;
	tfh_steady_end(&steady);
	errno = saved;
}

static void make_key(void)
{
	uint32_t none = 0;

	if (__atomic_load_n(&end_key_state, __ATOMIC_ACQUIRE) != 0 ||
	    !__atomic_compare_exchange_n(&end_key_state, &none, 1, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_RELAXED))
		return;
	__atomic_store_n(&end_key_state, pthread_key_create(&end_key, thread_end) ? 3 : 2,
			 __ATOMIC_RELEASE);
}

static void thread_arm(void)
{
	make_key();
	if (__atomic_load_n(&end_key_state, __ATOMIC_ACQUIRE) == 2)
		pthread_setspecific(end_key, &tfh_self);
}

bool tfh_thread_ring(struct tfh_self *self)
{
	/* Read before the state: the starter stores them in the other order, so a ring in plain
	 * memory never passes for one in the journal. */
	uint32_t generation = __atomic_load_n(&tfh_peek(&tfh_epoch)->generation, __ATOMIC_ACQUIRE);
	bool hot = __atomic_load_n(&tfh_recorder.start_state, __ATOMIC_ACQUIRE) == TFH_START_DONE;
	uint64_t now = tfh_ticks();
	bool done;

	if (self->ring && !tfh_own_ring(self))
		self->head = self->tail_cache = 0; /* a parent process counted these */
	if (tfh_own_ring(self) && (!hot || !tfh_ring_is_cold(self->ring))) {
		self->seen.generation = generation;
		return true;
	}
	if (now < self->retry)
		return tfh_own_ring(self);
	if (!tfh_own_ring(self))
		thread_arm();
	done = thread_room(self);
	/* A large ring holds everything that a cold one may contain. */
	if (done && hot)
		done = (self->head != 0 && tfh_ring_in_journal(self, true)) ||
		       tfh_ring_in_journal(self, false);
	else if (done)
		done = tfh_ring_in_memory(self);
	if (done) {
		self->seen.generation = generation;
		return true;
	}
	self->retry = now + TFH_RETRY_TICKS;
	if (hot)
		tfh_flusher_wake();
	return tfh_own_ring(self);
}

void tfh_self_forked(struct tfh_self *self)
{
	/* Calls open at the fork belong to the parent. */
	self->depth = self->stage = 0;
	self->since = tfh_confined(self) ? 0 : tfh_ticks();
	self->named = NULL;
	self->seen.handles = 0;
	self->in_agg = 0;
	self->rearmed = 0;
	self->retry = 0;
	self->guard &= TFH_GUARD_CONFINED;
	self->ctx = 0;
}
