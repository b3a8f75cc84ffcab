/* A ring of blocks between threads that fill them and their reader, who gets them in order. */
#include "model/ahead.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>

static void *block_at(struct tfh_ahead *a, uint64_t i)
{
	return a->ring + (i % a->n) * a->bytes;
}

/* Fills the next block. The caller holds the lock. */
static void fill_next(struct tfh_ahead *a)
{
	uint64_t i = a->taken++;

	pthread_mutex_unlock(&a->lock);
	bool more = a->fill(a->arg, block_at(a, i), i);
	pthread_mutex_lock(&a->lock);
	a->last[i % a->n] = !more;
	a->ready[i % a->n] = true;
	a->made++;
	if (!more)
		a->count = i + 1;
	if (a->ready[a->read % a->n])
		pthread_cond_broadcast(&a->changed);
}

static void *make(void *arg)
{
	struct tfh_ahead *a = arg;

	pthread_mutex_lock(&a->lock);
	while (!a->stop && a->taken < a->count)
		if (a->taken - a->read < a->n)
			fill_next(a);
		else
			pthread_cond_wait(&a->changed, &a->lock);
	pthread_mutex_unlock(&a->lock);
	return NULL;
}

int tfh_ahead_start(struct tfh_ahead *a, const struct tfh_ahead_plan *plan)
{
	sigset_t all, old;

	*a = (struct tfh_ahead){.fill = plan->fill,
				.arg = plan->arg,
				.bytes = plan->bytes,
				.n = plan->blocks,
				.count = plan->count,
				.begun = true};
	pthread_mutex_init(&a->lock, NULL);
	pthread_cond_init(&a->changed, NULL);
	a->ring = malloc(a->n * a->bytes);
	if (!a->ring)
		return -ENOMEM;
	if (a->n == 1)
		return 0;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	while (a->threads < plan->threads && !pthread_create(&a->thread[a->threads], NULL, make, a))
		a->threads++;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return 0;
}

/* Releases the block that was read and waits for the next one. */
static void wait_for_block(struct tfh_ahead *a)
{
	pthread_mutex_lock(&a->lock);
	if (a->reading) {
		a->ready[a->read % a->n] = false;
		a->read++;
		pthread_cond_broadcast(&a->changed);
	}
	while (!a->ready[a->read % a->n])
		pthread_cond_wait(&a->changed, &a->lock);
	pthread_mutex_unlock(&a->lock);
}

void *tfh_ahead_next(struct tfh_ahead *a)
{
	if (a->reading && a->last[a->read % a->n])
		return NULL;
	if (a->threads)
		wait_for_block(a);
	else
		a->last[0] = !a->fill(a->arg, a->ring, a->taken++);
	a->reading = true;
	return block_at(a, a->read);
}

void tfh_ahead_stop(struct tfh_ahead *a)
{
	if (!a->begun)
		return;
	pthread_mutex_lock(&a->lock);
	a->stop = true;
	pthread_cond_broadcast(&a->changed);
	pthread_mutex_unlock(&a->lock);
	for (uint32_t i = 0; i < a->threads; i++)
		pthread_join(a->thread[i], NULL);
	free(a->ring);
	pthread_cond_destroy(&a->changed);
	pthread_mutex_destroy(&a->lock);
	a->begun = false;
}
