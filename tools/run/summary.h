/*
 * summary.h - the short summary that evprof run prints below its line: where the time went, the memory, and what
 * recording cost. Used by cmd/run.c.
 */
#ifndef EVPROF_TOOLS_RUN_SUMMARY_H
#define EVPROF_TOOLS_RUN_SUMMARY_H

#include <stdint.h>

#include "run/program.h"

struct run_recording {
	const char *trace;   /* its path */
	const char *session; /* the id in its header, as in struct run_session */
	uint64_t events;     /* recorded ones, of which a trace that keeps a stretch has the last */
};

/*
 * Prints a summary of a complete trace on stderr, if it is that of the recording; end: of the program. Another process
 * reads the trace, for at most RUN_SUMMARY_MS; nothing is printed if it takes longer, fails, or the trace has more than
 * RUN_SUMMARY_EVENTS. So many take 0.1 s of CPU time, and 0.4 s in a program that holds a million blocks in a random
 * order (2 x AMD EPYC, 2026-11-23).
 */
#define RUN_SUMMARY_EVENTS UINT64_C(5000000)
#define RUN_SUMMARY_MS 2000
void run_summary_print(const struct run_recording *recording, const struct run_end *end);

#endif
