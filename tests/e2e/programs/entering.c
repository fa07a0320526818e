/*
 * entering.c - a library whose threads know nothing of Python and enter it again and again, by PyGILState_Ensure: each
 * time with a new thread state, which may stand where the one before stood; and one that enters it once, and keeps its
 * thread state when it has left it. Loaded by entering.py and by idle.py.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stddef.h>
#include <unistd.h>

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

static void *(*save)(void);
static sem_t left;

static void *stays(void *code)
{
	ensure();
	run(code);
	save();
	sem_post(&left);
	for (;;)
		pause();
	return code;
}

/* Called without the GIL. 0 once the thread has run the code and left Python. */
int stay_in_thread(void *ensure_function, void *save_function, void *run_function, const char *code)
{
	pthread_t thread;

	ensure = (int (*)(void))ensure_function;
	save = (void *(*)(void))save_function;
	run = (int (*)(const char *))run_function;
	sem_init(&left, 0, 0);
	if (pthread_create(&thread, NULL, stays, (void *)code))
		return -1;
	return sem_wait(&left);
}
