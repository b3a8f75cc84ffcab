/* A wall clock that is set back an hour and forward a year in turns, every 50 readings. Preloaded.
 */
#include <dlfcn.h>
#include <time.h>

int clock_gettime(clockid_t id, struct timespec *ts)
{
	static int (*real)(clockid_t, struct timespec *);
	static unsigned readings;
	int rc;

	if (!real)
		real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
	rc = real(id, ts);
	if (!rc && id == CLOCK_REALTIME) {
		unsigned turn = __atomic_fetch_add(&readings, 1, __ATOMIC_RELAXED) / 50;

		ts->tv_sec += turn % 3 == 1 ? -3600 : turn % 3 == 2 ? 365 * 86400 : 0;
	}
	return rc;
}
