/*
 * remote.h - reads Python's objects in the memory of another process, which runs meanwhile.
 *
 * Objects may be freed or replaced while they are read. Each function reports unreadable memory, and no value is
 * trusted. Used by the sampler and by evprof stack.
 */
#ifndef SHARED_REMOTE_H
#define SHARED_REMOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "evprof/sampling.h"

#define REMOTE_PAGE_BYTES 4096
#define REMOTE_PAGES 64
#define REMOTE_FRAMES 16384 /* deeper stacks are not sampled */

struct remote {
	int fd; /* /proc/PID/mem of the process */
	struct sampling layout;
	/*
	 * Pages read since remote_refresh(), as frames are close together. Index: the page's number modulo
	 * REMOTE_PAGES.
	 */
	uint64_t generation;
	struct {
		uint64_t address, generation;
		uint8_t bytes[REMOTE_PAGE_BYTES];
	} pages[REMOTE_PAGES];
};

/* One frame of a stack. */
struct remote_frame {
	uint64_t frame, code; /* addresses */
	uint64_t back;	      /* of the caller's frame, or of an entry frame before it; 0: none */
	int64_t instruction;  /* offset in bytes from the first; below 0: before it */
};

/* Identity of a code object, as another one may use its address later. */
struct remote_code {
	uint64_t file, name, qualified_name, lines; /* addresses of objects */
	int32_t line;
	int32_t flags;
};

/* Invalidates all cached pages. */
void remote_refresh(struct remote *remote);

/*
 * As remote_refresh(), then reads the pages of the addresses into the cache by one system call, within microseconds.
 * Pages that cannot be read, or that others displace, are left out.
 */
void remote_refresh_pages(struct remote *remote, pid_t pid, const uint64_t *addresses, size_t count);

/* Reads size bytes. False: not readable. */
bool remote_read(struct remote *remote, uint64_t address, void *out, size_t size);

/* As remote_read(), without the cache. 0; -EAGAIN: not readable; -ESRCH: the image is gone. */
int remote_read_now(struct remote *remote, uint64_t address, void *out, size_t size);

static inline bool remote_word(struct remote *remote, uint64_t address, uint64_t *word)
{
	return remote_read(remote, address, word, sizeof(*word));
}

/*
 * Reads the stack of a thread state, innermost first, as far as its frames can be followed: one that returns or
 * suspends meanwhile may lead nowhere. Returns the number of frames; -1: not a stack.
 */
int remote_stack(struct remote *remote, uint64_t state, struct remote_frame frames[REMOTE_FRAMES]);

/* Reads what a thread state has as its innermost frame, or as the entry frame before it. False: not readable. */
bool remote_first_frame(struct remote *remote, uint64_t state, uint64_t *frame);

/* Whether a frame has the code and the caller that it had, and, with stands, the instruction. */
bool remote_same_frame(struct remote *remote, const struct remote_frame *frame, bool stands);

/* Reads the instruction of a frame with a code. False: not readable. */
bool remote_instruction(struct remote *remote, struct remote_frame *frame);

bool remote_code(struct remote *remote, uint64_t address, struct remote_code *code);

/* Reads a bytes object. Returns the number of bytes, at most size, or -1. */
long remote_bytes(struct remote *remote, uint64_t object, uint8_t *out, size_t size);

/* Reads a str object as UTF-8, cut at a character boundary if it does not fit. Returns the length, or -1. */
long remote_text(struct remote *remote, uint64_t object, char *out, size_t size);

#endif
