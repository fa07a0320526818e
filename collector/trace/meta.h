/*
 * meta.h - builds the JSON of the collector: META objects of the trace (evprof/trace.h) and the answer to a hold.
 *
 * Each function returns a string for free(), or NULL without memory.
 */
#ifndef COLLECTOR_META_H
#define COLLECTOR_META_H

#include <stdbool.h>
#include <stdint.h>

#include "base/control.h"
#include "evprof/ring.h"

/* Numbers of events by kind; [WIRE_NONE] counts words of unknown kind. */
struct meta_counts {
	uint64_t of[WIRE_KINDS];
};

struct meta_process_end {
	uint32_t process;
	const char *how;
	int64_t status; /* -1: not known */
	int64_t signal; /* -1: not known */
	uint64_t end_ticks;
	struct meta_counts lost;
	bool sampler_lost; /* its sampler ended before it */
};

#define META_RESIDENT_SAMPLES 16

/* Resident bytes at a time: anonymous memory, mapped files, shared memory. */
struct meta_resident_sample {
	uint64_t ticks;
	uint64_t anonymous;
	uint64_t file;
	uint64_t shared;
};

struct meta_resident {
	unsigned count;
	struct meta_resident_sample samples[META_RESIDENT_SAMPLES];
	uint64_t peak_bytes; /* the most that were resident until then, at any time */
};

struct meta_summary {
	const char *trace;  /* NULL: no file was created */
	const char *error;  /* NULL: none */
	const char *absent; /* reason why no process joined; NULL: one has, or not known */
	uint64_t events;
	uint64_t lost;
	uint32_t processes;
	uint32_t running;
	uint32_t unsampled; /* processes whose sampler was lost */
};

/* pid: in our pid namespace, or 0. */
char *meta_process(const struct control_message *join, uint32_t process, pid_t pid, uint32_t clock_kind,
		   uint32_t clock_shift, uint64_t start_ticks);
/* events: enum setting_event, recorded from those ticks on. */
char *meta_events(uint32_t process, uint32_t events, uint64_t ticks);
char *meta_resident(uint32_t process, const struct meta_resident *resident);
/* The kinds of events: what a reader needs to know of those that it does not know. */
char *meta_kinds(void);
/* title: NULL: the title is argv again. */
char *meta_title(uint32_t process, const char *title);
char *meta_thread(uint32_t process, uint32_t thread, uint32_t tid, uint64_t start_ticks, bool sampled);
char *meta_thread_end(uint32_t thread, const struct meta_counts *events, const struct meta_counts *lost);
/* header: has the counters of the process. */
char *meta_process_end(const struct meta_process_end *end, const struct ring_header *header);
char *meta_summary(const struct meta_summary *summary);

void meta_add(struct meta_counts *sum, const struct meta_counts *counts);

/* The sum of lost events, and of words of unknown kind. */
uint64_t meta_lost(const struct meta_counts *counts);

#endif
