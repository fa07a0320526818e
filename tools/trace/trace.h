/*
 * trace.h - a trace in memory: its processes, threads, names and times, without the events.
 *
 * reader.h creates and owns it. Any thread may read it as long as none changes it.
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

/* The clock of event times. */
enum cpu_clock {
	CPU_CLOCK_WALL,
	CPU_CLOCK_RAN,	  /* --clock cpu */
	CPU_CLOCK_WAITED, /* --clock off-cpu: includes waits for a processor and for the GIL */
};

/* The position of a chunk, and what is known about it without reading it. */
struct trace_place {
	uint64_t offset;
	uint64_t first_ticks;
	uint64_t last_ticks;
	uint32_t process;
	uint32_t thread;
	uint32_t events;
	uint8_t type;
	bool damaged;	/* found damaged, and counted */
	uint16_t holes; /* unreadable parts of the file before it, modulo 2^16 */
};

/* Definitions of one kind, by id. */
struct trace_names {
	const struct wire_definition **at;
	uint32_t count; /* ids are below this; at[0] is NULL: id 0 means "not known" */
	uint32_t allocated;
};

/* A SYMBOL definition, looked up by address. */
struct trace_symbol {
	const struct wire_definition *definition;
	size_t number; /* in the order of their definitions */
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
	bool known; /* its META object exists */
	bool ended;
	bool sampled; /* a sampler wrote its events */
	bool reused;  /* the number was another thread's at the trace_follow() before */
	uint64_t start_ticks;
	char *name;		    /* NULL: none */
	bool kernel_name;	    /* the name is the kernel's */
	uint64_t *events;	    /* by kind, from its end; NULL: not counted yet */
	uint64_t *lost;		    /* the same */
	struct trace_place *places; /* its EVENTS chunks, in order */
	size_t place_count;
	size_t former;		  /* the first places, if it is reused: those of the thread before */
	struct trace_thread *own; /* its own events, if it is sampled; NULL: none. In no other list */
};

/* A linear mapping from ticks to ns. */
struct trace_line {
	uint64_t ticks;
	int64_t ns;	 /* from 0 to TRACE_NS_FAR */
	uint64_t factor; /* ns per tick, times 2^shift */
	unsigned shift;
};

/* Resident bytes at a time: anonymous memory, mapped files, shared memory. */
struct trace_resident {
	uint64_t ticks;
	uint64_t anonymous;
	uint64_t file;
	uint64_t shared;
};

struct trace_process {
	uint32_t number;
	bool known;
	bool ended;
	int64_t pid;
	int64_t ppid;
	int64_t seen_pid; /* in the pid namespace of its collector, so in /proc there; 0: it has none there */
	uint32_t clock_kind;
	uint32_t clock_shift;
	uint64_t start_ticks;
	uint64_t end_ticks;
	json_t *meta;			 /* the "process" object; NULL: unknown */
	json_t *end;			 /* the "process_end" object; NULL: none */
	json_t *changes;		 /* an array of its "events" objects, by ticks; NULL: none */
	uint64_t lost[WIRE_KINDS];	 /* of threads that are not in the trace */
	struct trace_resident *resident; /* its size over time, by ticks */
	uint32_t resident_count;
	size_t resident_allocated;
	uint64_t resident_peak_bytes; /* the most until the last of them; 0: not known */
	struct trace_line line;
	struct trace_names codes;
	struct trace_names functions;
	struct trace_names types;
	struct trace_names marks;
	struct trace_names native_frames; /* frames of native stacks; native_stack.h */
	struct trace_names modules;	  /* libraries that contain them */
	struct trace_names lines;	  /* by code id: its table of lines */
	uint32_t *module_since;		  /* by module id: the first native frame that was defined after it */
	uint32_t module_since_count;
	struct trace_symbols symbols; /* by address, by first valid frame, by order of definition */
	struct text calibration;      /* the overhead that it measured; length 0: none */
	struct text budget;	      /* the account of its budget, likewise */
	uint32_t *threads;	      /* numbers of its threads */
	size_t thread_count;
	size_t threads_allocated;
};

/* What is missing. */
struct trace_damage {
	uint64_t hole_bytes; /* bytes of the file that belong to no valid chunk */
	uint32_t holes;
	uint32_t chunks;    /* chunks with a good header and an unreadable payload */
	uint64_t events;    /* events in those chunks, and in chunks that only the index lists */
	uint64_t cut_bytes; /* bytes of an unfinished chunk at the end of the file */
	bool no_clock;
	bool bad_index;
	bool bad_end; /* there is no valid struct trace_end */
	bool growing; /* the file is still being written */
	bool out_of_memory;
};

#define TRACE_KIND_NAME_BYTES 24

struct trace {
	char *path;
	int fd; /* -1: in memory */
	const uint8_t *memory;
	uint64_t size_bytes;
	uint64_t scanned_bytes; /* without an index: where the last complete chunk ends */
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
	/* Those of this evprof; of other kinds those that the trace gives them, or "kind N". */
	char kind_names[WIRE_KINDS][TRACE_KIND_NAME_BYTES];
	void **definitions; /* the payloads that names point into */
	size_t definition_count;
	uint64_t kept_bytes; /* memory for loaded contents; limited by the size of the file */
	struct trace_clock *clocks;
	size_t clock_count;
	struct u64_map latest;	/* process + 1 << 32 | tid: number + 1 of the last thread with that tid */
	struct u64_map pending; /* likewise: the last definition of a thread name that precedes its thread */
	int64_t start_ns;	/* of the earliest event, CLOCK_MONOTONIC; shown times count from here */
	int64_t end_ns;		/* of the latest */
	void *unzstd;
	enum cpu_clock clock;	   /* the clock of streams; a verb sets it before it reads events */
	struct trace_ahead *ahead; /* NULL: none yet */
	bool no_ahead;		   /* reads without a read-ahead thread; may be set right after opening */
};

/* The sum over all kinds; counts may be NULL. */
static inline uint64_t trace_sum(const uint64_t *counts)
{
	uint64_t sum = 0;
	unsigned kind;

	for (kind = 0; counts && kind < WIRE_KINDS; kind++)
		sum += counts[kind];
	return sum;
}

/* Whether this evprof knows the kind of an event (enum wire_kind). */
bool trace_knows_kind(unsigned kind);

/* NULL if the id has no definition. */
static inline const struct wire_definition *trace_name(const struct trace_names *names, uint32_t id)
{
	return id < names->count ? names->at[id] : NULL;
}

/* String number k (below WIRE_DEFINITION_STRINGS) of a definition. */
struct text trace_string(const struct wire_definition *definition, unsigned k);

/* The line of a Python function at wire_instruction(); 0: not known. Searches the code's table. */
uint32_t trace_line(const struct trace_process *process, uint32_t code, uint32_t instruction);

/* A member of the process's META object; "" if it is missing. */
const char *trace_process_text(const struct trace_process *process, const char *member);
/* The title of the process (setproctitle), or the name of its program. */
const char *trace_process_name(const struct trace_process *process);
/* The pid by which requests to its collector name it (evprof/control.h). */
static inline int64_t trace_process_shown_pid(const struct trace_process *process)
{
	return process->seen_pid ? process->seen_pid : process->pid;
}
/* Whether it recorded that kind (EVPROF_EVENTS), at any time. */
bool trace_process_records(const struct trace_process *process, const char *kind);
/* Whether it recorded memory events of some kind. */
bool trace_process_records_memory(const struct trace_process *process);
/* Whether it recorded calls, at any time, or was sampled: functions have times. */
bool trace_process_has_times(const struct trace_process *process);
/* Whether any of its processes recorded that kind. */
bool trace_records(const struct trace *trace, const char *kind);

/* Whether functions were excluded from recording (EVPROF_INCLUDE, EVPROF_EXCLUDE, EVPROF_EXCLUDE_SYSPATH). */
bool trace_process_is_filtered(const struct trace_process *process);
/* Whether what Python does before and after the program was left out (EVPROF_PROGRAM_ONLY). */
bool trace_process_is_program_only(const struct trace_process *process);
/* Whether native allocations were asked for and did not reach evprof, as the program has its own malloc(). */
bool trace_process_misses_malloc(const struct trace_process *process);

/* Whether native stacks of allocations were recorded. */
bool trace_process_has_native_stacks(const struct trace_process *process);

/* The sampling rate in stacks a second; 0: not sampled. */
int trace_process_sample_rate(const struct trace_process *process);
/* False: the marks that a sampled thread wrote itself, in a stream of their own. */
bool trace_thread_is_shown(const struct trace_process *process, const struct trace_thread *thread);
/*
 * The next shown thread of the process from index *at on that is not in `known` (thread number + 1: start_ticks + 1),
 * to which it is added. NULL: none.
 */
const struct trace_thread *trace_new_thread(const struct trace *trace, const struct trace_process *process,
					    struct u64_map *known, size_t *at);
/* The rate of the first sampled process; 0: none was sampled. */
int trace_sample_rate(const struct trace *trace);

/* Bytes between sampled allocations, on average; 0: each is recorded. Of the first process that samples. */
uint64_t trace_process_memory_interval(const struct trace_process *process);
uint64_t trace_memory_interval(const struct trace *trace);

/* EVPROF_BUDGET in percent: not all calls of short functions are recorded; 0: none. Of the first process with one. */
double trace_process_budget(const struct trace_process *process);
double trace_budget(const struct trace *trace);

/* What the budget of a process has spent: CPU time in ms. */
struct trace_account {
	double cost_ms;	      /* of recording, its collector's share included */
	double part_ms;	      /* of that, what the process itself has used */
	double cpu_ms;	      /* of the process */
	double longest_ms;    /* the longest mean of the functions that were left out; 0: none */
	double exceptions_ms; /* of the process, while exceptions were left out */
};

/* False: the trace does not have it, as that of a program which was killed. */
bool trace_process_account(const struct trace_process *process, struct trace_account *account);
/* The sum of all processes that have one, and the longest of all. False: none has. */
bool trace_account(const struct trace *trace, struct trace_account *account);
/* What recording has cost, in percent of the CPU time of the program without it. */
double trace_account_percent(const struct trace_account *account);
/* An object of the caller's with these numbers as `evprof info` has them; NULL: none, or no memory. */
json_t *trace_process_account_json(const struct trace_process *process);

/* Whether its events leave the trace after a while (EVPROF_KEEP). */
bool trace_process_is_kept(const struct trace_process *process);
/* Whether it has what was alive at its end and sums of the rest, without events (EVPROF_KEEP=alive). */
bool trace_process_is_alive_only(const struct trace_process *process);
/* Whether any of its processes has that. */
bool trace_is_alive_only(const struct trace *trace);
/* The number of the wish for which such a trace was written while its program ran; 0: none. */
uint64_t trace_so_far(const struct trace *trace);
/* Processes that ended, and are not in such a trace. */
uint64_t trace_left_out(const struct trace *trace);
/* The note on it in every output that shows memory. */
#define TRACE_ALIVE_ONLY_TEXT                                                                                          \
	"The trace keeps what is alive at its end, and sums: no peak, no stretch of time, no threads"

#define TRACE_SAMPLING_BYTES 128
/* The note on memory that was sampled in every output that shows it; "" if the interval is 0. */
const char *trace_memory_sampling_text(uint64_t interval, char out[TRACE_SAMPLING_BYTES]);

/* Prints that on stderr, if memory was sampled: for outputs that have no room for it. */
void trace_warn_of_memory_sampling(const struct trace *trace);

/* Prints on stderr what follows from a budget: for outputs that show what was recorded, without estimates. */
void trace_warn_of_budget(const struct trace *trace);
/* The same for outputs that have the estimates and no room to mark them. */
void trace_warn_of_estimates(const struct trace *trace);
/*
 * The note on sampling at that rate in every output, because samples look like calls with exact times; "" if it is 0.
 */
const char *trace_sampling_text(int rate, char out[TRACE_SAMPLING_BYTES]);

/* Prints that on stderr, if stacks were sampled: for outputs that have no room for it. */
void trace_warn_of_sampling(const struct trace *trace);

struct trace_process *trace_process_of(const struct trace *trace, const struct trace_thread *thread);

/*
 * Converts ticks of the process to ns of CLOCK_MONOTONIC. Invalid data gives times that are off by at most TRACE_NS_FAR
 * (36 years), so differences of times never overflow.
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
 * Cached state of trace_near_ns(), which equals trace_ns() and is faster for many adjacent times of one process: their
 * common part is multiplied once. All zeros: empty.
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

/* Restarts the cache at that time. */
void trace_near_begin(struct trace_near *near, const struct trace_process *process, uint64_t ticks);

static inline int64_t trace_near_ns(struct trace_near *near, const struct trace_process *process, uint64_t ticks)
{
	unsigned __int128 exact;

	if (__builtin_expect(ticks - near->ticks >= near->span, 0))
		trace_near_begin(near, process, ticks);
	exact = (unsigned __int128)(ticks - near->ticks) * near->factor + near->rest;
	/* This is exact >> shift, which is below 2^64. It is faster, because the shift is known to be below 64. */
	return near->ns +
	       (int64_t)((uint64_t)(exact >> 64) << 1 << (63 - near->shift) | (uint64_t)exact >> near->shift);
}

/* CLOCK_REALTIME minus CLOCK_MONOTONIC at the start of the trace. */
static inline int64_t trace_realtime_offset(const struct trace *trace)
{
	if (trace->clock_count)
		return (int64_t)(trace->clocks[0].realtime_ns - trace->clocks[0].monotonic_ns);
	return (int64_t)(trace->header.created_ns - (uint64_t)trace->start_ns);
}

/* The length of a span of ticks in ns. */
static inline uint64_t trace_span_ns(const struct trace_process *process, uint64_t ticks)
{
	return (uint64_t)((unsigned __int128)ticks * process->line.factor >> process->line.shift);
}

/* The length of a span of ns in ticks. */
static inline uint64_t trace_span_ticks(const struct trace_process *process, uint64_t ns)
{
	uint64_t factor = process->line.factor;

	return factor ? (uint64_t)(((unsigned __int128)ns << process->line.shift) / factor) : 0;
}

/*
 * The two readings of the process's clock that are furthest apart, which make its line; NULL: there is none. Returns
 * whether they can.
 */
bool trace_line_clocks(const struct trace *trace, const struct trace_process *process, const struct trace_clock **first,
		       const struct trace_clock **last);

/* The first tick that is not before that time (CLOCK_MONOTONIC). */
uint64_t trace_ticks(const struct trace_process *process, int64_t ns);

#endif
