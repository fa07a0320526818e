/*
 * mallocs.c - a library that allocates in many ways and counts what it did, without allocating for that. Loaded by
 * mallocs.py. The counts are of the thread that allocated: kind, calls, bytes.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MALLOC, CALLOC, REALLOC, FREE, MMAP, MUNMAP, KINDS };
static const char *const names[KINDS] = {"malloc", "calloc", "realloc", "free", "mmap", "munmap"};

#define BLOCKS 256
#define SPECIAL 1234567 /* the size of what handlers allocate */

struct counts {
	long tid, calls[KINDS], bytes[KINDS], live;
	void *block[BLOCKS];
	size_t size[BLOCKS];
	unsigned seed, rounds;
	int wrong;
};

static void print_line(const char *format, ...)
{
	char line[256];
	va_list list;
	int length;

	va_start(list, format);
	length = vsnprintf(line, sizeof(line), format, list);
	va_end(list);
	if (write(1, line, (size_t)length) < 0)
		_exit(9);
}

static void note(struct counts *counts, int kind, size_t bytes)
{
	counts->calls[kind]++;
	counts->bytes[kind] += (long)bytes;
}

static unsigned next(struct counts *counts)
{
	return counts->seed = counts->seed * 1103515245 + 12345;
}

/* A block is filled with its number; who finds another byte in it was given somebody else's memory. */
static void check(struct counts *counts, unsigned at, size_t bytes)
{
	const unsigned char *block = counts->block[at];

	for (size_t i = 0; i < bytes; i += 997)
		counts->wrong |= block[i] != (unsigned char)at;
}

static void *make(struct counts *counts, size_t size)
{
	void *block = NULL;

	switch (next(counts) >> 16 & 7) {
	case 0:
		note(counts, CALLOC, size / 4 * 4);
		block = calloc(4, size / 4);
		break;
	case 1:
		note(counts, MALLOC, size);
		if (posix_memalign(&block, 256, size))
			block = NULL;
		counts->wrong |= ((uintptr_t)block & 255) != 0;
		break;
	case 2:
		note(counts, MALLOC, size);
		block = aligned_alloc(64, size);
		counts->wrong |= ((uintptr_t)block & 63) != 0;
		break;
	case 3:
		note(counts, MALLOC, size);
		block = memalign(32, size);
		break;
	case 4:
		note(counts, REALLOC, size);
		block = realloc(NULL, size);
		break;
	case 5:
		note(counts, MALLOC, size);
		block = valloc(size);
		break;
	default:
		note(counts, MALLOC, size);
		block = malloc(size);
	}
	counts->wrong |= !block || malloc_usable_size(block) < size / 4 * 4;
	return block;
}

static void one_turn(struct counts *counts)
{
	unsigned at = next(counts) >> 16 & (BLOCKS - 1), what = next(counts) >> 16 & 3;
	size_t size = 1 + (next(counts) >> 12) % (next(counts) >> 16 & 31 ? 3000 : 300000);
	size_t old = counts->size[at];

	if (!counts->block[at]) {
		counts->block[at] = make(counts, size);
		counts->size[at] = size / 4 * 4;
	} else if (what == 0) {
		check(counts, at, old);
		counts->block[at] = next(counts) & 1 << 16 ? realloc(counts->block[at], size)
							   : reallocarray(counts->block[at], size, 1);
		note(counts, REALLOC, size);
		check(counts, at, old < size ? old : size);
		counts->size[at] = size;
	} else {
		check(counts, at, old);
		note(counts, FREE, 0);
		free(counts->block[at]);
		counts->block[at] = NULL;
		return;
	}
	memset(counts->block[at], (int)at, counts->size[at]);
}

static void map_something(struct counts *counts)
{
	char *at = mmap(NULL, 8 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	note(counts, MMAP, 8 << 20);
	at = mremap(at, 8 << 20, 16 << 20, MREMAP_MAYMOVE);
	note(counts, MUNMAP, 8 << 20);
	note(counts, MMAP, 16 << 20);
	at[(16 << 20) - 1] = 1;
	munmap(at, 16 << 20);
	note(counts, MUNMAP, 16 << 20);
}

static void *work(void *argument)
{
	struct counts *counts = argument;

	counts->tid = syscall(SYS_gettid);
	for (unsigned i = 0; i < counts->rounds; i++)
		one_turn(counts);
	map_something(counts);
	free(NULL);
	errno = 77;
	free(malloc(1));
	note(counts, MALLOC, 1);
	note(counts, FREE, 0);
	counts->wrong |= errno != 77;
	return NULL;
}

static void print_counts(const struct counts *counts)
{
	long live = 0;

	for (unsigned i = 0; i < BLOCKS; i++)
		live += counts->block[i] != NULL;
	for (int kind = 0; kind < KINDS; kind++)
		print_line("%ld %s %ld %ld\n", counts->tid, names[kind], counts->calls[kind], counts->bytes[kind]);
	print_line("%ld live %ld %d\n", counts->tid, live, counts->wrong);
}

/* Threads that never meet Python, side by side. */
void mallocs_threads(unsigned threads, unsigned rounds)
{
	static struct counts counts[16];
	pthread_t thread[16];

	for (unsigned i = 0; i < threads; i++) {
		counts[i].seed = 1000 * i + 7;
		counts[i].rounds = rounds;
		pthread_create(&thread[i], NULL, work, &counts[i]);
	}
	for (unsigned i = 0; i < threads; i++)
		pthread_join(thread[i], NULL);
	for (unsigned i = 0; i < threads; i++)
		print_counts(&counts[i]);
}

/* ---- the end of a thread: destructors allocate and free */

static pthread_key_t key;
static struct counts ending;

static void destroy(void *block)
{
	note(&ending, FREE, 0);
	free(block);
	note(&ending, MALLOC, 70001);
	ending.block[0] = malloc(70001);
}

static void *end(void *unused)
{
	(void)unused;
	ending.tid = syscall(SYS_gettid);
	pthread_setspecific(key, malloc(70002));
	note(&ending, MALLOC, 70002);
	return NULL;
}

void mallocs_end(void)
{
	pthread_t thread;

	pthread_key_create(&key, destroy);
	pthread_create(&thread, NULL, end, NULL);
	pthread_join(thread, NULL);
	print_counts(&ending);
}

/* ---- a thread that is cancelled: at its cancellation points, of which malloc() and fork() are none */

static volatile long done;

static void *cancelled(void *unused)
{
	(void)unused;
	pthread_cancel(pthread_self());
	for (unsigned i = 0; i < 300000; i++) {
		void *volatile block = malloc(48);

		free(block);
	}
	if (!fork())
		_exit(0);
	done = 1;
	pthread_testcancel();
	done = 2;
	return NULL;
}

void mallocs_cancelled(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, cancelled, NULL);
	pthread_join(thread, NULL);
	print_line("done %ld\n", done);
}

/* ---- fork of a process whose other threads allocate */

static volatile int stop;

static void *churn(void *unused)
{
	(void)unused;
	while (!stop) {
		for (int i = 0; i < 10; i++)
			free(malloc(100));
		usleep(100);
	}
	return NULL;
}

void mallocs_fork(unsigned times)
{
	pthread_t thread[4];
	int status;

	stop = 0;
	for (int i = 0; i < 4; i++)
		pthread_create(&thread[i], NULL, churn, NULL);
	for (unsigned i = 0; i < times; i++) {
		static struct counts counts;
		pid_t pid = fork();

		if (!pid) {
			counts = (struct counts){.seed = i, .rounds = 200};
			work(&counts);
			print_counts(&counts);
			_exit(counts.wrong);
		}
		waitpid(pid, &status, 0);
		if (status)
			print_line("child ended with %d\n", status);
	}
	stop = 1;
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
}

/* ---- at the exit of the process */

static void at_exit(void)
{
	struct counts counts = {.tid = syscall(SYS_gettid)};

	free(malloc(SPECIAL));
	note(&counts, MALLOC, SPECIAL);
	print_line("%ld exit\n", counts.tid);
}

void mallocs_at_exit(void)
{
	atexit(at_exit);
}

/* ---- signal handlers that allocate. Needs an allocator that may be called there (mallocs_next.c) */

static volatile long handled;

static void handle(int number)
{
	void *block = malloc(SPECIAL);

	(void)number;
	handled++;
	free(block);
}

void mallocs_storm(long interval_us)
{
	const struct itimerval timer = {{0, interval_us}, {0, interval_us}};
	const struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};

	if (!interval_us) {
		setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 0}}, NULL);
		print_line("handled %ld\n", handled);
		return;
	}
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
}

/* 8 MiB that stay, by calls that fail; and a file, which is none of the program's memory. */
static void fail_to_map(size_t size)
{
	size_t bytes = 8 << 20;
	char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *file;
	int fd = (int)syscall(SYS_memfd_create, "mapped", 0);

	print_line("munmap %d\n", munmap(at + 100, 50 << 20));
	print_line("mremap %d\n", mremap(at, bytes, size, MREMAP_MAYMOVE) == MAP_FAILED);
	if (ftruncate(fd, 100 << 20) < 0)
		return;
	file = mmap(NULL, 50 << 20, PROT_READ, MAP_SHARED, fd, 0);
	print_line("mremap %d\n", mremap(file, 50 << 20, size, MREMAP_MAYMOVE) == MAP_FAILED);
	print_line("mremap %d\n", mremap(file, 50 << 20, 100 << 20, MREMAP_MAYMOVE) == MAP_FAILED);
}

void mallocs_failing(size_t size)
{
	void *volatile block;
	volatile size_t half = SIZE_MAX / 2;

	errno = 0;
	block = malloc(size);
	print_line("malloc %d %d\n", block != NULL, errno);
	block = malloc(70003);
	errno = 0;
	print_line("realloc %d %d\n", realloc(block, size) != NULL, errno);
	errno = 0;
	print_line("reallocarray %d %d\n", reallocarray(block, half, 3) != NULL, errno);
	free(block);
	fail_to_map(size);
}

/* Blocks that stay: what is alive of this thread at the end. */
void *mallocs_keep(size_t size)
{
	return malloc(size);
}
