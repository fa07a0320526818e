/* codes.h - the code objects on the stacks of another process: the names of their functions, and their lines. */
#ifndef EVPROF_TOOLS_STACK_CODES_H
#define EVPROF_TOOLS_STACK_CODES_H

#include "stack/layout.h"
#include "util/u64_map.h"

struct code {
	uint64_t address;
	struct remote_code is;
	char *name, *qualified_name, *file; /* owned */
	uint8_t *lines;			    /* owned; NULL: the table is too large */
	size_t lines_size;
};

struct codes {
	struct u64_map by_address; /* 1 + the number of the last one at that address */
	struct code *at;
	size_t count, room;
};

/*
 * The number of the code object at an address, which is read unless it is known and still the same one. False: there is
 * none.
 */
bool codes_find(struct codes *codes, struct process *process, uint64_t address, uint32_t *number);

/* The line of an instruction; 0: it has none. */
uint32_t codes_line(const struct codes *codes, const struct layout *layout, uint32_t number, int64_t instruction);

void codes_done(struct codes *codes);

#endif
