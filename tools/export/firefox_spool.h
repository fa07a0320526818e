/*
 * firefox_spool.h - the columns of Firefox's format that must wait until those before them are written: unnamed files
 * beside the output.
 *
 * Used by firefox.c. A spool holds either the text of a column, elements with commas between, or the lengths of
 * the samples as numbers, of which two columns are made: when each begins, and its weight.
 */
#ifndef EVPROF_TOOLS_EXPORT_FIREFOX_SPOOL_H
#define EVPROF_TOOLS_EXPORT_FIREFOX_SPOOL_H

#include <stdbool.h>
#include <stdint.h>

#include "util/output.h"

struct spool {
	struct output column; /* all zeros: not open */
	bool any;	      /* a comma comes before the next element */
};

/* Beside the file that is written, or among temporary files. Returns 0 or -errno. */
int spool_open(struct spool *spool, const struct output *output);
void spool_close(struct spool *spool);

/* --- text --- */

void spool_put(struct spool *spool, const char *text, size_t length);
void spool_ms(struct spool *spool, uint64_t ns);
/* Writes the column, and empties it. Returns 0 or -errno. */
int spool_copy(struct spool *spool, struct output *output);

/* --- lengths --- */

/* A stretch of time without a change; the next begins where it ends. */
struct sample {
	uint64_t length_ns;
	uint64_t stack; /* 0: none */
};

/* Seven bits a byte, the lowest first; the lowest of all says whether there is a stack. */
static inline void spool_length(struct spool *spool, const struct sample *sample)
{
	uint64_t value = sample->length_ns << 1 | (sample->stack != 0);
	uint8_t *room = (uint8_t *)output_room(&spool->column, 10);
	uint8_t *at = room;

	for (; value >= 0x80; value >>= 7)
		*at++ = (uint8_t)(value | 0x80);
	*at++ = (uint8_t)value;
	output_take(&spool->column, (size_t)(at - room));
}

/* When each sample begins, the first one at that time; or how long those with a stack last, 0 for the others. */
int spool_times(struct spool *spool, int64_t first_ns, struct output *output);
int spool_weights(struct spool *spool, struct output *output);
/* Forgets all. */
int spool_empty(struct spool *spool);

/* ns as ms, exactly: 1234567 as 1.234567. */
void output_ms(struct output *output, uint64_t ns);

#endif
