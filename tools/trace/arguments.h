/*
 * arguments.h - the arguments of a span or a mark, which precede it in its thread (docs/wire.md).
 */
#ifndef EVPROF_TOOLS_TRACE_ARGUMENTS_H
#define EVPROF_TOOLS_TRACE_ARGUMENTS_H

#include <stdint.h>

#include "evprof/wire.h"
#include "trace/trace.h"
#include "util/output.h"
#include "util/text.h"

struct argument {
	uint32_t key;		       /* a mark's id */
	unsigned type;		       /* enum wire_argument_type, without WIRE_ARGUMENT_CUT */
	uint64_t word;		       /* unless it is a text */
	uint32_t text_at, text_length; /* in arguments.text */
};

/* Of one thread. Zeros to begin with. */
struct arguments {
	struct argument at[WIRE_ARGUMENTS_MAX];
	unsigned count;
	char *text;
	size_t used, allocated;
};

/* Takes a WIRE_ARGUMENT. More than WIRE_ARGUMENTS_MAX are dropped. Returns 0 or -ENOMEM. */
int arguments_take(struct arguments *arguments, uint32_t head, const uint64_t *extra);
void arguments_done(struct arguments *arguments);

/* After the span or mark, or a gap. */
static inline void arguments_forget(struct arguments *arguments)
{
	arguments->count = 0;
	arguments->used = 0;
}

/* Writes the members of a JSON object: "path":"/users","n":3. Infinite numbers and NaN are texts. */
void arguments_json(struct output *output, const struct trace_process *process, const struct arguments *arguments);

/* Writes them for people: "path=/users, n=3". */
void arguments_text(struct output *output, const struct trace_process *process, const struct arguments *arguments);

/* The same as a text of at most `most` bytes, which the caller frees. NULL: there are none, or memory ran out. */
char *arguments_shown(const struct trace_process *process, const struct arguments *arguments, size_t most);

static inline struct text argument_text(const struct arguments *arguments, const struct argument *argument)
{
	return (struct text){arguments->text + argument->text_at, argument->text_length};
}

#endif
