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

uint64_t html_tree_least(const uint64_t with[HTML_TREE_BITS], uint32_t count, uint32_t nodes_max)
{
	uint64_t sum = 0;
	unsigned bits;

	if (count <= nodes_max)
		return 0;
	for (bits = HTML_TREE_BITS - 2; bits > 0 && sum + with[bits] <= nodes_max; bits--)
		sum += with[bits];
	return UINT64_C(1) << bits;
}

static uint64_t least_time(const struct html_tree *tree, uint32_t nodes_max)
{
	uint64_t with[HTML_TREE_BITS] = {0};

	for (uint32_t i = 0; i < tree->count; i++)
		with[html_tree_bits(tree->nodes[i].total_ns)]++;
	return html_tree_least(with, tree->count, nodes_max);
}

uint64_t html_tree_columns(const struct html_tree *tree, uint32_t nodes_max, struct html_column *columns)
{
	uint64_t least = least_time(tree, nodes_max);
	uint32_t *numbers = calloc((size_t)tree->count + 1, sizeof(*numbers));
	uint32_t i, count = 0;

	if (!numbers) {
		columns[0].failed = true;
		return 0;
	}
	for (i = 0; i < tree->count; i++) {
		const struct html_node *node = &tree->nodes[i];

		if (node->total_ns < least && node->parent != i)
			continue;
		numbers[i] = count++;
		html_column_put(&columns[0], node->parent == i ? 0 : numbers[i] - numbers[node->parent]);
		html_column_put(&columns[1], node->function);
		html_column_put(&columns[2], node->calls);
		html_column_put(&columns[3], node->total_ns);
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
