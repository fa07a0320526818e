/*
 * calls.c - tables of calls and of tasks, by a call walk. See trace_tables.h.
 *
 * calls: a row each, thread after thread, in the order of their starts
 *
 *   start      ns since the start of the trace
 *   duration   ns; up to the end of the time range or of the thread where the call has no end
 *   own        ns: the duration without the calls in it
 *   parent     the row of the caller; -1: none
 *   name, mod, lineno   as in the table of events; lineno of a C function is -1
 *   kind       call, resume or throw (of a generator or coroutine), c_call, frame: the call began before what is shown
 *   end        return, yield, unwind (by an exception), c_return, c_exception; none: it has no end
 *   depth      calls below it on the stack
 *   task       the label of the task that it is a step of, or ""
 *   thread     the name of the thread; pid, tid
 *
 * tasks: a row each: start of the first step and end of the last one (ns since the start of the trace), ran: ns in its
 * steps, in which no other greenlet ran, steps: their number, finished: 1 if the last step returned or was ended by an
 * exception
 */
#include <errno.h>
#include <stdlib.h>

#include "api/trace_tables.h"
#include "replay/call_walk.h"

enum {
	CALL_START,
	CALL_DURATION,
	CALL_OWN,
	CALL_PARENT,
	CALL_NAME,
	CALL_MOD,
	CALL_LINENO,
	CALL_KIND,
	CALL_END,
	CALL_DEPTH,
	CALL_TASK,
	CALL_THREAD,
	CALL_PID,
	CALL_TID,
	CALL_COLUMNS
};

static const struct table_field call_fields[CALL_COLUMNS] = {
    [CALL_START] = {"start", TABLE_INT64, false},   [CALL_DURATION] = {"duration", TABLE_INT64, false},
    [CALL_OWN] = {"own", TABLE_INT64, false},	    [CALL_PARENT] = {"parent", TABLE_INT64, false},
    [CALL_NAME] = {"name", TABLE_INT32, true},	    [CALL_MOD] = {"mod", TABLE_INT32, true},
    [CALL_LINENO] = {"lineno", TABLE_INT32, false}, [CALL_KIND] = {"kind", TABLE_INT32, true},
    [CALL_END] = {"end", TABLE_INT32, true},	    [CALL_DEPTH] = {"depth", TABLE_INT32, false},
    [CALL_TASK] = {"task", TABLE_INT32, true},	    [CALL_THREAD] = {"thread", TABLE_INT32, true},
    [CALL_PID] = {"pid", TABLE_INT32, false},	    [CALL_TID] = {"tid", TABLE_INT32, false},
};

enum {
	TASK_START,
	TASK_END,
	TASK_RAN,
	TASK_STEPS,
	TASK_FINISHED,
	TASK_NAME,
	TASK_THREAD,
	TASK_PID,
	TASK_TID,
	TASK_COLUMNS
};

static const struct table_field task_fields[TASK_COLUMNS] = {
    [TASK_START] = {"start", TABLE_INT64, false},      [TASK_END] = {"end", TABLE_INT64, false},
    [TASK_RAN] = {"ran", TABLE_INT64, false},	       [TASK_STEPS] = {"steps", TABLE_INT64, false},
    [TASK_FINISHED] = {"finished", TABLE_INT8, false}, [TASK_NAME] = {"name", TABLE_INT32, true},
    [TASK_THREAD] = {"thread", TABLE_INT32, true},     [TASK_PID] = {"pid", TABLE_INT32, false},
    [TASK_TID] = {"tid", TABLE_INT32, false},
};

static const char *const kind_names[WIRE_KINDS] = {
    [WIRE_CALL] = "call",     [WIRE_RESUME] = "resume",	    [WIRE_THROW] = "throw",
    [WIRE_RETURN] = "return", [WIRE_YIELD] = "yield",	    [WIRE_UNWIND] = "unwind",
    [WIRE_C_CALL] = "c_call", [WIRE_C_RETURN] = "c_return", [WIRE_C_EXCEPTION] = "c_exception",
    [WIRE_FRAME] = "frame",
};

static struct text kind_text(unsigned kind)
{
	return text_of(kind_names[kind] ? kind_names[kind] : "none");
}

struct walked {
	struct evprof_table *table;
	const struct function_names *names;
	uint64_t thread_rows; /* tasks: rows of earlier threads */
};

/* The label of the frame's task as a value of that column; "" if it has none. */
static bool put_task(struct evprof_table *table, uint32_t column, const struct call_walk *walk,
		     const struct walk_frame *frame)
{
	char *label = frame->task ? walk_task_name(walk, frame) : NULL;
	bool put = (!frame->task || label) && table_put_text(table, column, text_of(label));

	free(label);
	return put;
}

/* Columns of the thread: its name, pid and tid, one after the other. */
static bool put_thread(struct evprof_table *table, uint32_t column, const struct call_walk *walk)
{
	table_int32(table, column + 1)[table->rows] = (int32_t)walk->process->pid;
	table_int32(table, column + 2)[table->rows] = (int32_t)walk->thread->tid;
	return table_put_text(table, column, text_of(walk->thread->name));
}

/* --- calls --- */

static void call_push(void *owner, struct call_walk *walk, struct walk_frame *frame)
{
	struct walked *walked = owner;
	struct evprof_table *table = walked->table;
	const struct function_name *name = &walked->names->of[walk->process->number][frame->key + 1];
	uint64_t row = table->rows;

	if (table_reserve_one(table) < 0) {
		walk_fail(walk, -ENOMEM);
		return;
	}
	frame->user = row + 1;
	table_int64(table, CALL_START)[row] = frame->start_ns;
	table_int64(table, CALL_PARENT)[row] = frame > walk->frames ? (int64_t)frame[-1].user - 1 : -1;
	table_int32(table, CALL_NAME)[row] = name->name;
	table_int32(table, CALL_MOD)[row] = name->mod;
	table_int32(table, CALL_LINENO)[row] = name->line;
	table_int32(table, CALL_DEPTH)[row] = (int32_t)(frame - walk->frames);
	if (!table_put_text(table, CALL_KIND, kind_text(frame->kind)) || !put_task(table, CALL_TASK, walk, frame) ||
	    !put_thread(table, CALL_THREAD, walk))
		walk_fail(walk, -ENOMEM);
	table->rows++;
}

static void call_pop(void *owner, struct call_walk *walk, struct walk_frame *frame, unsigned how)
{
	const struct walked *walked = owner;
	int64_t duration = walk->now_ns - frame->start_ns;
	uint32_t end;

	if (!frame->user)
		return;
	end = texts_add(walked->table->columns[CALL_END].texts, kind_text(how));
	if (end == TEXTS_NONE)
		walk_fail(walk, -ENOMEM);
	table_int32(walked->table, CALL_END)[frame->user - 1] = (int32_t)end;
	table_int64(walked->table, CALL_DURATION)[frame->user - 1] = duration;
	table_int64(walked->table, CALL_OWN)[frame->user - 1] = duration - (int64_t)frame->inner_ns;
}

/* --- tasks --- */

static int task_thread(void *owner, struct call_walk *walk)
{
	struct walked *walked = owner;

	(void)walk;
	walked->thread_rows = walked->table->rows;
	return 0;
}

static void task_push(void *owner, struct call_walk *walk, struct walk_frame *frame)
{
	struct walked *walked = owner;
	struct evprof_table *table = walked->table;

	/* Numbers of tasks count up within the thread; those that a filter hides have no name. */
	while (frame->task && table->rows < walked->thread_rows + frame->task) {
		if (table_reserve_one(table) < 0) {
			walk_fail(walk, -ENOMEM);
			return;
		}
		table_int64(table, TASK_START)[table->rows] = frame->start_ns;
		if (!put_task(table, TASK_NAME, walk, frame) || !put_thread(table, TASK_THREAD, walk))
			walk_fail(walk, -ENOMEM);
		table->rows++;
	}
	/* A switch of greenlets interrupts a step, which goes on with WIRE_FRAME. */
	if (frame->task && frame->kind != WIRE_FRAME)
		table_int64(table, TASK_STEPS)[walked->thread_rows + frame->task - 1]++;
}

static void task_pop(void *owner, struct call_walk *walk, struct walk_frame *frame, unsigned how)
{
	const struct walked *walked = owner;
	struct evprof_table *table = walked->table;
	uint64_t row = walked->thread_rows + frame->task - 1;

	if (!frame->task || row >= table->rows)
		return;
	table_int64(table, TASK_END)[row] = walk->now_ns;
	table_int64(table, TASK_RAN)[row] += walk->now_ns - frame->start_ns;
	((int8_t *)table->columns[TASK_FINISHED].data)[row] = how == WIRE_RETURN || how == WIRE_UNWIND;
}

/* --- both --- */

static int walk_into(struct request *request, const struct call_visitor *visitor, struct walked *walked)
{
	return walk_trace(request->trace, &request->options.filter, &request->progress, visitor, walked);
}

static int make_calls(struct request *request, struct evprof_table *table)
{
	static const struct call_visitor visitor = {.push = call_push, .pop = call_pop, .timed = true};
	struct walked walked = {.table = table, .names = handle_names(request->call.handle)};

	if (!walked.names)
		return -ENOMEM;
	table_use_texts(table, CALL_NAME, walked.names->names);
	table_use_texts(table, CALL_MOD, walked.names->mods);
	return walk_into(request, &visitor, &walked);
}

static int make_tasks(struct request *request, struct evprof_table *table)
{
	static const struct call_visitor visitor = {.thread = task_thread, .push = task_push, .pop = task_pop};
	int error = options_need_wall_clock(&request->options, "tasks()", &request->why);

	return error ? error : walk_into(request, &visitor, &(struct walked){.table = table});
}

const struct table_kind table_calls = {"calls", call_fields, CALL_COLUMNS, make_calls};
const struct table_kind table_tasks = {"tasks", task_fields, TASK_COLUMNS, make_tasks};
