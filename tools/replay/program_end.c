/*
 * program_end.c - see program_end.h.
 */
#include "replay/program_end.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "replay/replay.h"

struct ending {
	const struct trace_process *process;
	uint8_t *known; /* by key */
	uint64_t ticks; /* 0: the program has not ended, or runs again */
	bool waits;	/* for the thread's next event: the program runs until then, in other threads too */
};

enum { KNOWN_NOT = 1, KNOWN_ENDS = 2 }; /* whether the function, when outermost, is the program */

static bool begins_with(struct text text, const char *begin)
{
	size_t length = strlen(begin);

	return text.length >= length && memcmp(text.at, begin, length) == 0;
}

static bool ends_with(struct text text, const char *end)
{
	size_t length = strlen(end);

	return text.length >= length && memcmp(text.at + text.length - length, end, length) == 0;
}

/* Whether the executable is Python itself. */
static bool is_python(const struct trace_process *process)
{
	const char *path = trace_process_text(process, "exe"), *slash = strrchr(path, '/');

	return strncmp(slash ? slash + 1 : path, "python", strlen("python")) == 0;
}

bool program_end_is_program(const struct trace_process *process, uint32_t key)
{
	const struct wire_definition *definition = trace_name(&process->codes, key / 2);
	struct text name;

	if (key & 1 || !definition)
		return false;
	name = trace_string(definition, 1);
	if (text_same(name, text_of("_shutdown")))
		return ends_with(trace_string(definition, 0), "threading.py") ||
		       text_same(trace_string(definition, 0), text_of("<frozen threading>"));
	if (text_same(name, text_of("<module>"))) /* frozen: "getpath", which runs before the program */
		return is_python(process) && !begins_with(trace_string(definition, 0), "<frozen ");
	return is_python(process) && text_same(name, text_of("_run_module_as_main"));
}

static bool looks_like_program(struct ending *ending, uint32_t key)
{
	if (!ending->known[key])
		ending->known[key] = program_end_is_program(ending->process, key) ? KNOWN_ENDS : KNOWN_NOT;
	return ending->known[key] == KNOWN_ENDS;
}

static inline void ending_push(void *owner, struct replay *replay, struct replay_frame *frame)
{
	struct ending *ending = owner;

	if (replay->depth == 1 && looks_like_program(ending, frame->key)) {
		ending->ticks = 0;
		ending->waits = false;
	}
}

static inline void ending_pop(void *owner, struct replay *replay, struct replay_frame *frame, unsigned how)
{
	struct ending *ending = owner;

	bool ended = how == WIRE_RETURN || how == WIRE_UNWIND || replay->has_own_stack;

	if (!ended || replay->depth || !looks_like_program(ending, frame->key))
		return;
	/* A changed stack has the time of the event before it, which the program still caused. */
	ending->ticks = replay->now + replay->has_own_stack;
	ending->waits = replay->has_own_stack;
}

static inline int ending_other(void *owner, struct replay *replay, uint32_t head, const uint64_t *extra)
{
	struct ending *ending = owner;

	(void)head;
	(void)extra;
	if (ending->waits && replay->now > ending->ticks)
		ending->ticks = replay->now;
	ending->waits = false;
	return 0;
}

static void replay_thread(struct trace *trace, const struct trace_thread *thread, struct replay *replay,
			  struct ending *ending)
{
	static const struct replay_sink sink = {.push = ending_push, .pop = ending_pop, .other = ending_other};
	struct trace_stream stream;
	struct trace_events events;

	trace_stream_open(&stream, trace, thread);
	while (trace_stream_next(&stream, &events)) {
		struct replay_cursor cursor = replay_begin_chunk(replay, &events, &sink, ending);

		replay_run(replay, &cursor, UINT64_MAX, &sink, ending);
	}
	trace_stream_close(&stream);
}

/* The main thread: its tid is the pid. NULL: it was not recorded. */
static const struct trace_thread *first_thread(const struct trace *trace, const struct trace_process *process)
{
	for (size_t i = 0; i < process->thread_count; i++) {
		const struct trace_thread *thread = trace->threads[process->threads[i]];

		if (program_end_is_main(process, thread))
			return thread;
	}
	return NULL;
}

int program_end_find(struct trace *trace, const struct trace_process *process, int64_t *ns)
{
	struct ending ending = {.process = process};
	const struct trace_thread *thread = first_thread(trace, process);
	struct replay replay;
	int error;

	*ns = PROGRAM_END_NONE;
	if (!thread)
		return 0;
	error = replay_init(&replay, process);
	ending.known = calloc(replay_keys_of(process), 1);
	if (!error && ending.known) {
		replay_begin_thread(&replay);
		replay_thread(trace, thread, &replay, &ending);
	}
	if (!error && (!ending.known || replay.out_of_memory))
		error = -ENOMEM;
	if (!error && ending.ticks)
		*ns = trace_ns(process, ending.ticks) - trace->start_ns;
	replay_done(&replay);
	free(ending.known);
	return error;
}
