/*
 * definitions.h - what the ids in events mean: giving ids, and telling the collector their names.
 *
 * Called from hooks with the GIL held, or attached to Python where there is none. Finding an id that was given is the
 * fast path, inline; giving one is a function. Zero means that the definition could not be written (its ring is full
 * and stays so): the event is then lost, so that no event ever stands without its name.
 */
#ifndef PRELOAD_DEFINITIONS_H
#define PRELOAD_DEFINITIONS_H

#include "process.h"
#include "python.h"

#define DEFINITION_ID(value) ((value)&WIRE_ARG_MAX)
#define CODE_IS_GENERATOR (1u << 27)
#define CODE_IS_COROUTINE (1u << 29) /* or an asynchronous generator: its steps may be a task's (writer.h) */
#define FUNCTION_THROWS (1u << 27)   /* generator.throw() or close(): the next resume is a throw */
#define DEFINITION_HIDDEN (1u << 28) /* not to be recorded (filter.h); the id is 0 */

/*
 * The upper half of what ids.h has of a code object, 0 for most: why its calls take a longer way. Not 0 for what is
 * none.
 */
#define CODE_CLOSER_GENERATOR 1u /* generators until 3.11, then coroutines only */
#define CODE_CLOSER_HIDDEN 2u
#define CODE_CLOSER_SPECIAL 4u /* each call is to be looked at */
#define CODE_CLOSER_NATIVE 8u  /* no code object, but a C function that stood at its address */

/* Values up to here have an upper half of 0: the highest bit of the lower one is free, so one comparison says it. */
#define CODE_PLAIN_MAX ((uint64_t)INT32_MAX)

/*
 * Around what asks Python for something: the exception that may be set is put aside, errno is kept, and the memory that
 * it takes is not the program's. GIL held.
 */
struct definitions_guard {
	struct object *type, *value, *traceback;
	int saved_errno;
};

void definitions_enter(struct definitions_guard *guard);
void definitions_leave(struct definitions_guard *guard);

/* The id of a code object, and CODE_IS_GENERATOR; or DEFINITION_HIDDEN. */
uint32_t definitions_code(struct object *code);

/*
 * Whether a function is left out (filter.h): asked before there is room for its event, so that none of its events
 * counts as lost. False where nothing is known yet.
 */
bool definitions_hides_code(struct object *code);
bool definitions_hides_function(const struct python_method *method, struct object *callable);

/* Of a generator or coroutine, whether it has an id or not. */
bool definitions_is_generator(struct object *code);

/* The code object dies. GIL held. */
void definitions_forget_code(const struct object *code);

/*
 * What ids.h has of a code object. Where the writer looks in a table of before, it looks in the present one from here
 * on.
 */
uint64_t definitions_look_again(struct writer *writer, const struct object *code) __attribute__((cold, noinline));

/*
 * As definitions_code(), by loads alone, for codes that need no closer look than this; 0 for others. Only with
 * writer_has_room().
 */
static inline uint32_t definitions_code_closer(struct writer *writer, const struct object *code, uint32_t closer)
{
	uint64_t value;

	if (unlikely(!ids_find_fast(&writer->ids, code, &value)))
		value = definitions_look_again(writer, code);
	return value >> 32 & ~closer ? 0 : (uint32_t)value;
}

/* The id of a code that needs none, likewise. False for some of these, too, and for whatever is no code object. */
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
 * The id of a C function, and FUNCTION_THROWS and DEFINITION_HIDDEN. callable: a PyCFunction or a method_descriptor
 * with that method.
 */
uint32_t definitions_function(const struct python_method *method, struct object *callable);

/* The id of an exception's type. */
uint32_t definitions_type(const void *type);

/*
 * What WIRE_TASK is to tell of the task whose step begins with an event of this kind in this frame: with its name, if
 * asyncio has made it and the program has named it. GIL held.
 */
uint64_t definitions_task(unsigned kind, const void *frame);

/* The id of a mark. No GIL needed. */
uint32_t definitions_mark(const char *name);

/*
 * Writes a definition that has its id. The process's lock is held. Returns 0, or -EAGAIN: its ring is full and stays
 * so.
 */
int definitions_write(struct wire_definition *record, const char *const strings[WIRE_DEFINITION_STRINGS]);

/* What was measured, see wire.h. */
void definitions_calibration(const char *costs);

/* Tells the name of the thread with this kernel id. */
void definitions_thread_name(uint32_t tid, struct object *name);

/* The calling thread has this name, for the child that it may fork. GIL held. */
void definitions_remember_name(struct object *name);

/* The child of a fork has joined: its thread still has the name that it had in the parent. Without Python. */
void definitions_inherited_name(void);

/*
 * The ids of the Python stack of this thread, innermost first, without the top frame if kind is about to push it: at
 * most so many. lines: the lines at which these frames stand, or NULL. *more: there are others below. Returns how many
 * there are in ids.
 */
uint32_t definitions_stack(unsigned kind, uint32_t *ids, int *lines, uint32_t most, bool *more);

#endif
