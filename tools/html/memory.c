/*
 * memory.c - sums of memory over stacks; see memory.h.
 */
#include "html/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/grow.h"

/* --- by function --- */

/* The stacks of a process as a tree for walks down and up. 0 is the empty stack, the root. */
struct walk {
	const struct stacks *stacks;
	const struct stack_functions *functions;
	uint32_t *child;   /* by stack: its first child */
	uint32_t *sibling; /* by stack: the next child of its parent */
	uint32_t *open;	   /* by function: number of its frames in the current stack */
	struct live_weights *total;
};

/*
 * The function that the page shows for one of a stack. Where calls were recorded, functions at a line are those that
 * were called; lines are those of sites.h.
 */
static uint32_t shown_function(const struct live *live, const struct stack_functions *functions, uint32_t function)
{
	while (live->knows_calls && functions->at[function].whole)
		function = functions->at[function].whole - 1;
	return function;
}

static int walk_begin(struct walk *walk, const struct live *live, const struct stack_functions *functions)
{
	uint32_t count = live->stacks.count, function_count = functions->count;

	*walk = (struct walk){.stacks = &live->stacks,
			      .functions = functions,
			      .child = calloc((size_t)count + 1, sizeof(*walk->child)),
			      .sibling = calloc((size_t)count + 1, sizeof(*walk->sibling)),
			      .open = calloc((size_t)function_count + 1, sizeof(*walk->open)),
			      .total = malloc(((size_t)count + 1) * sizeof(*walk->total))};
	if (!walk->child || !walk->sibling || !walk->open || !walk->total)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++)
		walk->total[i] = live_weigh(live, i);
	for (uint32_t i = count; i-- > 1;) {
		uint32_t parent = live->stacks.at[i].parent;

		walk->sibling[i] = walk->child[parent];
		walk->child[parent] = i;
		live_weights_add(&walk->total[parent], &walk->total[i]);
	}
	return 0;
}

static void walk_end(struct walk *walk)
{
	free(walk->child);
	free(walk->sibling);
	free(walk->open);
	free(walk->total);
}

/* Adds a stack to its function. Children of the empty stack are threads, not functions. */
static void enter_stack(struct html_memory *memory, struct walk *walk, const struct live *live, uint32_t number)
{
	const struct stack_node *node = &walk->stacks->at[number];
	struct live_weights own = live_weigh(live, number);
	uint32_t function;

	if (!node->parent)
		return;
	function = shown_function(live, walk->functions, node->function);
	live_weights_add(&memory->functions[function].own, &own);
	if (!walk->open[function]++)
		live_weights_add(&memory->functions[function].total, &walk->total[number]);
}

/* Walks from the empty stack down to the innermost functions, and back. */
static void walk_tree(struct html_memory *memory, struct walk *walk, const struct live *live)
{
	uint32_t number = walk->child[0];

	while (number) {
		enter_stack(memory, walk, live, number);
		if (walk->child[number]) {
			number = walk->child[number];
			continue;
		}
		for (;; number = walk->stacks->at[number].parent) {
			const struct stack_node *node = &walk->stacks->at[number];

			if (number && node->parent)
				walk->open[shown_function(live, walk->functions, node->function)]--;
			if (!number || walk->sibling[number])
				break;
		}
		number = walk->sibling[number];
	}
}

static int add_functions(struct html_memory *memory, const struct live *live, const struct stack_functions *functions)
{
	struct walk walk = {0};
	int error =
	    grow_zeroed(&memory->functions, &memory->function_count, functions->count, sizeof(*memory->functions));

	if (!error)
		error = walk_begin(&walk, live, functions);
	if (!error)
		walk_tree(memory, &walk, live);
	walk_end(&walk);
	return error;
}

/* --- by stack --- */

static struct live_weights *weights_of(struct html_memory *memory, uint32_t node)
{
	if (node >= memory->weight_count &&
	    grow_zeroed(&memory->weights, &memory->weight_count, memory->tree.allocated, sizeof(*memory->weights)) < 0)
		return NULL;
	return &memory->weights[node];
}

static int add_stacks(struct html_memory *memory, uint32_t process, const struct live *live,
		      const struct stack_functions *functions)
{
	const struct stacks *stacks = &live->stacks;
	uint32_t root = html_tree_root(&memory->tree, process);
	uint32_t *nodes = malloc(((size_t)stacks->count + 1) * sizeof(*nodes));
	int error = nodes ? 0 : -ENOMEM;

	for (uint32_t i = 1; i < stacks->count && !error; i++) {
		const struct stack_node *stack = &stacks->at[i];
		struct live_weights *into, weights = live_weigh(live, i);

		nodes[i] = stack->parent ? html_tree_child(&memory->tree, nodes[stack->parent],
							   shown_function(live, functions, stack->function))
					 : root;
		into = memory->tree.failed ? NULL : weights_of(memory, nodes[i]);
		if (into)
			live_weights_add(into, &weights);
		else
			error = -ENOMEM;
	}
	free(nodes);
	return error;
}

int html_memory_add(struct html_memory *memory, uint32_t process, const struct live *live,
		    const struct stack_functions *functions)
{
	int error = add_functions(memory, live, functions);

	return error ? error : add_stacks(memory, process, live, functions);
}

/* --- columns --- */

static void put_weights(struct html_column *columns, const struct live_weights *weights)
{
	const struct live_held temporary = {.blocks = weights->temporary};
	const struct live_held *held[] = {&weights->made, &weights->end, &weights->peak, &temporary};

	for (unsigned i = 0; i < 4; i++) {
		html_column_put(&columns[2 * i], held[i]->blocks);
		html_column_put(&columns[2 * i + 1], held[i]->bytes);
	}
}

static uint64_t scaled_share(uint64_t part, uint64_t all)
{
	return all ? (uint64_t)((unsigned __int128)part * HTML_MEMORY_WHOLE / all) : 0;
}

/* The largest share of a node in any value that the page shows. It never exceeds its parent's. */
static uint64_t share_of(const struct live_weights *weights, const struct live_weights *all)
{
	const uint64_t shares[] = {
	    scaled_share(weights->made.blocks, all->made.blocks), scaled_share(weights->made.bytes, all->made.bytes),
	    scaled_share(weights->end.bytes, all->end.bytes), scaled_share(weights->peak.bytes, all->peak.bytes),
	    scaled_share(weights->temporary, all->temporary)};
	uint64_t most = 0;

	for (unsigned i = 0; i < sizeof(shares) / sizeof(shares[0]); i++)
		most = shares[i] > most ? shares[i] : most;
	return most;
}

/* Adds each node's values to its parent. Returns the sum of the roots. */
static struct live_weights sum_up(struct html_memory *memory)
{
	struct live_weights all = {0};

	for (uint32_t i = memory->tree.count; i-- > 0;) {
		uint32_t parent = memory->tree.nodes[i].parent;

		live_weights_add(parent == i ? &all : &memory->weights[parent], &memory->weights[i]);
	}
	return all;
}

struct sizes {
	const struct html_memory *memory;
	struct live_weights all;
};

static uint64_t size_of(const void *owner, uint32_t node)
{
	const struct sizes *sizes = owner;

	return share_of(&sizes->memory->weights[node], &sizes->all);
}

int html_memory_tree(struct html_memory *memory, const uint32_t *numbers, uint32_t nodes_max,
		     struct html_column *columns, uint64_t *least)
{
	struct sizes sizes = {.memory = memory};
	uint32_t *places;

	/* A root without stacks may have no weights yet. */
	if (memory->tree.count && !weights_of(memory, memory->tree.count - 1))
		return -ENOMEM;
	sizes.all = sum_up(memory);
	places = html_tree_numbers(&memory->tree, size_of, &sizes, nodes_max, least);
	for (uint32_t i = 0; places && i < memory->tree.count; i++) {
		const struct html_node *node = &memory->tree.nodes[i];

		if (places[i] == HTML_NODE_LEFT_OUT)
			continue;
		html_column_put(&columns[0], places[i] - places[node->parent]);
		html_column_put(&columns[1], node->parent == i ? node->function : numbers[node->function]);
		put_weights(&columns[2], &memory->weights[i]);
	}
	if (!places)
		return -ENOMEM;
	free(places);
	return 0;
}

void html_memory_functions(const struct html_memory *memory, const uint32_t *numbers, struct html_column *columns)
{
	for (uint32_t i = 0; i < memory->function_count; i++) {
		const struct html_memory_function *function = &memory->functions[i];

		if (!function->total.made.blocks)
			continue;
		html_column_put(&columns[0], numbers[i]);
		put_weights(&columns[1], &function->own);
		put_weights(&columns[9], &function->total);
	}
}

void html_memory_done(struct html_memory *memory)
{
	html_tree_done(&memory->tree);
	free(memory->weights);
	free(memory->functions);
	memset(memory, 0, sizeof(*memory));
}
