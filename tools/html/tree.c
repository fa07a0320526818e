/*
 * tree.c - stacks as a tree; see tree.h.
 */
#include "html/tree.h"

#include <stdlib.h>
#include <string.h>

#include "util/grow.h"

static uint32_t new_node(struct html_tree *tree, uint32_t parent, uint32_t function)
{
	if (grow_by_one(&tree->nodes, &tree->allocated, tree->count, sizeof(*tree->nodes))) {
		tree->failed = true;
		return parent;
	}
	tree->nodes[tree->count] = (struct html_node){.parent = parent, .function = function};
	return tree->count++;
}

uint32_t html_tree_root(struct html_tree *tree, uint32_t function)
{
	return new_node(tree, tree->count, function);
}

uint32_t html_tree_new_child(struct html_tree *tree, uint32_t parent, uint32_t function)
{
	uint64_t *number;

	if (tree->failed)
		return parent;
	number = u64_map_make(&tree->numbers, html_tree_pair(parent, function));
	if (!number) {
		tree->failed = true;
		return parent;
	}
	if (!*number && tree->count < HTML_STACKS_MAX)
		*number = (uint64_t)new_node(tree, parent, function) + 1;
	return *number ? (uint32_t)(*number - 1) : parent;
}

void html_tree_add(struct html_tree *tree, uint32_t node, uint32_t parent, uint64_t duration_ns, bool counted)
{
	if (tree->failed)
		return;
	if (node == parent) {
		tree->too_many += counted;
		return;
	}
	tree->nodes[node].calls += counted;
	tree->nodes[node].total_ns += duration_ns;
	if (tree->nodes[parent].parent == parent)
		tree->nodes[parent].total_ns += duration_ns;
}

/* The power of two of a size: 0 for 0, k from 2^(k-1) on. */
static unsigned bits_of(uint64_t size)
{
	return size ? 64 - (unsigned)__builtin_clzll(size) : 0;
}

uint32_t *html_tree_numbers(const struct html_tree *tree, html_node_size *size_of, const void *owner,
			    uint32_t nodes_max, uint64_t *least)
{
	uint32_t *numbers = calloc((size_t)tree->count + 1, sizeof(*numbers)), count = 0;
	uint64_t with[65] = {0}, sum = 0; /* nodes by power of two */
	unsigned bits;

	*least = 0;
	for (uint32_t i = 0; i < tree->count; i++)
		with[bits_of(size_of(owner, i))]++;
	for (bits = 63; bits > 0 && sum + with[bits] <= nodes_max; bits--)
		sum += with[bits];
	if (tree->count > nodes_max)
		*least = UINT64_C(1) << bits;
	for (uint32_t i = 0; numbers && i < tree->count; i++) {
		bool shown = tree->nodes[i].parent == i || size_of(owner, i) >= *least;

		numbers[i] = shown ? count++ : HTML_NODE_LEFT_OUT;
	}
	return numbers;
}

static uint64_t time_of(const void *owner, uint32_t node)
{
	const struct html_tree *tree = owner;

	return tree->nodes[node].total_ns;
}

uint64_t html_tree_columns(const struct html_tree *tree, uint32_t nodes_max, struct html_column *columns)
{
	uint64_t least;
	uint32_t *numbers = html_tree_numbers(tree, time_of, tree, nodes_max, &least);

	columns[0].failed |= !numbers;
	for (uint32_t i = 0; numbers && i < tree->count; i++) {
		const struct html_node *node = &tree->nodes[i];

		if (numbers[i] != HTML_NODE_LEFT_OUT)
			html_row_put(columns,
				     (uint64_t[HTML_TREE_COLUMNS]){numbers[i] - numbers[node->parent], node->function,
								   node->calls, node->total_ns},
				     HTML_TREE_COLUMNS);
	}
	free(numbers);
	return least;
}

void html_tree_done(struct html_tree *tree)
{
	free(tree->nodes);
	u64_map_done(&tree->numbers);
	memset(tree, 0, sizeof(*tree));
}
