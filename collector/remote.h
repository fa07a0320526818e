/*
 * remote.h - reading Python's objects in the memory of another process, which runs on meanwhile.
 *
 * Everything read may be gone or something else by then: each function says so, and nothing that is read is trusted.
 * Used by the sampler only.
 */
#ifndef COLLECTOR_REMOTE_H
#define COLLECTOR_REMOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "evprof/sampling.h"

#define REMOTE_PAGE_BYTES 4096
#define REMOTE_PAGES 64
#define REMOTE_FRAMES 16384 /* a stack that is deeper is not sampled */

struct remote {
	int fd; /* /proc/PID/mem of the process */
	struct sampling layout;
	/* What was read since remote_refresh(): frames stand close together. By the page's number, modulo. */
	uint64_t generation;
	struct {
		uint64_t address, generation;
		uint8_t bytes[REMOTE_PAGE_BYTES];
	} pages[REMOTE_PAGES];
};

/* One frame of a stack. */
struct remote_frame {
	uint64_t frame, code; /* addresses */
	int64_t instruction;  /* offset in bytes from the first, below 0: none yet */
};

/* What tells one code object from another that stands at its address later. */
struct remote_code {
	uint64_t file, name, qualified_name, lines; /* addresses of objects */
	int32_t line;
	int32_t flags;
};

/* From here on everything is read anew. */
void remote_refresh(struct remote *remote);

/* Reads so many bytes. False: they are not there. */
bool remote_read(struct remote *remote, uint64_t address, void *out, size_t size);

/* As remote_read(), past what was read before. 0; -EAGAIN: not there; -ESRCH: the image is gone. */
int remote_read_now(struct remote *remote, uint64_t address, void *out, size_t size);

static inline bool remote_word(struct remote *remote, uint64_t address, uint64_t *word)
{
	return remote_read(remote, address, word, sizeof(*word));
}

/*
 * The stack of a thread state, innermost first, as far as its frames can be followed: one that returns or suspends
 * meanwhile may lead nowhere. Returns how many frames, or -1: what is there is no stack.
 */
int remote_stack(struct remote *remote, uint64_t state, struct remote_frame frames[REMOTE_FRAMES]);

bool remote_code(struct remote *remote, uint64_t address, struct remote_code *code);

/* A bytes object. Returns how many bytes, at most size, or -1. */
long remote_bytes(struct remote *remote, uint64_t object, uint8_t *out, size_t size);

/* A str object as UTF-8, cut at a character if it does not fit. Returns the length, or -1. */
long remote_text(struct remote *remote, uint64_t object, char *out, size_t size);

#endif
