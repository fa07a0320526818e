/*
 * dump.c - evprof dump: all events, one a line, all threads merged by time.
 *
 * A line has tab-separated fields: ns since the start of the trace, pid, tid, kind, and the fields of the kind. In
 * names, backslash, control characters and invalid UTF-8 are escaped (output_line), so each tab and each line end is a
 * separator.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/memory_estimate.h"
#include "cmd/verbs.h"
#include "replay/call_walk.h"
#include "replay/filter.h"
#include "replay/merge.h"
#include "trace/labels.h"
#include "trace/native_stack.h"
#include "trace/reader.h"
#include "util/cli.h"
#include "util/output.h"
#include "util/progress.h"
#include "util/terminal.h"

static const char *const kind_names[WIRE_KINDS] = WIRE_KIND_NAMES;

static const char help_text[] =
    "usage: evprof dump [options] TRACE\n"
    "\n"
    "Prints every event, one a line, in order of time. Fields are separated by tabs: ns since the start of the trace,\n"
    "pid, tid, kind, and then\n"
    "\n"
    "  call, resume, throw, return, yield, unwind, frame    name (qualified where known), file:line\n"
    "  c_call, c_return, c_exception    {name as in cProfile}\n"
    "  exception                        type\n"
    "  line                             number\n"
    "  malloc, calloc                   address, size, domain (raw, mem, obj, malloc)\n"
    "  realloc                          address, size, domain, old address\n"
    "  then, if recorded                the native stack: function (file:line), innermost first, separated by \" < \"\n"
    "  free                             address, -, domain\n"
    "  mmap, munmap                     address, size; file, anonymous or moved\n"
    "  gap                              number of events that are missing here\n"
    "  stack                            number of frames that follow: the stack, outermost first\n"
    "  open                             name and place of a function that runs already\n"
    "  greenlet_stack                   number of open that follow: the stack of the greenlet that resumes\n"
    "  task                             address of the task whose step begins with the next event\n"
    "  process_start                    exec, fork or rejoin\n"
    "  fork                             pid of the child\n"
    "  exec                             0\n"
    "  exec_failed                      errno\n"
    "  exit                             status\n"
    "  mark                             name\n"
    "  span_begin                       number and name of the span\n"
    "  span_end                         number of the span\n"
    "  counter                          name, value\n"
    "  argument                         key and value, of the span_begin or mark that follows\n"
    "  pause                            stop or start\n"
    "  switch                           greenlet that resumes, greenlet that stops\n"
    "  thread_start, thread_end         name of the thread\n"
    "  thin, thin_end                   CPU time of the process (ns); names and places of the functions that are\n"
    "                                   thinned from here on, or were (EVPROF_BUDGET)\n"
    "  freed                            of blocks that are gone: allocations, their bytes, temporary ones\n"
    "\n"
    "Exit status: 0; 1 if the trace is incomplete; 2 if it cannot be read; 3 if it is still being written.\n"
    "\n";

struct request {
	struct filter filter;
	struct progress progress;
	uint32_t *native_frames; /* by thread number: innermost native frame of its next allocation; 0: none */
	const struct trace_process *process; /* the process of the table below */
	uint8_t *hidden;		     /* by key (replay/replay.h); NULL: no function is */
	uint64_t unknown[WIRE_KINDS];	     /* events that are not shown, by kind */
};

static void put_code(struct output *output, const struct trace_process *process, uint32_t id)
{
	const struct wire_definition *code = trace_name(&process->codes, id);
	struct text name;

	if (!code) {
		output_format(output, "?\t?:%u", id);
		return;
	}
	name = trace_string(code, 2).length ? trace_string(code, 2) : trace_string(code, 1);
	output_line(output, name);
	output_char(output, '\t');
	output_line(output, trace_string(code, 0));
	output_char(output, ':');
	output_u64(output, code->number);
}

/* Writes the text of label_c_function() in braces, without a copy for each event. */
static void put_c_function(struct output *output, const struct trace_process *process, uint32_t id)
{
	const struct wire_definition *function = trace_name(&process->functions, id);

	if (!function) {
		output_string(output, "?");
		return;
	}
	if (trace_string(function, 0).length) {
		output_string(output, "{method '");
		output_line(output, trace_string(function, 1));
		output_string(output, "' of '");
		output_line(output, trace_string(function, 0));
		output_string(output, "' objects}");
		return;
	}
	output_string(output, "{built-in method ");
	output_line(output, trace_string(function, 3));
	output_string(output, trace_string(function, 3).length ? "." : "");
	output_line(output, trace_string(function, 1));
	output_char(output, '}');
}

static void put_type(struct output *output, const struct trace_process *process, uint32_t id)
{
	const struct wire_definition *type = trace_name(&process->types, id);
	struct text name;

	if (!type) {
		output_string(output, "?");
		return;
	}
	name = trace_string(type, 2).length ? trace_string(type, 2) : trace_string(type, 1);
	if (trace_string(type, 3).length) {
		output_line(output, trace_string(type, 3));
		output_char(output, '.');
	}
	output_line(output, name);
}

static void put_mark(struct output *output, const struct trace_process *process, uint32_t id)
{
	const struct wire_definition *mark = trace_name(&process->marks, id);

	output_line(output, mark ? trace_string(mark, 1) : text_of("?"));
}

static void put_task(struct output *output, const struct trace_process *process, uint64_t word)
{
	output_hex(output, wire_task_address(word));
	if (!wire_task_name(word))
		return;
	output_char(output, '\t');
	put_mark(output, process, wire_task_name(word));
}

static void put_memory(struct output *output, uint32_t head, const uint64_t *extra)
{
	static const char *const domains[] = {"raw", "mem", "obj", "malloc"};

	output_hex(output, wire_memory_address(extra[0]));
	output_char(output, '\t');
	if (wire_head_kind(head) == WIRE_FREE)
		output_char(output, '-');
	else
		output_u64(output, wire_memory_size(head, extra[0]));
	output_char(output, '\t');
	output_string(output, domains[wire_memory_domain(head)]);
	if (wire_head_kind(head) == WIRE_REALLOC) {
		output_char(output, '\t');
		output_hex(output, wire_memory_address(extra[1]));
	}
}

static void put_mapping(struct output *output, uint32_t head, const uint64_t *extra)
{
	if (wire_extra_words(head) < 2)
		return;
	output_hex(output, extra[0]);
	output_char(output, '\t');
	output_u64(output, extra[1]);
	if (wire_head_kind(head) == WIRE_MMAP)
		output_string(output, head >> WIRE_VALUE_SHIFT == WIRE_MMAP_MOVED    ? "\tmoved"
				      : head >> WIRE_VALUE_SHIFT == WIRE_MMAP_FILE   ? "\tfile"
				      : head >> WIRE_VALUE_SHIFT == WIRE_MMAP_SHARED ? "\tshared"
										     : "\tanonymous");
}

static void put_native_stack(struct output *output, const struct trace_process *process, uint32_t frame)
{
	const char *between = "\t";
	struct native_stack_walk walk;
	struct native_function place;

	native_stack_begin(&walk, process, frame);
	while (native_stack_next(&walk, &place)) {
		output_string(output, between);
		output_line(output, place.function);
		if (place.file.length) {
			output_string(output, " (");
			output_line(output, place.file);
			if (place.line)
				output_format(output, ":%u", place.line);
			output_char(output, ')');
		}
		between = " < ";
	}
	if (walk.cut) {
		output_string(output, between);
		output_string(output, "...");
	}
}

static void put_switch(struct output *output, const uint64_t *extra)
{
	output_hex(output, extra[0]);
	output_char(output, '\t');
	output_hex(output, extra[1]);
}

static void put_number(struct output *output, unsigned kind, uint64_t number)
{
	static const char *const starts[] = {"exec", "fork", "rejoin"};

	if (kind == WIRE_PROCESS_START && number < 3)
		output_string(output, starts[number]);
	else if (kind == WIRE_PAUSE)
		output_string(output, number ? "stop" : "start");
	else
		output_u64(output, number);
}

/* The text of one WIRE_ARGUMENT. */
static struct text argument_text(const struct merge_event *event)
{
	const char *bytes = (const char *)(event->extra + 1);
	size_t most = (wire_extra_words(event->head) - 1) * sizeof(*event->extra);

	return (struct text){bytes, strnlen(bytes, most)};
}

/* Key and value. A text that goes on has no key. */
static void put_argument(struct output *output, const struct merge_event *event)
{
	unsigned type = event->head >> WIRE_VALUE_SHIFT & ~WIRE_ARGUMENT_CUT;

	if (wire_extra_words(event->head) < 2)
		return;
	if (*event->extra)
		put_mark(output, event->process, (uint32_t)*event->extra);
	output_char(output, '\t');
	if (type == WIRE_ARGUMENT_TEXT)
		output_line(output, argument_text(event));
	else if (type == WIRE_ARGUMENT_DOUBLE)
		output_format(output, "%.17g", wire_double(event->extra[1]));
	else if (type == WIRE_ARGUMENT_BOOL)
		output_string(output, event->extra[1] ? "true" : "false");
	else
		output_i64(output, wire_int(event->extra[1]));
}

static void put_span_begin(struct output *output, const struct merge_event *event)
{
	output_u64(output, event->extra[1]);
	output_char(output, '\t');
	put_mark(output, event->process, (uint32_t)*event->extra);
}

static void put_counter(struct output *output, const struct merge_event *event)
{
	put_mark(output, event->process, (uint32_t)*event->extra);
	output_format(output, "\t%.17g", wire_double(event->extra[1]));
}

/* Blocks that are gone, of a class of sizes. */
static void put_freed(struct output *output, const struct merge_event *event)
{
	output_i64(output, ((int64_t)event->extra[0] + ESTIMATE_UNIT / 2) / ESTIMATE_UNIT);
	output_char(output, '\t');
	output_i64(output, (int64_t)event->extra[1]);
	output_char(output, '\t');
	output_u64(output, event->extra[2]);
}

/*
 * The CPU time of the change, then name and place of each thinned function; "C calls" where only those are;
 * "exceptions" for them.
 */
static void put_thinned(struct output *output, const struct merge_event *event)
{
	output_u64(output, wire_extra_words(event->head) ? *event->extra : 0);
	for (unsigned i = 0; i < WIRE_THIN_MOST; i++) {
		uint32_t id = wire_thinned(event->head, event->extra, i);

		if (!id)
			continue;
		output_char(output, '\t');
		if (id == WIRE_THIN_EXCEPTIONS) {
			output_string(output, "exceptions");
			continue;
		}
		put_code(output, event->process, id & WIRE_ARG_MAX);
		if (id & WIRE_THIN_C_CALLS)
			output_string(output, "\tC calls");
	}
}

static void put_details(struct output *output, const struct merge_event *event)
{
	unsigned kind = wire_head_kind(event->head);
	uint32_t argument = wire_argument(event->head, event->extra);

	if ((kind >= WIRE_CALL && kind <= WIRE_UNWIND) || kind == WIRE_FRAME || kind == WIRE_OPEN)
		put_code(output, event->process, argument);
	else if (kind >= WIRE_C_CALL && kind <= WIRE_C_EXCEPTION)
		put_c_function(output, event->process, argument);
	else if (kind == WIRE_EXCEPTION)
		put_type(output, event->process, argument);
	else if (wire_is_memory(kind))
		put_memory(output, event->head, event->extra);
	else if (kind == WIRE_MMAP || kind == WIRE_MUNMAP)
		put_mapping(output, event->head, event->extra);
	else if (kind == WIRE_SWITCH)
		put_switch(output, event->extra);
	else if (kind == WIRE_TASK)
		put_task(output, event->process, *event->extra);
	else if (kind == WIRE_MARK)
		put_mark(output, event->process, argument);
	else if (wire_is_thin(kind))
		put_thinned(output, event);
	else if (kind == WIRE_ARGUMENT)
		put_argument(output, event);
	else if (kind == WIRE_SPAN_BEGIN && wire_extra_words(event->head) >= 2)
		put_span_begin(output, event);
	else if (kind == WIRE_COUNTER && wire_extra_words(event->head) >= 2)
		put_counter(output, event);
	else if (kind == WIRE_FREED && wire_extra_words(event->head) >= WIRE_FREED_WORDS)
		put_freed(output, event);
	else if (kind == WIRE_SPAN_END)
		output_u64(output, wire_number(event->head, event->extra));
	else if (kind == WIRE_THREAD_START || kind == WIRE_THREAD_END)
		output_line(output, text_of(event->thread->name ? event->thread->name : ""));
	else
		put_number(output, kind,
			   kind == WIRE_GAP		 ? *event->extra
			   : kind == WIRE_EXIT		 ? argument & 0xff
			   : kind == WIRE_STACK		 ? argument & ~WIRE_STACK_CUT
			   : kind == WIRE_GREENLET_STACK ? argument & WIRE_GREENLET_FRAMES_MAX
							 : argument);
}

static bool is_bookkeeping_shown(unsigned kind)
{
	return kind == WIRE_GAP || kind == WIRE_STACK || kind == WIRE_FRAME || kind == WIRE_OPEN ||
	       kind == WIRE_ARGUMENT || kind == WIRE_FREED || kind == WIRE_GREENLET_STACK || wire_is_thin(kind);
}

/* native_frame: the innermost frame of the allocation's native stack; 0: none. */
static void put_event(struct output *output, const struct trace *trace, const struct merge_event *event,
		      uint32_t native_frame)
{
	unsigned kind = wire_head_kind(event->head);

	if (!kind_names[kind] || (wire_is_bookkeeping(kind) && !is_bookkeeping_shown(kind)))
		return;
	output_i64(output, event->ns - trace->start_ns);
	output_char(output, '\t');
	output_i64(output, event->process->pid);
	output_char(output, '\t');
	output_u64(output, event->thread->tid);
	output_char(output, '\t');
	output_string(output, kind_names[kind]);
	output_char(output, '\t');
	put_details(output, event);
	if (native_frame)
		put_native_stack(output, event->process, native_frame);
	output_char(output, '\n');
}

static bool is_wanted(void *owner, const struct trace_process *process, const struct trace_thread *thread)
{
	const struct request *request = owner;

	return filter_process(&request->filter, process) && filter_thread(&request->filter, thread);
}

/* Applies the function filter to events that name a function; all others are shown. Returns -ENOMEM, 0 or 1. */
static int is_shown(struct request *request, const struct merge_event *event)
{
	unsigned kind = wire_head_kind(event->head);
	bool c_function = kind >= WIRE_C_CALL && kind <= WIRE_C_EXCEPTION;
	bool named = c_function || (kind >= WIRE_CALL && kind <= WIRE_UNWIND) || kind == WIRE_FRAME;
	const struct trace_process *process = event->process;
	uint32_t id = wire_head_arg(event->head), keys;

	if (!named || !filter_has_functions(&request->filter))
		return 1;
	keys = replay_keys_of(process);
	if (request->process != process) {
		free(request->hidden);
		request->hidden = NULL;
		request->process = process;
		if (filter_hide(&request->filter, process, keys, &request->hidden) < 0)
			return -ENOMEM;
	}
	id = id < (c_function ? process->functions.count : process->codes.count) ? id : 0;
	return !request->hidden || !request->hidden[2 * id + c_function];
}

static void chunk_loaded(void *owner, const struct trace_thread *thread, uint32_t events)
{
	(void)thread;
	progress_add(&((struct request *)owner)->progress, events);
}

/* Takes the native stack; the allocation is the next event of the thread. */
static uint32_t take_native_stack(struct request *request, const struct merge_event *event)
{
	unsigned kind = wire_head_kind(event->head);
	uint32_t *place = &request->native_frames[event->thread->number], frame = *place;

	*place = kind == WIRE_NATIVE_STACK ? wire_head_arg(event->head) : 0;
	return wire_is_memory(kind) || kind == WIRE_MMAP ? frame : 0;
}

static int dump_events(struct trace *trace, struct output *output, struct request *request)
{
	struct merge merge;
	struct merge_event event;
	int error = merge_open(&merge, trace, is_wanted, request);

	if (error)
		return error;
	merge.loaded = chunk_loaded;
	merge.owner = request;
	if (request->filter.from_given)
		merge_skip(&merge, trace->start_ns + request->filter.from_ns);
	while (!output->error && error >= 0 && merge_next(&merge, &event)) {
		int64_t ns = event.ns - trace->start_ns;
		uint32_t native_frame = take_native_stack(request, &event);

		if (ns >= filter_to(&request->filter))
			break;
		if (ns < filter_from(&request->filter))
			continue;
		error = is_shown(request, &event);
		request->unknown[wire_head_kind(event.head)] += !kind_names[wire_head_kind(event.head)];
		if (error > 0)
			put_event(output, trace, &event, native_frame);
	}
	merge_close(&merge);
	return error < 0 ? error : 0;
}

static void print_unknown(const struct trace *trace, const struct request *request)
{
	for (unsigned kind = 0; kind < WIRE_KINDS; kind++)
		if (request->unknown[kind])
			output_message("evprof dump: %s: unknown kind %u (%s): %llu events are not shown", trace->path,
				       kind, trace->kind_names[kind], (unsigned long long)request->unknown[kind]);
}

static int dump_trace(const char *path, struct request *request)
{
	struct trace *trace = filter_open(&request->filter, "dump", path);
	struct terminal terminal = terminal_find(STDOUT_FILENO);
	struct output output;
	int error, closed;

	if (!trace)
		return CLI_FAILED;
	request->native_frames = calloc((size_t)trace->thread_count + 1, sizeof(*request->native_frames));
	error = request->native_frames ? terminal_open(&terminal, &output) : -ENOMEM;
	if (!error) {
		progress_begin(&request->progress, "dumping", walk_events(trace, &request->filter));
		error = dump_events(trace, &output, request);
		progress_end(&request->progress);
		closed = terminal_close(&output);
		print_unknown(trace, request);
		error = error ? error : closed;
	}
	if (error)
		output_message("evprof dump: %s: cannot write the events: %s", path, strerror(-error));
	return verb_close(trace, error);
}

int cmd_dump(int argc, char **argv)
{
	static const struct verb_option options_known[] = {VERB_FILTER_OPTIONS(verb_take_filter), VERB_OPTIONS_END};
	static const struct verb_usage usage = {
	    "dump",
	    options_known,
	    {help_text, filter_help, "\n--min-duration, --max-depth and --clock are not for dump.\n"}};
	struct request request = {0};
	int status = verb_parse(&usage, argc, argv, &request, &request.filter);

	if (status == VERB_PARSED) {
		status = CLI_FAILED;
		if (request.filter.clock != CPU_CLOCK_WALL)
			cli_misused("dump", "several threads have only the wall clock in common: --clock is for report "
					    "and export");
		else if (request.filter.min_duration_ns || request.filter.max_depth)
			cli_misused("dump", "events have neither duration nor depth; report and export filter calls by "
					    "them");
		else if (verb_has_one_trace("dump", argc))
			status = dump_trace(argv[optind], &request);
	}
	free(request.hidden);
	free(request.native_frames);
	filter_done(&request.filter);
	return status;
}
