/*
 * memory.h - memory by stack and by function, of all processes, for the flame graph and the table of the HTML
 * report: what was allocated, what is alive at the end, and what was at the peak.
 *
 * Used by export_html.c, which gives it one process after the other as analysis/live.h has read it. As in the flame
 * graph of time, each process is a root and its threads are one below it. The sums by function are exact; the stacks
 * are bounded by HTML_STACKS_MAX (tree.h), and what is beyond that counts for its caller.
 */
#ifndef EVPROF_TOOLS_HTML_MEMORY_H
#define EVPROF_TOOLS_HTML_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/live.h"
#include "html/pack.h"
#include "html/tree.h"

/* Of a function: by itself, and with what it called, recursion counted once. */
struct html_memory_function {
	struct live_weights own;
	struct live_weights total;
};

/* All zeros: nothing was added. */
struct html_memory {
	struct html_tree tree; /* of functions as analysis/live.h numbers them; calls and times are not counted */
	struct live_weights *weights; /* by node: of just that stack */
	uint32_t weight_count;
	struct html_memory_function *functions; /* by number */
	uint32_t function_count;
};

/* Adds a process: the report's number of it, and its stacks of functions. Returns 0 or -ENOMEM. */
int html_memory_add(struct html_memory *memory, uint32_t process, const struct live *live,
		    const struct stack_functions *functions);

enum { HTML_MEMORY_TREE_COLUMNS = 8, HTML_MEMORY_FUNCTION_COLUMNS = 13 };

/* The share of all that html_memory_tree() tells as 1. */
#define HTML_MEMORY_WHOLE (UINT64_C(1) << 32)

/*
 * The stacks as columns: parent (distance, 0 for roots), function (of a root its process), and with what they called
 * blocks and bytes allocated, alive at the end, and at the peak. numbers[f] is what the page calls function f. Of more
 * than that many nodes, those with the least share of all blocks and bytes are left out with what is beneath them;
 * *least is the share that a node has in one of them to be in, 0 if all are. Afterwards the weights are with what was
 * called. Returns 0 or -ENOMEM.
 */
int html_memory_tree(struct html_memory *memory, const uint32_t *numbers, uint32_t nodes_max,
		     struct html_column *columns, uint64_t *least);
/* The functions that have any: number, and for own and total the six of above. */
void html_memory_functions(const struct html_memory *memory, const uint32_t *numbers, struct html_column *columns);
void html_memory_done(struct html_memory *memory);

#endif
