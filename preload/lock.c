/*
 * lock.c - a lock that needs no setting up and nobody who wakes: waiters look again by themselves.
 */
#include "lock.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SPINS 64 /* looks before the first sleep: most holders are done by then */

static inline int try(_Atomic uint32_t *lock)
{
	uint32_t free = 0;

	return atomic_compare_exchange_weak_explicit(lock, &free, 1, memory_order_acquire, memory_order_relaxed);
}

static void wait_for(_Atomic uint32_t *lock)
{
	const struct timespec bound = {.tv_nsec = 1000000};
	int saved_errno = errno;

	while (!try(lock))
		syscall(SYS_futex, lock, FUTEX_WAIT_PRIVATE, 1, &bound, NULL, 0);
	errno = saved_errno;
}

void lock_take(_Atomic uint32_t *lock)
{
	for (int i = 0; i < SPINS; i++)
		if (try(lock))
			return;
	wait_for(lock);
}

void lock_give(_Atomic uint32_t *lock)
{
	/* Release: pairs with the acquire of the next holder. */
	atomic_store_explicit(lock, 0, memory_order_release);
}
