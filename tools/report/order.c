/*
 * order.c - pstats' keys: their names, and how they compare rows. See rows.h.
 */
#include "report/rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/cli.h"
#include "util/grow.h"
#include "util/output.h"

/* --- comparison: negative if a precedes b --- */

enum key {
	BY_CALLS,
	BY_PRIMITIVE_CALLS,
	BY_OWN,
	BY_TOTAL,
	BY_ALLOCATIONS,
	BY_BYTES,
	BY_FILE,
	BY_LINE,
	BY_FUNCTION,
	BY_NFL,
	BY_STANDARD_NAME
};

static int compare_rows(enum key key, const struct report_row *a, const struct report_row *b)
{
	int order;

	switch (key) {
	case BY_CALLS:
		return compare_u64(b->times.calls, a->times.calls);
	case BY_PRIMITIVE_CALLS:
		return compare_u64(report_primitive_calls(&b->times), report_primitive_calls(&a->times));
	case BY_OWN:
		return compare_u64(b->times.own_ns, a->times.own_ns);
	case BY_TOTAL:
		return compare_u64(b->times.total_ns, a->times.total_ns);
	case BY_ALLOCATIONS:
		return compare_u64(b->times.allocations, a->times.allocations);
	case BY_BYTES:
		return compare_u64(b->times.allocated_bytes, a->times.allocated_bytes);
	case BY_FILE:
		return text_compare(a->label->file, b->label->file);
	case BY_LINE:
		return compare_u64(a->label->line, b->label->line);
	case BY_FUNCTION:
		return text_compare(a->label->name, b->label->name);
	case BY_NFL:
		order = compare_rows(BY_FUNCTION, a, b);
		if (!order)
			order = compare_rows(BY_FILE, a, b);
		return order ? order : compare_rows(BY_LINE, a, b);
	case BY_STANDARD_NAME:
		break;
	}
	return text_compare(a->name, b->name);
}

/* --- names --- */

struct report_key {
	const char *name;
	enum key key;
	const char *title;
};

static const struct report_key keys[] = {
    {"allocations", BY_ALLOCATIONS, "allocations"},
    {"bytes", BY_BYTES, "allocated bytes"},
    {"calls", BY_CALLS, "call count"},
    {"cumtime", BY_TOTAL, "cumulative time"},
    {"cumulative", BY_TOTAL, "cumulative time"},
    {"file", BY_FILE, "file name"},
    {"filename", BY_FILE, "file name"},
    {"line", BY_LINE, "line number"},
    {"module", BY_FILE, "file name"},
    {"name", BY_FUNCTION, "function name"},
    {"ncalls", BY_CALLS, "call count"},
    {"nfl", BY_NFL, "name/file/line"},
    {"pcalls", BY_PRIMITIVE_CALLS, "primitive call count"},
    {"stdname", BY_STANDARD_NAME, "standard name"},
    {"time", BY_OWN, "internal time"},
    {"tottime", BY_OWN, "internal time"},
    {0},
};

/* The numbers that Python's first profiler used. */
static const struct {
	const char *number;
	const char *name;
} old_numbers[] = {{"-1", "stdname"}, {"0", "calls"}, {"1", "time"}, {"2", "cumulative"}};

static const struct report_key *unknown_order(struct text word, const char *what)
{
	fprintf(stderr, "evprof report: the order \"%.*s\" is %s; the orders are", (int)word.length, word.at, what);
	cli_print_names(keys, sizeof(keys[0]));
	return NULL;
}

/* The key with that name, or with that prefix if it stands for one order only. */
static const struct report_key *find_key(struct text word)
{
	const struct report_key *found = NULL;

	for (size_t i = 0; keys[i].name; i++) {
		if (word.length == 0 || strncmp(keys[i].name, word.at, word.length) != 0)
			continue;
		if (keys[i].name[word.length] == 0)
			return &keys[i];
		if (found && found->key != keys[i].key)
			return unknown_order(word, "ambiguous");
		found = &keys[i];
	}
	return found ? found : unknown_order(word, "not known");
}

bool report_order_parse(struct report_order *order, const char *text)
{
	for (size_t i = 0; i < sizeof(old_numbers) / sizeof(old_numbers[0]); i++)
		if (strcmp(text, old_numbers[i].number) == 0)
			text = old_numbers[i].name;
	for (order->count = 0;; order->count++) {
		size_t length = strcspn(text, ",");

		if (order->count == REPORT_ORDER_KEYS) {
			fprintf(stderr, "evprof report: --sort takes %d keys at most\n", REPORT_ORDER_KEYS);
			return false;
		}
		order->keys[order->count] = find_key((struct text){text, length});
		if (!order->keys[order->count])
			return false;
		if (!text[length]) {
			order->count++;
			return true;
		}
		text += length + 1;
	}
}

bool report_order_has_memory(const struct report_order *order)
{
	for (size_t i = 0; i < order->count; i++)
		if (order->keys[i]->key == BY_ALLOCATIONS || order->keys[i]->key == BY_BYTES)
			return true;
	return false;
}

void report_order_print(const struct report_order *order, struct output *output)
{
	for (size_t i = 0; i < order->count; i++) {
		output_string(output, i ? ", " : "");
		output_string(output, order->keys[i]->title);
	}
}

/* --- sorting --- */

struct sorting {
	const struct report_row *rows;
	const struct report_order *order;
};

static int by_order(const void *left, const void *right, void *owner)
{
	const struct sorting *sorting = owner;
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

	for (size_t i = 0; i < sorting->order->count; i++) {
		int order = compare_rows(sorting->order->keys[i]->key, &sorting->rows[a], &sorting->rows[b]);

		if (order)
			return order;
	}
	return compare_u64(a, b);
}

void report_rows_sort(struct report_rows *rows, const struct report_order *order, bool reverse)
{
	struct sorting sorting = {rows->rows, order};

	qsort_r(rows->shown, rows->shown_count, sizeof(*rows->shown), by_order, &sorting);
	for (uint32_t i = 0; reverse && i < rows->shown_count / 2; i++) {
		uint32_t other = rows->shown[rows->shown_count - 1 - i];

		rows->shown[rows->shown_count - 1 - i] = rows->shown[i];
		rows->shown[i] = other;
	}
}
