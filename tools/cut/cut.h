/*
 * cut.h - a cut: a stretch of a trace as a trace of its own. For evprof cut, and for the C interface (api/cut.c).
 *
 * A cut is what a recorder would have written that began where the stretch does: the Python functions that run there
 * are a recorded stack (WIRE_STACK), C functions that run there are not known, and a block that was allocated before is
 * freed without an allocation. A process that had begun is a rejoin, one that goes on is detached. Events are unchanged
 * but for their ids; names are those that the events use. Times are those of the trace.
 *
 * Stretches that follow each other have each event once. In the thread of an edge that is an event, the order of events
 * decides; in all other threads, time. At an edge that is a byte of the file the order in the file decides. Events that
 * describe the next one (its task, its arguments) stay with it.
 *
 * The trace is read from the last recorded stack before the stretch on, and each chunk once; memory is that of a chunk,
 * a stack, and four bytes for each name of a process. A damaged trace gives what is intact of it.
 */
#ifndef EVPROF_TOOLS_CUT_CUT_H
#define EVPROF_TOOLS_CUT_CUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cut/stretch.h"
#include "replay/filter.h"
#include "util/progress.h"
#include "util/u64_map.h"

/*
 * Writes the stretch to fd, an empty file, which is closed. Of the filter, only its processes and threads count.
 * Returns 0, -ENOMEM, or the -errno of writing.
 */
int cut_write(struct trace *trace, const struct cut_stretch *stretch, const struct filter *filter,
	      struct progress *progress, int fd);

/*
 * The same to a file, which appears when it is complete. in_place: it takes the place of the trace, whose readers may
 * read it. Returns 0, or -errno after a line on stderr.
 */
int cut_write_file(struct trace *trace, const struct cut_stretch *stretch, const struct filter *filter,
		   struct progress *progress, const char *verb, const char *path, bool in_place);

/* Stretches that were found, in the order of their beginnings. */
struct cut_list {
	struct cut_found {
		struct cut_stretch stretch;
		const struct trace_process *process;
		uint64_t number; /* of a span */
	} * at;
	size_t count, allocated;
};

void cut_list_done(struct cut_list *list);

/* The stretch of the filter's times. */
struct cut_stretch cut_of_times(const struct trace *trace, const struct filter *filter);
/*
 * From each mark `begin` to the next mark `end` in its process; to the end of the trace where none follows. Returns 0
 * or -ENOMEM.
 */
int cut_of_marks(struct cut_list *list, struct trace *trace, const struct filter *filter, const char *begin,
		 const char *end);
/*
 * The spans of that name, NULL: any; and with their keys in `wanted`, NULL: any. A span without an end lasts to the end
 * of the trace. Returns 0 or -ENOMEM.
 */
int cut_of_spans(struct cut_list *list, struct trace *trace, const struct filter *filter, const char *name,
		 const struct u64_map *wanted);

/* A key of a span: its number in its process, by pid. */
static inline uint64_t cut_span_key(int64_t pid, uint64_t number)
{
	return (uint64_t)pid << 40 ^ number;
}

/* --- what a user asks to be cut: times, marks or spans; one stretch, or each in a file of its own (request.c) --- */

struct cut_request {
	const struct filter *filter;	   /* times, processes and threads */
	const char *mark_begin, *mark_end; /* NULL: none */
	const char *span;		   /* NULL: none */
	int64_t since_ns, until_ns;	   /* of CLOCK_MONOTONIC; 0: none */
	int64_t since_byte, until_byte;	   /* of the file, with these times; 0: none */
	int64_t number;			   /* of the stretch, from 1; 0: there is one, or each is cut */
	const char *to;			   /* the path of the first cut; NULL: in place of the trace */
	bool each;
};

/*
 * Finds the stretches: at least one; one, unless each is wanted. No cut has the path of the trace itself. Returns 0,
 * -ENOMEM, or -EINVAL with the reason in one line in why. cut_list_done() must follow in all cases.
 */
int cut_request_find(const struct cut_request *request, struct trace *trace, struct cut_list *list, char *why,
		     size_t why_bytes);

/* The path of stretch `number`, from 0: a.evp, a-2.evp, a-3.evp. The caller frees it; NULL: no memory. */
char *cut_path(const char *path, size_t number);

#endif
