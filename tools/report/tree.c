/*
 * tree.c - see tree.h. A recursion may be deep, so the nodes are visited without recursion, and a line whose
 * indentation would take more than a third of the width has its depth in front instead.
 */
#include "report/tree.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "report/print.h"
#include "report/readable.h"

#define NUMBERS_COLUMNS 37 /* total, per cent, own, calls, and two blanks */
#define INDENT 2
#define INDENT_MAX 200u /* columns, where lines are not cut: or the text would grow with the square of the depth */
#define UNCUT 100000u

struct printing {
	const struct report_tree *report;
	struct readable readable;
	uint64_t all_ns;
	uint64_t least_ns; /* that a shown node has */
	uint64_t left_out; /* nodes, without those below them */
};

static const char *percent_text(const struct printing *printing, uint64_t ns, char out[TERMINAL_NUMBER_BYTES])
{
	double percent = printing->all_ns ? 100.0 * (double)ns / (double)printing->all_ns : 0;

	snprintf(out, TERMINAL_NUMBER_BYTES, percent >= 99.95 ? "%.0f %%" : "%.1f %%", percent);
	return out;
}

/* Returns the columns that are left for the name. */
static unsigned put_indent(const struct printing *printing, uint32_t depth)
{
	const struct report_tree *report = printing->report;
	unsigned width = report->terminal.columns, most = INDENT_MAX;
	unsigned rest = !width ? UNCUT : width > NUMBERS_COLUMNS + 20 ? width - NUMBERS_COLUMNS : 20;
	char text[16] = "";

	if (width)
		most = rest / 3;
	if (depth * INDENT <= most)
		most = depth * INDENT;
	else
		snprintf(text, sizeof(text), "(%u) ", depth);
	terminal_put_spaces(report->output, most);
	output_string(report->output, text);
	return rest - most - (unsigned)strlen(text);
}

static void put_owner(struct printing *printing, uint32_t function, unsigned columns)
{
	const struct report_tree *report = printing->report;

	readable_set(&printing->readable, text_of(report->tree->owners[function & ~CALL_TREE_OWNER]), text_of("~"), 0);
	terminal_style(&report->terminal, report->output, TERMINAL_BOLD);
	readable_put(&printing->readable, &report->terminal, report->output, columns, columns);
	terminal_style(&report->terminal, report->output, TERMINAL_PLAIN);
}

static void put_function(struct printing *printing, uint32_t number, unsigned columns)
{
	const struct report_tree *report = printing->report;
	const struct stack_function *function = &report->tree->functions.at[number];
	struct readable *readable = &printing->readable;

	readable_set(readable, text_of(function->name), function->file, function->line);
	readable_put(readable, &report->terminal, report->output,
		     readable_name_columns(readable->name_width, readable->place_width, columns), columns);
}

static void put_node(struct printing *printing, uint32_t node, uint32_t depth)
{
	const struct report_tree *report = printing->report;
	const struct stack_node *stack = &report->tree->stacks.at[node];
	bool hot = printing->all_ns && stack->own_ns >= printing->all_ns / 10;
	char total[TERMINAL_NUMBER_BYTES], percent[TERMINAL_NUMBER_BYTES], own[TERMINAL_NUMBER_BYTES];
	unsigned columns;

	terminal_time((double)report->tree->total_ns[node], total);
	percent_text(printing, report->tree->total_ns[node], percent);
	terminal_time((double)stack->own_ns, own);
	output_format(report->output, "%8s %7s ", total, percent);
	if (stack->function & CALL_TREE_OWNER) {
		terminal_put_spaces(report->output, 20);
		columns = put_indent(printing, depth);
		put_owner(printing, stack->function, columns);
	} else {
		if (hot)
			terminal_style(&report->terminal, report->output, TERMINAL_HOT);
		output_format(report->output, "%8s", own);
		if (hot)
			terminal_style(&report->terminal, report->output, TERMINAL_PLAIN);
		output_format(report->output, " %9" PRIu64 "  ", stack->calls);
		columns = put_indent(printing, depth);
		put_function(printing, stack->function, columns);
	}
	output_char(report->output, '\n');
}

/* The next node in the order of the text, without those below the node if it was left out; 0: the end. */
static uint32_t next_node(const struct call_tree *tree, uint32_t node, bool below, uint32_t *depth)
{
	if (below && tree->first[node]) {
		++*depth;
		return tree->first[node];
	}
	while (node && !tree->next[node]) {
		node = tree->stacks.at[node].parent;
		--*depth;
	}
	return node ? tree->next[node] : 0;
}

static void put_head(const struct printing *printing)
{
	const struct report_tree *report = printing->report;
	const struct call_tree *tree = report->tree;
	char text[TERMINAL_NUMBER_BYTES], sampling[TRACE_SAMPLING_BYTES];

	output_format(report->output, "%s%s in %u thread%s of %u process%s\n",
		      terminal_time((double)printing->all_ns, text), report_spent(report->clock), tree->threads,
		      tree->threads == 1 ? "" : "s", tree->processes, tree->processes == 1 ? "" : "es");
	if (report->sample_rate)
		output_format(report->output, "%s\n", trace_sampling_text(report->sample_rate, sampling));
	output_char(report->output, '\n');
	terminal_style(&report->terminal, report->output, TERMINAL_BOLD);
	output_format(report->output, "%8s %7s %8s %9s  function", "total", "%", "own",
		      report->sample_rate ? "samples" : "calls");
	terminal_style(&report->terminal, report->output, TERMINAL_PLAIN);
	output_char(report->output, '\n');
}

int report_tree_print(const struct report_tree *report)
{
	const struct call_tree *tree = report->tree;
	struct printing printing = {.report = report, .all_ns = tree->total_ns[0]};
	uint32_t depth = 0;
	int error = readable_init(&printing.readable);

	if (error)
		return error;
	printing.least_ns = (uint64_t)((double)printing.all_ns * report->min_percent / 100.0);
	put_head(&printing);
	for (uint32_t node = tree->first[0]; node;) {
		bool shown = tree->total_ns[node] >= printing.least_ns;

		if (shown)
			put_node(&printing, node, depth);
		printing.left_out += !shown;
		node = next_node(tree, node, shown, &depth);
	}
	if (printing.left_out == 1)
		output_format(report->output, "\n1 stack with less than %g %% is left out; --min-percent 0 shows it\n",
			      report->min_percent);
	else if (printing.left_out)
		output_format(report->output,
			      "\n%" PRIu64 " stacks with less than %g %% are left out; --min-percent 0 shows them\n",
			      printing.left_out, report->min_percent);
	readable_done(&printing.readable);
	return 0;
}
