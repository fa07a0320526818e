/*
 * heaps.h - the memory of the HTML report: the heap of each process over time, and its allocating stacks.
 *
 * Used by export_html.c, after the calls of a process. Each process with memory events is read once more in order of
 * time. Memory: the live blocks of one process, a curve, and the different stacks (memory.h).
 */
#ifndef EVPROF_TOOLS_HTML_HEAPS_H
#define EVPROF_TOOLS_HTML_HEAPS_H

#include "analysis/stacks.h"
#include "html/functions.h"
#include "html/memory.h"
#include "html/pack.h"
#include "html/sites.h"

/* --- a curve of any number of points in bounded memory --- */

#define HTML_CURVE_POINTS 32768

struct html_curve_point {
	uint64_t stretch; /* interval number: time >> shift */
	uint64_t low;
	uint64_t high;
	uint64_t last;
};

/* The lowest, the highest and the last value of each interval. Of too many intervals, each two are merged into one. */
struct html_curve {
	unsigned shift; /* an interval is 2^shift ns */
	uint32_t count;
	struct html_curve_point points[HTML_CURVE_POINTS];
};

/* Adds a point. Times must not decrease. */
void html_curve_add(struct html_curve *curve, int64_t ns, uint64_t value);

enum { HTML_CURVE_COLUMNS = 4 };

/* Writes columns: interval (difference to the last), low, high - low, last - low. */
void html_curve_columns(const struct html_curve *curve, struct html_column *columns);

/* --- heaps --- */

enum { HTML_HEAP_COLUMNS = 9, HTML_RESIDENT_COLUMNS = 3 };

#define HTML_RESIDENT_POINTS 16384 /* of a process; of more, the highest of each few */

/* All zeros but packer, blocks and progress, which it does not own, and the shown time range: empty. */
struct html_heaps {
	struct html_packer *packer;
	uint32_t *blocks; /* the next block number */
	struct progress *progress;
	int64_t from_ns, to_ns;
	/*
	 * process, shift, block and number of points of each curve, time of its peak, of the end + 1; block of its
	 * sites, number of their moments, of their rows
	 */
	struct html_column table[HTML_HEAP_COLUMNS];
	struct html_column resident[HTML_RESIDENT_COLUMNS]; /* process, time, bytes: the resident size of each */
	struct html_column curves[HTML_CURVE_COLUMNS]; /* of all processes: a block for each would be slow to write */
	uint32_t curves_block;			       /* block of curves; valid if there are any */
	struct html_column sites[HTML_SITE_COLUMNS];   /* of processes, likewise */
	uint32_t sites_block;
	uint64_t site_values; /* of all processes */
	uint64_t sites_left_out;
	struct html_curve *curve;	/* of the current process */
	int64_t curve_ns;		/* time of its latest point */
	struct stack_functions made_by; /* the functions in weights */
	struct html_memory weights;
	/* Block of the tree; the next ones have the functions, and the numbers of those of the sites; 0: no memory. */
	uint32_t weights_block;
	uint64_t weights_least; /* as html_memory_tree() reports it */
	bool missing;		/* events are missing */
};

/* Adds the process of the walk. Returns 0 or -errno of memory or writing. */
int html_heaps_process(struct html_heaps *heaps, const struct call_walk *walk, uint32_t process);
/*
 * Writes the stacks and the remaining curves, with at most nodes_max stacks. To be called before the functions are
 * written, because it adds those that only allocated. Returns 0 or -errno.
 */
int html_heaps_write(struct html_heaps *heaps, struct html_functions *functions, uint32_t nodes_max);
void html_heaps_done(struct html_heaps *heaps);

#endif
