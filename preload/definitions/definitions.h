/*
 * definitions.h - gives ids to functions, exception types and marks, and writes their names for the collector.
 *
 * Called from hooks with the GIL held, or attached to Python where there is no GIL. Finding an existing id is the fast
 * path, inline; assigning one is a function call. Id 0 means that the definition could not be written, because its ring
 * is full and stays full: the event is then lost. No recorded event lacks its definition.
 */
#ifndef PRELOAD_DEFINITIONS_H
#define PRELOAD_DEFINITIONS_H

#include "join/process.h"
#include "python/python.h"

#define DEFINITION_ID(value) ((value)&WIRE_ARG_MAX)
#define CODE_IS_GENERATOR (1u << 27)
#define CODE_IS_COROUTINE (1u << 29) /* or an asynchronous generator: its steps may be a task's (writer.h) */
#define FUNCTION_THROWS (1u << 27)   /* generator.throw() or close(): the next resume is a throw */
#define DEFINITION_HIDDEN (1u << 28) /* not to be recorded (filter.h); the id is 0 */

/*
 * Slow-path flags of a code object, in the upper half of its value in ids.h. 0 for most code; never 0 for a key that is
 * no code object.
 */
#define CODE_CLOSER_GENERATOR 1u /* all generators until 3.11, coroutines only from 3.12 on */
#define CODE_CLOSER_HIDDEN 2u
#define CODE_CLOSER_SPECIAL 4u /* each call is examined, see thread_names_learn() */
#define CODE_CLOSER_NATIVE 8u  /* the key is a C function, not a code object at the same address */

/*
 * Values up to here have an upper half of 0. The highest bit of the lower half is unused, so one comparison suffices.
 */
#define CODE_PLAIN_MAX ((uint64_t)INT32_MAX)

/*
 * Brackets calls into Python: saves the pending exception and errno, and keeps allocations out of the trace. GIL held.
 */
struct definitions_guard {
	struct object *type, *value, *traceback;
	int saved_errno;
};

void definitions_enter(struct definitions_guard *guard);
void definitions_leave(struct definitions_guard *guard);

/* The id of a code object with CODE_IS_GENERATOR and CODE_IS_COROUTINE; or DEFINITION_HIDDEN; or 0. */
uint32_t definitions_code(struct object *code);

/*
 * Whether a function is filtered out (filter.h). Called before there is room for its event, so that no event of a
 * hidden function counts as lost. False while this thread has no slot.
 */
bool definitions_hides_code(struct object *code);
bool definitions_hides_function(const struct python_method *method, struct object *callable);

/* Whether the code is that of a generator or coroutine. The code need not have an id. */
bool definitions_is_generator(struct object *code);

/* Removes the id of a code object that dies. GIL held. */
void definitions_forget_code(const struct object *code);

/* The value of a code object in ids.h. Where the writer's view is of an old table, it is set to the present one. */
uint64_t definitions_look_again(struct writer *writer, const struct object *code) __attribute__((cold, noinline));

/*
 * As definitions_code(), by loads alone. 0 for code with a slow-path flag other than those in closer. Only with
 * writer_has_room().
 */
static inline uint32_t definitions_code_closer(struct writer *writer, const struct object *code, uint32_t closer)
{
	uint64_t value;

	if (unlikely(!ids_find_fast(&writer->ids, code, &value)))
		value = definitions_look_again(writer, code);
	return value >> 32 & ~closer ? 0 : (uint32_t)value;
}

/*
 * The id of a code object without slow-path flags, likewise. May return false for one of these; always for other keys.
 */
static inline bool definitions_code_fast(const struct writer *writer, const struct object *code, uint32_t *id)
{
	uint64_t value;

	if (unlikely(!ids_find_fast(&writer->ids, code, &value) || value > CODE_PLAIN_MAX))
		return false;
	*id = DEFINITION_ID((uint32_t)value);
	return true;
}

/* The id of a C function without flags, likewise. */
static inline bool definitions_function_fast(const struct writer *writer, const struct python_method *method,
					     uint32_t *id)
{
	uint64_t value;

	if (unlikely(!ids_find_fast(&writer->ids, method, &value) || (uint32_t)value > WIRE_ARG_MAX))
		return false;
	*id = (uint32_t)value;
	return true;
}

/*
 * The id of a C function, with FUNCTION_THROWS and DEFINITION_HIDDEN. callable: a PyCFunction or a method_descriptor
 * with that method.
 */
uint32_t definitions_function(const struct python_method *method, struct object *callable);

/* The id of an exception's type. */
uint32_t definitions_type(const void *type);

/*
 * The extra word of WIRE_TASK for the task whose step begins with an event of this kind in this frame. It has the name
 * if asyncio created the task and the program named it. GIL held.
 */
uint64_t definitions_task(unsigned kind, const void *frame);

/* The id of a mark. No GIL needed. */
uint32_t definitions_mark(const char *name);

/*
 * Writes a definition whose id is set. The process's lock is held. Returns 0, or -EAGAIN: its ring is full and stays
 * full.
 */
int definitions_write(struct wire_definition *record, const char *const strings[WIRE_DEFINITION_STRINGS]);

/* Writes the measured costs of the hooks, see wire.h. */
void definitions_calibration(const char *costs);

/* Writes the name of the thread with this kernel id. */
void definitions_thread_name(uint32_t tid, struct object *name);

/* Stores the calling thread's name, for the child that it may fork. GIL held. */
void definitions_remember_name(struct object *name);

/*
 * Writes the name that the thread had in the parent. Called when the child of a fork has joined. Does not call Python.
 */
void definitions_inherited_name(void);

/*
 * Stores the ids of the calling thread's Python stack, innermost first, at most `most` of them. The top frame is left
 * out if the event of this kind is about to push it. lines: gets the current line of each frame, or NULL. *more: the
 * stack has more frames. Returns the number of ids.
 */
uint32_t definitions_stack(unsigned kind, uint32_t *ids, int *lines, uint32_t most, bool *more);

#endif
