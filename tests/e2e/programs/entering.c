/*
 * entering.c - a library whose threads know nothing of Python and enter it again and again, by PyGILState_Ensure: each
 * time with a new thread state, which may stand where the one before stood. Loaded by entering.py.
 */
#include <pthread.h>
#include <stddef.h>

static int (*ensure)(void);
static void (*release)(int);
static int (*run)(const char *);
static int times;

static void *enters(void *code)
{
	for (int i = 0; i < times; i++) {
		int state = ensure();

		run(code);
		release(state);
	}
	return NULL;
}

/* Called without the GIL. */
int enter_in_threads(void *ensure_function, void *release_function, void *run_function, const char *code, int threads,
		     int count)
{
	pthread_t thread[16];

	ensure = (int (*)(void))ensure_function;
	release = (void (*)(int))release_function;
	run = (int (*)(const char *))run_function;
	times = count;
	for (int i = 0; i < threads && i < 16; i++)
		if (pthread_create(&thread[i], NULL, enters, (void *)code))
			return -1;
	for (int i = 0; i < threads && i < 16; i++)
		pthread_join(thread[i], NULL);
	return 0;
}
