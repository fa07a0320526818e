/*
 * call_rows.c - calls in batches, each row when its call ends, so that memory does not grow with the trace. See
 * row_batches.h.
 *
 * id       of the call in the trace, from 0 on, in the order of the starts, thread after thread: its row in the table
 *          "calls" (calls.c)
 * parent   the id of the caller; -1: none. A caller ends later, so its row comes later
 * start    ns since 1970, or with since-start since the start of the trace
 *
 * The other columns are those of the table "calls".
 *
 * With parts, the rows are those of one of so many equal parts of the trace. The chunks of events are divided in the
 * order of the walk, thread after thread, by their numbers of events; a call belongs to the part in which it ends. A
 * part replays its first thread from the beginning, without rows before the part, so each row is what it is in the
 * whole. Other threads are not read. An id is then THREAD << 40 | CALL: the thread's number in the walk and the call's
 * in the thread, both from 0 on. A trace that grows is divided otherwise at each opening.
 */
#include <errno.h>
#include <stdlib.h>

#include "api/row_batches.h"
#include "replay/call_walk.h"

enum {
	ROW_ID,
	ROW_PARENT,
	ROW_START,
	ROW_DURATION,
	ROW_OWN,
	ROW_NAME,
	ROW_MOD,
	ROW_LINENO,
	ROW_KIND,
	ROW_END,
	ROW_DEPTH,
	ROW_TASK,
	ROW_THREAD,
	ROW_PID,
	ROW_TID,
	ROW_COLUMNS
};

static const struct table_field fields[ROW_COLUMNS] = {
    [ROW_ID] = {"id", TABLE_INT64, false},	  [ROW_PARENT] = {"parent", TABLE_INT64, false},
    [ROW_START] = {"start", TABLE_INT64, false},  [ROW_DURATION] = {"duration", TABLE_INT64, false},
    [ROW_OWN] = {"own", TABLE_INT64, false},	  [ROW_NAME] = {"name", TABLE_INT32, true},
    [ROW_MOD] = {"mod", TABLE_INT32, true},	  [ROW_LINENO] = {"lineno", TABLE_INT32, false},
    [ROW_KIND] = {"kind", TABLE_INT8, true},	  [ROW_END] = {"end", TABLE_INT8, true},
    [ROW_DEPTH] = {"depth", TABLE_INT32, false},  [ROW_TASK] = {"task", TABLE_INT32, true},
    [ROW_THREAD] = {"thread", TABLE_INT32, true}, [ROW_PID] = {"pid", TABLE_INT32, false},
    [ROW_TID] = {"tid", TABLE_INT32, false},
};

/* The texts of kind and end. */
static const struct {
	unsigned kind;
	const char *text;
} kinds[] = {
    {WIRE_NONE, "none"},     {WIRE_CALL, "call"},	  {WIRE_RESUME, "resume"},	     {WIRE_THROW, "throw"},
    {WIRE_C_CALL, "c_call"}, {WIRE_FRAME, "frame"},	  {WIRE_RETURN, "return"},	     {WIRE_YIELD, "yield"},
    {WIRE_UNWIND, "unwind"}, {WIRE_C_RETURN, "c_return"}, {WIRE_C_EXCEPTION, "c_exception"},
};

struct call_rows {
	struct row_batches *batches;
	const struct function_names *names;
	struct texts *kinds, *threads;
	int8_t text_of[WIRE_KINDS];
	int32_t *thread_texts; /* by thread number: the name, a text of `threads` */
	int32_t thread;	       /* that of the walked thread */
	int64_t origin_ns;
	uint64_t next; /* id */
	/* With parts. */
	uint32_t part, parts;
	uint64_t total;	 /* events */
	uint64_t before; /* events of the threads before the next one */
	uint64_t threads_begun;
	size_t first_chunk; /* of the thread, in the part */
};

/* The chunks of the thread that are in the part: from first_chunk to walk->chunk_limit. */
static void begin_part(struct call_rows *rows, struct call_walk *walk)
{
	const struct trace_thread *thread = walk->thread;
	uint64_t from = rows->total * (rows->part - 1) / rows->parts;
	uint64_t to = rows->part < rows->parts ? rows->total * rows->part / rows->parts : UINT64_MAX;
	size_t end = 0;

	rows->first_chunk = 0;
	for (size_t i = 0; i < thread->place_count; i++) {
		rows->first_chunk += rows->before < from;
		end += rows->before < to;
		rows->before += thread->places[i].events;
	}
	if (end == rows->first_chunk)
		walk->chunk_limit = 0;
	else if (end < thread->place_count)
		walk->chunk_limit = end;
	rows->next = rows->threads_begun++ << 40;
}

static bool is_in_part(const struct call_rows *rows, const struct call_walk *walk)
{
	return !rows->parts || (walk->chunk >= rows->first_chunk && walk->chunk < walk->chunk_limit);
}

static int begin_thread(void *owner, struct call_walk *walk)
{
	struct call_rows *rows = owner;

	if (rows->parts)
		begin_part(rows, walk);
	rows->thread = rows->thread_texts[walk->thread->number];
	return 0;
}

static void push(void *owner, struct call_walk *walk, struct walk_frame *frame)
{
	struct call_rows *rows = owner;

	(void)walk;
	frame->user = ++rows->next;
}

/* The label of the task that the call is a step of. False: memory ran out. */
static bool put_task(struct evprof_table *table, const struct call_walk *walk, const struct walk_frame *frame)
{
	char *label = frame->task ? walk_task_name(walk, frame) : NULL;
	bool put = (!frame->task || label) && table_put_text(table, ROW_TASK, text_of(label));

	free(label);
	return put;
}

static void pop(void *owner, struct call_walk *walk, struct walk_frame *frame, unsigned how)
{
	struct call_rows *rows = owner;
	struct evprof_table *table;
	const struct function_name *name = &rows->names->of[walk->process->number][frame->key + 1];
	int64_t duration = walk->now_ns - frame->start_ns;
	uint64_t row;

	if (!is_in_part(rows, walk))
		return;
	table = walk->error ? NULL : row_batches_table(rows->batches);
	if (!table || !put_task(table, walk, frame)) {
		walk_fail(walk, -ENOMEM);
		return;
	}
	row = table->rows;
	table_int64(table, ROW_ID)[row] = (int64_t)frame->user - 1;
	table_int64(table, ROW_PARENT)[row] = frame > walk->frames ? (int64_t)frame[-1].user - 1 : -1;
	table_int64(table, ROW_START)[row] = frame->start_ns + rows->origin_ns;
	table_int64(table, ROW_DURATION)[row] = duration;
	table_int64(table, ROW_OWN)[row] = duration - (int64_t)frame->inner_ns;
	table_int32(table, ROW_NAME)[row] = name->name;
	table_int32(table, ROW_MOD)[row] = name->mod;
	table_int32(table, ROW_LINENO)[row] = name->line;
	((int8_t *)table->columns[ROW_KIND].data)[row] = rows->text_of[frame->kind];
	((int8_t *)table->columns[ROW_END].data)[row] = rows->text_of[how];
	table_int32(table, ROW_DEPTH)[row] = (int32_t)(frame - walk->frames);
	table_int32(table, ROW_THREAD)[row] = rows->thread;
	table_int32(table, ROW_PID)[row] = (int32_t)walk->process->pid;
	table_int32(table, ROW_TID)[row] = (int32_t)walk->thread->tid;
	walk_fail(walk, row_batches_end_row(rows->batches));
}

/*
 * The names of all threads, and of all kinds: the dictionaries of these columns are the same in all batches. Consumers
 * have them from the first batch on, so no text is added later, not even one that is there: its bytes may move.
 */
static int make_texts(struct call_rows *rows, const struct trace *trace)
{
	bool made = true;

	rows->kinds = texts_new();
	rows->threads = texts_new();
	rows->thread_texts = calloc((size_t)trace->thread_count + 1, sizeof(*rows->thread_texts));
	if (!rows->kinds || !rows->threads || !rows->thread_texts)
		return -ENOMEM;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		uint32_t text = texts_add(rows->kinds, text_of(kinds[i].text));

		made = made && text != TEXTS_NONE;
		rows->text_of[kinds[i].kind] = (int8_t)text;
	}
	for (uint32_t i = 0; i < trace->thread_count; i++) {
		uint32_t text = trace->threads[i] ? texts_add(rows->threads, text_of(trace->threads[i]->name)) : 0;

		made = made && text != TEXTS_NONE;
		rows->thread_texts[i] = (int32_t)text;
	}
	return made ? 0 : -ENOMEM;
}

/* Of the threads that the filter shows, at any time. */
static uint64_t events_of(const struct request *request)
{
	struct filter any_time = request->options.filter;

	any_time.from_given = any_time.to_given = false;
	return walk_events(request->trace, &any_time);
}

static int make_rows(struct request *request, struct row_batches *batches)
{
	static const struct call_visitor visitor = {.thread = begin_thread, .push = push, .pop = pop, .timed = true};
	struct call_rows rows = {.batches = batches,
				 .names = handle_names(request->call.handle),
				 .origin_ns = row_origin_ns(request),
				 .part = request->options.part,
				 .parts = request->options.parts};
	int error = rows.names ? make_texts(&rows, request->trace) : -ENOMEM;

	if (!error) {
		rows.total = rows.parts ? events_of(request) : 0;
		batches->shared[ROW_NAME] = rows.names->names;
		batches->shared[ROW_MOD] = rows.names->mods;
		batches->shared[ROW_KIND] = batches->shared[ROW_END] = rows.kinds;
		batches->shared[ROW_THREAD] = rows.threads;
		/* A table of no rows has these texts, too, so it is made while they are there. */
		error = row_batches_table(batches)
			    ? walk_trace(request->trace, &request->options.filter, &request->progress, &visitor, &rows)
			    : -ENOMEM;
	}
	/* The tables share them. */
	texts_drop(rows.kinds);
	texts_drop(rows.threads);
	free(rows.thread_texts);
	return error;
}

const struct row_kind rows_of_calls = {"calls", fields, ROW_COLUMNS, make_rows};
