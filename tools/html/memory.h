/*
 * memory.h - memory by stack and by function, over all processes, for the flame graph and the table of the HTML report:
 * all allocations, the live blocks at the end, and those at the peak.
 *
 * Used by export_html.c, which adds the processes one by one as analysis/live.h has read them. As in the flame graph of
 * time, each process is a root, and its threads are one below it. The sums by function are exact. The number of stacks
 * is limited to HTML_STACKS_MAX (tree.h); deeper ones count for their caller.
 */
#ifndef EVPROF_TOOLS_HTML_MEMORY_H
#define EVPROF_TOOLS_HTML_MEMORY_H

#include <stdint.h>

#include "analysis/live.h"
#include "html/pack.h"
#include "html/tree.h"

/* Of a function: own, and with callees, recursion counted once. */
struct html_memory_function {
	struct live_weights own;
	struct live_weights total;
};

/* All zeros: empty. */
struct html_memory {
	struct html_tree tree;	      /* functions are numbers of analysis/live.h; calls and times are not counted */
	struct live_weights *weights; /* by node: of exactly this stack */
	uint32_t weight_count;
	struct html_memory_function *functions; /* by function number */
	uint32_t function_count;
};

/* Adds a process, with its number in the report and its stacks. Returns 0 or -ENOMEM. */
int html_memory_add(struct html_memory *memory, uint32_t process, const struct live *live,
		    const struct stack_functions *functions);

enum { HTML_MEMORY_TREE_COLUMNS = 10, HTML_MEMORY_FUNCTION_COLUMNS = 17 };

/* A share of 1 in the result of html_memory_tree(). */
#define HTML_MEMORY_WHOLE (UINT64_C(1) << 32)

/*
 * Writes the stacks as columns: parent (difference, 0 for roots), function (for a root its process), and including
 * callees the blocks and bytes allocated, live at the end, at the peak, and temporary (no bytes). numbers[f] is the
 * page's number of function f. If there are more than nodes_max nodes, those with the smallest share of all blocks and
 * bytes are left out, with everything below them. *least is the share that a written node has in at least one value; 0
 * if all are written. Afterwards the weights include callees. Returns 0 or -ENOMEM.
 */
int html_memory_tree(struct html_memory *memory, const uint32_t *numbers, uint32_t nodes_max,
		     struct html_column *columns, uint64_t *least);
/* Writes the functions with memory as columns: number, and the eight values above, own and total. */
void html_memory_functions(const struct html_memory *memory, const uint32_t *numbers, struct html_column *columns);
void html_memory_done(struct html_memory *memory);

#endif
