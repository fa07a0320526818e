/*
 * ids.h - the names that a cut uses: their ids in the cut, counted from 1 as they first come, and their definitions,
 * until they are written. For one process.
 *
 * Native frames and modules keep their ids, because the order of both has a meaning.
 */
#ifndef EVPROF_TOOLS_CUT_IDS_H
#define EVPROF_TOOLS_CUT_IDS_H

#include <stddef.h>
#include <stdint.h>

#include "evprof/wire.h"
#include "trace/trace.h"

enum ids_kind { IDS_CODE, IDS_FUNCTION, IDS_TYPE, IDS_MARK, IDS_KINDS };

struct ids {
	const struct trace_process *process;
	uint32_t *ids[IDS_KINDS]; /* in the cut, by id in the trace; 0: not used yet */
	uint32_t counts[IDS_KINDS];
	/* Records that are to be written before the next events. Whoever writes them sets used to 0. */
	uint8_t *definitions;
	size_t used, allocated;
	int error; /* -ENOMEM, once memory has run out */
};

/* Returns 0 or -ENOMEM. ids_done() must follow in both cases. */
int ids_begin(struct ids *ids, const struct trace_process *process);
void ids_done(struct ids *ids);

/*
 * The head of an event with the ids of the cut. *extra: its extra words; those with ids are written to words, which is
 * then what *extra points to.
 */
uint32_t ids_of_event(struct ids *ids, uint32_t head, const uint64_t **extra, uint64_t words[WIRE_EXTRA_MAX]);

/* The id of a function in the cut; 0: not known. */
uint32_t ids_of(struct ids *ids, enum ids_kind kind, uint32_t id);

/* Adds a definition without an id in the trace, such as the name of a thread. */
void ids_define(struct ids *ids, unsigned type, uint32_t id, unsigned flags, struct text name);
/* Adds a record as it is. */
void ids_add(struct ids *ids, const struct wire_definition *definition);

#endif
