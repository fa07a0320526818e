/*
 * calibrate.c - what an event costs here, on this machine, by this interpreter, with these hooks.
 *
 * A loop that calls an empty function is timed with the hooks and without them: the difference is what a call and its
 * return add. How much of that lies between the two time stamps, and so looks like time of the function, the stamps
 * themselves tell; the rest looks like time of the caller. The same for a C function, and for a block of memory. It
 * takes some ten milliseconds, writes no event (a private writer takes them), and calls no code of the program.
 */
#include "calibrate.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "config.h"
#include "definitions.h"
#include "hooks.h"
#include "log.h"
#include "process.h"
#include "writer.h"

#define TIMES 400
#define ROUNDS 15
#define WORDS 8192

static const char source[] = "def leaf(): pass\n"
			     "def nothing(times):\n"
			     "    for _ in times: pass\n"
			     "def calls(times):\n"
			     "    for _ in times: leaf()\n"
			     "def natives(times, f=len, x=()):\n"
			     "    for _ in times: f(x)\n"
			     "times = (None,) * 400\n";

struct timing {
	double on, off; /* ns for one turn, the shortest of the rounds */
	double inner;	/* ns between the stamps of a call and its end */
};

static struct writer private_writer;
static struct ring_slot private_slot;

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void empty_private_writer(void)
{
	private_writer.head = 0;
	private_writer.last_ticks = clock_now();
	private_writer.room = private_writer.mask + 1 - WRITER_SPARE_WORDS;
	private_writer.limit = writer_fast ? private_writer.room : 0;
}

/* Mean ticks between a call and its end, of what the private writer holds. */
static double mean_inner(void)
{
	const uint32_t ends = 1u << WIRE_RETURN | 1u << WIRE_C_RETURN;
	uint64_t sum = 0, count = 0;

	for (uint64_t at = 0; at < private_writer.head; at++) {
		unsigned kind = wire_head_kind((uint32_t)private_writer.words[at]);

		if (ends >> kind & 1) {
			sum += private_writer.words[at] >> 32;
			count++;
		}
		at += wire_extra_words(kind);
	}
	return count ? (double)sum / (double)count : 0;
}

static double run_once(struct object *globals, const char *name)
{
	struct object *function = python.PyDict_GetItemString(globals, name), *result;
	double begin;

	empty_private_writer();
	begin = now_ns();
	result = python.PyObject_CallMethod(function, "__call__", "(O)", python.PyDict_GetItemString(globals, "times"));
	begin = now_ns() - begin;
	if (result)
		python.Py_DecRef(result);
	python.PyErr_Clear();
	return begin / TIMES;
}

/* Turns the hooks of this thread off and on again. */
static void switch_hooks(bool on)
{
	thread_self.nesting++; /* what follows is evprof, not the program */
	if (python.monitoring)
		hooks_monitoring_hear(on);
	else if (on)
		hooks_profile_set();
	else
		python.PyEval_SetProfile(NULL, NULL);
	thread_self.nesting--;
}

static void time_function(struct object *globals, const char *name, bool on, struct timing *timing)
{
	double *shortest = on ? &timing->on : &timing->off;

	for (int i = 0; i < ROUNDS; i++) {
		double turn = run_once(globals, name);

		if (i && turn >= *shortest)
			continue;
		*shortest = turn;
		if (on)
			timing->inner = mean_inner();
	}
}

/* ns that a memory event adds. */
static double time_memory(void)
{
	struct python_allocator allocator;
	double shortest[2] = {1e9, 1e9}, turn;
	uint32_t nesting = thread_self.nesting;

	if (!(config.events & EVENT_MEM))
		return 0;
	python.PyMem_GetAllocator(WIRE_DOMAIN_OBJ, &allocator);
	for (int i = 0; i < 2 * ROUNDS; i++) {
		thread_self.nesting = (uint32_t)(i & 1); /* not 0: the hook is passed through */
		empty_private_writer();
		turn = now_ns();
		for (int k = 0; k < TIMES; k++)
			allocator.free(allocator.context, allocator.malloc(allocator.context, 64));
		turn = (now_ns() - turn) / TIMES;
		if (turn < shortest[i & 1])
			shortest[i & 1] = turn;
	}
	thread_self.nesting = nesting;
	return shortest[0] > shortest[1] ? (shortest[0] - shortest[1]) / 2 : 0;
}

static struct object *make_globals(void)
{
	struct object *builtins = python.PyEval_GetBuiltins(), *globals = python.PyDict_New(), *exec, *done = NULL;

	exec = builtins ? python.PyDict_GetItemString(builtins, "exec") : NULL;
	if (exec && globals)
		done = python.PyObject_CallMethod(exec, "__call__", "sO", source, globals);
	python.PyErr_Clear();
	if (done)
		python.Py_DecRef(done);
	else if (globals)
		python.Py_DecRef(globals);
	return done ? globals : NULL;
}

/* ns per tick of the events, from two clocks over the time that the measurement took. */
struct span {
	double ns;
	uint64_t ticks;
};

static struct span span_now(void)
{
	return (struct span){now_ns(), clock_now()};
}

static void measure(struct object *globals)
{
	struct timing nothing = {0}, calls = {0}, natives = {0};
	struct span begin = span_now(), end;
	char text[160];
	double memory, tick;

	time_function(globals, "nothing", true, &nothing);
	time_function(globals, "calls", true, &calls);
	time_function(globals, "natives", true, &natives);
	memory = time_memory();
	switch_hooks(false);
	time_function(globals, "nothing", false, &nothing);
	time_function(globals, "calls", false, &calls);
	time_function(globals, "natives", false, &natives);
	switch_hooks(true);
	end = span_now();
	tick = (end.ns - begin.ns) / (double)(end.ticks - begin.ticks + 1);
	snprintf(text, sizeof(text), "call %.2f %.2f %.2f c_call %.2f %.2f %.2f mem %.2f", calls.on - calls.off,
		 calls.inner * tick, calls.off - nothing.off, natives.on - natives.off, natives.inner * tick,
		 natives.off - nothing.off, memory);
	definitions_calibration(text);
	log_line(LOG_DEBUG, "calibration: %s", text);
}

static int calibrate(void *data)
{
	struct writer *writer = thread_self.writer;
	size_t bytes = WORDS * sizeof(uint64_t);
	void *words = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct object *globals;

	(void)data;
	if (words == MAP_FAILED)
		return 0;
	if (!python.PyDict_New || !python.PyEval_GetBuiltins || !writer->slot) {
		munmap(words, bytes);
		return 0;
	}
	private_writer =
	    (struct writer){.words = words, .mask = WORDS - 1, .slot = &private_slot, .pause = UINT64_C(1) << 32};
	thread_self.entered = 1; /* the hooks that are set here are ours */
	thread_self.writer = &private_writer;
	empty_private_writer();
	globals = make_globals();
	if (globals) {
		measure(globals);
		python.Py_DecRef(globals);
	}
	thread_self.writer = writer;
	thread_self.entered = 0;
	munmap(words, bytes);
	return 0;
}

void calibrate_soon(void)
{
	static bool asked;

	if (asked || !config.calibrate || !(config.events & EVENT_CALL) || !(config.events & EVENT_C_CALL))
		return;
	asked = true;
	python.Py_AddPendingCall(calibrate, NULL);
}
