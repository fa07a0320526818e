/*
 * no_keys.c - preloaded: takes all thread-specific keys but KEYS_LEFT, and says at the end whether the first kept its
 * value.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_key_t first;
static int value;

static __attribute__((constructor)) void take_keys(void)
{
	static pthread_key_t keys[4096];
	const char *left = getenv("KEYS_LEFT");
	int count = 0;

	while (count < 4096 && !pthread_key_create(&keys[count], NULL))
		count++;
	for (int i = left ? atoi(left) : 0; i > 0; i--)
		pthread_key_delete(keys[--count]);
	first = keys[0];
	pthread_setspecific(first, &value);
}

static __attribute__((destructor)) void look(void)
{
	printf("key %u %s\n", (unsigned)first, pthread_getspecific(first) == &value ? "kept" : "changed");
}
