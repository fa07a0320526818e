/*
 * trace_fixture.h - writes small traces for tests, from include/evprof/trace.h and docs/trace.md alone.
 *
 * Shares no code with the collector or the reader, so it is a second opinion on the format. Everything is kept in
 * memory; out of memory ends the test.
 */
#ifndef EVPROF_TESTS_TRACE_FIXTURE_H
#define EVPROF_TESTS_TRACE_FIXTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "evprof/trace.h"
#include "evprof/wire.h"

struct fixture_thread {
	uint32_t process;
	uint32_t *heads;
	uint32_t *ticks;
	uint64_t *extras;
	uint32_t count;
	uint32_t extra_count;
	uint64_t first_ticks;
	uint64_t now;
};

struct fixture {
	uint8_t *bytes;
	size_t size;
	bool plain;			   /* payloads are stored, not packed */
	struct trace_index_entry *entries; /* since the last index */
	uint32_t entry_count;
	uint64_t last_index;
	uint32_t processes;
	struct fixture_thread *threads;
	uint32_t thread_count;
	uint64_t events; /* that are no bookkeeping */
};

struct fixture *fixture_new(void);
void fixture_free(struct fixture *fixture);
/* Writes what there is to a new file in the temporary directory. Returns its path, to be freed. */
char *fixture_save(const struct fixture *fixture);

/* A chunk with any payload. */
void fixture_chunk(struct fixture *fixture, struct trace_chunk chunk, const void *payload, size_t bytes);
/* A META chunk with any text. */
void fixture_meta(struct fixture *fixture, uint32_t process, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A process with the clock CLOCK_MONOTONIC, so that ticks are ns. Returns its number. */
uint32_t fixture_process(struct fixture *fixture, int pid, int ppid);
/* The same with pid 10, of whose META object these further members matter, of its JSON. */
uint32_t fixture_process_with(struct fixture *fixture, const char *members);
uint32_t fixture_thread(struct fixture *fixture, uint32_t process, uint32_t tid, uint64_t start_ticks);
void fixture_define(struct fixture *fixture, uint32_t process, unsigned type, uint32_t id, uint32_t number,
		    const char *string0, const char *string1, const char *string2, const char *string3);
void fixture_code(struct fixture *fixture, uint32_t process, uint32_t id, const char *file, uint32_t line,
		  const char *name);
void fixture_code_of_size(struct fixture *fixture, uint32_t process, uint32_t id, const char *name, uint64_t size);
/* As an attribute or an operator enters it. */
void fixture_code_entered(struct fixture *fixture, uint32_t process, uint32_t id, const char *name);
/* Of native stacks: a frame, and what the collector found of an address. flags: enum wire_definition_flags. */
void fixture_native(struct fixture *fixture, uint32_t process, uint32_t id, uint32_t caller, uint64_t address,
		    unsigned flags);
void fixture_symbol(struct fixture *fixture, uint32_t process, uint32_t id, uint64_t address, unsigned flags,
		    const char *function, const char *file, uint32_t line, const char *module);
void fixture_module(struct fixture *fixture, uint32_t process, uint32_t id, uint64_t address, uint32_t pages,
		    const char *path);
void fixture_function(struct fixture *fixture, uint32_t process, uint32_t id, const char *class, const char *name,
		      const char *module);
void fixture_clock(struct fixture *fixture, uint32_t kind, uint32_t shift, uint64_t ticks, uint64_t ns);

/* One event, `ticks` after the one before. */
void fixture_event(struct fixture *fixture, uint32_t thread, unsigned kind, uint32_t argument, uint32_t ticks);
void fixture_extra(struct fixture *fixture, uint32_t thread, uint64_t word); /* of the event before, in order */
/* An extended event with these extra words. */
void fixture_extended(struct fixture *fixture, uint32_t thread, unsigned kind, uint32_t value, const uint64_t *words,
		      unsigned count, uint32_t ticks);
void fixture_memory(struct fixture *fixture, uint32_t thread, unsigned kind, unsigned domain, uint64_t address,
		    uint64_t size, uint64_t old, uint32_t ticks);
/* Writes the thread's events as a chunk. */
void fixture_flush(struct fixture *fixture, uint32_t thread);
void fixture_index(struct fixture *fixture);
/* Flushes all threads, and writes index and end. */
void fixture_end(struct fixture *fixture);

#endif
