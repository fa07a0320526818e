/*
 * stress_preload_ids.c - threads that give and take ids with the library's ids.c as interpreters with a GIL each do, so
 * that the thread sanitizer sees it. Run by `make stress` and `make TSAN=1 stress`.
 *
 *   stress_preload_ids [SECONDS]     of each phase, default: 3
 *
 * Each thread makes "code objects" at addresses that all threads share, calls them and lets them die, as Python's
 * allocator gives the memory of one interpreter's dead code to another's new code. A new one must have no id; a live
 * one must have its own whenever it is looked up. Phases: few live at a time, so that addresses come again at once;
 * many live, so that the table grows again and again under everybody's eyes. Meanwhile the process forks: a child has
 * no ids, and can give them.
 *
 * In the last phase the threads are those of one interpreter without a GIL: all call the same code objects, whoever
 * meets one first gives it its id, and whoever lets the last reference go sees it die.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "preload/ring/process.h"

#define THREADS 4
#define ADDRESSES (1u << 17)
#define PLACE_BYTES 1024 /* of one code object, which begins somewhere in it */
#define CHILD_KEYS 40000u

struct phase {
	const char *name;
	void *(*thread)(void *number);
	unsigned live;	      /* code objects of each thread at most */
	unsigned bits_at_end; /* of the table; 0: more than the first has */
};

/* The allocator: free addresses, the one freed last first. */
static struct {
	pthread_mutex_t lock;
	unsigned count;
	uint32_t at[ADDRESSES];
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER};

struct code {
	uint32_t address;
	uint64_t value;
};

#define SHARED 512 /* code objects that all threads call */
#define CHANGING (-1)

/* refs: of the world and of those that call it; 0: dead; CHANGING: being born, or dying. */
static struct {
	_Atomic int refs;
	_Atomic bool named; /* the world has a reference */
	uint32_t address;
	_Atomic uint64_t value; /* that somebody found; all find the same as long as it lives */
} shared[SHARED];

static _Atomic bool enough;
static _Atomic uint64_t last_value;
static _Atomic uint64_t born, looks, slow_looks, wrong, children;
static unsigned live_most;

/* Nobody looks at what is there: it need not be memory. */
static const void *key_of(uint32_t address)
{
	uint64_t somewhere = (address * UINT64_C(6364136223846793005) + 1442695040888963407) >> 40;

	return (const void *)(UINT64_C(0x7f0000000000) + address * PLACE_BYTES + somewhere % PLACE_BYTES / 16 * 16);
}

static void complain(const char *what, uint64_t found, uint64_t expected)
{
	if (wrong++ < 10)
		fprintf(stderr, "stress: %s: %#llx, not %#llx\n", what, (unsigned long long)found,
			(unsigned long long)expected);
}

static uint32_t take_address(void)
{
	uint32_t address;

	pthread_mutex_lock(&pool.lock);
	address = pool.at[--pool.count];
	pthread_mutex_unlock(&pool.lock);
	return address;
}

static void free_address(uint32_t address)
{
	pthread_mutex_lock(&pool.lock);
	pool.at[pool.count++] = address;
	pthread_mutex_unlock(&pool.lock);
}

static struct code be_born(uint64_t value)
{
	struct code code = {.address = take_address(), .value = value};
	uint64_t found = ids_find(&process->ids, key_of(code.address));

	if (found)
		complain("a new one has the id of one that died", found, 0);
	if (!ids_insert(&process->ids, key_of(code.address), value))
		complain("no place", 0, value);
	born++;
	return code;
}

/* As the fast path, which looks for the table now and then. */
static uint64_t find_fast(const void *key)
{
	static __thread struct ids_view view;
	static __thread unsigned count;
	uint64_t value;

	if (count++ % 64 == 0)
		view = ids_look(&process->ids);
	return ids_find_fast(&view, key, &value) ? value : 0;
}

static void look_up(const struct code *code)
{
	uint64_t found = find_fast(key_of(code->address));

	looks++;
	if (!found) {
		slow_looks++;
		found = ids_find(&process->ids, key_of(code->address));
	}
	if (found != code->value)
		complain("a live one's id", found, code->value);
}

/* As a code object that was named for another ring. */
static void be_named_again(struct code *code, uint64_t value)
{
	code->value = value;
	if (!ids_insert(&process->ids, key_of(code->address), value))
		complain("no place", 0, value);
}

static void die(const struct code *code)
{
	ids_remove(&process->ids, key_of(code->address));
	free_address(code->address);
}

static void *interpreter(void *number)
{
	uint64_t seed = (uintptr_t)number * 7919, next = (uint64_t)(uintptr_t)number << 48;
	struct code *codes = calloc(live_most, sizeof(*codes));
	unsigned live = 0;

	if (!codes)
		abort();
	while (!atomic_load_explicit(&enough, memory_order_relaxed)) {
		unsigned one;

		seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
		one = live ? (unsigned)(seed >> 33) % live : 0;
		/* More are born than die, until there are as many as there may be. */
		if (live < live_most && (seed >> 60 < 6 || !live)) {
			codes[live++] = be_born(++next);
		} else if (seed >> 60 < 9) {
			die(&codes[one]);
			codes[one] = codes[--live];
		} else if (seed >> 60 < 10) {
			be_named_again(&codes[one], ++next);
		} else {
			look_up(&codes[one]);
		}
	}
	for (unsigned i = 0; i < live; i++)
		look_up(&codes[i]);
	while (live)
		die(&codes[--live]);
	free(codes);
	return NULL;
}

/* As definitions.c gives ids: under the lock, unless somebody else was quicker. */
static uint64_t give_id(const void *key)
{
	uint64_t value;

	process_lock();
	value = ids_find(&process->ids, key);
	if (!value) {
		value = ++last_value;
		if (!ids_insert(&process->ids, key, value))
			complain("no place", 0, value);
	}
	process_unlock();
	return value;
}

static void let_go(unsigned one)
{
	int refs = shared[one].refs;

	for (;;) {
		int left = refs == 1 ? CHANGING : refs - 1;

		if (!atomic_compare_exchange_weak(&shared[one].refs, &refs, left))
			continue;
		if (left != CHANGING)
			return;
		die(&(struct code){.address = shared[one].address});
		shared[one].refs = 0;
		return;
	}
}

/* False: it is dead, or somebody else is about to change that. */
static bool get_hold(unsigned one)
{
	int refs = shared[one].refs;

	while (refs > 0)
		if (atomic_compare_exchange_weak(&shared[one].refs, &refs, refs + 1))
			return true;
	return false;
}

static void be_born_for_all(unsigned one)
{
	int dead = 0;

	if (!atomic_compare_exchange_strong(&shared[one].refs, &dead, CHANGING))
		return;
	shared[one].address = take_address();
	shared[one].value = 0;
	shared[one].named = true;
	if (ids_find(&process->ids, key_of(shared[one].address)))
		complain("a new one has the id of one that died", 1, 0);
	born++;
	shared[one].refs = 1;
}

static void call(unsigned one)
{
	const void *key = key_of(shared[one].address);
	uint64_t found = find_fast(key), before = 0;

	looks++;
	if (!found) {
		slow_looks++;
		found = ids_find(&process->ids, key);
	}
	if (!found)
		found = give_id(key);
	if (!atomic_compare_exchange_strong(&shared[one].value, &before, found) && before != found)
		complain("two ids of one", found, before);
}

static void *thread_of_one(void *number)
{
	uint64_t seed = (uintptr_t)number * 7919;

	while (!atomic_load_explicit(&enough, memory_order_relaxed)) {
		unsigned one;

		seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
		one = (unsigned)(seed >> 33) % SHARED;
		if (!get_hold(one)) {
			be_born_for_all(one);
			continue;
		}
		for (unsigned i = 0; i < 1 + (seed >> 60); i++)
			call(one);
		if (seed >> 55 & 1 && atomic_exchange(&shared[one].named, false))
			let_go(one);
		let_go(one);
	}
	return NULL;
}

static void end_shared(void)
{
	for (unsigned i = 0; i < SHARED; i++)
		if (shared[i].refs && atomic_exchange(&shared[i].named, false))
			let_go(i);
}

/* In the child of a fork, whatever the other threads were doing: nothing is known, and much can be given. */
static int child(void)
{
	for (uint32_t i = 0; i < ADDRESSES; i++)
		if (ids_find(&process->ids, key_of(i)))
			return 2;
	if (ids_insert(&process->ids, key_of(0), 1))
		return 3;
	ids_begin(&process->ids);
	for (uint32_t i = 0; i < CHILD_KEYS; i++)
		if (!ids_insert(&process->ids, key_of(i), i + 1))
			return 4;
	for (uint32_t i = 0; i < ADDRESSES; i++)
		if (ids_find(&process->ids, key_of(i)) != (i < CHILD_KEYS ? i + 1 : 0))
			return 5;
	return 0;
}

static __attribute__((unused)) void fork_one(void)
{
	int status;
	pid_t pid = fork();

	if (pid < 0)
		abort();
	if (!pid)
		_exit(child());
	waitpid(pid, &status, 0);
	if (status)
		complain("a child's status", (uint64_t)status, 0);
	children++;
}

static void spend(unsigned seconds)
{
	const struct timespec step = {.tv_nsec = 20000000};

	for (unsigned i = 0; i < seconds * 50; i++) {
		clock_nanosleep(CLOCK_MONOTONIC, 0, &step, NULL);
#ifndef __SANITIZE_THREAD__ /* it does not follow threads into a child */
		if (i % 5 == 0)
			fork_one();
#endif
	}
}

static unsigned bits(void)
{
	return 64 - (atomic_load(&process->ids.table) & 63);
}

/* All have died. What was there while they lived is what the phase is for. */
static bool judge(const struct phase *phase)
{
	for (uint32_t i = 0; i < ADDRESSES; i++)
		if (ids_find(&process->ids, key_of(i)))
			complain("one that died", i, 0);
	if (process->ids.count)
		complain("ids at the end", process->ids.count, 0);
	if (phase->bits_at_end ? bits() != phase->bits_at_end : bits() == IDS_BITS_FIRST)
		complain("bits of the table", bits(), phase->bits_at_end);
	if (slow_looks > looks / 3)
		complain("looks that took the longer way", slow_looks, looks / 3);
	printf("  %s: %llu born, %llu looks, %llu of them slow, table of %u bits, %llu children: %s\n", phase->name,
	       (unsigned long long)born, (unsigned long long)looks, (unsigned long long)slow_looks, bits(),
	       (unsigned long long)children, wrong ? "WRONG" : "right");
	return !wrong;
}

static bool run(const struct phase *phase, unsigned seconds)
{
	pthread_t threads[THREADS];

	born = looks = slow_looks = children = 0;
	enough = false;
	live_most = phase->live;
	for (uintptr_t i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, phase->thread, (void *)(i + 1)))
			abort();
	spend(seconds);
	enough = true;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	end_shared();
	return judge(phase);
}

int main(int argc, char **argv)
{
	const struct phase phases[] = {{"few live", interpreter, 50, IDS_BITS_FIRST},
				       {"many live", interpreter, ADDRESSES / THREADS, 0},
				       {"of one interpreter", thread_of_one, 0, 0}};
	unsigned seconds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 3;
	bool right = true;

	if (process_init() < 0)
		return 1;
	for (uint32_t i = 0; i < ADDRESSES; i++)
		pool.at[pool.count++] = i;
	ids_begin(&process->ids);
	for (size_t i = 0; i < sizeof(phases) / sizeof(phases[0]); i++)
		right &= run(&phases[i], seconds);
	return right ? 0 : 1;
}
