/* still.c - a library before which time stands still, as those that give programs another date may make it. */
#include <time.h>

int clock_gettime(clockid_t clock, struct timespec *time)
{
	(void)clock;
	time->tv_sec = 1000000;
	time->tv_nsec = 0;
	return 0;
}
