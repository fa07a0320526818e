/*
 * process_end.h - how recorded processes ended, as text. Used by info and report.
 */
#ifndef EVPROF_TOOLS_TRACE_PROCESS_END_H
#define EVPROF_TOOLS_TRACE_PROCESS_END_H

#include "trace/reader.h"
#include "util/output.h"

/* "SIGKILL"; NULL if no signal ended the process, or the signal has no name. Static. */
const char *process_end_signal(const struct trace_process *process);

/* The most bytes of it that were resident, as the kernel has them; -1: not known. */
int64_t process_end_peak_rss(const struct trace_process *process);
/* The same; of a process that was killed, or runs, the most until the collector's last look at it. */
int64_t process_peak_rss(const struct trace_process *process);

/* "exit, status 0", "killed by SIGKILL (signal 9)". */
void process_end_print(const struct trace_process *process, struct output *output);

/* Prints a line on stderr for each process that was killed, or whose sampler was killed: its events end there. */
void process_end_warn(const struct trace *trace);

#endif
