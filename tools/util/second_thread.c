/*
 * second_thread.c - see second_thread.h.
 */
#include "util/second_thread.h"

#include <malloc.h>
#include <sched.h>
#include <signal.h>

bool second_thread_helps(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) != 0 || CPU_COUNT(&set) > 1;
}

int second_thread_start(pthread_t *thread, void *(*run)(void *owner), void *owner)
{
	sigset_t all, before;
	int error;

	/*
	 * A buffer may grow in one thread and be freed in another. With an arena for each thread its memory would be
	 * kept twice.
	 */
	mallopt(M_ARENA_MAX, 1);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(thread, NULL, run, owner);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return error;
}
