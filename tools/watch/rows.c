/*
 * rows.c - see rows.h.
 */
#include "watch/rows.h"

#include <stdlib.h>
#include <string.h>

#include "util/grow.h"

/* --- orders --- */

static const char *const order_names[WATCH_ORDERS] = {"own", "total", "calls", "allocations", "bytes"};

const char *watch_order_name(enum watch_order order)
{
	return order_names[order];
}

enum watch_order watch_order_of(const char *name)
{
	unsigned order = 0;

	while (order < WATCH_ORDERS && strcmp(order_names[order], name) != 0)
		order++;
	return (enum watch_order)order;
}

static uint64_t order_value(enum watch_order order, const struct watch_times *times)
{
	switch (order) {
	case WATCH_BY_TOTAL:
		return times->total_ns;
	case WATCH_BY_CALLS:
		return times->calls;
	case WATCH_BY_ALLOCATIONS:
		return times->allocations;
	case WATCH_BY_BYTES:
		return times->bytes;
	default:
		return times->own_ns;
	}
}

static int compare_rows(const void *a, const void *b)
{
	const struct watch_row *left = a, *right = b;

	if (left->now != right->now)
		return left->now < right->now ? 1 : -1;
	if (left->since != right->since)
		return left->since < right->since ? 1 : -1;
	return compare_u64(left->number, right->number);
}

/* --- which rows --- */

static bool text_has(struct text text, const char *part)
{
	size_t length = strlen(part);

	for (size_t i = 0; i + length <= text.length; i++)
		if (strncasecmp(text.at + i, part, length) == 0)
			return true;
	return !length;
}

static bool label_passes(const struct watch_view *view, const struct label *label)
{
	return text_has(label->display.length ? label->display : label->name, view->filter) ||
	       text_has(label->file, view->filter);
}

static bool is_active(const struct watch_times *times)
{
	return times->calls || times->own_ns || times->total_ns || times->allocations;
}

const struct watch_times *watch_times_of(const struct watch_function *function, enum watch_side side)
{
	if (side == WATCH_ALL)
		return is_active(&function->now) ? &function->now : NULL;
	if (side == WATCH_CALLEES)
		return function->is_callee ? &function->callee : NULL;
	return function->is_caller ? &function->caller : NULL;
}

struct watch_row *watch_function_rows(const struct watch_view *view, const struct labels *labels,
				      const struct watch_function *functions, uint32_t known, enum watch_side side,
				      size_t *count)
{
	struct watch_row *rows = malloc((labels->count + (size_t)1) * sizeof(*rows));

	*count = 0;
	for (uint32_t i = 0; rows && i < labels->count && i < known; i++) {
		const struct watch_times *times = watch_times_of(&functions[i], side);

		if (times && label_passes(view, &labels->at[i]))
			rows[(*count)++] = (struct watch_row){.now = order_value(view->order, times),
							      .since = order_value(view->order, &functions[i].since),
							      .number = i};
	}
	if (rows)
		qsort(rows, *count, sizeof(*rows), compare_rows);
	return rows;
}

struct watch_row *watch_process_rows(const struct watch_view *view, const struct watch_host *host, size_t *count)
{
	struct watch_row *rows = malloc((host->process_count + 1) * sizeof(*rows));

	*count = 0;
	for (size_t i = 0; rows && i < host->process_count; i++) {
		const struct watch_process_row *row = &host->processes[i];

		if (text_has(text_of(row->name), view->filter))
			rows[(*count)++] = (struct watch_row){.now = order_value(view->order, &row->now), .number = i};
	}
	if (rows)
		qsort(rows, *count, sizeof(*rows), compare_rows);
	return rows;
}

struct watch_row *watch_thread_rows(const struct watch_view *view, const struct watch_host *host, size_t *count)
{
	struct watch_row *rows = malloc((host->thread_count + 1) * sizeof(*rows));

	*count = 0;
	for (size_t i = 0; rows && i < host->thread_count; i++) {
		const struct watch_thread_row *row = &host->threads[i];

		if (text_has(text_of(row->name), view->filter))
			rows[(*count)++] = (struct watch_row){.now = order_value(view->order, &row->now), .number = i};
	}
	if (rows)
		qsort(rows, *count, sizeof(*rows), compare_rows);
	return rows;
}
