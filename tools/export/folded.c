/*
 * folded.c - Brendan Gregg's folded stacks, for flamegraph.pl, speedscope and others that read them.
 *
 *   app.py (4711);MainThread (4711);<module> (app.py:1);work (app.py:7);builtins.len 1234
 *
 * One line for each stack that has own time: process, thread, frames from the outermost to the innermost, and that time
 * in ns, a whole number as flamegraph.pl requires; or the weight of --weight. A file is named by the shortest end of
 * its path that no other has: pkg/__init__.py. Functions of native frames have their library after the name. In a name
 * ';' becomes ':'; a line break or any other control character becomes a space. A thread is written when it ends.
 * Memory is that of analysis/stacks.h, and 24 bytes for each different stack.
 *
 * All stacks deeper than --max-stack with the same frames up to that depth are one line, which has their number as its
 * last frame. Without this, a recursion of depth n would be n lines of n frames. So the length of a line is bounded,
 * and the sum of all lines is the same.
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

enum weight { WEIGHT_TIME, WEIGHT_BYTES, WEIGHT_ALLOCATIONS, WEIGHT_LIVE, WEIGHT_PEAK, WEIGHT_TEMPORARY };

static const char *const weight_names[] = {"time", "bytes", "allocations", "live", "peak", "temporary"};

#define MAX_STACK 1024 /* slightly above Python's own recursion limit */

/* The line of a stack. */
struct folded_stack {
	uint64_t deeper_weight; /* weight of the deeper stacks that share this line */
	uint32_t deeper;	/* number of them with a weight */
	uint32_t depth;
	uint32_t line; /* the stack with the line: this one, or its parent at the maximum depth */
};

struct folded {
	struct output *output;
	struct stack_functions functions;
	struct file_names files;
	struct output frames; /* all functions as text for a line, one after the other */
	size_t *frame_ends;   /* by function: end of its text in frames */
	uint32_t frame_count;
	char *process; /* label of the process */
	enum weight weight;
	uint32_t max_stack;
};

static bool is_break(uint32_t code)
{
	return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x2028 || code == 0x2029;
}

/* Writes a frame: valid UTF-8 without the characters that the format reserves. */
static void put_name(struct output *output, struct text name)
{
	while (name.length) {
		uint32_t code;
		struct text valid = text_next_valid(&name, &code);

		if (code == ';')
			output_char(output, ':');
		else if (is_break(code))
			output_char(output, ' ');
		else
			output_put(output, valid.at, valid.length);
	}
}

/* file: its short name (file_names.h). */
static void put_function(struct output *output, const struct stack_function *function, struct text file)
{
	output_char(output, ';');
	put_name(output, text_of(function->name));
	if (function->library.length) {
		output_string(output, " (");
		put_name(output, function->library);
		output_char(output, ')');
	}
	if (function->is_c)
		return;
	output_string(output, " (");
	put_name(output, file);
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
	case WEIGHT_TEMPORARY:
		return node->live_blocks;
	default:
		return node->own_ns;
	}
}

/* Writes the line of a stack. deeper: the number of stacks that it stands for; 0: itself. */
static int put_stack(struct folded *folded, const char *thread, struct stacks *stacks, uint32_t number, uint64_t weight,
		     uint32_t deeper)
{
	uint32_t length, i;
	const uint32_t *path = stacks_path(stacks, number, &length);

	if (!path)
		return -ENOMEM;
	put_name(folded->output, text_of(folded->process));
	output_char(folded->output, ';');
	put_name(folded->output, text_of(thread));
	for (i = 0; i < length; i++) {
		uint32_t function = stacks->at[path[i]].function;
		size_t from = function ? folded->frame_ends[function - 1] : 0;

		output_put(folded->output, folded->frames.buffer + from, folded->frame_ends[function] - from);
	}
	if (deeper)
		output_format(folded->output, ";[%u deeper stack%s]", deeper, deeper > 1 ? "s" : "");
	output_char(folded->output, ' ');
	output_u64(folded->output, weight);
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

/* Makes the text of the functions that are new since the last thread. */
static int find_frames(struct folded *folded)
{
	uint32_t i = folded->frame_count, count = folded->functions.count;
	int error = grow_zeroed(&folded->frame_ends, &folded->frame_count, count, sizeof(*folded->frame_ends));

	for (; !error && i < count; i++) {
		const struct stack_function *function = &folded->functions.at[i];

		put_function(&folded->frames, function, file_names_short(&folded->files, function->file));
		folded->frame_ends[i] = folded->frames.used;
		error = folded->frames.error;
	}
	return error;
}

static int put_stacks(struct folded *folded, const char *thread, struct stacks *stacks)
{
	struct folded_stack *lines = calloc((size_t)stacks->count + 1, sizeof(*lines));
	int error = lines ? 0 : -ENOMEM;

	/* The empty stack holds allocations outside any known function. Parents precede their children. */
	for (uint32_t i = 0; !error && i < stacks->count; i++) {
		uint32_t parent = stacks->at[i].parent;
		uint64_t weight = weight_of(folded, &stacks->at[i]);

		lines[i].depth = i ? lines[parent].depth + 1 : 0;
		lines[i].line = lines[i].depth <= folded->max_stack ? i : lines[parent].line;
		if (weight && lines[i].line == i)
			error = put_stack(folded, thread, stacks, i, weight, 0);
		else if (weight) {
			lines[lines[i].line].deeper_weight += weight;
			lines[lines[i].line].deeper++;
		}
	}
	for (uint32_t i = 0; !error && i < stacks->count; i++)
		if (lines[i].deeper)
			error = put_stack(folded, thread, stacks, i, lines[i].deeper_weight, lines[i].deeper);
	free(lines);
	return error;
}

static int folded_thread(void *owner, struct call_walk *walk, struct stacks *stacks)
{
	struct folded *folded = owner;
	char *thread = stack_thread_name(walk->thread);
	int error = thread ? find_frames(folded) : -ENOMEM;

	if (!error)
		error = put_stacks(folded, thread, stacks);
	free(thread);
	return error;
}

static bool take_max_stack(struct export *export, const char *value)
{
	unsigned long number;
	char *end;

	errno = 0;
	number = strtoul(value, &end, 10);
	if (*value >= '0' && *value <= '9' && !*end && number && number < UINT32_MAX && !errno) {
		export->max_stack = (uint32_t)number;
		return true;
	}
	output_message("evprof export: --max-stack wants a number of frames such as 128, not \"%s\"", value);
	return false;
}

bool export_folded_weight(struct export *export, const char *name)
{
	for (unsigned i = 0; i < sizeof(weight_names) / sizeof(weight_names[0]); i++)
		if (strcmp(name, weight_names[i]) == 0) {
			export->weight = i;
			export->by_order = i >= WEIGHT_LIVE;
			return true;
		}
	return false;
}

static bool take_weight(struct export *export, const char *value)
{
	if (export_folded_weight(export, value))
		return true;
	fprintf(stderr, "evprof export: --weight wants time, bytes, allocations, live, peak or temporary, not \"%s\"\n",
		value);
	return false;
}

const struct export_option export_folded_options[] = {
    {"weight", "time|bytes|allocations|live|peak|temporary",
     "                            the weight of a stack: its time; its allocations, in bytes or blocks; its bytes\n"
     "                            still allocated at the end; its bytes at the peak; its temporary allocations.\n"
     "                            All but time have native functions on top where they were recorded\n"
     "                            (EVPROF_NATIVE)\n",
     take_weight, 0},
    {"max-stack", "N",
     "                            stacks of more than N functions (1024) are cut: one line for each stack of N, with\n"
     "                            their number as the last frame. Deep recursion would be N lines of N functions\n",
     take_max_stack, 0},
    {0}};

int export_folded(const struct export *export, struct output *output, struct progress *progress)
{
	struct folded folded = {
	    .output = output, .weight = export->weight, .max_stack = export->max_stack ? export->max_stack : MAX_STACK};
	struct stacks_visitor visitor = {.process = folded_process,
					 .thread = folded_thread,
					 .allocations = folded.weight != WEIGHT_TIME,
					 .quiet = export->quiet,
					 .only_live = folded.weight >= WEIGHT_LIVE};
	int error = output_open_memory(&folded.frames);

	if (error)
		return error;
	if (folded.weight == WEIGHT_TEMPORARY && trace_memory_interval(export->trace))
		output_message("evprof export: memory was sampled, which cannot show temporary allocations");
	if (visitor.only_live)
		visitor.live = folded.weight == WEIGHT_PEAK	   ? LIVE_PEAK
			       : folded.weight == WEIGHT_TEMPORARY ? LIVE_TEMPORARY
								   : LIVE_END;
	error = file_names_find(&folded.files, export->trace, export->filter);
	if (!error)
		error = stacks_visit(export->trace, export->filter, progress, &folded.functions, &visitor, &folded);
	stack_functions_done(&folded.functions);
	file_names_done(&folded.files);
	output_abandon(&folded.frames);
	free(folded.frame_ends);
	free(folded.process);
	return error;
}
