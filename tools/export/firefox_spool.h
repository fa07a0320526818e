/*
 * firefox_spool.h - columns of Firefox's format that are kept in unnamed files, next to the output, until the columns
 * before them are written.
 *
 * Used by firefox.c. A spool holds either the text of a column, elements with commas between them, or the lengths of
 * the samples as numbers. Two columns are made of the lengths: the start of each sample, and its weight.
 */
#ifndef EVPROF_TOOLS_EXPORT_FIREFOX_SPOOL_H
#define EVPROF_TOOLS_EXPORT_FIREFOX_SPOOL_H

#include <stdbool.h>
#include <stdint.h>

#include "util/output.h"

struct spool {
	struct output column; /* all zeros: not open */
	bool any;	      /* the next element needs a comma before it */
};

/* Opens the file in the folder of the output, or among temporary files. Returns 0 or -errno. */
int spool_open(struct spool *spool, const struct output *output);
void spool_close(struct spool *spool);

/* --- text --- */

/* Begins an element, which the caller writes to the output that is returned. */
struct output *spool_begin(struct spool *spool);
/* Writes the column, and empties the spool. Returns 0 or -errno. */
int spool_copy(struct spool *spool, struct output *output);

/* --- lengths --- */

/* A period without a change of the stack. The next sample starts at its end. */
struct sample {
	uint64_t length_ns;
	uint64_t stack; /* 0: none */
};

/*
 * Stores a length as a varint: seven bits a byte, the lowest first. The lowest bit of all says whether there is a
 * stack.
 */
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

/*
 * spool_times() writes the start of each sample, the first at first_ns; spool_weights() the length of each sample with
 * a stack, and 0 for the others.
 */
int spool_times(struct spool *spool, int64_t first_ns, struct output *output);
int spool_weights(struct spool *spool, struct output *output);
/* Empties the spool. */
int spool_empty(struct spool *spool);

/* Writes ns as ms, exactly: 1234567 as 1.234567. */
void output_ms(struct output *output, uint64_t ns);

#endif
