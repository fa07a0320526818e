/*
 * heap_curve.h - curves of memory, for outputs with a time line: the bytes of the heap in a process over time, from its
 * memory events (blocks, and ranges of mmap() without a file), and its resident size, from the collector's looks at it.
 *
 * The size of the heap is known only if all threads of the process are read in order of time, so this is a separate
 * pass over the trace. Its memory grows with the number of live blocks. A process has a resident size if memory was
 * recorded, /proc of the collector shows it, and it lived for a moment: at most four a second, where its size changed.
 */
#ifndef EVPROF_TOOLS_ANALYSIS_HEAP_CURVE_H
#define EVPROF_TOOLS_ANALYSIS_HEAP_CURVE_H

#include <stdint.h>

#include "analysis/blocks.h"
#include "replay/filter.h"
#include "trace/reader.h"

/*
 * Calls sample() with a time (ns since the start of the trace) and the live bytes from that time until the next call.
 * Each step of every_ns has its lowest, highest and last value, if they differ; every_ns 0: each event. Blocks
 * allocated before recording count nothing. With a time range only its events are read, and the curve starts at 0. With
 * --thread the blocks that its thread has allocated count, until any thread frees them.
 * sources: a bit for each enum block_source that counts. Returns 0 or -ENOMEM.
 */
#define HEAP_NAMES                                                                                                     \
	{                                                                                                              \
		[BLOCK_PYTHON] = "Python heap", [BLOCK_MALLOC] = "native heap", [BLOCK_MAPPED] = "mapped memory"       \
	}
#define HEAP_PYTHON (1u << BLOCK_PYTHON)
#define HEAP_ALL ((1u << BLOCK_SOURCES) - 1)

int heap_curve(struct trace *trace, const struct trace_process *process, const struct filter *filter, unsigned sources,
	       int64_t every_ns, void (*sample)(void *owner, int64_t ns, uint64_t bytes), void *owner);

#define RSS_NAME "resident size"

struct rss_point {
	int64_t ns; /* since the start of the trace */
	uint64_t bytes;
	/* What they consist of. */
	uint64_t anonymous; /* heaps, stacks, and private copies of pages of files */
	uint64_t file;
	uint64_t shared; /* shared memory, evprof's rings among it */
};

/* Calls sample() for each in order of time; its bytes hold until the next one. A time range has those within it. */
void rss_curve(const struct trace *trace, const struct trace_process *process, const struct filter *filter,
	       void (*sample)(void *owner, const struct rss_point *point), void *owner);

#endif
