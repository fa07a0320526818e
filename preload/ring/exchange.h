/* exchange.h - replaces the shared memory under the threads that write to it, for another collector (life/rejoin.c). */
#ifndef PRELOAD_EXCHANGE_H
#define PRELOAD_EXCHANGE_H

#include <stdbool.h>

/*
 * Replaces the shared memory by new memory with the same content at the same address, while other threads write.
 * Afterwards the new memory holds, once, every event that is published or is about to be. The lock is held and the
 * status is PROCESS_MOVING; threads find no room until the status is set again. all_definitions: copies all definitions
 * from the first one on. Returns a descriptor of the new memory, or -errno with nothing changed.
 */
int exchange_memory(bool all_definitions);

/*
 * Replaces the shared memory by memory of the same layout that nobody reads, and informs the collector that this image
 * is complete in the old one. Lock held, status PROCESS_MOVING, no thread records. Returns 0, or -errno with nothing
 * changed.
 */
int exchange_leave(void);

/* After exchange_leave(), for a new collector: a descriptor of the memory, or -errno. Lock held, no thread records. */
int exchange_return(void);

#endif
