/*
 * firefox_tables.h - the tables of a profile for Firefox: strings of the whole profile; stacks, frames and functions of
 * each thread.
 *
 * Used by firefox.c. Functions that return int return 0 or -ENOMEM.
 */
#ifndef EVPROF_TOOLS_EXPORT_FIREFOX_TABLES_H
#define EVPROF_TOOLS_EXPORT_FIREFOX_TABLES_H

#include <stddef.h>
#include <stdint.h>

#include "analysis/stacks.h"
#include "util/output.h"
#include "util/u64_map.h"

struct firefox_place {
	uint32_t key;
	uint32_t line; /* 0: the function's first line */
};

enum { FIREFOX_CATEGORY_PYTHON, FIREFOX_CATEGORY_C, FIREFOX_CATEGORY_OTHER };

/* All zeros but output and stacks, which it does not own: empty. */
struct firefox_tables {
	struct output *output;
	const struct stacks *stacks; /* of the current thread */
	struct labels strings;	     /* of the whole profile: the files of labels */
	/*
	 * Functions of stacks are keys. Numbers above all keys are functions at the line of a sample, in this process.
	 */
	struct u64_map line_numbers; /* key << 32 | line: place in lines, + 1 */
	struct firefox_place *lines;
	size_t line_room;
	uint32_t line_count;
	/* Frames and functions of the thread: number + 1 of each, and the reverse tables. */
	uint32_t *frames; /* by function of stacks */
	uint32_t frame_room;
	struct firefox_place *places;
	uint32_t place_room;
	uint32_t frame_count;
	uint32_t *functions; /* by key */
	uint32_t *keys;
	uint32_t function_count;
};

/* The number of a string. UINT32_MAX: no memory. */
uint32_t firefox_string_number(struct firefox_tables *tables, struct text text);
/* The number, in stacks, of a function at a line. 0: no memory; no Python function has that number. */
uint32_t firefox_function_at_line(struct firefox_tables *tables, const struct call_walk *walk, uint32_t key,
				  uint32_t line);

/* A process begins. */
int firefox_tables_process(struct firefox_tables *tables, const struct call_walk *walk);
/* Writes the tables of a thread at its end. */
int firefox_put_tables(struct firefox_tables *tables, const struct call_walk *walk);
/* Writes a column of equal elements, with a comma before it. */
void firefox_put_constant(struct output *output, const char *name, const char *value, uint64_t count);
/* Writes the strings, which end the profile. */
void firefox_put_strings(struct firefox_tables *tables);
void firefox_tables_done(struct firefox_tables *tables);

#endif
