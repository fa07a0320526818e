/*
 * memory_summary.h - the summary of evprof memory as CSV: a row for each number, with its part of another one.
 *
 *   pid,what,part,time_ns,bytes,blocks
 *   10,peak,all,617000,8584600,88333
 *   10,peak,malloc,617000,500,
 */
#ifndef EVPROF_TOOLS_REPORT_MEMORY_SUMMARY_H
#define EVPROF_TOOLS_REPORT_MEMORY_SUMMARY_H

#include "analysis/memory.h"
#include "util/output.h"

void memory_summary_titles(struct output *output);
void memory_summary_put(struct output *output, const struct memory *memory);

#endif
