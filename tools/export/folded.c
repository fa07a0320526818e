/*
 * folded.c - Brendan Gregg's folded stacks, for flamegraph.pl, speedscope and others that read them.
 *
 *   app.py (4711);MainThread (4711);<module> (app.py:1);work (app.py:7);builtins.len 1234
 *
 * One line for each stack that has time of its own: process, thread, calls from the outermost to the innermost, and
 * that time in ns, a whole number as flamegraph.pl wants it; or what --weight asks for. A file is named by as much of
 * its path as tells it from the others: pkg/__init__.py. Native functions have their library behind them. ';' in a name
 * becomes ':', what would end a line a space, and so does any other control character. A thread is written when it
 * ends; see analysis/stacks.h for the memory.
 */
#include "export/export.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/file_names.h"
#include "analysis/stack_counts.h"
#include "analysis/stacks.h"
#include "util/grow.h"

enum weight { WEIGHT_TIME, WEIGHT_BYTES, WEIGHT_ALLOCATIONS, WEIGHT_LIVE, WEIGHT_PEAK };

static const char *const weight_names[] = {"time", "bytes", "allocations", "live", "peak"};

struct folded {
	struct output *output;
	struct stack_functions functions;
	struct file_names files;
	struct text *places; /* by function: the end of its file that no other has */
	uint32_t place_count;
	char *process; /* its name */
	enum weight weight;
};

static bool is_break(uint32_t code)
{
	return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x2028 || code == 0x2029;
}

/* A frame of the line: valid UTF-8 without what the format has a use for. */
static void put_name(struct output *output, struct text name)
{
	while (name.length) {
		const char *start = name.at;
		uint32_t code = text_next(&name);

		if (code == TEXT_INVALID || (code >= 0xd800 && code <= 0xdfff))
			output_string(output, "\xef\xbf\xbd");
		else if (code == ';')
			output_char(output, ':');
		else if (is_break(code))
			output_char(output, ' ');
		else
			output_put(output, start, (size_t)(name.at - start));
	}
}

static void put_function(struct folded *folded, uint32_t number)
{
	const struct stack_function *function = &folded->functions.at[number];
	struct output *output = folded->output;

	output_char(output, ';');
	put_name(output, text_of(function->name));
	if (function->library.length) {
		output_string(output, " (");
		put_name(output, function->library);
		output_char(output, ')');
	}
	if (function->native)
		return;
	output_string(output, " (");
	put_name(output, folded->places[number]);
	if (function->line)
		output_format(output, ":%u", function->line);
	output_char(output, ')');
}

static uint64_t weight_of(const struct folded *folded, const struct stack_node *node)
{
	switch (folded->weight) {
	case WEIGHT_BYTES:
		return node->bytes;
	case WEIGHT_ALLOCATIONS:
		return node->allocations;
	case WEIGHT_LIVE:
	case WEIGHT_PEAK:
		return node->live_bytes;
	default:
		return node->own_ns;
	}
}

static int put_stack(struct folded *folded, const char *thread, struct stacks *stacks, uint32_t number)
{
	uint32_t length, i;
	const uint32_t *path = stacks_path(stacks, number, &length);

	if (!path)
		return -ENOMEM;
	put_name(folded->output, text_of(folded->process));
	output_char(folded->output, ';');
	put_name(folded->output, text_of(thread));
	for (i = 0; i < length; i++)
		put_function(folded, stacks->at[path[i]].function);
	output_char(folded->output, ' ');
	output_u64(folded->output, weight_of(folded, &stacks->at[number]));
	output_char(folded->output, '\n');
	return folded->output->error;
}

static int folded_process(void *owner, struct call_walk *walk)
{
	struct folded *folded = owner;

	free(folded->process);
	folded->process = stack_process_name(walk->process);
	return folded->process ? 0 : -ENOMEM;
}

/* For the functions that are new since the last thread. */
static int find_places(struct folded *folded)
{
	uint32_t i = folded->place_count, count = folded->functions.count;
	int error = grow_zeroed(&folded->places, &folded->place_count, count, sizeof(*folded->places));

	for (; !error && i < count; i++)
		folded->places[i] = file_names_short(&folded->files, folded->functions.at[i].file);
	return error;
}

static int folded_thread(void *owner, struct call_walk *walk, struct stacks *stacks)
{
	struct folded *folded = owner;
	char *thread = stack_thread_name(walk->thread);
	int error = thread ? find_places(folded) : -ENOMEM;
	uint32_t i;

	/* Without any function: what was allocated where none is known. */
	for (i = 0; !error && i < stacks->count; i++)
		if (weight_of(folded, &stacks->at[i]))
			error = put_stack(folded, thread, stacks, i);
	free(thread);
	return error;
}

static bool take_weight(struct export *export, const char *value)
{
	const size_t count = sizeof(weight_names) / sizeof(weight_names[0]);
	enum weight *weight = export->options;

	if (!weight)
		weight = export->options = calloc(1, sizeof(*weight));
	for (size_t i = 0; weight && i < count; i++)
		if (strcmp(value, weight_names[i]) == 0) {
			*weight = (enum weight)i;
			export->by_order = *weight >= WEIGHT_LIVE;
			return true;
		}
	if (!weight) {
		output_say("evprof export: %s", strerror(ENOMEM));
		return false;
	}
	fprintf(stderr, "evprof export: --weight wants ");
	for (size_t i = 0; i < count; i++)
		fprintf(stderr, "%s%s", i == 0 ? "" : i + 1 < count ? ", " : " or ", weight_names[i]);
	fprintf(stderr, ", not \"%s\"\n", value);
	return false;
}

const struct export_option export_folded_options[] = {
    {"weight", "time|bytes|allocations|live|peak",
     "                            what is added up for each stack: its time; what it allocated, in bytes or blocks; "
     "the\n"
     "                            bytes of it that are not freed at the end; those at the moment when the process had\n"
     "                            most. All but time with native functions on top where they were recorded\n"
     "                            (EVPROF_NATIVE)\n",
     take_weight},
    {NULL, NULL, NULL, NULL},
};

void export_folded_free_options(struct export *export)
{
	free(export->options);
	export->options = NULL;
}

int export_folded(const struct export *export, struct output *output, struct progress *progress)
{
	const enum weight *weight = export->options;
	struct folded folded = {.output = output, .weight = weight ? *weight : WEIGHT_TIME};
	struct stacks_visitor visitor = {folded_process, folded_thread, .allocations = folded.weight != WEIGHT_TIME};
	int error;

	if (folded.weight >= WEIGHT_LIVE) {
		visitor.live = folded.weight == WEIGHT_PEAK ? LIVE_PEAK : LIVE_END;
		visitor.only_live = true;
	}
	error = file_names_find(&folded.files, export->trace, export->filter);
	if (!error)
		error = stacks_visit(export->trace, export->filter, progress, &folded.functions, &visitor, &folded);
	stack_functions_done(&folded.functions);
	file_names_done(&folded.files);
	free(folded.places);
	free(folded.process);
	return error;
}
