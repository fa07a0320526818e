/*
 * moments.c - a library that allocates at the moments at which allocators break: in destructors of threads and of the
 * process, in a thread that crashes, in the child of a fork, in signal handlers. Loaded by moments.py.
 *
 * Each size is of one moment only. "made SIZE TIMES" is written before the blocks are allocated; they are kept.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#define SIZE(moment) (7000001 + (moment))

extern int __cxa_thread_atexit_impl(void (*destroy)(void *), void *object, void *library);

static void *volatile kept;

static void print_line(const char *format, ...)
{
	char line[128];
	va_list list;
	int length;

	va_start(list, format);
	length = vsnprintf(line, sizeof(line), format, list);
	va_end(list);
	if (write(1, line, (size_t)length) < 0)
		_exit(9);
}

static void make(int moment)
{
	print_line("made %d 1\n", SIZE(moment));
	kept = malloc((size_t)SIZE(moment));
	memset(kept, 1, 1000);
	free(malloc(100));
}

/* From Python. */
void moments_make(int moment)
{
	make(moment);
}

/* ---- the ends of threads and of the process */

static pthread_key_t early, late;
static int turns, rounds;

/* A destructor of a thread_local of C++ runs before those of pthread_setspecific(). */
static void destroy_object(void *moment)
{
	make((int)(long)moment);
}

/* Is called in further rounds of destructors. */
static void destroy_value(void *moment)
{
	make((int)(long)moment + turns);
	if (++turns < rounds)
		pthread_setspecific(late, moment);
}

static void destroy_first(void *moment)
{
	make((int)(long)moment);
}

static void *end_thread(void *unused)
{
	(void)unused;
	__cxa_thread_atexit_impl(destroy_object, (void *)11, (void *)&kept);
	pthread_setspecific(early, (void *)12);
	pthread_setspecific(late, (void *)13); /* and 14, 15 */
	make(10);
	return NULL;
}

/* A thread that has allocated nothing before its destructors run. */
static void *end_silent_thread(void *unused)
{
	(void)unused;
	__cxa_thread_atexit_impl(destroy_object, (void *)16, (void *)&kept);
	pthread_setspecific(early, (void *)17);
	return NULL;
}

static __attribute__((constructor)) void make_early_key(void)
{
	pthread_key_create(&early, destroy_first);
}

void moments_thread_ends(int destructor_rounds)
{
	pthread_t thread;

	rounds = destructor_rounds;
	pthread_key_create(&late, destroy_value);
	pthread_create(&thread, NULL, end_thread, NULL);
	pthread_join(thread, NULL);
	pthread_create(&thread, NULL, end_silent_thread, NULL);
	pthread_join(thread, NULL);
}

static void at_exit(void)
{
	make(21);
}

static void on_exit_too(int status, void *unused)
{
	(void)status;
	(void)unused;
	make(22);
}

static int ends;

void moments_process_ends(void)
{
	ends = 1;
	atexit(at_exit);
	on_exit(on_exit_too, NULL);
	__cxa_thread_atexit_impl(destroy_object, (void *)23, (void *)&kept);
}

static __attribute__((destructor)) void destroy_library(void)
{
	if (ends)
		make(24);
}

/* ---- a thread that crashes */

static void *crash(void *unused)
{
	int *volatile nothing = (int *)8;

	(void)unused;
	make(30);
	*nothing = 1;
	return NULL;
}

void moments_crash(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, crash, NULL);
	pthread_join(thread, NULL);
}

/* ---- allocating until the end, or for a number of turns */

static volatile int stop;
static pthread_t churning[4];

static void churn_once(unsigned seed)
{
	char *block = malloc(10 + seed % 5000);

	block = realloc(block, 10 + seed * 7 % 9000);
	block[0] = 1;
	free(calloc(1, 10 + seed % 77));
	free(block);
}

static void *churn(void *unused)
{
	(void)unused;
	for (unsigned i = 0; !stop; i++)
		churn_once(i);
	return NULL;
}

void moments_churn(int begin)
{
	stop = !begin;
	for (int i = 0; i < 4; i++)
		if (begin)
			pthread_create(&churning[i], NULL, churn, NULL);
		else
			pthread_join(churning[i], NULL);
}

/* For a thread of Python's, and for the child of a fork. */
void moments_turns(unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		churn_once(i);
}

/* ---- handlers that interrupt malloc(), and have memory of their own: what may be called there */

static volatile long handled, failed;

static void handle(int number)
{
	char *arena = mmap(NULL, (size_t)SIZE(40), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)number;
	if (arena == MAP_FAILED) {
		failed++;
		return;
	}
	arena[0] = 1;
	failed += munmap(arena, (size_t)SIZE(40)) != 0;
	handled++;
}

/* On a small alternate stack or on the thread's. */
void moments_interrupted(unsigned count, long interval_us, int alternate)
{
	static char stack[16384];
	const struct itimerval timer = {{0, interval_us}, {0, interval_us}}, none = {{0, 0}, {0, 0}};
	struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART | (alternate ? SA_ONSTACK : 0)};

	if (alternate)
		sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof(stack)}, NULL);
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
	moments_turns(count);
	setitimer(ITIMER_REAL, &none, NULL);
	print_line("handled %ld %ld\n", handled, failed);
}
