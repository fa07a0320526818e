/*
 * hooks_line.c - line events, where EVPROF_EVENTS asks for them.
 *
 * From 3.12 they come from sys.monitoring (hooks_monitoring.c). Until 3.11 they need a trace function, of which a
 * thread has one: that of the program, when it sets one (a debugger, coverage), replaces evprof's, and the thread's
 * lines are not recorded from then on. It is called for calls, returns and exceptions, too, which the profile function
 * records.
 */
#include "filter.h"
#include "config.h"
#include "definitions.h"
#include "hooks.h"
#include "writer.h"

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

void hooks_line_stand(int line)
{
	if (line > 0)
		writer_put_mark_of_place(thread_self.writer, wire_line_head((uint32_t)line));
}

/* A line says nothing of its function: that of one which is not recorded would be taken for its caller's. */
static bool is_hidden(struct object *frame)
{
	struct object *inner = python.inner_frames ? python_field(frame, PYTHON_FRAME_INNER) : frame;
	struct object *code = python_field(inner, python.inner_frames ? PYTHON_INNER_CODE : PYTHON_FRAME_CODE);

	return definitions_code(code) & DEFINITION_HIDDEN;
}

static int trace(struct object *self, struct object *frame, int what, struct object *argument)
{
	(void)self, (void)argument;
	if (what == TRACE_LINE && !(filter_any && is_hidden(frame)))
		hooks_line_record(python.PyFrame_GetLineNumber(frame));
	return 0;
}

/* PyThreadState.c_tracefunc stands behind c_profilefunc in all versions that come here. */
static python_profile *trace_field(struct thread_state *state)
{
	return (python_profile *)((char *)state + python.state_profile) + 1;
}

static bool wanted(void)
{
	return config.events & EVENT_LINE && python.state_profile && python.PyEval_SetTrace &&
	       python.PyFrame_GetLineNumber;
}

void hooks_line_set(void)
{
	if (wanted() && !*trace_field(python.current_thread_state()))
		python.PyEval_SetTrace(trace, NULL);
}

/* What else says that the thread is traced was set along with the profile function. */
void hooks_line_set_new(struct thread_state *state)
{
	if (wanted())
		*trace_field(state) = trace;
}
