/*
 * drain_definitions.c - reads definitions from a process's shared memory. Called by drain.c.
 *
 * They are hostile until checked. A damaged definition ends the reading of definitions and nothing else.
 */
#include "session/drain.h"

#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "evprof/invariant.h"
#include "ring/ring_read.h"
#include "session/process.h"
#include "symbols/resolver.h"
#include "trace/trace_output.h"

_Static_assert(DRAIN_DEFINITIONS_BYTES >= WIRE_DEFINITION_MAX_BYTES, "a definition fits the buffer");

/* The size of the record at `bytes`; 0: incomplete; -EINVAL: not a definition. */
static int64_t check_definition(const uint8_t *bytes, size_t count)
{
	struct wire_definition record;
	uint64_t strings = 0;

	if (count < sizeof(record))
		return 0;
	memcpy(&record, bytes, sizeof(record));
	if (record.size_bytes % 8 || record.size_bytes < sizeof(record) ||
	    record.size_bytes > WIRE_DEFINITION_MAX_BYTES)
		return -EINVAL;
	if (record.type < WIRE_DEFINE_CODE || record.type > WIRE_DEFINE_BUDGET || record.type == WIRE_DEFINE_SYMBOL)
		return -EINVAL;
	if (record.type != WIRE_DEFINE_THREAD_NAME && (record.id == 0 || record.id > WIRE_ARG_MAX))
		return -EINVAL;
	for (unsigned i = 0; i < WIRE_DEFINITION_STRINGS; i++) {
		if (record.length[i] > WIRE_STRING_MAX_BYTES)
			return -EINVAL;
		strings += record.length[i];
	}
	if (((sizeof(record) + strings + 7) & ~UINT64_C(7)) != record.size_bytes)
		return -EINVAL;
	return record.size_bytes <= count ? (int64_t)record.size_bytes : 0;
}

/* Length of the complete records at the beginning. Sets *bad if the next one is invalid. */
static size_t check_definitions(const uint8_t *bytes, size_t count, bool *bad)
{
	size_t good = 0;
	int64_t size;

	while ((size = check_definition(bytes + good, count - good)) > 0)
		good += (size_t)size;
	*bad = size < 0;
	return good;
}

static void stop_definitions(struct process *process)
{
	process->definitions_bad = true;
	log_warning("process %d wrote a damaged definition: names of its later functions are missing from the trace",
		    (int)process->pid);
}

static void write_definitions(struct process *process, const void *bytes, size_t count)
{
	struct trace_chunk chunk = {
	    .type = TRACE_CHUNK_DEFINITIONS, .process = process->number, .thread = TRACE_NOBODY};

	trace_output_chunk(process->trace, &chunk, bytes, count);
}

/* Drains one batch below `head`. False: nothing more to read. */
static bool drain_definitions_once(struct process *process, uint64_t head)
{
	const struct ring_layout *layout = &process->layout;
	uint64_t unread = head - process->definitions_tail;
	uint8_t *buffer = process->drain->definitions;
	size_t count = unread < DRAIN_DEFINITIONS_BYTES ? (size_t)unread : DRAIN_DEFINITIONS_BYTES;
	size_t good;
	bool bad;

	if (unread == 0)
		return false;
	if (unread > layout->definitions_bytes || ring_read(process->memfd, buffer, count, layout->definitions_offset,
							    layout->definitions_bytes, process->definitions_tail)) {
		stop_definitions(process);
		return false;
	}
	good = check_definitions(buffer, count, &bad);
	invariant(good <= count && good % 8 == 0);
	process->definitions_tail += good;
	process_charge_words(process, good / sizeof(uint64_t));
	/* Release: pairs with the target's acquire of the tail. It may overwrite these bytes now. */
	atomic_store_explicit(&process->header->definitions_tail, process->definitions_tail, memory_order_release);
	if (good > 0)
		write_definitions(process, buffer, good);
	if (good > 0 && process->symbols)
		resolver_note(process->symbols, buffer, good);
	if (bad || good == 0)
		stop_definitions(process);
	return !process->definitions_bad;
}

bool drain_definitions(struct process *process, bool needed)
{
	uint64_t head = atomic_load_explicit(&process->header->definitions_head, memory_order_acquire);
	uint64_t unread = head - process->definitions_tail;

	if (!needed && unread < process->layout.definitions_bytes / 4)
		return true;
	while (!process->definitions_bad && process->share > 0 && drain_definitions_once(process, head))
		continue;
	return process->definitions_bad || process->definitions_tail == head;
}
