/*
 * limits.c - a library that allocates up to limits: of the address space, of a control group, of its own life. Loaded
 * by limits.py. What it needs to count with is mapped by system calls of its own, which nobody records.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STEP 1000003
#define KEPT 100 /* blocks of a thread that are alive at a time */

/* strike.h */
struct oracle {
	volatile uint64_t pid, stop;
	struct {
		volatile uint64_t begun, ended;
	} calls[255];
};

static struct oracle *oracle;

static void *map_quietly(size_t bytes, int fd)
{
	int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE : MAP_SHARED;

	return (void *)syscall(SYS_mmap, NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, 0L);
}

void limits_open_oracle(void)
{
	oracle = map_quietly(sizeof(*oracle), open("oracle", O_RDWR));
}

void limits_begin(int entry)
{
	oracle->calls[entry].begun++;
	oracle->pid = (uint64_t)getpid();
}

void limits_end(int entry)
{
	oracle->calls[entry].ended++;
}

/* One block more, which is used and kept. */
void limits_step(void)
{
	char *block;

	limits_begin(1);
	block = malloc(STEP);
	if (block)
		memset(block, 1, STEP);
	limits_end(1);
}

/* ---- threads that allocate until the process is killed. Each has a size of its own */

static void *allocate(void *argument)
{
	int entry = (int)(intptr_t)argument;
	size_t size = 5001 + (size_t)entry;
	void *kept[KEPT] = {NULL};

	for (uint64_t n = 0;; n++) {
		free(kept[n % KEPT]);
		oracle->calls[entry].begun = n + 1;
		kept[n % KEPT] = malloc(size);
		oracle->calls[entry].ended = n + 1;
		if (n % 16 == 0)
			usleep(100); /* a collector that gets little time can follow */
	}
	return NULL;
}

void limits_forever(int threads)
{
	pthread_t thread;

	for (intptr_t i = 0; i < threads; i++)
		pthread_create(&thread, NULL, allocate, (void *)i);
	oracle->pid = (uint64_t)getpid();
	pause();
}

/* ---- no memory is left: a thread that has not allocated before meets that, too */

static volatile int is_full;
static pthread_t late;
static volatile long late_failed, late_made;

static void *allocate_late(void *unused)
{
	(void)unused;
	while (!is_full)
		usleep(1000);
	for (int i = 0; i < 5; i++) {
		void *volatile block = malloc((size_t)900000011);

		late_failed += !block;
		free(block);
		block = calloc(11, 3);
		late_made += block != NULL;
		free(block);
	}
	return NULL;
}

void limits_begin_late(void)
{
	pthread_create(&late, NULL, allocate_late, NULL);
}

void limits_end_late(void)
{
	is_full = 1;
	pthread_join(late, NULL);
	printf("late %ld failed, %s made\n", late_failed, late_made ? "some" : "none");
	fflush(stdout);
}

/* ---- many blocks, and blocks of others */

void limits_many(unsigned long count, unsigned long size)
{
	void **blocks = map_quietly(count * sizeof(*blocks), -1);

	for (unsigned long i = 0; i < count; i++)
		blocks[i] = malloc(size);
}

static void *unseen[1000];

void limits_make_unseen(void)
{
	for (unsigned i = 0; i < 1000; i++)
		unseen[i] = malloc(300 + i);
}

/* Frees and moves blocks that were allocated while nobody looked. */
void limits_free_unseen(void)
{
	for (unsigned i = 0; i < 1000; i++) {
		if (i % 2)
			unseen[i] = realloc(unseen[i], 200000 + i);
		free(unseen[i]);
	}
}

/* The same library loaded so that it binds libc's malloc() and not evprof's. */
void *limits_make_elsewhere(unsigned long size)
{
	return malloc(size);
}

void limits_free_elsewhere(void *block)
{
	free(block);
}
