/*
 * tree.h - the call tree of all processes, for the flame graph of the HTML report: each stack of functions once, with
 * its calls and time.
 *
 * Used by export_html.c, and by memory.c for the stacks of allocations. A few bytes for each different stack, up to
 * HTML_STACKS_MAX; further ones count for their caller.
 */
#ifndef EVPROF_TOOLS_HTML_TREE_H
#define EVPROF_TOOLS_HTML_TREE_H

#include <stdint.h>

#include "html/pack.h"
#include "util/u64_map.h"

#define HTML_STACKS_MAX (UINT32_C(1) << 22)

struct html_node {
	uint32_t parent;   /* node number; a root's is its own */
	uint32_t function; /* a root's is what html_tree_root() was given */
	uint32_t latest;   /* the child found last; 0: none yet */
	uint64_t calls;
	uint64_t total_ns;
};

/* invariant: a parent has a smaller number than its children, and not less time */
struct html_tree {
	struct html_node *nodes;
	uint32_t count;
	size_t allocated;
	struct u64_map numbers; /* parent + 1 << 32 | function: number + 1 */
	uint64_t too_many;	/* calls of stacks beyond HTML_STACKS_MAX */
	bool failed;		/* memory ran out */
};

/* Adds a root, or the child of a node for a function. Without room it returns the parent. */
uint32_t html_tree_root(struct html_tree *tree, uint32_t function);
uint32_t html_tree_new_child(struct html_tree *tree, uint32_t parent, uint32_t function);

static inline uint64_t html_tree_pair(uint32_t parent, uint32_t function)
{
	return ((uint64_t)parent + 1) << 32 | function;
}

static inline uint32_t html_tree_child(struct html_tree *tree, uint32_t parent, uint32_t function)
{
	uint32_t latest = tree->nodes[parent].latest;
	uint64_t number;

	/* Most calls have the same function as their caller's call before. */
	if (latest && tree->nodes[latest].function == function)
		return latest;
	number = u64_map_value(&tree->numbers, html_tree_pair(parent, function));
	if (!number)
		return html_tree_new_child(tree, parent, function);
	return tree->nodes[parent].latest = (uint32_t)(number - 1);
}

/* Adds an ended call of node, a child of parent. counted: false for WIRE_FRAME, which is not a new call. */
void html_tree_add(struct html_tree *tree, uint32_t node, uint32_t parent, uint64_t duration_ns, bool counted);

/* The size of a node: not above that of its parent. */
typedef uint64_t html_node_size(const void *owner, uint32_t node);

#define HTML_NODE_LEFT_OUT UINT32_MAX

/*
 * Numbers the nodes that are written, at most nodes_max and the roots; HTML_NODE_LEFT_OUT for those with the least
 * size. *least is a size, a power of two, that all others have; 0 if all are written. The caller frees the numbers;
 * NULL: no memory.
 */
uint32_t *html_tree_numbers(const struct html_tree *tree, html_node_size *size_of, const void *owner,
			    uint32_t nodes_max, uint64_t *least);

enum { HTML_TREE_COLUMNS = 4 };

/*
 * Writes the tree as columns: parent (difference, 0 for roots), function, calls, total. If there are more than
 * nodes_max nodes, those with the least time are left out, with everything below them. Returns the shortest time of a
 * written node; 0 if all are written.
 */
uint64_t html_tree_columns(const struct html_tree *tree, uint32_t nodes_max, struct html_column *columns);
void html_tree_done(struct html_tree *tree);

#endif
