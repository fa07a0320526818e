/*
 * call_tree.c - see call_tree.h. Threads are counted one after the other (stack_counts.h) and added to the tree.
 */
#include "analysis/call_tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/stack_counts.h"
#include "util/grow.h"

/* --- reading --- */

/* Adds a node for a process or thread; takes the name. 0: no memory. */
static uint32_t add_owner(struct call_tree *tree, uint32_t parent, char *name)
{
	if (!name || grow_by_one(&tree->owners, &tree->owners_allocated, tree->owner_count, sizeof(*tree->owners))) {
		free(name);
		return 0;
	}
	tree->owners[tree->owner_count] = name;
	if (!stacks_reserve(&tree->stacks))
		return 0;
	return stacks_find(&tree->stacks, parent, CALL_TREE_OWNER | tree->owner_count++);
}

static int take_process(void *owner, struct call_walk *walk)
{
	(void)walk;
	((struct call_tree *)owner)->process = 0;
	return 0;
}

static int add_stacks(struct call_tree *tree, uint32_t thread, const struct stacks *stacks)
{
	uint32_t *node_of = malloc(stacks->count * sizeof(*node_of));
	int error = node_of ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < stacks->count && !error; i++) {
		const struct stack_node *from = &stacks->at[i];
		uint32_t node = i ? stacks_find(&tree->stacks, node_of[from->parent], from->function) : thread;

		node_of[i] = node;
		if (!node) {
			error = -ENOMEM;
			break;
		}
		tree->stacks.at[node].calls += from->calls;
		tree->stacks.at[node].own_ns += i ? from->own_ns : 0;
	}
	free(node_of);
	return error;
}

static int take_thread(void *owner, struct call_walk *walk, struct stacks *stacks)
{
	struct call_tree *tree = owner;
	uint32_t thread;

	if (stacks->count < 2)
		return 0;
	if (!tree->process) {
		tree->process = add_owner(tree, 0, stack_process_name(walk->process));
		tree->processes++;
	}
	thread = tree->process ? add_owner(tree, tree->process, stack_thread_name(walk->thread)) : 0;
	tree->threads++;
	return thread ? add_stacks(tree, thread, stacks) : -ENOMEM;
}

/* --- order --- */

/* Children of one parent are adjacent, those with the most time first. */
static int by_time(const void *left, const void *right, void *owner)
{
	const struct call_tree *tree = owner;
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

	return compare_u64(tree->stacks.at[a].parent, tree->stacks.at[b].parent)
		   ?: compare_u64(tree->total_ns[b], tree->total_ns[a]) ?: compare_u64(a, b);
}

static int order_nodes(struct call_tree *tree)
{
	uint32_t count = tree->stacks.count, *sorted = malloc(((size_t)count + 1) * sizeof(*sorted));

	tree->total_ns = calloc((size_t)count + 1, sizeof(*tree->total_ns));
	tree->first = calloc((size_t)count + 1, sizeof(*tree->first));
	tree->next = calloc((size_t)count + 1, sizeof(*tree->next));
	if (!sorted || !tree->total_ns || !tree->first || !tree->next) {
		free(sorted);
		return -ENOMEM;
	}
	for (uint32_t i = count; i-- > 0;) { /* parents precede their children */
		tree->total_ns[i] += tree->stacks.at[i].own_ns;
		if (i)
			tree->total_ns[tree->stacks.at[i].parent] += tree->total_ns[i];
		sorted[i] = i;
	}
	if (count > 1)
		qsort_r(sorted + 1, count - 1, sizeof(*sorted), by_time, tree);
	for (uint32_t i = count; i-- > 1;) {
		uint32_t above = tree->stacks.at[sorted[i]].parent;

		tree->next[sorted[i]] = tree->first[above];
		tree->first[above] = sorted[i];
	}
	free(sorted);
	return 0;
}

int call_tree_read(struct call_tree *tree, struct trace *trace, const struct filter *filter, struct progress *progress)
{
	static const struct stacks_visitor visitor = {.process = take_process, .thread = take_thread};
	int error = stacks_reserve(&tree->stacks) ? 0 : -ENOMEM;

	if (!error)
		error = stacks_visit(trace, filter, progress, &tree->functions, &visitor, tree);
	return error ? error : order_nodes(tree);
}

void call_tree_done(struct call_tree *tree)
{
	stacks_done(&tree->stacks);
	stack_functions_done(&tree->functions);
	for (uint32_t i = 0; i < tree->owner_count; i++)
		free(tree->owners[i]);
	free(tree->owners);
	free(tree->total_ns);
	free(tree->first);
	free(tree->next);
	memset(tree, 0, sizeof(*tree));
}
