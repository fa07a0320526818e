/*
 * step_hook.c - what evprof does at an event, step by step: tests/bench/steps says what each step adds.
 *
 * Compiled once for each STEP, with the library's own ids.c and writer.h:
 *
 *   0  the hook is called and returns
 *   1  reads the counter
 *   2  writes the word as evprof does (room, pause, ring, published head), into private memory
 *   3  finds out what was called, and its id
 *   4  the ring is in shared memory, which nobody reads
 *
 * It loses everything, and knows plain functions only: neither generators nor throws, nor functions that are left out.
 */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ring/ids.h"
#include "python/python.h"
#include "ring/writer.h"
#include "least_start.h"

/* For who compiles it by itself, to check it. */
#ifndef STEP
#define STEP 4
#endif

#define RING_BYTES ((size_t)4 << 20)

enum { WHAT_CALL = 0, WHAT_RETURN = 3 };

__thread struct thread_self thread_self __attribute__((tls_model("initial-exec")));
static struct ids ids;
static struct ring_slot slot;
static _Alignas(128) struct writer writer;
static uint64_t last;
static uint32_t last_id;
static const void *code_type, *c_function_type, *c_method_type, *method_descriptor_type;

static void *ring_memory(void)
{
	int fd = -1, flags = MAP_PRIVATE | MAP_ANONYMOUS;
	void *memory;

	if (STEP >= 4) {
		flags = MAP_SHARED;
		fd = memfd_create("step_hook", MFD_CLOEXEC);
		if (fd < 0 || ftruncate(fd, RING_BYTES) < 0)
			return NULL;
	}
	memory = mmap(NULL, RING_BYTES, PROT_READ | PROT_WRITE, flags, fd, 0);
	if (fd >= 0)
		close(fd);
	return memory == MAP_FAILED ? NULL : memory;
}

static void prepare(void)
{
	code_type = dlsym(RTLD_DEFAULT, "PyCode_Type");
	c_function_type = dlsym(RTLD_DEFAULT, "PyCFunction_Type");
	c_method_type = dlsym(RTLD_DEFAULT, "PyCMethod_Type");
	method_descriptor_type = dlsym(RTLD_DEFAULT, "PyMethodDescr_Type");
	writer.words = ring_memory();
	writer.mask = RING_BYTES / sizeof(uint64_t) - 1;
	writer.pause = UINT64_C(1) << 32;
	writer.last_ticks = clock_counter() >> CLOCK_SHIFT;
	writer.slot = &slot;
	ids_begin(&ids);
	thread_self.writer = &writer;
}

/* As writer_take_chunk() does, where nobody reads. */
static __attribute__((noinline)) void take_chunk(void)
{
	if (!writer.words)
		return;
	writer.limit = writer_chunk(&writer);
	writer.ids = ids_look(&ids);
	if (writer.head == writer.limit) /* the last word of a lap */
		writer.head++;
}

/* An event of a kind whose function has this key. */
static inline __attribute__((always_inline)) void put(const void *key, unsigned kind)
{
	struct writer *own = thread_self.writer;
	uint64_t value = 1;

	if (STEP == 1)
		last = clock_counter();
	if (STEP < 2 || !own)
		return;
	if (!writer_has_room(own)) {
		take_chunk();
		return;
	}
	if (STEP >= 3 && unlikely(!ids_find_fast(&own->ids, key, &value))) {
		if (!ids_find(&ids, key))
			ids_insert(&ids, key, ++last_id);
		own->ids = ids_look(&ids);
		return;
	}
	if (unlikely(value & ~(uint64_t)WIRE_ARG_MAX) || !writer_put_fast(own, wire_head(kind, (uint32_t)value)))
		own->last_ticks = clock_counter() >> CLOCK_SHIFT;
}

static inline __attribute__((always_inline)) void put_profiled(void *code, int what, void *argument)
{
	static const uint8_t kinds[] = {0, 0, 0, 0, WIRE_C_CALL, WIRE_C_EXCEPTION, WIRE_C_RETURN};

	if (STEP < 3)
		put(NULL, (unsigned)what);
	else if (what <= WHAT_RETURN)
		put(code, what == WHAT_CALL ? WIRE_CALL : argument ? WIRE_RETURN : WIRE_UNWIND);
	else
		put(python_field(argument, PYTHON_C_FUNCTION_METHOD), kinds[what]);
}

/* Until 3.10 the frame object holds the code. */
static int profile_frame(void *self, void *frame, int what, void *argument)
{
	(void)self;
	put_profiled(STEP < 3 ? NULL : python_field(frame, PYTHON_FRAME_CODE), what, argument);
	return 0;
}

static int profile_inner_frame(void *self, void *frame, int what, void *argument)
{
	(void)self;
	put_profiled(STEP < 3 ? NULL : python_field(python_field(frame, PYTHON_FRAME_INNER), PYTHON_INNER_CODE), what,
		     argument);
	return 0;
}

static inline __attribute__((always_inline)) void *put_code(void *const *arguments, unsigned kind)
{
	if (STEP < 3 || python_field(arguments[0], PYTHON_TYPE) == code_type)
		put(STEP < 3 ? NULL : arguments[0], kind);
	return none;
}

static inline __attribute__((always_inline)) void *put_function(void *const *arguments, unsigned kind)
{
	const void *type;

	if (STEP < 3) {
		put(NULL, kind);
		return none;
	}
	type = python_field(arguments[2], PYTHON_TYPE);
	if (type == c_function_type || type == c_method_type)
		put(python_field(arguments[2], PYTHON_C_FUNCTION_METHOD), kind);
	else if (type == method_descriptor_type && arguments[3] != missing)
		put(python_field(arguments[2], PYTHON_DESCRIPTOR_METHOD), kind);
	return none;
}

#define CALLBACK(name, function, kind)                                                                                 \
	static void *name(void *self, void *const *arguments, size_t number, void *names)                              \
	{                                                                                                              \
		(void)self, (void)number, (void)names;                                                                 \
		return function(arguments, kind);                                                                      \
	}

CALLBACK(on_start, put_code, WIRE_CALL)
CALLBACK(on_resume, put_code, WIRE_RESUME)
CALLBACK(on_throw, put_code, WIRE_THROW)
CALLBACK(on_return, put_code, WIRE_RETURN)
CALLBACK(on_yield, put_code, WIRE_YIELD)
CALLBACK(on_unwind, put_code, WIRE_UNWIND)
CALLBACK(on_call, put_function, WIRE_C_CALL)
CALLBACK(on_c_return, put_function, WIRE_C_RETURN)
CALLBACK(on_c_raise, put_function, WIRE_C_EXCEPTION)

static profile_function profile_for(int minor)
{
	return minor < 11 ? profile_frame : profile_inner_frame;
}

static vectorcall callback_for(int event)
{
	static const vectorcall callbacks[] = {on_start,  on_resume, on_throw,	  on_return, on_yield,
					       on_unwind, on_call,   on_c_return, on_c_raise};

	return callbacks[event];
}
