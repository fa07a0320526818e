/*
 * followed.h - the traces that are followed, and their processes: what host.c counts at a refresh, and query.c asks
 * until the next one. For these two.
 */
#ifndef EVPROF_TOOLS_WATCH_FOLLOWED_H
#define EVPROF_TOOLS_WATCH_FOLLOWED_H

#include <stdbool.h>
#include <stdint.h>

#include "watch/model.h"
#include "watch/process.h"

/* A process of a followed trace. */
struct watch_followed {
	struct watch_process counted;
	uint32_t *numbers; /* by key: function number + 1; 0: not looked up yet */
	uint32_t number_count;
	uint8_t *focus; /* by key: slot of host->foci + 1; 0: none */
	uint32_t focus_count;
	uint32_t foci[WATCH_FOCI]; /* that it was made for */
	struct watch_count *since; /* by key: of all stretches */
	uint32_t since_count;
	uint64_t lost_since;
	uint64_t cpu_ns;   /* of the process, at the end of the stretch; 0: not known */
	bool is_asked_for; /* in the last answer */
};

/* A followed trace. */
struct watch_source {
	struct trace *trace;
	struct watch_followed **processes;
	size_t process_count, processes_allocated;
	uint32_t seen;	  /* processes of the trace at the last refresh */
	int64_t until_ns; /* of the last refresh */
	bool is_asked_for;
};

void watch_followed_free(struct watch_followed *followed);
void watch_source_free(struct watch_source *source);

/* The function number of a key; UINT32_MAX: no memory. */
uint32_t watch_number_of(struct watch_host *host, struct watch_followed *followed, uint32_t key);

/* In ns. */
struct watch_times watch_times_from(const struct trace_process *process, const struct watch_count *count);
void watch_times_add(struct watch_times *into, const struct watch_times *times);

static inline int64_t watch_followed_pid(const struct watch_followed *followed)
{
	return trace_process_shown_pid(followed->counted.process);
}

/* The first process with that pid; NULL: none. */
struct watch_followed *watch_followed_find(const struct watch_host *host, int64_t pid);

#endif
