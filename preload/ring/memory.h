/* memory.h - the shared memory of this process image: made, made smaller, inherited by the child of a fork. */
#ifndef PRELOAD_MEMORY_H
#define PRELOAD_MEMORY_H

#include <stdint.h>

/*
 * Creates a ring of the configured size, or a smaller one if a limit (address space, file size) forbids that. Returns
 * the memfd or -errno.
 */
int memory_make(void);

/*
 * 0, or -EFBIG: the limit of file sizes is below this. Above it ftruncate() would not fail: a signal would kill the
 * process.
 */
int memory_check_file_size(uint64_t size);

enum memory_room {
	MEMORY_ROOM_LIMITED, /* the program has limited its own address space */
	MEMORY_ROOM_LEAST,   /* it is about to lock all of it in memory, for good */
};

/*
 * Unmaps the rings of threads that do not exist yet, except for a part that is small relative to the limit. Later
 * threads have small rings, or none. Any thread.
 */
void memory_shrink(enum memory_room room);

/* Unmaps the memory of the process, or of its parent. */
void memory_forget_inherited(void);

/*
 * The child of a fork keeps one page of its parent's memory until it has joined: by that mapping the collector sees
 * that the child is about to join. Returns the page, or NULL where nothing was inherited.
 */
uint8_t *memory_keep_inherited(void);

#endif
