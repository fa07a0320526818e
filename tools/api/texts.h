/*
 * texts.h - different texts as numbers, in the memory layout of Arrow's utf8 arrays.
 */
#ifndef EVPROF_TOOLS_API_TEXTS_H
#define EVPROF_TOOLS_API_TEXTS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "util/text.h"

#define TEXTS_NONE UINT32_MAX

/* invariant: text i is bytes[offsets[i]] up to bytes[offsets[i + 1]], valid UTF-8 without NUL; no two are equal */
struct texts {
	_Atomic uint32_t references;
	uint32_t count;
	char *bytes;
	size_t used;
	size_t bytes_allocated;
	int32_t *offsets; /* count + 1 */
	size_t offsets_allocated;
	uint32_t *slots; /* hash table of numbers + 1 */
	uint32_t slot_mask;
};

/* With one reference, and without texts. NULL if memory ran out. */
struct texts *texts_new(void);
struct texts *texts_share(struct texts *texts);
void texts_drop(struct texts *texts); /* may be NULL */

/*
 * The number of a text; a new one is added. NUL, invalid bytes and lone surrogates become U+FFFD. TEXTS_NONE: memory
 * ran out, or the texts have 2 GiB. Only before the texts are shared with another thread.
 */
uint32_t texts_add(struct texts *texts, struct text text);

#endif
