/*
 * A ring of blocks between a producer thread and its reader. A side that had to wait continues when
 * half of the blocks are ready, so that the two do not alternate block by block.
 */
#include "model/ahead.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>

static void *block_at(struct tfh_ahead *a, uint64_t i)
{
	return a->ring + (i % a->n) * a->bytes;
}

static void *make(void *arg)
{
	struct tfh_ahead *a = arg;
	bool more = true;

	while (more) {
		pthread_mutex_lock(&a->lock);
		while (a->made - a->read == a->n && !a->stop)
			pthread_cond_wait(&a->changed, &a->lock);
		bool stop = a->stop;
		pthread_mutex_unlock(&a->lock);
		if (stop)
			break;
		more = a->fill(a->arg, block_at(a, a->made));
		a->last[a->made % a->n] = !more;
		pthread_mutex_lock(&a->lock);
		a->made++;
		if (a->made - a->read >= a->n / 2 || !more)
			pthread_cond_signal(&a->changed);
		pthread_mutex_unlock(&a->lock);
	}
	return NULL;
}

int tfh_ahead_start(struct tfh_ahead *a, bool (*fill)(void *arg, void *block), void *arg,
		    uint32_t n, size_t bytes)
{
	sigset_t all, old;

	*a = (struct tfh_ahead){.fill = fill, .arg = arg, .bytes = bytes, .n = n, .begun = true};
	pthread_mutex_init(&a->lock, NULL);
	pthread_cond_init(&a->changed, NULL);
	a->ring = malloc(n * bytes);
	if (!a->ring)
		return -ENOMEM;
	if (n == 1)
		return 0;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	a->threaded = !pthread_create(&a->thread, NULL, make, a);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return 0;
}

/* Releases the block that was read and waits for the next one. */
static void wait_for_block(struct tfh_ahead *a)
{
	pthread_mutex_lock(&a->lock);
	if (a->reading) {
		a->read++;
		if (a->made - a->read <= a->n / 2)
			pthread_cond_signal(&a->changed);
	}
	while (a->made == a->read)
		pthread_cond_wait(&a->changed, &a->lock);
	pthread_mutex_unlock(&a->lock);
}

void *tfh_ahead_next(struct tfh_ahead *a)
{
	if (a->reading && a->last[a->read % a->n])
		return NULL;
	if (a->threaded)
		wait_for_block(a);
	else
		a->last[0] = !a->fill(a->arg, a->ring);
	a->reading = true;
	return block_at(a, a->read);
}

void tfh_ahead_stop(struct tfh_ahead *a)
{
	if (!a->begun)
		return;
	if (a->threaded) {
		pthread_mutex_lock(&a->lock);
		a->stop = true;
		pthread_cond_signal(&a->changed);
		pthread_mutex_unlock(&a->lock);
		pthread_join(a->thread, NULL);
	}
	free(a->ring);
	pthread_cond_destroy(&a->changed);
	pthread_mutex_destroy(&a->lock);
	a->begun = false;
}
