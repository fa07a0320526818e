/*
 * firefox_tables.c - strings, stacks, frames and functions of a profile. See firefox_tables.h.
 */
#include "export/firefox_tables.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "trace/labels.h"
#include "util/grow.h"

uint32_t firefox_string_number(struct firefox_tables *tables, struct text text)
{
	return labels_add(&tables->strings, &(struct label){.file = text});
}

uint32_t firefox_function_at_line(struct firefox_tables *tables, const struct call_walk *walk, uint32_t key,
				  uint32_t line)
{
	uint64_t *number = u64_map_make(&tables->line_numbers, (uint64_t)key << 32 | line);

	if (!number)
		return 0;
	if (!*number) {
		if (grow_by_one(&tables->lines, &tables->line_room, tables->line_count, sizeof(*tables->lines)))
			return 0;
		tables->lines[tables->line_count++] = (struct firefox_place){key, line};
		*number = tables->line_count;
	}
	return walk_keys(walk) + (uint32_t)*number - 1;
}

void firefox_put_constant(struct output *output, const char *name, const char *value, uint64_t count)
{
	output_format(output, ",\"%s\":[", name);
	for (uint64_t i = 0; i < count; i++) {
		output_string(output, i ? "," : "");
		output_string(output, value);
	}
	output_char(output, ']');
}

/* Numbers the frames of the thread in order of their first stack: one for each function, or line of a sample. */
static int number_frames(struct firefox_tables *tables, const struct call_walk *walk)
{
	const struct stacks *stacks = tables->stacks;
	uint32_t keys = walk_keys(walk), all = keys + tables->line_count, i;

	tables->frame_count = tables->function_count = 0;
	if (grow_zeroed(&tables->frames, &tables->frame_room, all, sizeof(*tables->frames)) ||
	    grow_zeroed(&tables->places, &tables->place_room, all, sizeof(*tables->places)))
		return -ENOMEM;
	for (i = 1; i < stacks->count; i++) {
		uint32_t function = stacks->at[i].function;
		struct firefox_place place =
		    function < keys ? (struct firefox_place){function, 0} : tables->lines[function - keys];

		if (tables->frames[function])
			continue;
		tables->places[tables->frame_count++] = place;
		tables->frames[function] = tables->frame_count;
		if (tables->functions[place.key])
			continue;
		tables->keys[tables->function_count++] = place.key;
		tables->functions[place.key] = tables->function_count;
	}
	return 0;
}

static void forget_frames(struct firefox_tables *tables)
{
	const struct stacks *stacks = tables->stacks;

	for (uint32_t i = 1; tables->frame_count && i < stacks->count; i++)
		tables->frames[stacks->at[i].function] = 0;
	for (uint32_t i = 0; i < tables->function_count; i++)
		tables->functions[tables->keys[i]] = 0;
}

/* Columns with an element for each stack, each frame, or each function. */
enum column {
	STACK_FRAME,
	STACK_PREFIX,
	FRAME_CATEGORY,
	FRAME_FUNCTION,
	FRAME_LINE,
	FUNCTION_NAME,
	FUNCTION_FILE,
	FUNCTION_LINE,
};

#define ELEMENT_NULL UINT64_MAX

static uint64_t line_of(const struct call_walk *walk, uint32_t key)
{
	const struct wire_definition *definition = walk_definition(walk, key);

	return definition && !(key & 1) ? definition->number : ELEMENT_NULL;
}

/* The number of the function's name; UINT32_MAX: no memory. */
static uint32_t name_of(struct firefox_tables *tables, const struct call_walk *walk, uint32_t key)
{
	char *name = label_display(walk_definition(walk, key), key & 1, key / 2);
	uint32_t number = name ? firefox_string_number(tables, text_of(name)) : UINT32_MAX;

	free(name);
	return number;
}

/* Element i of a column; UINT32_MAX: no memory. */
static uint64_t element_of(struct firefox_tables *tables, const struct call_walk *walk, enum column column, uint32_t i)
{
	const struct stack_node *stack = tables->stacks->at + i + 1;

	switch (column) {
	case STACK_FRAME:
		return tables->frames[stack->function] - 1;
	case STACK_PREFIX:
		return stack->parent ? stack->parent - 1 : ELEMENT_NULL;
	case FRAME_CATEGORY:
		return tables->places[i].key & 1 ? FIREFOX_CATEGORY_C : FIREFOX_CATEGORY_PYTHON;
	case FRAME_FUNCTION:
		return tables->functions[tables->places[i].key] - 1;
	case FRAME_LINE:
		return tables->places[i].line ? tables->places[i].line : line_of(walk, tables->places[i].key);
	case FUNCTION_NAME:
		return name_of(tables, walk, tables->keys[i]);
	case FUNCTION_FILE:
		if (line_of(walk, tables->keys[i]) == ELEMENT_NULL)
			return ELEMENT_NULL;
		return firefox_string_number(tables, trace_string(walk_definition(walk, tables->keys[i]), 0));
	default:
		return line_of(walk, tables->keys[i]);
	}
}

/* Writes a column. text: what stands before it. */
static int put_column(struct firefox_tables *tables, const struct call_walk *walk, const char *text, enum column column,
		      uint32_t count)
{
	output_string(tables->output, text);
	for (uint32_t i = 0; i < count; i++) {
		uint64_t element = element_of(tables, walk, column, i);

		if (element == UINT32_MAX && (column == FUNCTION_NAME || column == FUNCTION_FILE))
			return -ENOMEM;
		output_string(tables->output, i ? "," : "");
		if (element == ELEMENT_NULL)
			output_string(tables->output, "null");
		else
			output_u64(tables->output, element);
	}
	output_char(tables->output, ']');
	return 0;
}

static void put_stack_table(struct firefox_tables *tables, const struct call_walk *walk)
{
	uint32_t count = tables->stacks->count ? tables->stacks->count - 1 : 0;

	put_column(tables, walk, ",\n\"stackTable\":{\"frame\":[", STACK_FRAME, count);
	put_column(tables, walk, ",\"prefix\":[", STACK_PREFIX, count);
	output_format(tables->output, ",\"length\":%u}", count);
}

static void put_frame_table(struct firefox_tables *tables, const struct call_walk *walk)
{
	uint32_t count = tables->frame_count;

	output_format(tables->output, ",\n\"frameTable\":{\"length\":%u", count);
	firefox_put_constant(tables->output, "address", "-1", count);
	firefox_put_constant(tables->output, "inlineDepth", "0", count);
	put_column(tables, walk, ",\"category\":[", FRAME_CATEGORY, count);
	firefox_put_constant(tables->output, "subcategory", "0", count);
	put_column(tables, walk, ",\"func\":[", FRAME_FUNCTION, count);
	firefox_put_constant(tables->output, "nativeSymbol", "null", count);
	firefox_put_constant(tables->output, "innerWindowID", "0", count);
	put_column(tables, walk, ",\"line\":[", FRAME_LINE, count);
	firefox_put_constant(tables->output, "column", "null", count);
	output_char(tables->output, '}');
}

static int put_function_table(struct firefox_tables *tables, const struct call_walk *walk)
{
	uint32_t count = tables->function_count;
	int error;

	output_format(tables->output, ",\n\"funcTable\":{\"length\":%u", count);
	error = put_column(tables, walk, ",\"name\":[", FUNCTION_NAME, count);
	firefox_put_constant(tables->output, "isJS", "false", count);
	firefox_put_constant(tables->output, "relevantForJS", "false", count);
	firefox_put_constant(tables->output, "resource", "-1", count);
	if (!error)
		error = put_column(tables, walk, ",\"fileName\":[", FUNCTION_FILE, count);
	put_column(tables, walk, ",\"lineNumber\":[", FUNCTION_LINE, count);
	firefox_put_constant(tables->output, "columnNumber", "null", count);
	output_char(tables->output, '}');
	return error;
}

void firefox_put_strings(struct firefox_tables *tables)
{
	output_string(tables->output, "\n],\n\"shared\":{\"stringArray\":[");
	for (uint32_t i = 0; i < tables->strings.count; i++) {
		output_string(tables->output, i ? ",\n\"" : "\n\"");
		output_json(tables->output, tables->strings.at[i].file);
		output_char(tables->output, '"');
	}
	output_string(tables->output, "]}}\n");
}

int firefox_put_tables(struct firefox_tables *tables, const struct call_walk *walk)
{
	int error = number_frames(tables, walk);

	if (error)
		return error;
	put_stack_table(tables, walk);
	put_frame_table(tables, walk);
	error = put_function_table(tables, walk);
	forget_frames(tables);
	return error;
}

int firefox_tables_process(struct firefox_tables *tables, const struct call_walk *walk)
{
	u64_map_done(&tables->line_numbers);
	tables->line_numbers = (struct u64_map){0};
	tables->line_count = 0;
	free(tables->functions);
	free(tables->keys);
	tables->functions = calloc(walk_keys(walk), sizeof(*tables->functions));
	tables->keys = calloc(walk_keys(walk), sizeof(*tables->keys));
	return tables->functions && tables->keys ? 0 : -ENOMEM;
}

void firefox_tables_done(struct firefox_tables *tables)
{
	labels_done(&tables->strings);
	u64_map_done(&tables->line_numbers);
	free(tables->functions);
	free(tables->keys);
	free(tables->lines);
	free(tables->frames);
	free(tables->places);
}
