/*
 * model.h - what the recorded processes of this host did in the last stretch: functions, processes, threads.
 */
#ifndef EVPROF_TOOLS_WATCH_MODEL_H
#define EVPROF_TOOLS_WATCH_MODEL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "watch/process.h"
#include "trace/labels.h"

#define WATCH_FOCI 16

/* Of a function, a process or a thread. Times in ns. */
struct watch_times {
	uint64_t calls;
	uint64_t own_ns;
	uint64_t total_ns;
	uint64_t allocations;
	uint64_t bytes;
};

struct watch_function {
	struct watch_times now;	  /* in the last stretch */
	struct watch_times since; /* since the first one began */
	/* With the function of host->foci[0]: what it called, or who called it, in the last stretch. */
	struct watch_times callee, caller;
	bool is_callee, is_caller;
};

struct watch_thread_row {
	int64_t pid;
	uint32_t tid;
	char name[64];
	uint32_t top; /* function number of the innermost function; UINT32_MAX: none */
	struct watch_times now;
};

struct watch_process_row {
	int64_t pid;
	char name[64];
	bool sampled;
	uint64_t events, lost; /* of the last stretch */
	uint64_t lost_since;
	uint32_t threads, tasks;
	int64_t cpu_ns;	   /* in the last stretch; -1: not known */
	int64_t rss_bytes; /* -1: not known */
	struct watch_times now;
};

struct watch_source;

struct watch_host {
	/* Set by the owner. */
	const char *socket;	   /* as for control_collectors_find() */
	const char *target;	   /* as in evprof/control.h */
	int64_t only;		   /* pid: functions and threads of that process only; 0: of all */
	uint32_t foci[WATCH_FOCI]; /* function numbers + 1 whose callers and callees are counted; 0: none */
	/* The results of watch_host_refresh(). */
	struct labels labels;		  /* of functions, by number */
	struct watch_function *functions; /* by number; those of the last stretch have now.calls or now.total_ns */
	uint32_t allocated;
	struct watch_process_row *processes;
	size_t process_count, processes_allocated;
	struct watch_thread_row *threads;
	size_t thread_count, threads_allocated;
	uint64_t stretch_ns; /* the longest of the processes; 0: the first refresh, which only begins */
	uint64_t events, lost;
	uint64_t interval; /* between sampled allocations of any process; 0: none */
	size_t unread;	   /* traces that cannot be read */
	char problem[320]; /* why there is nothing, or not all: one line; "": nothing is wrong */
	/* Internal. */
	struct watch_source **sources;
	size_t source_count, sources_allocated;
};

#endif
