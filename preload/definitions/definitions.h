/*
 * definitions.h - gives ids to functions, and writes their names for the collector.
 *
 * Called from hooks with the GIL held, or attached to Python where there is no GIL. Finding an existing id is the fast
 * path, inline; assigning one is a function call. Id 0 means that the definition could not be written, because its ring
 * is full and stays full: the event is then lost. No recorded event lacks its definition.
 */
#ifndef PRELOAD_DEFINITIONS_H
#define PRELOAD_DEFINITIONS_H

#include "python/python.h"
#include "ring/ids.h"
#include "ring/writer.h"

#define DEFINITION_ID(value) ((value)&WIRE_ARG_MAX)
#define CODE_IS_GENERATOR (1u << 27)
#define CODE_IS_COROUTINE (1u << 29)  /* or an asynchronous generator: its steps may be a task's (writer.h) */
#define FUNCTION_THROWS (1u << 27)    /* generator.throw() or close(): the next resume is a throw */
#define DEFINITION_HIDDEN (1u << 28)  /* not to be recorded (filter.h); the id is 0 */
#define CODE_THINS_C_CALLS (1u << 30) /* the C functions that it calls are not recorded now (hooks/budget.h) */
#define CODE_THINNED (1u << 31)	      /* nor is the function itself; with CODE_SLOW_THINNED */

/*
 * Slow-path flags of a code object, in the upper half of its value in ids.h. 0 for most code; never 0 for a key that is
 * no code object.
 */
#define CODE_SLOW_GENERATOR 1u /* all generators until 3.11, coroutines only from 3.12 on */
#define CODE_SLOW_HIDDEN 2u
#define CODE_SLOW_SPECIAL 4u	/* each call is examined, see thread_names_learn() */
#define CODE_SLOW_C_FUNCTION 8u /* the key is a C function, not a code object at the same address */
#define CODE_SLOW_PROGRAM 16u	/* its end may be that of the program, see hooks/program.h */
#define CODE_SLOW_UNCAUGHT 32u	/* threading calls it with an exception that went uncaught in a thread */
#define CODE_SLOW_THINNED 64u
#define CODE_SLOW_SUBSCRIPTS 128u /* it has subscripts, if that is asked for (definitions_subscripts) */
#define CODE_SLOW_SPLIT 256u	  /* its superinstructions are split, see definitions_join() */

/*
 * Values up to here have an upper half of 0. The highest bit of the lower half is unused, so one comparison suffices.
 */
#define CODE_PLAIN_MAX ((uint64_t)INT32_MAX)

/* The id of the running code object with CODE_IS_GENERATOR and CODE_IS_COROUTINE; or DEFINITION_HIDDEN; or 0. */
uint32_t definitions_code(struct object *code);

/* As definitions_code(), for the code of a frame that need not be the running one. globals: of the frame, or NULL. */
uint32_t definitions_code_of_frame(struct object *code, struct object *globals);

/*
 * As definitions_code_of_frame(), for a frame of the calling thread, without the GIL and without a call of Python. The
 * function's module is not known. 0 also where that does not suffice: a filter needs the module, or a name is not
 * ASCII.
 */
uint32_t definitions_code_by_loads(struct object *code);

/* NULL, or what is called with each C function before its first id. owner: its class, or its module. */
extern void (*definitions_meet)(const struct python_method *method, const char *owner);

/*
 * Whether a function is filtered out (filter.h). Called before there is room for its event, so that no event of a
 * hidden function counts as lost. False while this thread has no slot.
 */
bool definitions_hides_code(struct object *code);

enum thinned { THINNED_NOT, THINNED_C_CALLS, THINNED };

/*
 * NULL, or what is left out for now of the code with an id: the calls of C functions that it makes, or all its events,
 * too. Set before the first id.
 */
extern enum thinned (*definitions_left_out)(uint32_t id);

/* What definitions_left_out() says has changed. GIL held. */
void definitions_thin(void);

/* Whether a code object with this value in ids.h may be thinned so: nothing that is examined. */
bool definitions_may_thin(uint64_t value, enum thinned thinned);

/* What of it is left out now. */
enum thinned definitions_thinned(const struct writer *writer, const struct object *code);

/* Leaves a code object out from here on: it is not the program's. GIL held. */
void definitions_hide_code(const struct object *code);
bool definitions_hides_function(const struct python_method *method, struct object *callable);

/* Whether the code is that of a generator or coroutine. The code need not have an id. */
bool definitions_is_generator(struct object *code);

/*
 * Each code gets its table of lines with its name (WIRE_DEFINE_LINES). Set before the first id, and once the layout of
 * code is known (sampled_layout.h).
 */
extern bool definitions_lines;

/* Marks code with subscripts (python_has_subscripts()). Set before the first id. */
extern bool definitions_subscripts;

/* python_despecialize_subscripts(), whose own allocations are not the program's. GIL held. */
bool definitions_despecialize_subscripts(struct object *code, bool all);

/*
 * Takes the mark off code that has run often enough: its subscripts call the evaluator from here on
 * (definitions_despecialize_subscripts()). False: it has not, or has no mark. GIL held.
 */
bool definitions_unmark_subscripts(struct object *code);

/* 3.12: Python has instrumented all code, or will when it is entered, and so split its superinstructions. GIL held. */
void definitions_mark_split(void);

/* At an event of code: joins its superinstructions (superinstructions.h) if it is marked so, or has no id. GIL held. */
void definitions_join(struct object *code);

/* EVPROF_BUDGET: the time that definitions have taken, in ns. */
extern _Atomic uint64_t definitions_ns;

/* Removes the id of a code object that dies. GIL held. */
void definitions_forget_code(const struct object *code);
extern _Atomic uint32_t definitions_codes_died; /* how many */

extern _Atomic uint32_t definitions_codes;	/* how many code objects were given an id, new or not ... */
extern _Atomic uint64_t definitions_code_bytes; /* ... and their instructions, python_code_size() */

/* The value of a code object in ids.h. Where the writer's view is of an old table, it is set to the present one. */
uint64_t definitions_reload(struct writer *writer, const struct object *code) __attribute__((cold, noinline));

/*
 * As definitions_code(), by loads alone. 0 for code with a slow-path flag other than those allowed. Only with
 * writer_has_room().
 */
static inline uint32_t definitions_code_allowing(struct writer *writer, const struct object *code, uint32_t allowed)
{
	uint64_t value;

	if (unlikely(!ids_find_fast(&writer->ids, code, &value)))
		value = definitions_reload(writer, code);
	return value >> 32 & ~allowed ? 0 : (uint32_t)value;
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

#endif
