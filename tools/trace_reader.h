/*
 * trace_reader.h - reads a trace file (include/evprof/trace.h), whole or not.
 *
 * Used by every verb. A complete file is read through its index; one without an end, cut short or damaged is scanned,
 * and reading goes on at the next valid chunk. No size, count or number in the file is believed before it is checked.
 * What could not be read is counted, and trace_verdict() says it in one line.
 *
 * trace_reader.c   the file: header, index, scan, chunks, unpacking (the only place that knows zstd)
 * trace_model.c    what the chunks say: processes, threads, names, clock
 * trace_stream.c   the events of one thread, chunk by chunk
 * trace_beside.c   what a sampled thread wrote itself, among what its sampler wrote
 * trace_unpack.c   the events of a chunk, out of its payload
 * trace_ahead.c    a thread that reads and unpacks the chunks that are next
 */
#ifndef EVPROF_TOOLS_TRACE_READER_H
#define EVPROF_TOOLS_TRACE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <jansson.h>

#include "evprof/trace.h"
#include "evprof/wire.h"
#include "cpu_time.h"
#include "pairs.h"
#include "text.h"

/* Exit statuses of the verbs that read traces. */
enum trace_exit {
	TRACE_EXIT_FINE = 0,
	TRACE_EXIT_DAMAGED = 1, /* something is missing from the trace; the rest was used */
	TRACE_EXIT_FAILED = 2,
	TRACE_EXIT_GROWING = 3, /* nothing is wrong with the trace, but it is still being written */
};

/* Of several traces: one that grows is better than a damaged one. */
static inline int trace_exit_worst(int a, int b)
{
	static const int badness[] = {
	    [TRACE_EXIT_FINE] = 0, [TRACE_EXIT_GROWING] = 1, [TRACE_EXIT_DAMAGED] = 2, [TRACE_EXIT_FAILED] = 3};

	return badness[a] > badness[b] ? a : b;
}

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
	struct trace_thread *beside; /* what it wrote itself, if it is sampled; NULL: nothing. In no other list */
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
	struct trace_names natives; /* frames of native stacks; native.h */
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
	struct pairs latest;  /* process + 1 << 32 | tid: number + 1 of the last thread with that tid */
	struct pairs pending; /* likewise: the last definition of a thread's name that came before its thread */
	int64_t start_ns;     /* of the earliest event, CLOCK_MONOTONIC; shown times count from here */
	int64_t end_ns;	      /* of the latest */
	void *unzstd;
	enum cpu_clock clock;	   /* the streams tell times by it; set by a verb before it reads events */
	struct trace_ahead *ahead; /* NULL: none yet */
	bool no_ahead;		   /* reads without a thread; may be set right after opening */
};

/*
 * Opens and reads everything but the events; path "-" is standard input. Returns 0, or -errno with one line in error
 * saying why: -EINVAL for what is no trace, -ENOTSUP for a trace of a later evprof, -ENOMEM, or what the system said.
 */
int trace_open(struct trace **trace, const char *path, char *error, size_t error_bytes);
/* The same for bytes in memory, which stay where they are until trace_close(). name is shown in messages. */
int trace_open_memory(struct trace **trace, const void *bytes, size_t size, const char *name, char *error,
		      size_t error_bytes);
void trace_close(struct trace *trace);

/* Whether that is the trace's own file. */
bool trace_is_at(const struct trace *trace, const char *path);

/* As trace_open(), but says what is wrong on stderr. */
struct trace *trace_open_or_say(const char *path);

/*
 * What is missing from the trace as far as it was read until now, as one line in text. Returns TRACE_EXIT_FINE (text is
 * ""), TRACE_EXIT_GROWING or TRACE_EXIT_DAMAGED.
 */
int trace_verdict(const struct trace *trace, char *text, size_t text_bytes);
/* The same, on stderr. */
int trace_say_verdict(const struct trace *trace);

/*
 * Reads the whole file and checks every checksum; what is wrong goes to trace->damage. tick, if any, is called with the
 * bytes read so far. Nothing else needs this: reading checks what it reads.
 */
void trace_check(struct trace *trace, void (*tick)(void *owner, uint64_t bytes), void *owner);

/* Events of a thread by kind, as its end in the file says; counted where that is missing. Returns 0 or -ENOMEM. */
int trace_count_events(struct trace *trace, struct trace_thread *thread);

/* The sum over all kinds; counts may be NULL. */
static inline uint64_t trace_sum(const uint64_t *counts)
{
	uint64_t sum = 0;
	unsigned kind;

	for (kind = 0; counts && kind < WIRE_KIND_SLOTS; kind++)
		sum += counts[kind];
	return sum;
}

/* Of the whole trace, as its end says; counted where that is missing. */
struct trace_totals {
	uint64_t events;
	uint64_t lost;
};

/* Returns 0 or -ENOMEM. */
int trace_count_totals(struct trace *trace, struct trace_totals *totals);

/*
 * Events, unpacked. Arrays stay valid until the next chunk is read into the same buffer.
 *
 * invariant: wire_extra_words() over the kinds of heads adds up to extra_count
 */
struct trace_events {
	const uint32_t *heads;
	const uint32_t *ticks;	/* since the event before */
	const uint64_t *extras; /* in the order of the events */
	uint32_t count;
	uint32_t extra_count;
	uint64_t first_ticks; /* before the first event */
	bool hole;	      /* events are missing before the first one: the call stack is unknown */
	uint64_t missing;     /* how many, where that is known */
};

/* The payload of a chunk. */
struct trace_payload {
	uint8_t *raw;
	size_t raw_allocated;
	uint8_t *stored;
	size_t stored_allocated;
	uint32_t *ticks;
	size_t ticks_allocated;
	struct trace_chunk chunk;
};

/*
 * Reads the chunk at place, checks and unpacks it into payload->raw. Returns 0, -EBADMSG (damaged; counted), or
 * -ENOMEM.
 */
int trace_read_payload(struct trace *trace, struct trace_place *place, struct trace_payload *payload);
void trace_payload_done(struct trace_payload *payload);

/*
 * The one place that knows how events are laid out in a chunk. Returns 0, -EBADMSG where the payload contradicts
 * itself, or -ENOMEM.
 */
int trace_unpack_events(struct trace_payload *payload, struct trace_events *events);

/* The events of one thread. */
struct trace_stream {
	struct trace *trace;
	const struct trace_thread *thread;
	struct trace_payload payload;
	struct cpu_time cpu_time;
	size_t next;	     /* index in thread->places */
	uint64_t last_ticks; /* where the chunk before ended */
	uint16_t holes;
	bool began;
	bool hole;
	uint64_t missing;
	uint32_t read; /* chunks, one after the other */
	uint64_t from; /* nothing before that is wanted */
	struct trace_beside *beside;
};

void trace_stream_open(struct trace_stream *stream, struct trace *trace, const struct trace_thread *thread);
/*
 * The next chunk of events. Returns 1, or 0 at the end. A damaged chunk is left out, and the next good one says so in
 * hole; if none follows, one without events (count 0) does.
 */
int trace_stream_next(struct trace_stream *stream, struct trace_events *events);
void trace_stream_close(struct trace_stream *stream);
/* Right after opening: begins at that one of the thread's places, as if nothing was before. */
void trace_stream_skip(struct trace_stream *stream, size_t first);

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

/* trace_model.c: begins anew at that time. */
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

/* --- between the files of the reader --- */

/* trace_reader.c: pread() of the file or the memory. Returns the bytes read. */
size_t trace_read_at(const struct trace *trace, uint64_t offset, void *buffer, size_t bytes);
/* trace_reader.c: counts what the chunk at place held as missing, once. */
void trace_note_damage(struct trace *trace, struct trace_place *place);
/* trace_reader.c: realloc() where *allocated is less than bytes. Returns 0 or -ENOMEM. */
int trace_reserve(void **buffer, size_t *allocated, size_t bytes);
/*
 * trace_reader.c: what trace_read_payload() does to the bytes. Changes nothing but payload and *unzstd, which is made
 * here and belongs to the calling thread.
 */
int trace_fetch(const struct trace *trace, const struct trace_place *place, struct trace_payload *payload,
		void **unzstd);
void trace_unzstd_free(void *unzstd);
/* trace_reader.c: counts what trace_fetch() found, and returns it. */
int trace_note_error(struct trace *trace, struct trace_place *place, int error);

/* trace_stream.c: as trace_stream_next(), of the thread's own chunks alone, with times as they were. */
int trace_stream_chunk(struct trace_stream *stream, struct trace_events *events);
/* trace_beside.c: has each sampled thread of a trace that is loaded have what it wrote itself. Returns 0 or -ENOMEM. */
int trace_beside_find(struct trace *trace);
/*
 * Puts what the thread itself wrote before until among these events of its sampler. The arrays stay valid until the
 * next call. Returns 0 or -ENOMEM: the events are as they were.
 */
int trace_beside_merge(struct trace_stream *stream, struct trace_events *events, uint64_t until);
void trace_beside_close(struct trace_beside *beside);

/*
 * trace_ahead.c: at most so many chunks are read ahead, for all streams. A stream is known by its address. All are for
 * the thread that owns the trace.
 */
#define TRACE_AHEAD_CHUNKS 4

/* Asks for a place of the stream's thread, if there is room and it was not asked for. */
void trace_ahead_ask(struct trace *trace, const struct trace_stream *stream, size_t number);
/*
 * What was asked for: waits until it is read, exchanges payload for it, and sets *error to what trace_fetch() or
 * trace_unpack_events() returned. False where it was not asked for, or nobody has begun with it.
 */
bool trace_ahead_take(struct trace *trace, const struct trace_stream *stream, size_t number,
		      struct trace_payload *payload, struct trace_events *events, int *error);
/* The stream ends here. */
void trace_ahead_forget(struct trace *trace, const struct trace_stream *stream);
/* Ends the thread. NULL is fine. */
void trace_ahead_free(struct trace_ahead *ahead);
/*
 * trace_model.c: reads META, DEFINITIONS and CLOCK chunks, makes processes and threads, and sorts the rest by thread.
 */
int trace_model_load(struct trace *trace);
void trace_model_done(struct trace *trace);

#endif
