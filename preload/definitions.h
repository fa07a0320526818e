/*
 * definitions.h - what the ids in events mean: giving ids, and telling the collector their names.
 *
 * Called from hooks with the GIL held. Finding an id that was given is the fast path, inline; giving one is a function.
 * Zero means that the definition could not be written (its ring is full and stays so): the event is then lost, so that
 * no event ever stands without its name.
 */
#ifndef PRELOAD_DEFINITIONS_H
#define PRELOAD_DEFINITIONS_H

#include "process.h"
#include "python.h"

#define DEFINITION_ID(value) ((value)&WIRE_ARG_MAX)
#define CODE_IS_GENERATOR (1u << 27)
#define CODE_IS_COROUTINE (1u << 29)	/* or an asynchronous generator: its steps may be a task's (writer.h) */
#define CODE_EPOCH_GENERATOR (1u << 30) /* the hooks look closer: generators until 3.11, then coroutines only */
#define FUNCTION_THROWS (1u << 27)	/* generator.throw() or close(): the next resume is a throw */
#define DEFINITION_HIDDEN (1u << 28)	/* not to be recorded (choose.h); the id is 0 */
#define CODE_EPOCH_HIDDEN (1u << 29)	/* likewise */

/* In a code object's extra: code_epoch << 32 | flags | id. Codes that need a look at each call have this bit, too. */
#define CODE_EPOCH_SPECIAL (1u << 31)

struct code_extra { /* codeobject.c's: how many values there are, and they */
	ssize_t size;
	uint64_t values[];
};

/* The id of a code object, and CODE_IS_GENERATOR; or DEFINITION_HIDDEN. */
uint32_t definitions_code(struct object *code);

/* The place of a key in the table in use. Readers take the shift before the table: the shift of a table is set first. */
static inline struct function_entry *definitions_place(const void *key)
{
	uint32_t shift = atomic_load_explicit(&process->function_shift, memory_order_relaxed);
	struct function_entry *table = atomic_load_explicit(&process->functions, memory_order_relaxed);

	return &table[((uintptr_t)key >> 3) * UINT64_C(0x9e3779b97f4a7c15) >> shift];
}

/* As definitions_code(), by loads alone, for codes whose epoch has these flags: 0 for others. Only with writer_fast. */
static inline uint32_t definitions_code_flagged(const struct object *code, uint32_t flags)
{
	const struct code_extra *extra = python_field(code, python.code_extra);
	uint64_t value;

	if (unlikely(!extra || extra->size <= python.code_extra_index))
		return 0;
	value = extra->values[python.code_extra_index];
	return likely(value >> 32 == (code_epoch | flags)) ? (uint32_t)value : 0;
}

static inline uint32_t definitions_code_fast(const struct object *code)
{
	return definitions_code_flagged(code, 0);
}

/* As definitions_function(), likewise. */
static inline uint32_t definitions_function_fast(const struct python_method *method)
{
	struct function_entry *entry = definitions_place(method);

	return likely(atomic_load_explicit(&entry->key, memory_order_acquire) == method) ? (uint32_t)entry->value : 0;
}

/* The id of a C function, and FUNCTION_THROWS and DEFINITION_HIDDEN. callable: a PyCFunction or a method_descriptor with that method. */
uint32_t definitions_function(const struct python_method *method, struct object *callable);

/* The id of an exception's type. */
uint32_t definitions_type(const void *type);

/* The id of a mark. No GIL needed. */
uint32_t definitions_mark(const char *name);

/* What was measured, see wire.h. */
void definitions_calibration(const char *costs);

/* Tells the name of the thread with this kernel id. */
void definitions_thread_name(uint32_t tid, struct object *name);

/*
 * The ids of the Python stack of this thread, innermost first, without the top frame if kind is about to push it: at
 * most so many. *more: there are others below. Returns how many there are in ids.
 */
uint32_t definitions_stack(unsigned kind, uint32_t *ids, uint32_t most, bool *more);

#endif
