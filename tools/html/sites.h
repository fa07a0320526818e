/*
 * sites.h - what was alive at moments of the run, by site, for the HTML report: a click on the curve of the heap, and
 * the growth of a stretch.
 *
 * Used by heaps.c, while analysis/live.h reads a process. A site is the innermost Python function of a stack, at its
 * line where that is recorded; where none runs, the outermost C function. Its blocks of different kinds
 * (analysis/memory.h) are different rows. The moments are HTML_MOMENTS at equal distances, the peak, and the end of the
 * program.
 *
 * The page has the sites of a process that ever hold the most, at most HTML_SITES_MAX, and the sum of the others.
 * Memory: eight bytes for each site and moment.
 */
#ifndef EVPROF_TOOLS_HTML_SITES_H
#define EVPROF_TOOLS_HTML_SITES_H

#include <stdint.h>

#include "analysis/live.h"
#include "html/pack.h"

#define HTML_MOMENTS 200
#define HTML_SITES_MAX 400	  /* of a process */
#define HTML_SITES_VALUES 1000000 /* of all processes; beyond that a process has HTML_SITES_FEW sites */
#define HTML_SITES_FEW 20

/* Columns: moments (ns), sites (function, kind), values by site. */
enum { HTML_SITE_MOMENTS, HTML_SITE_FUNCTIONS, HTML_SITE_KINDS, HTML_SITE_VALUES, HTML_SITE_COLUMNS };

struct html_site {
	uint32_t function; /* number of the stacks' functions + 1; 0: no function runs */
	uint32_t kind;	   /* enum memory_kind */
	uint64_t most;	   /* bytes at any moment */
};

/* The sites of one process. All zeros but what the owner sets: empty. */
struct html_sites {
	/* Of the owner: the shown time range, and what is read. */
	int64_t from_ns, to_ns;
	const struct stack_functions *functions;
	const struct call_walk *walk;

	const struct live *live;

	struct html_site *at;
	uint32_t count;
	size_t allocated;
	struct u64_map numbers; /* function << 32 | kind: number + 1 */
	/* By stack: its site's number, its function, and its kind; of the stacks so far. */
	uint32_t *of_stack, *innermost;
	uint8_t *kinds;
	uint32_t stack_count, of_stack_allocated, innermost_allocated, kinds_allocated;
	/* By moment: its time, and the bytes of the sites so far. */
	int64_t times[HTML_MOMENTS + 3];
	uint64_t *bytes[HTML_MOMENTS + 3];
	uint32_t counts[HTML_MOMENTS + 3];
	uint32_t moments;
	uint32_t next; /* number of the next moment at equal distances */
};

/* Sets the moments of live, which the process is read with next. */
void html_sites_begin(struct html_sites *sites, struct live *live);
/* Adds the last moment, the peak and the end. Returns 0 or -ENOMEM. */
int html_sites_end(struct html_sites *sites, int64_t end_ns);
/*
 * Appends the moments and the sites to columns. Functions are numbers of the stacks + 1. Times and values are
 * differences from the last moment, signed. Sites beyond sites_max are summed up by kind, as functions of number 0 in
 * kinds from MEMORY_KINDS on; *left_out is how many they are. Returns the number of rows, or -ENOMEM.
 */
int64_t html_sites_columns(struct html_sites *sites, uint32_t sites_max, struct html_column *columns,
			   uint32_t *left_out);
void html_sites_done(struct html_sites *sites);

#endif
