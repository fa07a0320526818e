/*
 * native_mallocs.c - a library for programs/mallocs.py and programs/mallocs_threads.py: blocks of mixed sizes, of which
 * the last WINDOW of each thread are alive.
 */
#include <pthread.h>
#include <stdlib.h>

#define WINDOW 512
#define THREADS_MAX 64

static void *allocate(void *count)
{
	void *kept[WINDOW] = {NULL};
	unsigned long turns = (unsigned long)count;

	for (unsigned long i = 0; i < turns; i++) {
		free(kept[i % WINDOW]);
		kept[i % WINDOW] = malloc(16 + i * 37 % 1000);
		*(volatile char *)kept[i % WINDOW] = 1;
	}
	for (int i = 0; i < WINDOW; i++)
		free(kept[i]);
	return NULL;
}

void mallocs_allocate(unsigned long count)
{
	allocate((void *)count);
}

void mallocs_threads(unsigned threads, unsigned long count)
{
	pthread_t thread[THREADS_MAX];

	for (unsigned i = 0; i < threads; i++)
		pthread_create(&thread[i], NULL, allocate, (void *)count);
	for (unsigned i = 0; i < threads; i++)
		pthread_join(thread[i], NULL);
}
