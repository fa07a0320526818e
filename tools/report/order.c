/*
 * order.c - pstats' keys: their names, and how they compare rows. See order.h.
 */
#include "report/order.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/output.h"

/* --- comparison: negative if a precedes b --- */

static int compare_u64(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int by_calls(const struct report_row *a, const struct report_row *b)
{
	return compare_u64(b->times.calls, a->times.calls);
}

static int by_primitive_calls(const struct report_row *a, const struct report_row *b)
{
	return compare_u64(report_primitive_calls(&b->times), report_primitive_calls(&a->times));
}

static int by_own(const struct report_row *a, const struct report_row *b)
{
	return compare_u64(b->times.own_ns, a->times.own_ns);
}

static int by_total(const struct report_row *a, const struct report_row *b)
{
	return compare_u64(b->times.total_ns, a->times.total_ns);
}

static int by_file(const struct report_row *a, const struct report_row *b)
{
	return text_compare(a->label->file, b->label->file);
}

static int by_line(const struct report_row *a, const struct report_row *b)
{
	return compare_u64(a->label->line, b->label->line);
}

static int by_function(const struct report_row *a, const struct report_row *b)
{
	return text_compare(a->label->name, b->label->name);
}

static int by_name_file_line(const struct report_row *a, const struct report_row *b)
{
	int order = by_function(a, b);

	if (!order)
		order = by_file(a, b);
	return order ? order : by_line(a, b);
}

static int by_standard_name(const struct report_row *a, const struct report_row *b)
{
	return text_compare(a->name, b->name);
}

/* --- names --- */

struct report_key {
	const char *name;
	int (*compare)(const struct report_row *a, const struct report_row *b);
	const char *title;
};

static const struct report_key keys[] = {
    {"calls", by_calls, "call count"},
    {"cumtime", by_total, "cumulative time"},
    {"cumulative", by_total, "cumulative time"},
    {"file", by_file, "file name"},
    {"filename", by_file, "file name"},
    {"line", by_line, "line number"},
    {"module", by_file, "file name"},
    {"name", by_function, "function name"},
    {"ncalls", by_calls, "call count"},
    {"nfl", by_name_file_line, "name/file/line"},
    {"pcalls", by_primitive_calls, "primitive call count"},
    {"stdname", by_standard_name, "standard name"},
    {"time", by_own, "internal time"},
    {"tottime", by_own, "internal time"},
};

#define KEYS (sizeof(keys) / sizeof(keys[0]))

/* The numbers that Python's first profiler used. */
static const struct {
	const char *number;
	const char *name;
} old_numbers[] = {{"-1", "stdname"}, {"0", "calls"}, {"1", "time"}, {"2", "cumulative"}};

static const struct report_key *unknown_order(struct text word, const char *what)
{
	fprintf(stderr, "evprof report: the order \"%.*s\" is %s; the orders are", (int)word.length, word.at, what);
	for (size_t i = 0; i < KEYS; i++)
		fprintf(stderr, "%s %s", i ? "," : "", keys[i].name);
	fprintf(stderr, "\n");
	return NULL;
}

/* The key with that name, or with that prefix if it stands for one order only. */
static const struct report_key *find_key(struct text word)
{
	const struct report_key *found = NULL;

	for (size_t i = 0; i < KEYS; i++) {
		if (word.length == 0 || strncmp(keys[i].name, word.at, word.length) != 0)
			continue;
		if (keys[i].name[word.length] == 0)
			return &keys[i];
		if (found && found->compare != keys[i].compare)
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
		int order = sorting->order->keys[i]->compare(&sorting->rows[a], &sorting->rows[b]);

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
