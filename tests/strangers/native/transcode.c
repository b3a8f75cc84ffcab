/*
 * Transcoding: one thread reads frames, one filters them on the device, one encodes them, slower
 * than the others. The twin's encoder tries one setting, not six.
 */
#include "native.h"

enum { WIDTH = 1280, FRAME = WIDTH * 720 * 3 / 2, SLOTS = 4, FRAMES = 400 };

static struct queue {
	pthread_cond_t changed;
	unsigned char *frames[64];
	int n, head;
} empty_in = {.changed = PTHREAD_COND_INITIALIZER}, full_in = {.changed = PTHREAD_COND_INITIALIZER},
  empty_out = {.changed = PTHREAD_COND_INITIALIZER},
  full_out = {.changed = PTHREAD_COND_INITIALIZER};
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static long written;

static void put(struct queue *q, unsigned char *frame)
{
	pthread_mutex_lock(&mutex);
	q->frames[(q->head + q->n++) % 64] = frame;
	pthread_cond_signal(&q->changed);
	pthread_mutex_unlock(&mutex);
}

static NOINLINE unsigned char *take(struct queue *q)
{
	pthread_mutex_lock(&mutex);
	while (!q->n)
		pthread_cond_wait(&q->changed, &mutex);
	unsigned char *frame = q->frames[q->head++ % 64];
	q->head %= 64;
	q->n--;
	pthread_mutex_unlock(&mutex);
	return frame;
}

static void *reader(void *unused)
{
	int fd = open("clip.yuv", O_RDONLY);
	for (int i = 0; i < FRAMES; i++) {
		unsigned char *frame = take(&empty_in);
		if (pread(fd, frame, FRAME, (off_t)(i % 8) * FRAME) != FRAME)
			exit(2);
		put(&full_in, frame);
	}
	close(fd);
	return unused;
}

static NOINLINE void encode_frame(const unsigned char *p, const unsigned char *before)
{
	static unsigned histogram[256];
	int run = 0;
	for (int quantiser = 1; quantiser < (fixed() ? 2 : 7); quantiser++)
		for (int i = WIDTH; i < FRAME; i += 2) {
			int d = (p[i] - ((p[i - 1] + p[i - WIDTH]) >> 1) + (before[i] >> 7)) /
				quantiser;
			if (!d) {
				run++;
				continue;
			}
			written += run > 3 ? 12 : 7 + (++histogram[d & 255] & 3);
			run = 0;
		}
}

static void *encoder(void *unused)
{
	unsigned char *before = calloc(1, FRAME);
	for (int i = 0; before && i < FRAMES; i++) {
		unsigned char *frame = take(&full_out);
		encode_frame(frame, before);
		memcpy(before, frame, FRAME);
		put(&empty_out, frame);
	}
	free(before);
	return unused;
}

static void make_clip(void)
{
	unsigned seed = 3;
	FILE *f = fopen("clip.yuv", "w");
	for (long i = 0; f && i < 8L * FRAME; i++)
		putc_unlocked(rand_r(&seed) >> 9, f);
	if (!f || fclose(f))
		exit(2);
}

int main(void)
{
	boot(0);
	make_clip();
	CUfunction denoise = kernel_of("spin_denoise"), scale = kernel_of("spin_scale"),
		   tone = kernel_of("spin_tonemap");
	CUstream s = new_stream();
	CUdeviceptr a = on_device(FRAME), b = on_device(FRAME);
	for (int i = 0; i < SLOTS; i++) {
		put(&empty_in, pinned(FRAME));
		put(&empty_out, pinned(FRAME));
	}
	pthread_t reading, encoding;
	pthread_create(&reading, NULL, reader, NULL);
	pthread_create(&encoding, NULL, encoder, NULL);
	double since = now();
	for (int i = 0; i < FRAMES; i++) {
		unsigned char *in = take(&full_in), *out = take(&empty_out);
		CK(cuMemcpyHtoDAsync(a, in, FRAME, s));
		run_kernel(denoise, 1300, 512, s);
		run_kernel(scale, 300, 512, s);
		run_kernel(tone, 200, 512, s);
		CK(cuMemcpyDtoHAsync(out, b, FRAME, s));
		CK(cuStreamSynchronize(s));
		put(&empty_in, in);
		put(&full_out, out);
	}
	tell(FRAMES, since);
	pthread_join(encoding, NULL);
	pthread_join(reading, NULL);
	return written < 0;
}
