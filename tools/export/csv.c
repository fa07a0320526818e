/*
 * csv.c - one table of all events, with the columns of cpyquickhelper's EventProfiler, pid and tid.
 *
 *   time       ns since 1970, as in EventProfiler; with --since-start since the start of the trace, as elsewhere in
 *              evprof
 *   value1     of memory events the address, of spans their number in the process, else 0
 *   value2     of memory events the size in bytes: that of the new block, or minus that of the freed one, so the sum of
 *              the column is the memory in use; 0 if the size is not known
 *   event      call return c_call c_return exception c_exception malloc calloc realloc free realloc_free span_begin
 *              span_end mark counter
 *   name       of the function: co_name, or __qualname__ of a C function; of the span, mark or counter
 *   mod        co_filename, or __module__ of a C function, which is empty for methods
 *   lineno     co_firstlineno; of a C function that of the Python function that called it
 *   from_name  the Python function that called it, empty if none did; C functions between are skipped, as by
 *   from_mod   frame.f_back
 *   from_line  co_firstlineno of the caller, -1 if there is none
 *   pid, tid   not in EventProfiler
 *   value      of counters their value, a double, else 0; not in EventProfiler
 *
 * In the rows of spans, marks and counters, mod, lineno and from_* are those of a C function without a module: the
 * caller is the function that runs. A span_end without its span_begin has an empty name.
 *
 * A realloc is two rows: realloc_free for the old block and realloc for the new one. As in sys.setprofile(), a resume
 * is a call, and a yield or an exception that leaves the function is a return.
 *
 * Differences from EventProfiler: its memory events name the place where the profiler was started; here it is the
 * running function. Its from_line is the current line of the caller; here it is the first line, because call events
 * have no line. In events of C functions its from_name is the C function's name, and from_mod and from_line are the
 * caller's caller; here all three are the caller's. The sizes are those requested in all three domains of Python's
 * allocators, not only raw. A failed allocation has address 0 and the requested size.
 *
 * Lines end with \n. The file is UTF-8 (csv_function.h). Prose: docs/table.md. api/event_rows.c makes the same table
 * in memory; tests compare them.
 */
#include "export/export.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/blocks.h"
#include "export/csv_function.h"
#include "replay/event_stream.h"
#include "replay/named_events.h"
#include "util/batches.h"
#include "util/digits.h"
#include "util/u64_map.h"

#define CSV_HEADER "time,value1,value2,event,name,mod,lineno,from_name,from_mod,from_line,pid,tid,value\n"

struct csv_process {
	struct blocks blocks; /* alive */
	struct u64_map spans; /* that are open (named_events.h) */
	uint32_t keys;
	struct csv_function functions[]; /* by key */
};

#define CSV_REALLOC_FREE WIRE_KINDS /* follows the kinds in the names */

/* Column 4 by the kind of the event; NULL: no row. The name of a span, mark or counter follows. */
static const char *const kind_names[WIRE_KINDS + 1] = {
    [WIRE_CALL] = ",call",
    [WIRE_RESUME] = ",call",
    [WIRE_THROW] = ",call",
    [WIRE_RETURN] = ",return",
    [WIRE_YIELD] = ",return",
    [WIRE_UNWIND] = ",return",
    [WIRE_C_CALL] = ",c_call",
    [WIRE_C_RETURN] = ",c_return",
    [WIRE_EXCEPTION] = ",exception",
    [WIRE_C_EXCEPTION] = ",c_exception",
    [WIRE_MALLOC] = ",malloc",
    [WIRE_CALLOC] = ",calloc",
    [WIRE_REALLOC] = ",realloc",
    [WIRE_FREE] = ",free",
    [CSV_REALLOC_FREE] = ",realloc_free",
    [WIRE_SPAN_BEGIN] = ",span_begin,",
    [WIRE_SPAN_END] = ",span_end,",
    [WIRE_MARK] = ",mark,",
    [WIRE_COUNTER] = ",counter,",
};

/* An event in the queue to the row writer; the extra words of one that csv_has_words() follow. */
struct csv_event {
	int64_t ns; /* CLOCK_MONOTONIC */
	uint32_t head;
	uint32_t running; /* replay/event_stream.h */
	uint32_t caller;
	uint32_t thread; /* number */
};

#define TAIL_BYTES_MAX 1024 /* longer tails are not cached */

/* A row from column 4 to its end, cached: most rows equal an earlier one from there on. */
struct csv_tail {
	uint32_t kind;
	uint32_t running;
	uint32_t caller;
	uint32_t thread;
	uint32_t length; /* 0: none */
	char bytes[TAIL_BYTES_MAX];
};

#define TAILS 2048
#define TAIL_STEP 16 /* tails are copied in units of this many bytes */

struct csv {
	const struct trace *trace;
	struct batches events;
	struct csv_process **processes; /* by number; NULL unless running */
	/* Owned by the second thread until batches_wait(). */
	struct output *output;
	const struct export *export;
	int64_t origin_ns; /* added to CLOCK_MONOTONIC */
	struct digits_near near;
	struct csv_tail *tails;
};

static const struct csv_function no_function = {.bytes = ",,,-1", .length = 5, .line_at = 2};

/* The columns of the function of a key; for EVENT_STREAM_NOBODY empty names and line -1. NULL if memory ran out. */
static const struct csv_function *function_of(const struct csv *csv, const struct csv_event *event, uint32_t key)
{
	const struct trace_process *process = trace_process_of(csv->trace, csv->trace->threads[event->thread]);
	struct csv_function *function;

	if (key == EVENT_STREAM_NOBODY)
		return &no_function;
	function = &csv->processes[process->number]->functions[key];
	if (!function->bytes && csv_function_make(function, csv->export, process, key) < 0)
		return NULL;
	return function;
}

/* --- rows --- */

/* Writes the columns from name to from_line. */
static void put_functions(struct output *output, const struct csv_event *event, const struct csv_function *running,
			  const struct csv_function *caller)
{
	output_put(output, running->bytes, running->length);
	if (event->running != EVENT_STREAM_NOBODY && event->running & 1)
		output_put(output, caller->bytes + caller->line_at, caller->length - caller->line_at);
	output_put(output, caller->bytes, caller->length);
}

static void put_place(const struct csv *csv, struct output *output, const struct csv_event *event)
{
	const struct trace_thread *thread = csv->trace->threads[event->thread];

	output_char(output, ',');
	output_i64(output, trace_process_of(csv->trace, thread)->pid);
	output_char(output, ',');
	output_u64(output, thread->tid);
}

static struct csv_tail *tail_place(const struct csv *csv, const struct csv_event *event, unsigned kind)
{
	uint64_t hash =
	    (uint64_t)event->running << 32 ^ (uint64_t)event->caller << 8 ^ (uint64_t)event->thread << 4 ^ kind;

	return &csv->tails[hash * UINT64_C(0x9e3779b97f4a7c15) >> 32 & (TAILS - 1)];
}

/* Writes a tail that is not cached, and caches it if it is not too long. */
static int put_new_tail(struct csv *csv, const struct csv_event *event, unsigned kind, struct csv_tail *tail)
{
	const struct csv_function *running = function_of(csv, event, event->running);
	const struct csv_function *caller = function_of(csv, event, event->caller);
	struct output *output = csv->output, kept = {.fd = -1};
	size_t length;

	if (!running || !caller)
		return -ENOMEM;
	length = strlen(kind_names[kind]) + running->length + 2 * caller->length + 2 * DIGITS_MAX + 6;
	if (length <= TAIL_BYTES_MAX) {
		kept.buffer = tail->bytes;
		output = &kept;
	}
	output_string(output, kind_names[kind]);
	put_functions(output, event, running, caller);
	put_place(csv, output, event);
	output_string(output, ",0\n");
	if (output == csv->output)
		return 0;
	output_put(csv->output, tail->bytes, kept.used);
	tail->kind = kind;
	tail->running = event->running;
	tail->caller = event->caller;
	tail->thread = event->thread;
	tail->length = (uint32_t)kept.used;
	return 0;
}

static inline int put_tail(struct csv *csv, const struct csv_event *event, unsigned kind)
{
	struct csv_tail *tail = tail_place(csv, event, kind);
	char *room;

	if (__builtin_expect(!tail->length || tail->kind != kind || tail->running != event->running ||
				 tail->caller != event->caller || tail->thread != event->thread,
			     0))
		return put_new_tail(csv, event, kind, tail);
	room = output_room(csv->output, TAIL_BYTES_MAX);
	for (uint32_t i = 0; i < tail->length; i += TAIL_STEP)
		memcpy(room + i, tail->bytes + i, TAIL_STEP);
	output_take(csv->output, tail->length);
	return 0;
}

static inline char *put_signed(char *at, int64_t value)
{
	if (value < 0)
		*at++ = '-';
	return digits_put(at, value < 0 ? -(uint64_t)value : (uint64_t)value);
}

/* Writes the columns before event. */
static inline void put_values(struct csv *csv, const struct csv_event *event, uint64_t value1, int64_t value2)
{
	int64_t ns = (int64_t)((uint64_t)event->ns + (uint64_t)csv->origin_ns);
	char *room = output_room(csv->output, 4 * DIGITS_MAX + 8);
	char *at = ns < 0 ? put_signed(room, ns) : digits_near_put(&csv->near, room, (uint64_t)ns);

	if (value1 || value2) {
		*at++ = ',';
		at = put_signed(at, (int64_t)value1);
		*at++ = ',';
		at = put_signed(at, value2);
	} else {
		memcpy(at, ",0,0", 4);
		at += 4;
	}
	output_take(csv->output, (size_t)(at - room));
}

static inline int put_row(struct csv *csv, const struct csv_event *event, uint64_t value1, int64_t value2,
			  unsigned kind)
{
	put_values(csv, event, value1, value2);
	return put_tail(csv, event, kind);
}

/* --- memory --- */

/* Follows the block of a memory event. Sets *freed to minus the size of what it frees. */
static int follow_block(const struct csv *csv, const struct csv_event *event, const uint64_t *extra,
			struct csv_process *process, int64_t *freed)
{
	uint64_t bytes = 0;
	int error = 0;

	if (!csv->export->no_freed_sizes)
		error = blocks_follow(&process->blocks, event->thread, event->head, extra, &bytes);
	*freed = -(int64_t)bytes;
	return error;
}

static int put_memory(struct csv *csv, const struct csv_event *event, const uint64_t *extra)
{
	const struct trace_thread *thread = csv->trace->threads[event->thread];
	struct csv_process *process = csv->processes[trace_process_of(csv->trace, thread)->number];
	unsigned kind = wire_head_kind(event->head);
	uint64_t address;
	int64_t freed;
	int error = follow_block(csv, event, extra, process, &freed);

	if (error || !wire_is_memory(kind) || !filter_thread(csv->export->filter, thread))
		return error;
	address = wire_memory_address(extra[0]);
	if (kind == WIRE_FREE)
		return put_row(csv, event, address, freed, kind);
	if (kind == WIRE_REALLOC)
		error = put_row(csv, event, wire_memory_address(extra[1]), freed, CSV_REALLOC_FREE);
	return error ? error : put_row(csv, event, address, (int64_t)wire_memory_size(event->head, extra[0]), kind);
}

/* --- spans, marks and counters --- */

/* Writes a double with the fewest digits that give it again. */
static void put_double(struct output *output, double value)
{
	char text[64];

	for (int digits = 15; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, value);
		if (strtod(text, NULL) == value)
			break;
	}
	output_string(output, isnan(value) ? "nan" : text);
}

static int put_named(struct csv *csv, const struct csv_event *event, const uint64_t *extra)
{
	const struct trace_process *process = trace_process_of(csv->trace, csv->trace->threads[event->thread]);
	/* What runs calls the event; a C function has no row of its own as a caller. */
	bool in_python = event->running == EVENT_STREAM_NOBODY || !(event->running & 1);
	const struct csv_function *caller = function_of(csv, event, in_python ? event->running : event->caller);
	struct csv_process *own = csv->processes[process->number];
	struct named_event named;
	int error = caller ? named_event_take(&own->spans, event->head, extra, &named) : -ENOMEM;

	if (error)
		return error;
	put_values(csv, event, named.number, 0);
	output_string(csv->output, kind_names[wire_head_kind(event->head)]);
	csv_put_text(csv->output, trace_name(&process->marks, named.name), 1);
	output_char(csv->output, ',');
	output_put(csv->output, caller->bytes + caller->line_at, caller->length - caller->line_at);
	output_put(csv->output, caller->bytes, caller->length);
	put_place(csv, csv->output, event);
	output_char(csv->output, ',');
	put_double(csv->output, named.value);
	output_char(csv->output, '\n');
	return 0;
}

/* --- all --- */

/* Whether put_memory() wants it. Mappings have no row. */
static inline bool csv_is_memory(unsigned kind)
{
	return wire_is_memory(kind) || kind == WIRE_REALLOC_BEGIN || kind == WIRE_GAP || kind == WIRE_PAUSE;
}

/* Whether the extra words of such an event are queued, too. */
static inline bool csv_has_words(unsigned kind)
{
	return csv_is_memory(kind) || named_event_is(kind);
}

/* Runs in the second thread. */
static int write_rows(void *owner, const char *bytes, size_t used)
{
	struct csv *csv = owner;
	size_t at = 0;
	int error = 0;

	while (at < used && !error) {
		const struct csv_event *event = (const struct csv_event *)(bytes + at);
		unsigned kind = wire_head_kind(event->head);

		at += sizeof(*event);
		if (csv_has_words(kind)) {
			error =
			    (csv_is_memory(kind) ? put_memory : put_named)(csv, event, (const uint64_t *)(bytes + at));
			at += wire_extra_words(event->head) * sizeof(uint64_t);
		} else {
			error = put_row(csv, event, 0, 0, kind);
		}
	}
	return error ? error : csv->output->error;
}

static int csv_event(void *owner, const struct event_stream_event *event)
{
	struct csv *csv = owner;
	unsigned kind = wire_head_kind(event->head);
	unsigned words = csv_has_words(kind) ? wire_extra_words(event->head) : 0;
	struct csv_event *room;

	if (!kind_names[kind] && !csv_is_memory(kind))
		return 0;
	room = batches_room(&csv->events, sizeof(*room) + words * sizeof(uint64_t));
	if (room) {
		*room =
		    (struct csv_event){event->ns, event->head, event->running, event->caller, event->thread->number};
		memcpy(room + 1, event->extra, words * sizeof(uint64_t));
	}
	return csv->events.error;
}

static int csv_hidden(void *owner, const struct event_stream_event *event)
{
	return csv_is_memory(wire_head_kind(event->head)) ? csv_event(owner, event) : 0;
}

static int csv_begin(void *owner, const struct trace_process *process, uint32_t keys, void **user)
{
	struct csv_process *own = calloc(1, sizeof(*own) + keys * sizeof(own->functions[0]));
	struct csv *csv = owner;

	csv->processes[process->number] = *user = own;
	if (!own)
		return -ENOMEM;
	own->keys = keys;
	return 0;
}

static void csv_end(void *owner, const struct trace_process *process, void *user)
{
	struct csv_process *own = user;
	struct csv *csv = owner;

	batches_wait(&csv->events);
	csv->processes[process->number] = NULL;
	if (!own)
		return;
	for (uint32_t key = 0; key < own->keys; key++)
		free(own->functions[key].bytes);
	blocks_done(&own->blocks);
	u64_map_done(&own->spans);
	free(own);
}

int export_csv(const struct export *export, struct output *output, struct progress *progress)
{
	const struct event_stream_user user = {csv_begin, csv_end, csv_event,
					       export->no_freed_sizes ? NULL : csv_hidden};
	struct csv csv = {.trace = export->trace, .output = output, .export = export};
	int error = -ENOMEM, written = 0;

	csv.origin_ns = export->since_start ? -export->trace->start_ns : trace_realtime_offset(export->trace);
	csv.tails = calloc(TAILS, sizeof(*csv.tails));
	csv.processes = calloc((size_t) export->trace->process_count + 1, sizeof(struct csv_process *));
	if (csv.tails && csv.processes) {
		output_string(output, CSV_HEADER);
		batches_begin(&csv.events, write_rows, &csv);
		error = event_stream_run(export->trace, export->filter, progress, &user, &csv);
		written = batches_end(&csv.events);
	}
	free(csv.tails);
	free(csv.processes);
	return error ? error : written;
}
