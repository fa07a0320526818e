/*
 * mallocs_race.c - an allocator whose realloc() waits until another thread has got the old block. Preloaded; its
 * functions that begin with race_ are called by ctypes.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MOVED 1000003  /* the size that a raced realloc() asks for */
#define HANDED 2000003 /* the size with which malloc() gives the old block of one */
#define FAILED 3000017 /* a realloc() to this size fails */

extern void *__libc_malloc(size_t size);
extern void *__libc_realloc(void *old, size_t size);

static _Atomic(void *) handed;

void *malloc(size_t size)
{
	void *block;

	if (size != HANDED)
		return __libc_malloc(size);
	while (!(block = atomic_exchange(&handed, NULL)))
		usleep(100);
	return block;
}

static _Atomic long taken; /* the tid of who took it */

void *realloc(void *old, size_t size)
{
	void *block;

	if (size == FAILED)
		return NULL;
	if (size != MOVED)
		return __libc_realloc(old, size);
	block = __libc_malloc(size);
	memcpy(block, old, size);
	handed = old;
	while (!taken)
		usleep(100);
	return block;
}

static void *take(void *unused)
{
	char *block = malloc(HANDED);

	(void)unused;
	memset(block, 1, HANDED);
	taken = syscall(SYS_gettid);
	return block;
}

/* Two blocks stay: one that moved, in this thread, and the other thread's, at its old address. A third cannot move. */
void race_run(void)
{
	void *block = malloc(4000037), *third = malloc(5000077), *other = NULL;
	pthread_t thread;

	if (pthread_create(&thread, NULL, take, NULL))
		return;
	block = realloc(block, MOVED);
	third = realloc(third, FAILED) ? NULL : third;
	pthread_join(thread, &other);
	printf("%ld %d\n", taken, block && other && third);
	fflush(stdout);
}
