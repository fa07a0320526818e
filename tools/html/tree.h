/*
 * tree.h - the tree of calls of all processes, for the flame graph of the HTML report: each stack of functions
 * once, with the calls and the time spent in it.
 *
 * Used by export_html.c, and by memory.c for the stacks of memory. A few bytes for each different stack, up to
 * HTML_STACKS_MAX of them; what is called beyond that counts for its caller.
 */
#ifndef EVPROF_TOOLS_HTML_TREE_H
#define EVPROF_TOOLS_HTML_TREE_H

#include <stdint.h>

#include "html/pack.h"
#include "util/u64_map.h"

#define HTML_STACKS_MAX (UINT32_C(1) << 22)

struct html_node {
	uint32_t parent;   /* number of a node; that of a root is its own */
	uint32_t function; /* of a root: whatever it was made with */
	uint32_t latest;   /* the child that was looked for last; 0: none yet */
	uint64_t calls;
	uint64_t total_ns;
};

/* invariant: a parent has a smaller number than its children, and not less time */
struct html_tree {
	struct html_node *nodes;
	uint32_t count;
	uint32_t allocated;
	struct u64_map numbers; /* parent + 1 << 32 | function: number + 1 */
	uint64_t too_many;	/* calls of stacks that found no place */
	bool failed;		/* memory ran out */
};

/* A new root, or the child of a node for a function. Where there is no place, the parent. */
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

	/* Most calls are the same as the one before of their caller. */
	if (latest && tree->nodes[latest].function == function)
		return latest;
	number = u64_map_value(&tree->numbers, html_tree_pair(parent, function));
	if (!number)
		return html_tree_new_child(tree, parent, function);
	return tree->nodes[parent].latest = (uint32_t)(number - 1);
}

/* The call of that node, child of that parent, has ended. counted: it is a call, not one that was running already. */
void html_tree_add(struct html_tree *tree, uint32_t node, uint32_t parent, uint64_t duration_ns, bool counted);

/* Of which power of two a size is: 0 for 0, k from 2^(k-1) on. */
#define HTML_TREE_BITS 65

static inline unsigned html_tree_bits(uint64_t size)
{
	return size ? 64 - (unsigned)__builtin_clzll(size) : 0;
}

/*
 * with: how many nodes there are of each power of two. The least size, a power of two, such that no more nodes than
 * nodes_max have as much; 0 where there is room for all.
 */
uint64_t html_tree_least(const uint64_t with[HTML_TREE_BITS], uint32_t count, uint32_t nodes_max);

enum { HTML_TREE_COLUMNS = 4 };

/*
 * The tree as columns: parent (distance, 0 for roots), function, calls, total. Of more than that many nodes, those with
 * the least time are left out with what is beneath them. Returns the shortest time of a node that is in, 0 if all are.
 */
uint64_t html_tree_columns(const struct html_tree *tree, uint32_t nodes_max, struct html_column *columns);
void html_tree_done(struct html_tree *tree);

#endif
