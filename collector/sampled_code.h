/* sampled_code.h - the code objects that a sampler has met: their ids in the trace, and their lines. */
#ifndef COLLECTOR_SAMPLED_CODE_H
#define COLLECTOR_SAMPLED_CODE_H

#include <stddef.h>
#include <stdint.h>

#include "remote.h"
#include "ring_writer.h"

struct sampled_code {
	uint64_t address; /* 0: the place is free */
	struct remote_code is;
	uint32_t id;
	uint8_t *lines; /* owned */
	size_t lines_size;
};

struct sampled_codes {
	struct sampled_code *places;
	size_t size, count; /* a power of two, or 0; more than half are free */
	uint32_t last_id;
};

/*
 * The code object at an address, defined in the trace. NULL: it is none, or there is no room for its definition. Valid
 * until the next call.
 */
const struct sampled_code *sampled_code(struct sampled_codes *codes, struct remote *remote, struct ring_writer *writer,
					uint64_t address);

void sampled_codes_done(struct sampled_codes *codes);

#endif
