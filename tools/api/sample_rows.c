/*
 * sample_rows.c - stacks of sampled threads in batches: a row for each stretch of time in which samples found the same
 * functions on the stack. See row_batches.h.
 *
 * start      ns since 1970, or with since-start since the start of the trace
 * duration   ns, up to the sample that found another stack; of a function together its own time in evprof report
 * stack      the names of the functions, from the outermost on, with semicolons between
 * name, mod, lineno   of the innermost one, as in the table of events; lineno of a C function is -1
 * depth      functions on the stack
 * thread     the name of the thread; pid, tid
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/row_batches.h"
#include "replay/call_walk.h"

enum {
	ROW_START,
	ROW_DURATION,
	ROW_STACK,
	ROW_NAME,
	ROW_MOD,
	ROW_LINENO,
	ROW_DEPTH,
	ROW_THREAD,
	ROW_PID,
	ROW_TID,
	ROW_COLUMNS
};

static const struct table_field fields[ROW_COLUMNS] = {
    [ROW_START] = {"start", TABLE_INT64, false}, [ROW_DURATION] = {"duration", TABLE_INT64, false},
    [ROW_STACK] = {"stack", TABLE_INT32, true},	 [ROW_NAME] = {"name", TABLE_INT32, true},
    [ROW_MOD] = {"mod", TABLE_INT32, true},	 [ROW_LINENO] = {"lineno", TABLE_INT32, false},
    [ROW_DEPTH] = {"depth", TABLE_INT32, false}, [ROW_THREAD] = {"thread", TABLE_INT32, true},
    [ROW_PID] = {"pid", TABLE_INT32, false},	 [ROW_TID] = {"tid", TABLE_INT32, false},
};

struct sample_rows {
	struct row_batches *batches;
	const struct function_names *names;
	int64_t origin_ns;
	int64_t since_ns; /* the stack is the same since then */
	char *stack;
	size_t used, allocated;
};

static const struct function_name *name_of(const struct sample_rows *rows, const struct call_walk *walk, uint32_t key)
{
	return &rows->names->of[walk->process->number][key + 1];
}

static struct text text_number(const struct texts *texts, int32_t number)
{
	int32_t from = texts->offsets[number];

	return (struct text){texts->bytes + from, (size_t)(texts->offsets[number + 1] - from)};
}

static int add_to_stack(struct sample_rows *rows, struct text name)
{
	size_t wanted = rows->used + name.length + 1;

	if (wanted > rows->allocated) {
		char *grown = realloc(rows->stack, 2 * wanted);

		if (!grown)
			return -ENOMEM;
		rows->stack = grown;
		rows->allocated = 2 * wanted;
	}
	if (rows->used)
		rows->stack[rows->used++] = ';';
	if (name.length)
		memcpy(rows->stack + rows->used, name.at, name.length);
	rows->used += name.length;
	return 0;
}

static int fold_stack(struct sample_rows *rows, const struct call_walk *walk, uint32_t depth)
{
	int error = 0;

	rows->used = 0;
	for (uint32_t i = 0; i < depth && !error; i++)
		error =
		    add_to_stack(rows, text_number(rows->names->names, name_of(rows, walk, walk->frames[i].key)->name));
	return error;
}

static int put_row(struct sample_rows *rows, const struct call_walk *walk, uint32_t depth, int64_t end_ns)
{
	struct evprof_table *table = row_batches_table(rows->batches);
	const struct function_name *name = name_of(rows, walk, walk->frames[depth - 1].key);
	uint64_t row;

	if (!table || fold_stack(rows, walk, depth) < 0 ||
	    !table_put_text(table, ROW_STACK, (struct text){rows->stack, rows->used}) ||
	    !table_put_text(table, ROW_THREAD, text_of(walk->thread->name)))
		return -ENOMEM;
	row = table->rows;
	table_int64(table, ROW_START)[row] = rows->since_ns + rows->origin_ns;
	table_int64(table, ROW_DURATION)[row] = end_ns - rows->since_ns;
	table_int32(table, ROW_NAME)[row] = name->name;
	table_int32(table, ROW_MOD)[row] = name->mod;
	table_int32(table, ROW_LINENO)[row] = name->line;
	table_int32(table, ROW_DEPTH)[row] = (int32_t)depth;
	table_int32(table, ROW_PID)[row] = (int32_t)walk->process->pid;
	table_int32(table, ROW_TID)[row] = (int32_t)walk->thread->tid;
	return row_batches_end_row(rows->batches);
}

/* Ends the stretch of a stack of that depth. */
static void end_stretch(struct sample_rows *rows, struct call_walk *walk, uint32_t depth, int64_t now_ns)
{
	if (walk->thread->sampled && depth && now_ns > rows->since_ns && !walk->error)
		walk_fail(walk, put_row(rows, walk, depth, now_ns));
	rows->since_ns = now_ns;
}

static void push(void *owner, struct call_walk *walk, struct walk_frame *frame)
{
	end_stretch(owner, walk, (uint32_t)(frame - walk->frames), frame->start_ns);
}

static void pop(void *owner, struct call_walk *walk, struct walk_frame *frame, unsigned how)
{
	(void)how;
	end_stretch(owner, walk, (uint32_t)(frame - walk->frames) + 1, walk->now_ns);
}

static int make_rows(struct request *request, struct row_batches *batches)
{
	static const struct call_visitor visitor = {.push = push, .pop = pop};
	struct sample_rows rows = {
	    .batches = batches, .names = handle_names(request->call.handle), .origin_ns = row_origin_ns(request)};
	int error = rows.names ? 0 : -ENOMEM;

	if (!error) {
		batches->shared[ROW_NAME] = rows.names->names;
		batches->shared[ROW_MOD] = rows.names->mods;
		error = walk_trace(request->trace, &request->options.filter, &request->progress, &visitor, &rows);
	}
	free(rows.stack);
	return error;
}

const struct row_kind rows_of_samples = {"samples", fields, ROW_COLUMNS, make_rows};
