/*
 * firefox_tables.c - strings, stacks, frames and functions of a profile. See firefox_tables.h.
 */
#include "export/firefox_tables.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "trace/labels.h"
#include "util/grow.h"

static bool reserve_string(struct firefox_strings *strings)
{
	return !grow_by_one(&strings->at, &strings->allocated, strings->count, sizeof(*strings->at));
}

static struct text text_at(const struct firefox_strings *strings, uint32_t number)
{
	return (struct text){strings->at[number].bytes, strings->at[number].length};
}

uint32_t firefox_string_number(struct firefox_strings *strings, struct text text)
{
	uint64_t *number = u64_map_make(&strings->numbers, text_hash(TEXT_HASH_BEGIN, text) | 1);
	struct firefox_string *made;

	if (!number || !reserve_string(strings))
		return UINT32_MAX;
	if (*number && text_same(text_at(strings, (uint32_t)*number - 1), text))
		return (uint32_t)*number - 1;
	/* If two strings have the same hash, the second is added at each use; the format allows duplicates. */
	made = &strings->at[strings->count];
	made->bytes = malloc(text.length + 1);
	if (!made->bytes)
		return UINT32_MAX;
	made->length = text.length;
	memcpy(made->bytes, text.at ? text.at : "", text.length);
	strings->count++;
	if (!*number)
		*number = strings->count;
	return strings->count - 1;
}

static void strings_done(struct firefox_strings *strings)
{
	for (uint32_t i = 0; i < strings->count; i++)
		free(strings->at[i].bytes);
	free(strings->at);
	u64_map_done(&strings->numbers);
}

uint32_t firefox_function_at_line(struct firefox_tables *tables, const struct call_walk *walk, uint32_t key,
				  uint32_t line)
{
	uint64_t *number = u64_map_make(&tables->line_numbers, (uint64_t)key << 32 | line);

	if (!number)
		return 0;
	if (!*number) {
		if (grow_zeroed(&tables->lines, &tables->line_room, tables->line_count + 1, sizeof(*tables->lines)))
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

static void put_element(struct firefox_tables *tables, uint32_t before, uint64_t value)
{
	output_string(tables->output, before ? "," : "");
	output_u64(tables->output, value);
}

static void put_stack_table(struct firefox_tables *tables)
{
	const struct stacks *stacks = tables->stacks;

	output_string(tables->output, ",\n\"stackTable\":{\"frame\":[");
	for (uint32_t i = 1; i < stacks->count; i++) {
		put_element(tables, i > 1, tables->frames[stacks->at[i].function] - 1);
	}
	output_string(tables->output, "],\"prefix\":[");
	for (uint32_t i = 1; i < stacks->count; i++) {
		output_string(tables->output, i > 1 ? "," : "");
		if (stacks->at[i].parent)
			output_u64(tables->output, stacks->at[i].parent - 1);
		else
			output_string(tables->output, "null");
	}
	output_format(tables->output, "],\"length\":%u}", stacks->count ? stacks->count - 1 : 0);
}

static void put_line_number(struct firefox_tables *tables, const struct call_walk *walk, struct firefox_place place)
{
	const struct wire_definition *definition = walk_definition(walk, place.key);

	if (place.line)
		output_u64(tables->output, place.line);
	else if (definition && !(place.key & 1))
		output_u64(tables->output, definition->number);
	else
		output_string(tables->output, "null");
}

static void put_frame_table(struct firefox_tables *tables, const struct call_walk *walk)
{
	uint32_t count = tables->frame_count, i;

	output_format(tables->output, ",\n\"frameTable\":{\"length\":%u", count);
	firefox_put_constant(tables->output, "address", "-1", count);
	firefox_put_constant(tables->output, "inlineDepth", "0", count);
	output_string(tables->output, ",\"category\":[");
	for (i = 0; i < count; i++) {
		put_element(tables, i, tables->places[i].key & 1 ? FIREFOX_CATEGORY_C : FIREFOX_CATEGORY_PYTHON);
	}
	output_char(tables->output, ']');
	firefox_put_constant(tables->output, "subcategory", "0", count);
	output_string(tables->output, ",\"func\":[");
	for (i = 0; i < count; i++) {
		put_element(tables, i, tables->functions[tables->places[i].key] - 1);
	}
	output_char(tables->output, ']');
	firefox_put_constant(tables->output, "nativeSymbol", "null", count);
	firefox_put_constant(tables->output, "innerWindowID", "0", count);
	output_string(tables->output, ",\"line\":[");
	for (i = 0; i < count; i++) {
		output_string(tables->output, i ? "," : "");
		put_line_number(tables, walk, tables->places[i]);
	}
	output_char(tables->output, ']');
	firefox_put_constant(tables->output, "column", "null", count);
	output_char(tables->output, '}');
}

static int put_names(struct firefox_tables *tables, const struct call_walk *walk)
{
	output_string(tables->output, ",\"name\":[");
	for (uint32_t i = 0; i < tables->function_count; i++) {
		uint32_t key = tables->keys[i], number;
		char *name = label_display(walk_definition(walk, key), key & 1, key / 2);

		number = name ? firefox_string_number(&tables->strings, text_of(name)) : UINT32_MAX;
		free(name);
		if (number == UINT32_MAX)
			return -ENOMEM;
		put_element(tables, i, number);
	}
	output_char(tables->output, ']');
	return 0;
}

static int put_files(struct firefox_tables *tables, const struct call_walk *walk)
{
	output_string(tables->output, ",\"fileName\":[");
	for (uint32_t i = 0; i < tables->function_count; i++) {
		const struct wire_definition *definition = walk_definition(walk, tables->keys[i]);
		uint32_t number;

		output_string(tables->output, i ? "," : "");
		if (!definition || tables->keys[i] & 1) {
			output_string(tables->output, "null");
			continue;
		}
		number = firefox_string_number(&tables->strings, trace_string(definition, 0));
		if (number == UINT32_MAX)
			return -ENOMEM;
		output_u64(tables->output, number);
	}
	output_char(tables->output, ']');
	return 0;
}

static int put_function_table(struct firefox_tables *tables, const struct call_walk *walk)
{
	uint32_t count = tables->function_count, i;
	int error;

	output_format(tables->output, ",\n\"funcTable\":{\"length\":%u", count);
	error = put_names(tables, walk);
	firefox_put_constant(tables->output, "isJS", "false", count);
	firefox_put_constant(tables->output, "relevantForJS", "false", count);
	firefox_put_constant(tables->output, "resource", "-1", count);
	if (!error)
		error = put_files(tables, walk);
	output_string(tables->output, ",\"lineNumber\":[");
	for (i = 0; i < count; i++) {
		output_string(tables->output, i ? "," : "");
		put_line_number(tables, walk, (struct firefox_place){tables->keys[i], 0});
	}
	output_char(tables->output, ']');
	firefox_put_constant(tables->output, "columnNumber", "null", count);
	output_char(tables->output, '}');
	return error;
}

void firefox_put_strings(struct firefox_tables *tables)
{
	output_string(tables->output, "\n],\n\"shared\":{\"stringArray\":[");
	for (uint32_t i = 0; i < tables->strings.count; i++) {
		output_string(tables->output, i ? ",\n\"" : "\n\"");
		output_json(tables->output, text_at(&tables->strings, i));
		output_char(tables->output, '"');
	}
	output_string(tables->output, "]}}\n");
}

int firefox_put_tables(struct firefox_tables *tables, const struct call_walk *walk)
{
	int error = number_frames(tables, walk);

	if (error)
		return error;
	put_stack_table(tables);
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
	strings_done(&tables->strings);
	u64_map_done(&tables->line_numbers);
	free(tables->functions);
	free(tables->keys);
	free(tables->lines);
	free(tables->frames);
	free(tables->places);
}
