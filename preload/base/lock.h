/*
 * lock.h - memory that the kernel clears in the child of a fork, and a lock for sections of a few instructions that may
 * be in it: 0 is free.
 *
 * The holder runs no code of the program and waits for nothing except what its own comment says. Waiting keeps errno.
 */
#ifndef PRELOAD_LOCK_H
#define PRELOAD_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void lock_take(_Atomic uint32_t *lock);

/* False: it was not free within a few times this many milliseconds. */
bool lock_take_within(_Atomic uint32_t *lock, uint32_t milliseconds);

void lock_give(_Atomic uint32_t *lock);

/* Cleared in a child however it is created, zeroed, and never freed. NULL: there is none; errno says why. */
void *wiped_memory_new(size_t bytes);

#endif
