/* lock.c - see lock.h. The lock needs no setup and no wake-up: waiters check again by themselves. */
#include "base/lock.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "evprof/invariant.h"

#define SPINS 64 /* checks before the first sleep: most holders have finished by then */

static inline int try_lock(_Atomic uint32_t *lock)
{
	uint32_t free = 0;

	return atomic_compare_exchange_weak_explicit(lock, &free, 1, memory_order_acquire, memory_order_relaxed);
}

/* Sleeps a millisecond, or less. */
static void wait_a_little(_Atomic uint32_t *lock)
{
	const struct timespec bound = {.tv_nsec = 1000000};
	int saved_errno = errno;

	syscall(SYS_futex, lock, FUTEX_WAIT_PRIVATE, 1, &bound, NULL, 0);
	errno = saved_errno;
}

bool lock_take_within(_Atomic uint32_t *lock, uint32_t milliseconds)
{
	for (int i = 0; i < SPINS; i++)
		if (try_lock(lock))
			return true;
	for (uint32_t i = 0; i < milliseconds; i++) {
		wait_a_little(lock);
		if (try_lock(lock))
			return true;
	}
	return false;
}

void lock_take(_Atomic uint32_t *lock)
{
	while (!lock_take_within(lock, UINT32_MAX))
		continue;
}

void lock_give(_Atomic uint32_t *lock)
{
	invariant(atomic_load_explicit(lock, memory_order_relaxed) == 1);
	/* Release: pairs with the acquire of the next holder. */
	atomic_store_explicit(lock, 0, memory_order_release);
}

void *wiped_memory_new(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	int error;

	if (memory == MAP_FAILED)
		return NULL;
	if (!madvise(memory, bytes, MADV_WIPEONFORK))
		return memory;
	error = errno;
	munmap(memory, bytes);
	errno = error;
	return NULL;
}
