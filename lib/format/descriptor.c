#include "format/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/fd.h"

#define OTHERS 48 /* descriptors for everything else */
#define LEAST 8

static struct {
	pthread_mutex_t lock;
	unsigned open, most;
	struct tft_descriptor *oldest, *newest; /* parked */
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void park(struct tft_descriptor *d)
{
	d->parked = true;
	d->newer = NULL;
	d->older = all.newest;
	*(d->older ? &d->older->newer : &all.oldest) = d;
	all.newest = d;
}

static void unpark(struct tft_descriptor *d)
{
	if (!d->parked)
		return;
	*(d->older ? &d->older->newer : &all.oldest) = d->newer;
	*(d->newer ? &d->newer->older : &all.newest) = d->older;
	d->parked = false;
}

static void close_now(struct tft_descriptor *d)
{
	unpark(d);
	if (d->fd >= 0) {
		tfh_close(d->fd);
		all.open--;
	}
	d->fd = -1;
}

static void make_room(void)
{
	struct rlimit limit;

	if (!all.most && !getrlimit(RLIMIT_NOFILE, &limit))
		all.most = limit.rlim_cur > 1u << 20	     ? 1u << 20
			   : limit.rlim_cur > OTHERS + LEAST ? (unsigned)limit.rlim_cur - OTHERS
							     : LEAST;
	while (all.open >= all.most && all.oldest)
		close_now(all.oldest);
}

/* Opens the file itself, or duplicates an open descriptor. */
static int open_now(struct tft_descriptor *d, int of)
{
	make_room();
	do
		d->fd = of < 0 ? tfh_open(d->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
			       : tfh_fcntl(of, F_DUPFD_CLOEXEC, 0);
	while (d->fd < 0 && errno == EMFILE && all.oldest && (close_now(all.oldest), true));
	if (d->fd < 0)
		return -errno;
	all.open++;
	return 0;
}

static int begin(struct tft_descriptor *d, const char *path, int of)
{
	struct stat st;

	memset(d, 0, sizeof(*d));
	d->path = path;
	pthread_mutex_lock(&all.lock);
	int code = open_now(d, of);
	if (code == 0 && tfh_fstat(d->fd, &st) < 0) {
		code = -errno;
		close_now(d);
	}
	if (code == 0) {
		d->dev = st.st_dev;
		d->ino = st.st_ino;
		d->owner = st.st_uid;
		park(d);
	}
	pthread_mutex_unlock(&all.lock);
	return code;
}

int tft_descriptor_open(struct tft_descriptor *d, const char *path)
{
	return begin(d, path, -1);
}

int tft_descriptor_copy(struct tft_descriptor *d, struct tft_descriptor *of)
{
	int fd = tft_descriptor_use(of);

	if (fd < 0) {
		d->fd = -1;
		return fd;
	}
	int code = begin(d, of->path, fd);
	tft_descriptor_done(of);
	return code;
}

void tft_descriptor_close(struct tft_descriptor *d)
{
	pthread_mutex_lock(&all.lock);
	close_now(d);
	pthread_mutex_unlock(&all.lock);
}

int tft_descriptor_use(struct tft_descriptor *d)
{
	struct stat st;
	int code = 0;

	pthread_mutex_lock(&all.lock);
	if (d->fd < 0) {
		code = open_now(d, -1);
		if (code == 0 &&
		    (tfh_fstat(d->fd, &st) < 0 || st.st_dev != d->dev || st.st_ino != d->ino)) {
			close_now(d);
			code = -ESTALE;
		}
	}
	if (code == 0) {
		unpark(d);
		d->users++;
		code = d->fd;
	}
	pthread_mutex_unlock(&all.lock);
	return code;
}

void tft_descriptor_done(struct tft_descriptor *d)
{
	pthread_mutex_lock(&all.lock);
	if (--d->users == 0)
		park(d);
	pthread_mutex_unlock(&all.lock);
}
