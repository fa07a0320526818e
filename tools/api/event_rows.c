/*
 * event_rows.c - see event_rows.h.
 */
#include "api/event_rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/blocks.h"
#include "api/trace_tables.h"
#include "replay/named_events.h"
#include "util/u64_map.h"

/* The number of an event in the table plus one. */
enum row_what {
	ROW_NONE,
	ROW_CALL,
	ROW_RETURN,
	ROW_C_CALL,
	ROW_C_RETURN,
	ROW_EXCEPTION,
	ROW_C_EXCEPTION,
	ROW_MALLOC,
	ROW_CALLOC,
	ROW_REALLOC,
	ROW_FREE,
	ROW_REALLOC_FREE,
	ROW_SPAN_BEGIN,
	ROW_SPAN_END,
	ROW_MARK,
	ROW_COUNTER,
};

/* EventProfiler's numbers, and from 2000 on evprof's own. */
static const int16_t event_numbers[EVENT_KINDS] = {1,	 2,    3,    4,	   5,	 6,    1000, 1001,
						   1002, 1003, 1004, 2000, 2001, 2002, 2003};

static const uint8_t what_of[WIRE_KINDS] = {
    [WIRE_CALL] = ROW_CALL,	      [WIRE_RESUME] = ROW_CALL,	      [WIRE_THROW] = ROW_CALL,
    [WIRE_RETURN] = ROW_RETURN,	      [WIRE_YIELD] = ROW_RETURN,      [WIRE_UNWIND] = ROW_RETURN,
    [WIRE_C_CALL] = ROW_C_CALL,	      [WIRE_C_RETURN] = ROW_C_RETURN, [WIRE_C_EXCEPTION] = ROW_C_EXCEPTION,
    [WIRE_EXCEPTION] = ROW_EXCEPTION, [WIRE_MALLOC] = ROW_MALLOC,     [WIRE_CALLOC] = ROW_CALLOC,
    [WIRE_REALLOC] = ROW_REALLOC,     [WIRE_FREE] = ROW_FREE,	      [WIRE_SPAN_BEGIN] = ROW_SPAN_BEGIN,
    [WIRE_SPAN_END] = ROW_SPAN_END,   [WIRE_MARK] = ROW_MARK,	      [WIRE_COUNTER] = ROW_COUNTER,
};

enum {
	COLUMN_TIME,
	COLUMN_VALUE1,
	COLUMN_VALUE2,
	COLUMN_EVENT,
	COLUMN_NAME,
	COLUMN_MOD,
	COLUMN_LINENO,
	COLUMN_FROM_NAME,
	COLUMN_FROM_MOD,
	COLUMN_FROM_LINE,
	COLUMN_PID,
	COLUMN_TID,
	COLUMN_VALUE,
	COLUMNS
};

static const struct table_field fields[COLUMNS] = {
    [COLUMN_TIME] = {"time", TABLE_INT64, false},	 [COLUMN_VALUE1] = {"value1", TABLE_INT64, false},
    [COLUMN_VALUE2] = {"value2", TABLE_INT64, false},	 [COLUMN_EVENT] = {"event", TABLE_INT8, true},
    [COLUMN_NAME] = {"name", TABLE_INT32, true},	 [COLUMN_MOD] = {"mod", TABLE_INT32, true},
    [COLUMN_LINENO] = {"lineno", TABLE_INT32, false},	 [COLUMN_FROM_NAME] = {"from_name", TABLE_INT32, true},
    [COLUMN_FROM_MOD] = {"from_mod", TABLE_INT32, true}, [COLUMN_FROM_LINE] = {"from_line", TABLE_INT32, false},
    [COLUMN_PID] = {"pid", TABLE_INT32, false},		 [COLUMN_TID] = {"tid", TABLE_INT32, false},
    [COLUMN_VALUE] = {"value", TABLE_DOUBLE, false},
};
static const struct table_field number_field = {"event", TABLE_INT16, false};

struct row_process {
	const struct function_name *functions; /* by key + 1 */
	const int32_t *marks;		       /* names by id */
	struct blocks blocks;		       /* alive */
	struct u64_map spans;		       /* that are open (named_events.h) */
};

/* --- rows --- */

static inline bool wants(const struct event_rows *rows, enum row_what what)
{
	return rows->wanted >> (what - 1) & 1;
}

/* The columns but those of the function. */
static inline uint64_t begin_row(struct event_rows *rows, const struct event_stream_event *event, enum row_what what)
{
	uint64_t row = rows->row++;

	rows->time[row] = (int64_t)((uint64_t)event->ns + (uint64_t)rows->origin_ns);
	if (rows->options->event_numbers)
		((int16_t *)rows->event)[row] = event_numbers[what - 1];
	else
		((int8_t *)rows->event)[row] = (int8_t)(what - 1);
	return row;
}

/* The number of nobody is -1. */
static inline const struct function_name *function_of(const struct row_process *process, uint32_t key)
{
	return &process->functions[(uint32_t)(key + 1)];
}

static inline void put_row(struct event_rows *rows, const struct event_stream_event *event, enum row_what what)
{
	const struct function_name *running = function_of(event->user, event->running);
	const struct function_name *caller = function_of(event->user, event->caller);
	uint64_t row = begin_row(rows, event, what);

	rows->name[row] = running->name;
	rows->mod[row] = running->mod;
	/* A C function stands in the line of its caller. */
	rows->lineno[row] = event->running & 1 ? caller->line : running->line;
	rows->from_name[row] = caller->name;
	rows->from_mod[row] = caller->mod;
	rows->from_line[row] = caller->line;
}

static inline void put_memory_row(struct event_rows *rows, const struct event_stream_event *event, uint64_t address,
				  int64_t size, enum row_what what)
{
	if (!wants(rows, what))
		return;
	rows->value1[rows->row] = (int64_t)address;
	rows->value2[rows->row] = size;
	put_row(rows, event, what);
}

/* Follows the block of a memory event. Sets *freed to minus the size of what it frees. */
static inline int follow_block(const struct event_rows *rows, const struct event_stream_event *event, int64_t *freed)
{
	struct row_process *process = event->user;
	uint64_t bytes = 0;
	int error = 0;

	if (rows->sizes)
		error = blocks_follow(&process->blocks, event->thread->number, event->head, event->extra, &bytes);
	*freed = -(int64_t)bytes;
	return error;
}

static inline int take_memory(struct event_rows *rows, const struct event_stream_event *event, enum row_what what)
{
	uint64_t address = wire_memory_address(event->extra[0]);
	int64_t size;
	int error = follow_block(rows, event, &size);

	if (what == ROW_REALLOC)
		put_memory_row(rows, event, wire_memory_address(event->extra[1]), size, ROW_REALLOC_FREE);
	if (what != ROW_FREE)
		size = (int64_t)wire_memory_size(event->head, event->extra[0]);
	put_memory_row(rows, event, address, size, what);
	return error;
}

/* The caller of a span, mark or counter is what runs; a C function has no row of its own as a caller. */
static int take_named(struct event_rows *rows, const struct event_stream_event *event, enum row_what what)
{
	struct row_process *process = event->user;
	bool in_python = event->running == EVENT_STREAM_NOBODY || !(event->running & 1);
	const struct function_name *caller = function_of(process, in_python ? event->running : event->caller);
	struct named_event named;
	uint64_t row;

	if (named_event_take(&process->spans, event->head, event->extra, &named) < 0)
		return -ENOMEM;
	if (!wants(rows, what))
		return 0;
	rows->has_named = true;
	row = begin_row(rows, event, what);
	rows->value1[row] = (int64_t)named.number;
	rows->value[row] = named.value;
	rows->name[row] = named.name < event->process->marks.count ? process->marks[named.name] : 0;
	rows->mod[row] = 0;
	rows->lineno[row] = caller->line;
	rows->from_name[row] = caller->name;
	rows->from_mod[row] = caller->mod;
	rows->from_line[row] = caller->line;
	return 0;
}

static int take_event(void *owner, const struct event_stream_event *event)
{
	struct event_rows *rows = owner;
	unsigned kind = wire_head_kind(event->head);
	enum row_what what = what_of[kind];
	int64_t freed;

	if (what == ROW_NONE)
		return blocks_want(kind) && !blocks_is_event(kind) ? follow_block(rows, event, &freed) : 0;
	rows->thread = event->thread;
	if (what >= ROW_SPAN_BEGIN)
		return take_named(rows, event, what);
	if (what >= ROW_MALLOC)
		return take_memory(rows, event, what);
	if (wants(rows, what))
		put_row(rows, event, what);
	return 0;
}

static int take_hidden(void *owner, const struct event_stream_event *event)
{
	int64_t freed;

	return blocks_want(wire_head_kind(event->head)) ? follow_block(owner, event, &freed) : 0;
}

static int begin_process(void *owner, const struct trace_process *process, uint32_t keys, void **user)
{
	struct event_rows *rows = owner;
	struct row_process *own = calloc(1, sizeof(*own));

	(void)keys;
	*user = own;
	if (!own)
		return -ENOMEM;
	rows->processes[process->number] = own;
	own->functions = rows->names->of[process->number];
	own->marks = rows->names->marks[process->number];
	return 0;
}

static void end_process(void *owner, const struct trace_process *process, void *user)
{
	struct event_rows *rows = owner;
	struct row_process *own = user;

	rows->processes[process->number] = NULL;
	if (own) {
		blocks_done(&own->blocks);
		u64_map_done(&own->spans);
	}
	free(own);
}

/* --- tables --- */

/* Gives a table of the fields the texts of its rows. */
static void prepare_table(const struct event_rows *rows, struct evprof_table *table)
{
	const struct function_names *names = rows->names;

	if (rows->options->event_numbers)
		table->columns[COLUMN_EVENT].field = &number_field;
	table_use_texts(table, COLUMN_EVENT, rows->options->event_numbers ? NULL : rows->kinds);
	table_use_texts(table, COLUMN_NAME, names->names);
	table_use_texts(table, COLUMN_MOD, names->mods);
	table_use_texts(table, COLUMN_FROM_NAME, names->names);
	table_use_texts(table, COLUMN_FROM_MOD, names->mods);
}

struct evprof_table *event_rows_table(const struct event_rows *rows)
{
	struct evprof_table *table = table_new(fields, COLUMNS);

	if (table)
		prepare_table(rows, table);
	return table;
}

void event_rows_clear(const struct event_rows *rows, struct evprof_table *table)
{
	memset(table_int64(table, COLUMN_VALUE1), 0, table->rows * sizeof(int64_t));
	memset(table_int64(table, COLUMN_VALUE2), 0, table->rows * sizeof(int64_t));
	if (rows->has_named)
		memset(table_double(table, COLUMN_VALUE), 0, table->rows * sizeof(double));
	table->rows = 0;
}

static void use_table(struct event_rows *rows, struct evprof_table *table)
{
	rows->table = table;
	rows->time = table_int64(table, COLUMN_TIME);
	rows->value1 = table_int64(table, COLUMN_VALUE1);
	rows->value2 = table_int64(table, COLUMN_VALUE2);
	rows->event = table->columns[COLUMN_EVENT].data;
	rows->name = table_int32(table, COLUMN_NAME);
	rows->mod = table_int32(table, COLUMN_MOD);
	rows->lineno = table_int32(table, COLUMN_LINENO);
	rows->from_name = table_int32(table, COLUMN_FROM_NAME);
	rows->from_mod = table_int32(table, COLUMN_FROM_MOD);
	rows->from_line = table_int32(table, COLUMN_FROM_LINE);
	rows->value = table_double(table, COLUMN_VALUE);
}

/* All rows of a step are of one thread. */
static void put_thread(const struct event_rows *rows, uint64_t from)
{
	int32_t *pid = table_int32(rows->table, COLUMN_PID), *tid = table_int32(rows->table, COLUMN_TID);
	int32_t pid_value, tid_value;

	if (from == rows->row || (rows->one_pid && rows->one_tid))
		return;
	pid_value = (int32_t)trace_process_of(rows->trace, rows->thread)->pid;
	tid_value = (int32_t)rows->thread->tid;
	for (uint64_t i = from; !rows->one_pid && i < rows->row; i++)
		pid[i] = pid_value;
	for (uint64_t i = from; !rows->one_tid && i < rows->row; i++)
		tid[i] = tid_value;
}

int event_rows_fill(struct event_rows *rows, struct evprof_table *table, uint64_t wanted)
{
	int result = 1;

	rows->row = table->rows;
	use_table(rows, table);
	while (result > 0 && rows->row < wanted) {
		uint64_t from = rows->row;

		/* A realloc is two rows. */
		if (table->allocated < rows->row + UINT64_C(2) * EVENT_ROWS_STEP) {
			populate_wait(rows->populate);
			if (table_reserve(table, 2 * rows->row + UINT64_C(4) * EVENT_ROWS_STEP) < 0)
				return -ENOMEM;
			use_table(rows, table);
		}
		result = event_stream_step(rows->stream, EVENT_ROWS_STEP);
		put_thread(rows, from);
		populate_ahead(rows->populate, rows->row);
	}
	table->rows = rows->row;
	return result < 0 ? result : 0;
}

int event_rows_init(struct event_rows *rows, struct trace *trace, const struct options *options,
		    const struct function_names *names)
{
	static const struct event_stream_user user = {begin_process, end_process, take_event, NULL},
					      with_sizes = {begin_process, end_process, take_event, take_hidden};
	const uint32_t frees = 1u << (ROW_FREE - 1) | 1u << (ROW_REALLOC_FREE - 1);

	*rows = (struct event_rows){.trace = trace, .options = options, .names = names};
	rows->wanted = options->kinds ? options->kinds : (1u << EVENT_KINDS) - 1;
	rows->sizes = rows->wanted & frees;
	rows->origin_ns = options->since_start ? -trace->start_ns : trace_realtime_offset(trace);
	rows->processes = calloc((size_t)trace->process_count + 1, sizeof(struct row_process *));
	rows->kinds = texts_new();
	if (!rows->processes || !rows->kinds)
		return -ENOMEM;
	for (unsigned what = 0; what < EVENT_KINDS; what++)
		if (texts_add(rows->kinds, text_of(event_kind_names[what])) != what)
			return -ENOMEM;
	return event_stream_open(&rows->stream, trace, &options->filter, &rows->progress,
				 rows->sizes ? &with_sizes : &user, rows);
}

void event_rows_done(struct event_rows *rows)
{
	event_stream_close(rows->stream);
	free(rows->processes);
	texts_drop(rows->kinds);
	*rows = (struct event_rows){0};
}

/* --- all rows as a table --- */

/* Bits: the columns that most rows of the trace write. */
static uint32_t usual_columns(const struct event_rows *rows)
{
	bool memory = trace_records(rows->trace, "mem") && (rows->wanted >> (ROW_MALLOC - 1) & 0x1f);
	uint32_t rare = 1u << COLUMN_VALUE | (memory ? 0 : 1u << COLUMN_VALUE1 | 1u << COLUMN_VALUE2);
	uint32_t same = (rows->one_pid ? 1u << COLUMN_PID : 0) | (rows->one_tid ? 1u << COLUMN_TID : 0);

	return ((1u << COLUMNS) - 1) & ~rare & ~same;
}

/* Whether all rows have one pid, and one tid: fill_same() writes these columns then. */
static void find_same(struct event_rows *rows)
{
	const struct trace_thread *first = NULL;

	rows->one_pid = rows->one_tid = true;
	for (uint32_t i = 0; i < rows->trace->thread_count; i++) {
		const struct trace_thread *thread = rows->trace->threads[i];

		if (!thread || !(thread->place_count || thread->own))
			continue;
		rows->one_tid &= !first && !thread->own;
		rows->one_pid &= (!first || first->process == thread->process) && !thread->own;
		first = thread;
	}
}

static void fill_same(const struct event_rows *rows, struct evprof_table *table)
{
	if (!table->rows)
		return;
	if (rows->one_pid)
		table_fill_int32(table, COLUMN_PID, (int32_t)trace_process_of(rows->trace, rows->thread)->pid);
	if (rows->one_tid)
		table_fill_int32(table, COLUMN_TID, (int32_t)rows->thread->tid);
}

/* A damaged file may promise more events than there can be. */
#define ROWS_BELIEVED (UINT64_C(1) << 27)

static uint64_t expected_rows(const struct trace *trace)
{
	uint64_t events = 0;

	for (uint32_t i = 0; i < trace->thread_count; i++)
		for (size_t k = 0; trace->threads[i] && k < trace->threads[i]->place_count; k++)
			events += trace->threads[i]->places[k].events;
	events += events / 16;
	return events < ROWS_BELIEVED ? events : ROWS_BELIEVED;
}

static int fill_ahead(struct event_rows *rows, struct evprof_table *table)
{
	struct populate populate;
	int error;

	prepare_table(rows, table);
	/* Without this room it grows. */
	table_reserve(table, expected_rows(rows->trace) + UINT64_C(2) * EVENT_ROWS_STEP);
	find_same(rows);
	populate_begin(&populate, table, usual_columns(rows));
	/* cppcheck-suppress autoVariables ; until the end of the filling */
	rows->populate = &populate;
	error = event_rows_fill(rows, table, UINT64_MAX);
	rows->populate = NULL;
	populate_end(&populate);
	fill_same(rows, table);
	return error;
}

static int make_events(struct request *request, struct evprof_table *table)
{
	const struct function_names *names = handle_names(request->call.handle);
	struct event_rows rows;
	int error = options_need_wall_clock(&request->options, EVENT_ROWS_NAME, &request->why);

	if (error)
		return error;
	if (!names)
		return -ENOMEM;
	error = event_rows_init(&rows, request->trace, &request->options, names);
	if (!error)
		error = fill_ahead(&rows, table);
	event_rows_done(&rows);
	return error;
}

const struct table_kind table_events = {"events", fields, COLUMNS, make_events};
