/*
 * functions.c - the functions of the HTML report. See functions.h.
 */
#include "html/functions.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "trace/labels.h"

/* The kind of a function, as script/report.js reads it. */
enum { FUNCTION_PYTHON, FUNCTION_BUILTIN, FUNCTION_LIBRARY };

int html_functions_process(struct html_functions *functions, const struct call_walk *walk)
{
	functions->numbers = calloc(walk_keys(walk), sizeof(*functions->numbers));
	return functions->numbers ? 0 : -ENOMEM;
}

void html_functions_process_end(struct html_functions *functions)
{
	free(functions->numbers);
	functions->numbers = NULL;
}

void html_functions_done(struct html_functions *functions)
{
	html_functions_process_end(functions);
	free(functions->at);
}

/* Makes room for the function of a label. NULL: no memory. */
static struct html_function *make_function(struct html_functions *functions, uint32_t label)
{
	uint32_t count = functions->profile->labels.allocated;

	if (label >= functions->count) {
		struct html_function *grown = realloc(functions->at, count * sizeof(*grown));

		if (!grown)
			return NULL;
		for (functions->at = grown; functions->count < count; functions->count++)
			grown[functions->count] = (struct html_function){.longest_ns = INT64_MIN};
	}
	return &functions->at[label];
}

static int name_function(struct html_functions *functions, struct html_function *function,
			 const struct wire_definition *definition, uint32_t key)
{
	char *name = label_display(definition, key & 1, key / 2);

	if (!name)
		return -ENOMEM;
	function->display = html_text_add(functions->texts, text_of(name)) + 1;
	free(name);
	return 0;
}

uint32_t html_function_add(struct html_functions *functions, struct call_walk *walk, uint32_t key)
{
	uint32_t label = labels_find(&functions->profile->labels, walk->process, key / 2, key & 1);
	struct html_function *function = label == UINT32_MAX ? NULL : make_function(functions, label);

	if (!function ||
	    (!function->display && name_function(functions, function, walk_definition(walk, key), key) < 0)) {
		walk_fail(walk, -ENOMEM);
		return 0;
	}
	functions->numbers[key] = label + 1;
	return label;
}

uint32_t *html_functions_of_stacks(struct html_functions *functions, const struct stack_functions *stacks)
{
	uint32_t *numbers = malloc(((size_t)stacks->count + 1) * sizeof(*numbers));

	for (uint32_t i = 0; numbers && i < stacks->count; i++) {
		struct label place = stacks->labels.at[i];
		struct html_function *function;
		uint32_t label;

		if (stacks->at[i].whole) /* a function at a line, which its label there marks */
			place.line = stacks->at[i].line;
		label = labels_add(&functions->profile->labels, &place);
		function = label == UINT32_MAX ? NULL : make_function(functions, label);

		if (!function) {
			free(numbers);
			return NULL;
		}
		if (!function->display)
			function->display = html_text_add(functions->texts, text_of(stacks->at[i].name)) + 1;
		function->library = stacks->at[i].library.length > 0;
		numbers[i] = label;
	}
	return numbers;
}

static unsigned kind_of(const struct label *label, const struct html_function *known)
{
	if (known && known->library)
		return FUNCTION_LIBRARY;
	return !label->line && text_same(label->file, text_of("~")) ? FUNCTION_BUILTIN : FUNCTION_PYTHON;
}

/* By function: the number of its file's name, one for each file. NULL if memory ran out. */
static uint32_t *add_files(struct html_functions *functions)
{
	const struct labels *labels = &functions->profile->labels;
	uint32_t *numbers = calloc((size_t)labels->count + 1, sizeof(*numbers)), first = functions->texts->count;
	struct labels files = {0};

	if (!numbers)
		return NULL;
	for (uint32_t i = 0; i < labels->count; i++) {
		uint32_t file = labels_add(&files, &(struct label){.file = labels->at[i].file});

		if (file == UINT32_MAX) {
			free(numbers);
			numbers = NULL;
			break;
		}
		if (first + file == functions->texts->count)
			html_text_add(functions->texts, labels->at[i].file);
		numbers[i] = first + file;
	}
	labels_done(&files);
	return numbers;
}

static uint64_t estimate_of(const struct profile_times *times)
{
	return !times->thinned ? 0 : times->unknown ? 1 : 2 + (uint64_t)sqrt(times->calls_width2);
}

int html_functions_columns(struct html_functions *functions, struct html_column *columns)
{
	const struct profile *profile = functions->profile;
	uint32_t *files = add_files(functions);

	if (!files)
		return -ENOMEM;
	for (uint32_t i = 0; i < profile->labels.count; i++) {
		const struct label *label = &profile->labels.at[i];
		const struct html_function *known = i < functions->count ? &functions->at[i] : NULL;
		struct profile_times times =
		    i < profile->times_allocated ? profile->times[i] : (struct profile_times){0};
		bool called = known && known->longest_ns >= 0;
		uint32_t name = html_text_add(functions->texts, label->name);
		unsigned kind = kind_of(label, known);
		const uint64_t row[HTML_FUNCTION_COLUMNS] = {known && known->display ? known->display - 1 : name,
							     name,
							     files[i],
							     kind == FUNCTION_PYTHON ? label->line : 0,
							     kind,
							     times.calls,
							     times.recursive,
							     times.own_ns,
							     times.total_ns,
							     called ? (uint64_t)known->longest_ns + 1 : 0,
							     called ? (uint64_t)known->start_ns : 0,
							     called ? known->thread : 0,
							     estimate_of(&times)};

		html_row_put(columns, row, HTML_FUNCTION_COLUMNS);
	}
	free(files);
	return 0;
}
