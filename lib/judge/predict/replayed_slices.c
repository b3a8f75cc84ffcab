/* What the replays of all slices of a run gave: taken slice by slice, in any order, and joined. */
#include <stdlib.h>
#include <string.h>

#include "judge/predict/predict.h"

static int append(struct tfh_replays *to, struct tfh_replays *from)
{
	int rc = 0;

	for (size_t i = 0; i < from->of.n && !rc; i++)
		rc = TFH_PUSH(to->of, from->of.v[i]);
	to->woken += from->woken;
	to->windows += from->windows;
	return rc;
}

static void free_replays(struct tfh_samples *all)
{
	for (int i = 0; i < TFH_REPLAY_COUNT; i++)
		free(all->replay[i].of.v);
	for (uint32_t i = 0; i < all->n_place; i++)
		free(all->without[i].of.v);
}

/* Takes samples of one slice; they refer to the places of all slices. */
static void *take(const void *arg, const struct tfh_slice *sl)
{
	const struct tfh_samples *all = arg;
	struct tfh_samples *mine = calloc(1, sizeof(*mine));

	if (!mine)
		return NULL;
	memcpy(mine->place, all->place, sizeof(mine->place));
	mine->n_place = all->n_place;
	tfh_xprof_add(mine, sl);
	if (!tfh_replay(mine, sl))
		return mine;
	free_replays(mine);
	free(mine);
	return NULL;
}

static int add(void *arg, void *sample, bool drop)
{
	struct tfh_samples *all = arg, *mine = sample;
	int rc = 0;

	for (int i = 0; i < TFH_REPLAY_COUNT && !drop; i++)
		rc |= append(&all->replay[i], &mine->replay[i]);
	for (uint32_t i = 0; i < all->n_place && !drop; i++)
		rc |= append(&all->without[i], &mine->without[i]);
	for (int k = 0; k < TFH_XPROF_COUNT && !drop; k++)
		all->xprof[k] += mine->xprof[k];
	free_replays(mine);
	free(mine);
	return rc;
}

struct tfh_sampler tfh_sampler_of(struct tfh_samples *all)
{
	return (struct tfh_sampler){all, take, add};
}

void tfh_samples_free(struct tfh_samples *all)
{
	free_replays(all);
	for (uint32_t i = 0; i < all->n_place; i++)
		free(all->place[i].part);
}
