#define ZSTD_STATIC_LINKING_ONLY /* for ZSTD_d_forceIgnoreChecksum */
#include "format/read_buffers.h"

#include <pthread.h>
#include <stdlib.h>

#define IDLE 4

static struct {
	pthread_mutex_t lock;
	ZSTD_DCtx *zstd[IDLE];
	struct tft_events *events[IDLE]; /* closed readers' chunks, whose buffers are reused */
	struct tft_buffer packed[IDLE];
	uint32_t n_zstd, n_events, n_packed;
} idle = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The checksum of the packed bytes was already verified. The zstd frame's own checksum, which is
 * for other tools, would take a fifth of the decompression time and add nothing. */
static ZSTD_DCtx *new_zstd(void)
{
	ZSTD_DCtx *z = ZSTD_createDCtx();

	if (z)
		ZSTD_DCtx_setParameter(z, ZSTD_d_forceIgnoreChecksum, ZSTD_d_ignoreChecksum);
	return z;
}

ZSTD_DCtx *tft_borrow_zstd(void)
{
	ZSTD_DCtx *z = NULL;

	pthread_mutex_lock(&idle.lock);
	if (idle.n_zstd)
		z = idle.zstd[--idle.n_zstd];
	pthread_mutex_unlock(&idle.lock);
	return z ? z : new_zstd();
}

void tft_return_zstd(ZSTD_DCtx *z)
{
	pthread_mutex_lock(&idle.lock);
	if (idle.n_zstd < IDLE) {
		idle.zstd[idle.n_zstd++] = z;
		z = NULL;
	}
	pthread_mutex_unlock(&idle.lock);
	ZSTD_freeDCtx(z);
}

struct tft_events *tft_borrow_events(void)
{
	struct tft_events *ev = NULL;

	pthread_mutex_lock(&idle.lock);
	if (idle.n_events)
		ev = idle.events[--idle.n_events];
	pthread_mutex_unlock(&idle.lock);
	return ev ? ev : calloc(1, sizeof(*ev));
}

struct tft_buffer tft_borrow_packed(void)
{
	struct tft_buffer b = {0};

	pthread_mutex_lock(&idle.lock);
	if (idle.n_packed)
		b = idle.packed[--idle.n_packed];
	pthread_mutex_unlock(&idle.lock);
	return b;
}

void tft_return_packed(struct tft_buffer b)
{
	pthread_mutex_lock(&idle.lock);
	if (idle.n_packed < IDLE) {
		idle.packed[idle.n_packed++] = b;
		b.data = NULL;
	}
	pthread_mutex_unlock(&idle.lock);
	free(b.data);
}

void tft_events_close(struct tft_events *ev)
{
	if (!ev)
		return;
	pthread_mutex_lock(&idle.lock);
	if (idle.n_events < IDLE) {
		idle.events[idle.n_events++] = ev;
		ev = NULL;
	}
	pthread_mutex_unlock(&idle.lock);
	tft_events_free(ev);
}
