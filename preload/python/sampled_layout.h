/* sampled_layout.h - where this Python keeps what a sampler reads (evprof/sampling.h). */
#ifndef PRELOAD_SAMPLED_LAYOUT_H
#define PRELOAD_SAMPLED_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "evprof/sampling.h"

extern struct sampling sampling;  /* for the image and its forked children */
extern bool sampled_layout_known; /* everything in it that a fork does not change */

/*
 * Searches everything that a fork does not change, once. False: too early, no Python function runs. If a field is not
 * found, a line says so, with what follows from it, and sampled_layout_known stays false. GIL held.
 */
bool sampled_layout_find(const char *else_what);

/* Finds only where a code object has its table of lines. False: it is not found. After python_verify(). */
bool sampled_layout_find_lines(void);

/* Fills in the interpreter that runs, and a state of it that lives as long as Python does. GIL held. */
void sampled_layout_of_interpreter(void);

/*
 * The characters of a str that are all ASCII, inside of it. False: others, or the layout is not known. No GIL is
 * needed.
 */
bool sampled_layout_ascii(const void *text, const char **bytes, size_t *length);

/* The kernel's id of a live thread of this process. False: it is not known. */
bool sampled_layout_thread_id(const void *thread, uint32_t *tid);

#endif
