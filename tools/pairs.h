/*
 * pairs.h - a table from two numbers to one, for edges between functions and for the sizes of memory blocks.
 */
#ifndef EVPROF_TOOLS_PAIRS_H
#define EVPROF_TOOLS_PAIRS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pair {
	uint64_t key; /* 0: free */
	uint64_t value;
};

struct pairs {
	struct pair *slots;
	size_t mask; /* size - 1 */
	size_t count;
};

/* The value of a key that is not 0, made with value 0 if it is new. NULL where memory ran out. */
uint64_t *pairs_make(struct pairs *pairs, uint64_t key);
/* Takes the key out. Returns whether it was there, and its value. */
bool pairs_take(struct pairs *pairs, uint64_t key, uint64_t *value);
void pairs_done(struct pairs *pairs);

#endif
