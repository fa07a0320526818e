/*
 * resolver_queue.h - what is to be symbolized for one process: its modules, and the addresses of its native frames.
 *
 * Used by the resolver. An address is queued once, except where another module takes its place. The queue is bounded,
 * and its memory is charged to the user; what does not fit is not symbolized.
 */
#ifndef COLLECTOR_RESOLVER_QUEUE_H
#define COLLECTOR_RESOLVER_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/users.h"
#include "evprof/wire.h"
#include "symbols/symbols.h"

struct resolver_module {
	struct symbols_message message;
	char *path;
	bool failed; /* its file is not to be opened */
};

/* An entry of the queue: a module (its number + 1), or an address. */
struct resolver_entry {
	uint32_t module;
	struct symbols_address address;
};

/* All zeros but user: empty. invariant: answered <= queued <= capacity */
struct resolver_queue {
	struct user *user;
	uint64_t bytes; /* charged to the user */
	struct resolver_entry *at;
	size_t answered, queued, capacity;
	struct resolver_module *modules;
	uint32_t module_count;
	uint64_t *seen; /* addresses that were queued: a hash table, at most half full */
	size_t seen_count, seen_places;
};

/* Queues modules and addresses of checked definitions. number: of the client in messages. */
void resolver_queue_note(struct resolver_queue *queue, uint32_t number, const uint8_t *definitions, size_t bytes);
void resolver_queue_done(struct resolver_queue *queue);

#endif
