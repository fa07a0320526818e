/*
 * hooks_line.c - line events, if EVPROF_EVENTS requests them.
 *
 * From 3.12 on they come from sys.monitoring (hooks_monitoring.c). Until 3.11 they need a trace function, of which a
 * thread has one. If the program sets its own (a debugger, coverage), it replaces evprof's, and the thread's lines are
 * not recorded from then on. Python also calls the trace function for calls, returns and exceptions; these are ignored
 * here, because the profile function records them.
 */
#include "base/config.h"
#include "base/filter.h"
#include "definitions/definitions.h"
#include "hooks/hooks.h"
#include "life/life.h"
#include "python/profiled_frame.h"
#include "ring/process.h"
#include "ring/writer.h"

enum { TRACE_LINE = 2 }; /* pystate.h: PyTrace_LINE */

void hooks_line_record(long line)
{
	struct writer *writer = thread_self.writer;
	uint32_t head = wire_head(WIRE_LINE, line > 0 && line <= (long)WIRE_ARG_MAX ? (uint32_t)line : 0);

	if (writer_has_room(writer) && likely(writer_put_fast(writer, head)))
		return;
	writer = writer_reserve(WIRE_LINE);
	if (writer)
		writer_put(writer, head);
}

void hooks_line_put_current(int line)
{
	if (line > 0)
		writer_put_line(thread_self.writer, (uint32_t)line);
}

/*
 * A line event does not name its function. A line of a function that is not recorded would be attributed to its caller.
 */
static bool is_hidden(struct object *frame)
{
	return definitions_code(python_profiled_code(frame)) & DEFINITION_HIDDEN;
}

/* PyThreadState.c_tracefunc follows c_profilefunc in all versions that use this hook. */
static python_profile *trace_field(struct thread_state *state)
{
	return (python_profile *)((char *)state + python.layout.state_profile) + 1;
}

static int trace(struct object *self, struct object *frame, int what, struct object *argument);

void hooks_line_remove(struct thread_state *state)
{
	if (!python.layout.state_profile || *trace_field(state) != trace)
		return;
	if (state == python.current_thread_state())
		python.PyEval_SetTrace(NULL, NULL); /* Python counts those that were set by it */
	else
		*trace_field(state) = NULL;
}

/*
 * Until 3.9 Python counts the trace functions that were set by PyEval_SetTrace(), and at 0 no thread has lines. In a
 * thread that began with it, evprof's is not counted: it has to be gone when the program sets or removes its own.
 */
void hooks_line_take_off(void)
{
	python_profile *current = trace_field(python.current_thread_state());

	if (python.layout.state_profile && *current == trace)
		*current = NULL;
}

static int trace(struct object *self, struct object *frame, int what, struct object *argument)
{
	(void)self, (void)argument;
	if (what == TRACE_LINE && !(filter_hides && is_hidden(frame)))
		hooks_line_record(python.PyFrame_GetLineNumber(frame));
	if (unlikely(process_records_nothing()))
		hooks_line_take_off();
	return 0;
}

static bool is_wanted(void)
{
	return config.events & EVENT_LINE && python.layout.state_profile && python.PyEval_SetTrace &&
	       python.PyFrame_GetLineNumber;
}

void hooks_line_set(void)
{
	if (is_wanted() && !*trace_field(python.current_thread_state()))
		python.PyEval_SetTrace(trace, NULL);
}

/* The other marks that a thread is traced were set with the profile function. */
void hooks_line_set_new(struct thread_state *state)
{
	if (is_wanted() && !*trace_field(state))
		*trace_field(state) = trace;
}
