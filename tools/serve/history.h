/*
 * history.h - what the host and each process did in the last minutes, for the charts of evprof serve. Bounded: so many
 * refreshes, of so many processes.
 */
#ifndef EVPROF_TOOLS_SERVE_HISTORY_H
#define EVPROF_TOOLS_SERVE_HISTORY_H

#include <stdint.h>

#include "util/output.h"
#include "watch/model.h"

#define HISTORY_SAMPLES 600u
#define HISTORY_PROCESSES 256u

struct history_sample {
	uint64_t number; /* of the refresh, from 1; 0: none */
	int64_t at_ms;	 /* since 1970 */
	uint64_t stretch_ns;
	uint64_t events, calls, allocations, bytes, lost;
	int64_t cpu_ns, rss_bytes; /* -1: not known */
};

struct history_process {
	int64_t pid;
	uint64_t last; /* refresh */
	struct history_sample *samples;
};

/* All zeros: empty. */
struct history {
	struct history_sample all[HISTORY_SAMPLES];
	struct history_process *processes;
	size_t count, allocated;
};

/* Adds a refresh. Out of memory, or for too many processes, those are left out. */
void history_add(struct history *history, const struct watch_host *host, uint64_t number, int64_t at_ms);
/*
 * Writes an array of the samples of a process, 0: of the host, that are newer than a refresh: [number, ms since 1970,
 * ns of the stretch, events, calls, allocations, bytes, lost, cpu ns, rss bytes].
 */
void history_put(const struct history *history, int64_t pid, uint64_t after, struct output *output);
void history_done(struct history *history);

#endif
