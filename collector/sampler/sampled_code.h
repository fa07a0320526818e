/* sampled_code.h - the code objects that a sampler has seen: their ids in the trace and their line tables. */
#ifndef COLLECTOR_SAMPLED_CODE_H
#define COLLECTOR_SAMPLED_CODE_H

#include <stddef.h>
#include <stdint.h>

#include "remote/remote.h"
#include "ring/ring_writer.h"
#include "util/u64_map.h"

struct sampled_code {
	uint64_t address; /* 0: free place */
	struct remote_code is;
	uint32_t id;
	uint8_t *lines; /* owned; NULL: not known */
	size_t lines_size;
};

struct sampled_codes {
	struct sampled_code *places; /* by address */
	size_t size, count;	     /* size: a power of two, or 0; at least half are free */
	struct u64_map ids;	     /* by definition_key.h */
	uint32_t last_id;
};

/*
 * The code object at an address, after defining it in the trace. All code with one definition has one id, however often
 * a program compiles it. NULL: not a code object, or no room for its definition. Valid until the next call.
 */
const struct sampled_code *sampled_code(struct sampled_codes *codes, struct remote *remote, struct ring_writer *writer,
					uint64_t address);

void sampled_codes_done(struct sampled_codes *codes);

#endif
