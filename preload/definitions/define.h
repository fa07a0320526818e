/*
 * define.h - writes definitions: their strings, their ids, the room for them.
 *
 * Code here never runs code of the program: it reads only attributes that are plain C slots, and creates no object that
 * the garbage collector tracks. thread_self.nesting keeps the little memory that it allocates out of the trace.
 */
#ifndef PRELOAD_DEFINE_H
#define PRELOAD_DEFINE_H

#include <stddef.h>
#include <stdint.h>

#include "evprof/wire.h"

struct object;

/*
 * Brackets calls into Python: saves the pending exception and errno, and keeps allocations out of the trace. GIL held.
 */
struct definitions_guard {
	struct object *type, *value, *traceback;
	int saved_errno;
};

void definitions_enter(struct definitions_guard *guard);
void definitions_leave(struct definitions_guard *guard);

/* A string of a definition, and the object that owns its bytes. */
struct string {
	const char *bytes;
	size_t length;
	struct object *holder;
};

/* Of a str object, or NULL. Lone surrogates are kept. */
struct string string_of(struct object *text);

/* As string_of(), for a new reference; takes the reference. */
struct string string_of_new(struct object *text);

struct string string_c(const char *text);

void strings_release(struct string strings[WIRE_DEFINITION_STRINGS]);

/* Writes a definition whose id is set. The process's lock is held. Returns 0, or -EAGAIN: its ring stays full. */
int define_locked(struct wire_definition *record, struct string strings[WIRE_DEFINITION_STRINGS]);

/*
 * Assigns the next id of a kind to a definition. The process's lock is held. Returns 0 if the definition could not be
 * written.
 */
uint32_t define_next(struct wire_definition *record, struct string strings[WIRE_DEFINITION_STRINGS], uint32_t *last);

/*
 * Writes a definition whose id is set. The process's lock is held. Returns 0, or -EAGAIN: its ring is full and stays
 * full.
 */
int definitions_write(struct wire_definition *record, const char *const strings[WIRE_DEFINITION_STRINGS]);

/* Writes a definition that has one string, its name: of a thread, or the measured costs of the hooks (wire.h). */
void define_named(enum wire_definition_type type, uint32_t id, struct string name);

#endif
