/*
 * trace.h - a trace in memory: what it says of processes, threads, names and times, without the events.
 *
 * Made by reader.h. Belongs to it, and may be read by any thread as long as none changes it.
 */
#ifndef EVPROF_TOOLS_TRACE_TRACE_H
#define EVPROF_TOOLS_TRACE_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <jansson.h>

#include "evprof/trace.h"
#include "evprof/wire.h"
#include "util/text.h"
#include "util/u64_map.h"

/* The clock that times of events are told by. */
enum cpu_clock {
	CPU_CLOCK_WALL,
	CPU_CLOCK_RAN,	  /* --clock cpu */
	CPU_CLOCK_WAITED, /* --clock off-cpu: also what it waited for a processor, and for the GIL */
};

/* Where a chunk is, and what is known about it without reading it. */
struct trace_place {
	uint64_t offset;
	uint64_t first_ticks;
	uint64_t last_ticks;
	uint32_t process;
	uint32_t thread;
	uint32_t events;
	uint8_t type;
	bool damaged;	/* found so, and counted */
	uint16_t holes; /* unreadable stretches of the file before it, modulo 2^16 */
};

/* Definitions of one kind, by id. */
struct trace_names {
	const struct wire_definition **at;
	uint32_t count; /* ids are below this; at[0] is NULL: id 0 means "not known" */
	uint32_t allocated;
};

/* SYMBOLs, which are looked up by address. */
struct trace_symbol {
	const struct wire_definition *definition;
	size_t number; /* in the order in which they were told */
};

struct trace_symbols {
	struct trace_symbol *at;
	size_t count;
	size_t allocated;
};

struct trace_thread {
	uint32_t number;
	uint32_t process;
	uint32_t tid;
	bool known; /* its META object was there */
	bool ended;
	bool sampled; /* its events are a sampler's */
	uint64_t start_ticks;
	char *name;		    /* NULL: none */
	bool kernel_name;	    /* the name is the kernel's */
	uint64_t *events;	    /* by kind, from its end; NULL: to be counted */
	uint64_t *lost;		    /* the same */
	struct trace_place *places; /* its EVENTS chunks, in order */
	size_t place_count;
	struct trace_thread *own; /* what it wrote itself, if it is sampled; NULL: nothing. In no other list */
};

/* A straight line from ticks to ns. */
struct trace_line {
	uint64_t ticks;
	int64_t ns;	 /* from 0 to TRACE_NS_FAR */
	uint64_t factor; /* ns per tick, times 2^shift */
	unsigned shift;
};

struct trace_process {
	uint32_t number;
	bool known;
	bool ended;
	int64_t pid;
	int64_t ppid;
	uint32_t clock_kind;
	uint32_t clock_shift;
	uint64_t start_ticks;
	uint64_t end_ticks;
	json_t *meta;			/* the "process" object; NULL: unknown */
	json_t *end;			/* the "process_end" object; NULL: none */
	uint64_t lost[WIRE_KIND_SLOTS]; /* of threads without a ring */
	struct trace_line line;
	struct trace_names codes;
	struct trace_names functions;
	struct trace_names types;
	struct trace_names marks;
	struct trace_names natives; /* frames of native stacks; native_stack.h */
	struct trace_names modules; /* libraries that they are in */
	uint32_t *module_since;	    /* by module id: the first native frame that was told after it */
	uint32_t module_since_count;
	struct trace_symbols symbols; /* by address, by the frame from which on they hold, then as told */
	struct text calibration;      /* what it measured; length 0: nothing */
	uint32_t *threads;	      /* numbers of its threads */
	size_t thread_count;
};

/* What is missing. */
struct trace_damage {
	uint64_t hole_bytes; /* of the file, that belong to no valid chunk */
	uint32_t holes;
	uint32_t chunks;    /* with a good header and an unreadable payload */
	uint64_t events;    /* in those chunks, and in those that only the index still knows */
	uint64_t cut_bytes; /* of an unfinished chunk at the end of the file */
	bool no_clock;
	bool bad_index;
	bool bad_end; /* no valid struct trace_end */
	bool growing; /* because it is still being written */
	bool out_of_memory;
};

struct trace {
	char *path;
	int fd; /* -1: in memory */
	const uint8_t *memory;
	uint64_t size_bytes;
	struct trace_header header;
	struct trace_end end; /* valid if complete */
	bool complete;
	struct trace_damage damage;

	struct trace_place *places; /* all chunks but the index, in the order of the file */
	size_t place_count;
	size_t place_allocated;
	struct trace_place *event_places; /* EVENTS chunks, grouped by thread */

	struct trace_process **processes; /* by number; NULL where there is none */
	uint32_t process_count;
	struct trace_thread **threads; /* by number; NULL where there is none */
	uint32_t thread_count;
	void **definitions; /* the payloads that names point into */
	size_t definition_count;
	uint64_t kept_bytes; /* of memory, for what chunks say: bounded by the size of the file */
	struct trace_clock *clocks;
	size_t clock_count;
	struct u64_map latest;	/* process + 1 << 32 | tid: number + 1 of the last thread with that tid */
	struct u64_map pending; /* likewise: the last definition of a thread's name that came before its thread */
	int64_t start_ns;	/* of the earliest event, CLOCK_MONOTONIC; shown times count from here */
	int64_t end_ns;		/* of the latest */
	void *unzstd;
	enum cpu_clock clock;	   /* the streams tell times by it; set by a verb before it reads events */
	struct trace_ahead *ahead; /* NULL: none yet */
	bool no_ahead;		   /* reads without a thread; may be set right after opening */
};

/* The sum over all kinds; counts may be NULL. */
static inline uint64_t trace_sum(const uint64_t *counts)
{
	uint64_t sum = 0;
	unsigned kind;

	for (kind = 0; counts && kind < WIRE_KIND_SLOTS; kind++)
		sum += counts[kind];
	return sum;
}

/* NULL for an id that has no definition. */
static inline const struct wire_definition *trace_name(const struct trace_names *names, uint32_t id)
{
	return id < names->count ? names->at[id] : NULL;
}

/* String number k (below WIRE_DEFINITION_STRINGS) of a definition. */
struct text trace_string(const struct wire_definition *definition, unsigned k);

/* Member of a process's META object; "" where there is none. */
const char *trace_process_text(const struct trace_process *process, const char *member);
/* What the process calls itself (setproctitle), or the program's name. */
const char *trace_process_name(const struct trace_process *process);
/* Did it record that kind (EVPROF_EVENTS)? */
bool trace_process_records(const struct trace_process *process, const char *kind);
/* Did any of its processes? */
bool trace_records(const struct trace *trace, const char *kind);

/* Were functions left out (EVPROF_INCLUDE, EVPROF_EXCLUDE, EVPROF_EXCLUDE_SYSPATH)? */
bool trace_process_is_filtered(const struct trace_process *process);

/* Were native stacks of allocations recorded? */
bool trace_process_has_native(const struct trace_process *process);

/* How many times a second its stacks were sampled; 0: it was not. */
int trace_process_sample_rate(const struct trace_process *process);
/* Of the first process that was sampled; 0: none was. */
int trace_sample_rate(const struct trace *trace);

#define TRACE_SAMPLING_BYTES 128
/* What every output says of samples at such a rate, which look like calls with exact times; "" where it is 0. */
const char *trace_sampling_text(int rate, char out[TRACE_SAMPLING_BYTES]);

struct trace_process *trace_process_of(const struct trace *trace, const struct trace_thread *thread);

/*
 * Ticks of that process as ns of CLOCK_MONOTONIC. Nonsense in a trace gives times that are off by at most
 * TRACE_NS_FAR (36 years), so that differences of times never overflow.
 */
#define TRACE_NS_FAR (INT64_C(1) << 60)

static inline int64_t trace_ns(const struct trace_process *process, uint64_t ticks)
{
	const struct trace_line *line = &process->line;
	bool before = ticks < line->ticks;
	uint64_t span = before ? line->ticks - ticks : ticks - line->ticks;
	unsigned __int128 exact = (unsigned __int128)span * line->factor >> line->shift;
	int64_t ns = exact < TRACE_NS_FAR ? (int64_t)exact : TRACE_NS_FAR;

	return line->ns + (before ? -ns : ns);
}

/*
 * trace_ns() for many times of one process that are near each other, with the same results: what they have in common is
 * multiplied once. All zeros: nothing yet.
 *
 * invariant: for d below span, trace_ns(ticks + d) is ns + (rest + d * factor) / 2^shift, and that is no overflow
 */
struct trace_near {
	uint64_t ticks;
	uint64_t span;
	int64_t ns;
	uint64_t rest;
	uint64_t factor;
	unsigned shift;
};

#define TRACE_NEAR_TICKS (UINT64_C(1) << 32)

/* Begins anew at that time. */
void trace_near_begin(struct trace_near *near, const struct trace_process *process, uint64_t ticks);

static inline int64_t trace_near_ns(struct trace_near *near, const struct trace_process *process, uint64_t ticks)
{
	unsigned __int128 exact;

	if (__builtin_expect(ticks - near->ticks >= near->span, 0))
		trace_near_begin(near, process, ticks);
	exact = (unsigned __int128)(ticks - near->ticks) * near->factor + near->rest;
	/* As exact >> shift, which is below 2^64: quicker, for the shift is known to be below 64. */
	return near->ns +
	       (int64_t)((uint64_t)(exact >> 64) << 1 << (63 - near->shift) | (uint64_t)exact >> near->shift);
}

/* A span of ticks in ns. */
static inline uint64_t trace_span_ns(const struct trace_process *process, uint64_t ticks)
{
	return (uint64_t)((unsigned __int128)ticks * process->line.factor >> process->line.shift);
}

/* The other way. */
static inline uint64_t trace_span_ticks(const struct trace_process *process, uint64_t ns)
{
	uint64_t factor = process->line.factor;

	return factor ? (uint64_t)(((unsigned __int128)ns << process->line.shift) / factor) : 0;
}

/* The first tick that is not before that time (CLOCK_MONOTONIC). */
uint64_t trace_ticks(const struct trace_process *process, int64_t ns);

#endif
