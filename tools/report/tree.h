/*
 * tree.h - the text of evprof tree.
 *
 *     total      %      own    calls  function
 *    1.50 s  100 %                    app.py (4711)
 *    1.50 s  100 %                      MainThread (4711)
 *    1.48 s 98.7 %   3.2 ms        1      <module>  app.py:1
 */
#ifndef EVPROF_TOOLS_REPORT_TREE_H
#define EVPROF_TOOLS_REPORT_TREE_H

#include "analysis/call_tree.h"
#include "util/output.h"
#include "util/terminal.h"

struct report_tree {
	struct call_tree *tree;
	struct output *output;
	struct terminal terminal; /* its width counts; 0: lines are not cut */
	double min_percent;	  /* of the time of all; what has less is left out, with all below */
	enum cpu_clock clock;
	int sample_rate; /* 0: not sampled */
};

/* Returns 0 or -ENOMEM. */
int report_tree_print(const struct report_tree *report);

#endif
