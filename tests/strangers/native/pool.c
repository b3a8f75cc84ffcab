/*
 * A service renders tiles of maps: four threads with a stream each take tiles, but render them
 * under one lock. The twin's hold it only for the table of tiles.
 */
#include "native.h"

enum { TILES = 2500, WORKERS = 4 };
static pthread_mutex_t table = PTHREAD_MUTEX_INITIALIZER;

static CUcontext context;
static int taken;

static unsigned char *cache[64];
static CUfunction raster, shade, label;

struct worker {
	CUstream s;
	CUdeviceptr d;
	unsigned char *out;
};

static NOINLINE void render(const struct worker *w, int tile)
{
	run_kernel(raster, 900 + tile % 5 * 90, 128, w->s);
	run_kernel(shade, 500, 128, w->s);
	run_kernel(label, 150, 32, w->s);
	CK(cuMemcpyDtoHAsync(w->out, w->d, 1 << 16, w->s));
	CK(cuStreamSynchronize(w->s));
}

static NOINLINE void get_tile(const struct worker *w, int tile)
{
	if (fixed())
		render(w, tile);
	pthread_mutex_lock(&table);
	if (!fixed())
		render(w, tile); /* so that no tile is rendered twice */
	cache[tile % 64] = w->out;
	pthread_mutex_unlock(&table);
}

static void *work(void *unused)
{
	CK(cuCtxSetCurrent(context));
	struct worker w = {new_stream(), on_device(1 << 16), pinned(1 << 16)};
	for (int tile; (tile = __sync_fetch_and_add(&taken, 1)) < TILES;)
		get_tile(&w, tile);
	return unused;
}

int main(void)
{
	pthread_t threads[WORKERS];
	context = boot(0);
	raster = kernel_of("spin_raster");
	shade = kernel_of("spin_shade");
	label = kernel_of("spin_label");
	double since = now();
	for (int i = 0; i < WORKERS; i++)
		pthread_create(&threads[i], NULL, work, NULL);
	for (int i = 0; i < WORKERS; i++)
		pthread_join(threads[i], NULL);
	tell(TILES, since);
	return 0;
}
