/*
 * row_batches.c - see row_batches.h.
 */
#include "api/row_batches.h"

#include <errno.h>
#include <string.h>

static const struct row_kind *const row_kinds[] = {&rows_of_calls, &rows_of_samples};

static struct evprof_table *fresh_table(const struct row_batches *batches)
{
	struct evprof_table *table = table_new(batches->fields, batches->field_count);

	if (!table)
		return NULL;
	for (uint32_t i = 0; i < batches->field_count; i++)
		if (batches->shared[i])
			table_use_texts(table, i, batches->shared[i]);
	if (table_reserve(table, batches->rows) == 0)
		return table;
	table_drop(table);
	return NULL;
}

/* Has the columns that share no texts begin anew: the next batch's consumer may read while more texts are added. */
static int clear_table(const struct row_batches *batches, struct evprof_table *table)
{
	table->rows = 0;
	for (uint32_t i = 0; i < batches->field_count; i++) {
		struct texts *texts;

		if (!batches->fields[i].text || batches->shared[i])
			continue;
		texts = texts_new();
		if (!texts)
			return -ENOMEM;
		table_use_texts(table, i, texts);
		texts_drop(texts);
	}
	return 0;
}

/* Takes a table of the pool that nobody else has. If all are in use, the oldest is left to those who have it. */
struct evprof_table *row_batches_table(struct row_batches *batches)
{
	struct evprof_table **place = &batches->pool[batches->given % ROW_BATCHES_POOL];

	if (batches->table)
		return batches->table;
	if (*place && atomic_load_explicit(&(*place)->references, memory_order_acquire) > 1) {
		table_drop(*place);
		*place = NULL;
	}
	if (!*place)
		*place = fresh_table(batches);
	else if (clear_table(batches, *place) < 0)
		return NULL;
	batches->table = *place;
	return batches->table;
}

/* Whoever takes a batch may wait for others that use the trace: it is not locked meanwhile. */
static int hand_over(struct row_batches *batches)
{
	struct evprof_table *table = batches->table;
	struct request *request = batches->request;
	int stopped;

	batches->table = NULL;
	batches->given++;
	handle_leave(&request->call);
	stopped = batches->take(batches->owner, table);
	handle_return(&request->call);
	request->trace->clock = request->options.filter.clock;
	return stopped ? -ECANCELED : 0;
}

int row_batches_end_row(struct row_batches *batches)
{
	return ++batches->table->rows < batches->rows ? 0 : hand_over(batches);
}

static int make(struct request *request, const char *what, evprof_take_rows *take, void *owner)
{
	size_t i = 0, count = sizeof(row_kinds) / sizeof(row_kinds[0]);
	struct row_batches batches = {
	    .rows = request->options.batch_rows, .request = request, .take = take, .owner = owner};
	int error;

	while (i < count && strcmp(row_kinds[i]->name, what) != 0)
		i++;
	if (i == count)
		return why_set(&request->why, -EINVAL, "evprof: \"%s\" is none of the tables that come in batches",
			       what);
	if (request->options.parts && row_kinds[i] != &rows_of_calls)
		return why_set(&request->why, -EINVAL, "evprof: \"%s\" does not come in parts", what);
	error = options_need_wall_clock(&request->options, "a table in batches", &request->why);
	if (error)
		return error;
	batches.fields = row_kinds[i]->fields;
	batches.field_count = row_kinds[i]->field_count;
	error = row_kinds[i]->make(request, &batches);
	/* The consumer gets the columns also of a table without rows. */
	if (!error && !batches.given && !row_batches_table(&batches))
		error = -ENOMEM;
	if (!error && batches.table)
		error = hand_over(&batches);
	for (i = 0; i < ROW_BATCHES_POOL; i++)
		table_drop(batches.pool[i]);
	return error;
}

int evprof_trace_rows(struct evprof_trace *trace, const char *what, const char *const *options, evprof_take_rows *take,
		      void *owner, char *error, size_t error_bytes)
{
	struct request request;
	int result = request_begin(&request, trace, options, error, error_bytes);

	handle_share(trace); /* the callback may close it */
	result = request_end(&request, result ? result : make(&request, what, take, owner));
	handle_drop(trace);
	return result;
}
