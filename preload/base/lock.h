/*
 * lock.h - a lock for sections of a few instructions, usable in memory that a fork clears: 0 is free.
 *
 * The holder runs no code of the program and waits for nothing except what its own comment says. Waiting keeps errno.
 */
#ifndef PRELOAD_LOCK_H
#define PRELOAD_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

void lock_take(_Atomic uint32_t *lock);

/* False: it was not free within a few times this many milliseconds. */
bool lock_take_within(_Atomic uint32_t *lock, uint32_t milliseconds);

void lock_give(_Atomic uint32_t *lock);

#endif
