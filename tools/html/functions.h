/*
 * functions.h - the functions of the HTML report: their numbers in the page, their names, and their longest calls.
 *
 * Used by export_html.c. The number of a function is that of its label in the profile, so the table's times are found
 * by it. Functions that only allocated are added after the calls. Memory: a few words a function, and four bytes for
 * each function of the current process.
 */
#ifndef EVPROF_TOOLS_HTML_FUNCTIONS_H
#define EVPROF_TOOLS_HTML_FUNCTIONS_H

#include "analysis/profile.h"
#include "analysis/stacks.h"
#include "html/calls.h"
#include "html/pack.h"
#include "replay/call_walk.h"

/* The data of a function except its times. */
struct html_function {
	uint32_t display; /* number of its display name + 1; 0: none yet */
	bool library;	  /* from a native stack: its file is the library */
	/* Of its longest call; INT64_MIN: no call. */
	int64_t longest_ns;
	int64_t start_ns;
	uint32_t thread;
};

/* All zeros but profile and texts, which it does not own: empty. */
struct html_functions {
	struct profile *profile;
	struct html_texts *texts;
	struct html_function *at; /* by label */
	uint32_t count;
	uint32_t *numbers; /* by key of the process: label + 1 */
};

/* A process begins, and ends. Returns 0 or -ENOMEM. */
int html_functions_process(struct html_functions *functions, const struct call_walk *walk);
void html_functions_process_end(struct html_functions *functions);
void html_functions_done(struct html_functions *functions);

/* The slow path of html_function_of(). */
uint32_t html_function_add(struct html_functions *functions, struct call_walk *walk, uint32_t key);

/* The number of a function of the current process. Without memory it fails the walk. */
static inline uint32_t html_function_of(struct html_functions *functions, struct call_walk *walk, uint32_t key)
{
	uint32_t number = functions->numbers[key];

	return __builtin_expect(number != 0, 1) ? number - 1 : html_function_add(functions, walk, key);
}

static inline void html_function_called(struct html_functions *functions, const struct html_call *call, uint32_t thread)
{
	struct html_function *function = call->function < functions->count ? &functions->at[call->function] : NULL;

	if (!function || call->end_ns - call->start_ns <= function->longest_ns)
		return;
	function->longest_ns = call->end_ns - call->start_ns;
	function->start_ns = call->start_ns;
	function->thread = thread;
}

/* Adds the functions of stacks. Returns their numbers, which the caller frees; NULL: no memory. */
uint32_t *html_functions_of_stacks(struct html_functions *functions, const struct stack_functions *stacks);

enum { HTML_FUNCTION_COLUMNS = 13 };

/*
 * Writes the functions as columns: display name, name, file (numbers of texts), line, kind, calls, recursive calls, own
 * and total ns, and of the longest call ns + 1 (0: none), start and thread; whether calls and times are estimates: 0
 * no, 1 without an interval, else 2 + half of that of the calls. Returns 0 or -ENOMEM.
 */
int html_functions_columns(struct html_functions *functions, struct html_column *columns);

#endif
