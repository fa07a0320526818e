/*
 * line_table.c - costs of lines, by file and line. See line_table.h.
 */
#include "analysis/line_table.h"

#include <errno.h>
#include <stdlib.h>

#include "util/grow.h"

static int by_place(const void *left, const void *right)
{
	const struct line_row *a = left, *b = right;

	return compare_u64(a->file, b->file) ?: compare_u64(a->line, b->line);
}

/* The most expensive call first. */
static int by_site(const void *left, const void *right)
{
	const struct line_call *a = left, *b = right;

	return compare_u64(a->file, b->file) ?: compare_u64(a->line, b->line)
		   ?: compare_u64(b->call->total_ns, a->call->total_ns)
		   ?: compare_u64(a->call->callee, b->call->callee);
}

static int by_time(const void *left, const void *right, void *owner)
{
	const struct line_costs *costs = owner;
	const struct file_lines *a = left, *b = right;

	return compare_u64(b->own_ns, a->own_ns)
		   ?: text_compare(costs->places[a->file].name, costs->places[b->file].name);
}

static void fill_rows(struct line_table *table, const uint8_t *wanted)
{
	const struct line_costs *costs = table->costs;
	size_t i, count = 0;

	for (i = 0; i < costs->line_count; i++) {
		const struct cost_line *line = &costs->lines[i];
		uint32_t file = costs->functions[line->function].file;

		if (wanted[file])
			table->rows[count++] = (struct line_row){.file = file,
								 .line = line->line,
								 .hits = costs->by_line ? line->hits : line->starts,
								 .own_ns = line->own_ns};
	}
	qsort(table->rows, count, sizeof(*table->rows), by_place);
	for (i = 0; i < count; i++) {
		struct line_row *last = table->row_count ? &table->rows[table->row_count - 1] : NULL;

		if (last && by_place(last, &table->rows[i]) == 0) {
			last->hits += table->rows[i].hits;
			last->own_ns += table->rows[i].own_ns;
		} else {
			table->rows[table->row_count++] = table->rows[i];
		}
	}
}

static void fill_calls(struct line_table *table, const uint8_t *wanted)
{
	const struct line_costs *costs = table->costs;

	for (size_t i = 0; i < costs->call_count; i++) {
		const struct cost_call *call = &costs->calls[i];
		const struct cost_line *from = call->from == LINE_COSTS_NOBODY ? NULL : &costs->lines[call->from];

		if (from && wanted[costs->functions[from->function].file])
			table->calls[table->call_count++] = (struct line_call){
			    .file = costs->functions[from->function].file, .line = from->line, .call = call};
	}
	qsort(table->calls, table->call_count, sizeof(*table->calls), by_site);
}

static void fill_files(struct line_table *table)
{
	struct file_lines *file = NULL;
	size_t i, call = 0;

	for (i = 0; i < table->row_count; i++) {
		if (!file || file->file != table->rows[i].file) {
			file = &table->files[table->file_count++];
			*file = (struct file_lines){
			    .file = table->rows[i].file, .rows = &table->rows[i], .calls = &table->calls[call]};
		}
		file->row_count++;
		file->own_ns += table->rows[i].own_ns;
		for (; call < table->call_count && table->calls[call].file == file->file; call++)
			file->call_count++;
	}
	qsort_r(table->files, table->file_count, sizeof(*table->files), by_time, (void *)table->costs);
}

int line_table_make(struct line_table *table, const struct line_costs *costs, const uint8_t *wanted)
{
	*table = (struct line_table){.costs = costs};
	table->rows = malloc(((size_t)costs->line_count + 1) * sizeof(*table->rows));
	table->calls = malloc(((size_t)costs->call_count + 1) * sizeof(*table->calls));
	table->files = malloc(((size_t)costs->line_count + 1) * sizeof(*table->files));
	if (!table->rows || !table->calls || !table->files)
		return -ENOMEM;
	fill_rows(table, wanted);
	fill_calls(table, wanted);
	fill_files(table);
	return 0;
}

void line_table_done(struct line_table *table)
{
	free(table->rows);
	free(table->calls);
	free(table->files);
}
