/*
 * pprof.c - pprof's profile.proto (https://github.com/google/pprof/blob/main/proto/profile.proto), gzip'ed.
 *
 *   sample types    calls/count, and time/nanoseconds: the own time of the stack. time is the default. Where memory
 *                   events were recorded, those of Go's heap profiles in their order, too: alloc_objects/count and
 *                   alloc_space/bytes, all allocations; inuse_objects/count and inuse_space/bytes, the live blocks at
 *                   the end (analysis/live.h; by the wall clock only, as threads have no common order by the others).
 *                   Where memory was recorded and calls were not, those of the heap only; inuse_space is the default
 *   labels          pid and tid (numbers), thread (its name)
 *   functions       without system_name: if it equals the name, pprof takes the function for C++ and strips the text in
 *                   angle brackets
 *   locations       one for each function, with the line where it is defined; and one for each line of a function
 *                   at which memory was allocated, or that was sampled
 *   mappings        the program, and each library with native frames
 *   comments        that allocations were sampled, or that only what is alive was kept
 *
 * A thread is written when it ends, a function or string at its first use: protobuf allows the fields of a message in
 * any order. So memory is that of analysis/stacks.h.
 */
#include "export/export.h"

#include <errno.h>

#include "analysis/stack_counts.h"
#include "analysis/stacks.h"
#include "export/deflate.h"
#include "export/pprof_fields.h"
#include "export/protobuf.h"

/* Strings at the start of every profile, by number. */
enum {
	STRING_EMPTY,
	STRING_CALLS,
	STRING_COUNT,
	STRING_TIME,
	STRING_NANOSECONDS,
	STRING_PID,
	STRING_TID,
	STRING_THREAD,
	STRING_BYTES, /* this and the next only if memory events were recorded */
	STRING_ALLOC_OBJECTS,
	STRING_ALLOC_SPACE,
	STRING_INUSE_OBJECTS, /* this and the next only if the order of all threads is known */
	STRING_INUSE_SPACE,
	STRINGS,
};

struct pprof {
	struct output *output;
	z_stream gzip;
	struct stack_functions functions;
	uint64_t strings; /* written so far */
	uint32_t functions_written;
	struct protobuf field; /* the current field */
	bool mapped;
	bool timed;		 /* calls and times are written */
	bool allocations;	 /* memory events were recorded */
	bool in_use;		 /* live blocks at the end are written, too */
	struct labels libraries; /* the files of labels; each has a mapping, numbered from 2 */
	uint32_t libraries_written;
	int error;
};

/* Writes the finished fields. */
static void write_out(struct pprof *pprof)
{
	deflate_put(&pprof->gzip, pprof->output, pprof->field.bytes, pprof->field.used, Z_NO_FLUSH);
	if (pprof->field.error)
		pprof->error = pprof->field.error;
	protobuf_clear(&pprof->field);
}

/* Writes a string and gives its number. */
static uint64_t put_string(struct pprof *pprof, struct text text)
{
	protobuf_text(&pprof->field, PROFILE_STRING, text);
	write_out(pprof);
	return pprof->strings++;
}

/* Adds a message with fields that are numbers, by field number from 1. */
static void add_message(struct pprof *pprof, uint32_t field, const uint64_t *numbers, uint32_t last)
{
	protobuf_begin(&pprof->field, field);
	for (uint32_t i = 1; i <= last; i++)
		protobuf_nonzero(&pprof->field, i, numbers[i]);
	protobuf_end(&pprof->field);
}

static void put_message(struct pprof *pprof, uint32_t field, const uint64_t *numbers, uint32_t last)
{
	add_message(pprof, field, numbers, last);
	write_out(pprof);
}

static void put_times(struct pprof *pprof, const struct trace *trace, const struct filter *filter)
{
	int64_t length = trace->end_ns - trace->start_ns;
	int64_t from = filter_from(filter) < length ? filter_from(filter) : length;
	int64_t to = filter_to(filter) < length ? filter_to(filter) : length;

	if (trace->clock_count)
		protobuf_nonzero(&pprof->field, PROFILE_TIME_NANOS,
				 (uint64_t)(trace_realtime_offset(trace) + trace->start_ns + from));
	protobuf_nonzero(&pprof->field, PROFILE_DURATION_NANOS, to > from ? (uint64_t)(to - from) : 0);
	protobuf_nonzero(&pprof->field, PROFILE_DEFAULT_SAMPLE_TYPE,
			 pprof->timed	 ? STRING_TIME
			 : pprof->in_use ? STRING_INUSE_SPACE
					 : STRING_ALLOC_SPACE);
	write_out(pprof);
}

/* The sample types are those from the first one up to the end. */
static size_t values_first(const struct pprof *pprof)
{
	return pprof->timed ? 0 : 2;
}

static size_t values_end(const struct pprof *pprof)
{
	return pprof->in_use ? 6 : pprof->allocations ? 4 : 2;
}

static void put_comment(struct pprof *pprof, const char *comment)
{
	uint64_t number = put_string(pprof, text_of(comment));

	protobuf_nonzero(&pprof->field, PROFILE_COMMENT, number);
	write_out(pprof);
}

static void put_comments(struct pprof *pprof, const struct trace *trace)
{
	char sampling[TRACE_SAMPLING_BYTES];

	if (pprof->allocations && trace_memory_interval(trace))
		put_comment(pprof, trace_memory_sampling_text(trace_memory_interval(trace), sampling));
	if (pprof->allocations && trace_is_alive_only(trace))
		put_comment(pprof, TRACE_ALIVE_ONLY_TEXT);
}

static void put_beginning(struct pprof *pprof, const struct trace *trace, const struct filter *filter)
{
	const char *const strings[] = {
	    [STRING_EMPTY] = "",
	    [STRING_CALLS] = trace_sample_rate(trace) ? "samples" : "calls",
	    [STRING_COUNT] = "count",
	    [STRING_TIME] = "time",
	    [STRING_NANOSECONDS] = "nanoseconds",
	    [STRING_PID] = "pid",
	    [STRING_TID] = "tid",
	    [STRING_THREAD] = "thread",
	    [STRING_BYTES] = "bytes",
	    [STRING_ALLOC_OBJECTS] = "alloc_objects",
	    [STRING_ALLOC_SPACE] = "alloc_space",
	    [STRING_INUSE_OBJECTS] = "inuse_objects",
	    [STRING_INUSE_SPACE] = "inuse_space",
	};
	static const uint64_t types[][3] = {
	    {0, STRING_CALLS, STRING_COUNT},	     {0, STRING_TIME, STRING_NANOSECONDS},
	    {0, STRING_ALLOC_OBJECTS, STRING_COUNT}, {0, STRING_ALLOC_SPACE, STRING_BYTES},
	    {0, STRING_INUSE_OBJECTS, STRING_COUNT}, {0, STRING_INUSE_SPACE, STRING_BYTES},
	};
	size_t count = pprof->in_use ? STRINGS : pprof->allocations ? STRING_INUSE_OBJECTS : STRING_BYTES, i;

	for (i = 0; i < count; i++)
		put_string(pprof, text_of(strings[i]));
	for (i = values_first(pprof); i < values_end(pprof); i++)
		put_message(pprof, PROFILE_SAMPLE_TYPE, types[i], VALUE_UNIT);
	put_times(pprof, trace, filter);
	put_comments(pprof, trace);
}

/* Writes a mapping: the program or a library. Its flags say that all names are present, so pprof does not symbolize. */
static void put_mapping(struct pprof *pprof, uint64_t number, struct text name)
{
	put_message(pprof, PROFILE_MAPPING,
		    (uint64_t[]){[MAPPING_ID] = number,
				 [MAPPING_FILE] = put_string(pprof, name),
				 [MAPPING_HAS_FUNCTIONS] = 1,
				 [MAPPING_HAS_FILES] = 1,
				 [MAPPING_HAS_LINES] = 1},
		    MAPPING_HAS_LINES);
}

/* The number of a function's mapping. */
static uint64_t mapping_of(struct pprof *pprof, const struct stack_function *function)
{
	uint32_t number;

	if (!function->library.length)
		return 1;
	number = labels_add(&pprof->libraries, &(struct label){.file = function->library});
	if (number == UINT32_MAX) {
		pprof->error = -ENOMEM;
		return 1;
	}
	if (number == pprof->libraries_written) {
		put_mapping(pprof, number + UINT64_C(2), function->library);
		pprof->libraries_written++;
	}
	return number + UINT64_C(2);
}

/* Writes a function with that id. */
static void put_function(struct pprof *pprof, const struct stack_function *function, uint64_t id)
{
	uint64_t name = put_string(pprof, text_of(function->name));
	uint64_t file = put_string(pprof, function->source.length ? function->source : function->file);

	put_message(
	    pprof, PROFILE_FUNCTION,
	    (uint64_t[]){
		[FUNCTION_ID] = id, [FUNCTION_NAME] = name, [FUNCTION_FILE] = file, [FUNCTION_LINE] = function->begins},
	    FUNCTION_LINE);
}

/* Writes the location with id number + 1, and its function: a whole one has the same id, and precedes its lines. */
static void put_location(struct pprof *pprof, uint32_t number)
{
	const struct stack_function *function = &pprof->functions.at[number], *whole = function;
	uint64_t mapping = mapping_of(pprof, function), id;

	while (whole->whole)
		whole = &pprof->functions.at[whole->whole - 1];
	id = (uint64_t)(whole - pprof->functions.at) + 1;
	if (whole == function)
		put_function(pprof, function, id);
	protobuf_begin(&pprof->field, PROFILE_LOCATION);
	protobuf_nonzero(&pprof->field, LOCATION_ID, (uint64_t)number + 1);
	protobuf_nonzero(&pprof->field, LOCATION_MAPPING, mapping);
	add_message(pprof, LOCATION_LINE, (uint64_t[]){[LINE_FUNCTION] = id, [LINE_NUMBER] = function->line},
		    LINE_NUMBER);
	protobuf_end(&pprof->field);
	write_out(pprof);
}

/* Innermost first. */
static void add_locations(struct pprof *pprof, const struct stacks *stacks, uint32_t stack)
{
	protobuf_begin(&pprof->field, SAMPLE_LOCATIONS);
	for (; stack; stack = stacks->at[stack].parent)
		protobuf_varint(&pprof->field, (uint64_t)stacks->at[stack].function + 1);
	protobuf_end(&pprof->field);
}

/* In the order of the sample types. */
static void add_values(struct pprof *pprof, const struct stack_node *stack)
{
	const uint64_t values[] = {stack->calls, stack->own_ns,	     stack->allocations,
				   stack->bytes, stack->live_blocks, stack->live_bytes};

	protobuf_begin(&pprof->field, SAMPLE_VALUES);
	for (size_t i = values_first(pprof); i < values_end(pprof); i++)
		protobuf_varint(&pprof->field, values[i]);
	protobuf_end(&pprof->field);
}

static int put_sample(struct pprof *pprof, const struct call_walk *walk, const struct stacks *stacks, uint32_t stack,
		      uint64_t thread)
{
	protobuf_begin(&pprof->field, PROFILE_SAMPLE);
	add_locations(pprof, stacks, stack);
	add_values(pprof, &stacks->at[stack]);
	add_message(pprof, SAMPLE_LABEL,
		    (uint64_t[]){[LABEL_KEY] = STRING_PID, [LABEL_NUMBER] = (uint64_t)walk->process->pid},
		    LABEL_NUMBER);
	add_message(pprof, SAMPLE_LABEL, (uint64_t[]){[LABEL_KEY] = STRING_TID, [LABEL_NUMBER] = walk->thread->tid},
		    LABEL_NUMBER);
	add_message(pprof, SAMPLE_LABEL, (uint64_t[]){[LABEL_KEY] = STRING_THREAD, [LABEL_STRING] = thread},
		    LABEL_STRING);
	protobuf_end(&pprof->field);
	write_out(pprof);
	return pprof->error ? pprof->error : pprof->output->error;
}

static int pprof_thread(void *owner, struct call_walk *walk, struct stacks *stacks)
{
	struct pprof *pprof = owner;
	const char *name = walk->thread->name;
	uint64_t thread;
	int error = 0;

	if (stacks->count < 2 && !(stacks->count && stacks->at[0].allocations))
		return 0;
	while (pprof->functions_written < pprof->functions.count)
		put_location(pprof, pprof->functions_written++);
	thread = put_string(pprof, text_of(name && name[0] ? name : "thread"));
	/* The empty stack holds allocations outside any known function; it has no location. */
	for (uint32_t i = 0; !error && i < stacks->count; i++)
		if (stacks->at[i].own_ns || stacks->at[i].calls || stacks->at[i].allocations)
			error = put_sample(pprof, walk, stacks, i, thread);
	return error ? error : pprof->error;
}

static int pprof_process(void *owner, struct call_walk *walk)
{
	struct pprof *pprof = owner;
	const char *program = trace_process_text(walk->process, "program");

	if (!pprof->mapped)
		put_mapping(pprof, 1, text_of(program[0] ? program : "python"));
	pprof->mapped = true;
	return 0;
}

/* Sets the sample types of the profile. */
static void set_sample_types(struct pprof *pprof, const struct export *export, struct stacks_visitor *visitor,
			     struct progress *progress)
{
	const struct trace *trace = export->trace;

	pprof->allocations = trace_records(trace, "mem") || trace_records(trace, "malloc");
	pprof->in_use = pprof->allocations && export->filter->clock == CPU_CLOCK_WALL;
	pprof->timed = !export_is_memory_alone(trace);
	visitor->allocations = pprof->allocations && !pprof->in_use;
	if (!pprof->in_use)
		return;
	visitor->live = LIVE_ALL;
	visitor->only_live = !pprof->timed;
	if (pprof->timed)
		progress->total *= 2; /* the trace is read twice */
}

int export_pprof(const struct export *export, struct output *output, struct progress *progress)
{
	struct stacks_visitor visitor = {.process = pprof_process, .thread = pprof_thread};
	struct pprof pprof = {.output = output};
	int error;

	if (!deflate_begin_gzip(&pprof.gzip))
		return -ENOMEM;
	set_sample_types(&pprof, export, &visitor, progress);
	put_beginning(&pprof, export->trace, export->filter);
	error = stacks_visit(export->trace, export->filter, progress, &pprof.functions, &visitor, &pprof);
	deflate_put(&pprof.gzip, output, NULL, 0, Z_FINISH);
	deflateEnd(&pprof.gzip);
	labels_done(&pprof.libraries);
	stack_functions_done(&pprof.functions);
	protobuf_done(&pprof.field);
	return error ? error : pprof.error;
}
