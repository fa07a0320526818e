/*
 * test_tools_call_walk.c - what visitors get of a trace: windows, hidden functions, short calls, depth, gaps, forks.
 *
 * Each test writes a trace event by event and compares what a visitor saw, line by line, with what must come of it.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/replay/call_walk.h"
#include "one_trace.h"

static char *saw;
static size_t saw_bytes;
static FILE *story;
static struct filter filter;
static int fails_at; /* pushes until the visitor fails; 0: never */

/* a, b, c: Python functions; x, y: C functions. */
enum { A = 1, B = 2, C = 3, X = 1, Y = 2 };

static void set_up(void)
{
	fixture = fixture_new();
	process = fixture_process(fixture, 10, 1);
	fixture_code(fixture, process, A, "a.py", 1, "a");
	fixture_code(fixture, process, B, "b.py", 2, "b");
	fixture_code(fixture, process, C, "/usr/lib/python3.11/c.py", 3, "c");
	fixture_function(fixture, process, X, "", "x", "m");
	fixture_function(fixture, process, Y, "", "y", "m");
	thread = fixture_thread(fixture, process, 11, 1000);
	story = open_memstream(&saw, &saw_bytes);
	filter = (struct filter){0};
	fails_at = 0;
}

static void tear_down(void)
{
	if (story)
		fclose(story);
	free(saw);
	filter_done(&filter);
	end_trace();
}

TestSuite(walk, .init = set_up, .fini = tear_down);

static void gap(uint64_t missing, uint32_t ticks)
{
	event(WIRE_GAP, 0, ticks);
	fixture_extra(fixture, thread, missing);
}

/* --- the visitor writes a line for all it gets --- */

static const char *name_of(const struct call_walk *walk, uint32_t key)
{
	static char name[32];
	const struct wire_definition *definition = walk_definition(walk, key);
	struct text text = definition ? trace_string(definition, 1) : text_of("?");

	snprintf(name, sizeof(name), "%.*s", (int)text.length, text.at);
	return name;
}

static const char *kind_of(unsigned kind)
{
	static const char *const kinds[WIRE_KINDS] = WIRE_KIND_NAMES;

	return kinds[kind];
}

static void see_push(void *owner, struct call_walk *walk, struct walk_frame *frame)
{
	(void)owner;
	cr_expect(frame->user == 0 && walk->now_ns == frame->start_ns);
	cr_expect(frame == &walk->frames[walk->shown] || frame == &walk->frames[walk->shown - 1]);
	frame->user = 4711;
	fprintf(story, "%lld +%s %s", (long long)walk->now_ns, name_of(walk, frame->key), kind_of(frame->kind));
	if (walk_greenlet(walk))
		fprintf(story, " greenlet %u", walk_greenlet(walk));
	if (frame->task)
		fprintf(story, " task %u", frame->task);
	fprintf(story, "\n");
	if (fails_at && --fails_at == 0)
		walk_fail(walk, -EIO);
}

static void see_pop(void *owner, struct call_walk *walk, struct walk_frame *frame, unsigned how)
{
	(void)owner;
	cr_expect(frame->user == 4711, "the pop is of the frame that was pushed");
	fprintf(story, "%lld -%s %s %lld (%llu)\n", (long long)walk->now_ns, name_of(walk, frame->key), kind_of(how),
		(long long)(walk->now_ns - frame->start_ns), (unsigned long long)frame->inner_ns);
}

static void see_other(void *owner, struct call_walk *walk, uint32_t head, const uint64_t *extra)
{
	(void)owner;
	fprintf(story, "%lld %s", (long long)walk->now_ns, kind_of(wire_head_kind(head)));
	if (wire_head_kind(head) == WIRE_GAP)
		fprintf(story, " %llu", (unsigned long long)*extra);
	fprintf(story, "\n");
}

static int see_thread(void *owner, struct call_walk *walk)
{
	(void)owner;
	fprintf(story, "thread %u\n", walk->thread->tid);
	return 0;
}

static int see_end(void *owner, struct call_walk *walk)
{
	(void)owner;
	(void)walk;
	fprintf(story, "end\n");
	return 0;
}

static const struct call_visitor visitor = {
    .push = see_push, .pop = see_pop, .other = see_other, .thread = see_thread, .thread_end = see_end};

static int walk_all(const struct call_visitor *with)
{
	struct progress progress = {0};
	char error[200] = "";
	struct trace *trace = NULL;
	int status;

	cr_assert(trace_open_memory(&trace, fixture->bytes, fixture->size, "fixture", error, sizeof(error)) == 0, "%s",
		  error);
	status = walk_trace(trace, &filter, &progress, with, NULL);
	trace_close(trace);
	fflush(story);
	return status;
}

static void expect_story(const char *expected)
{
	cr_expect(walk_all(&visitor) == 0);
	cr_expect(saw_bytes == strlen(expected) && memcmp(saw, expected, saw_bytes) == 0, "saw\n%.*s\nnot\n%s",
		  (int)saw_bytes, saw, expected);
}

static void from_to(int64_t from, int64_t to)
{
	filter.from_given = from >= 0;
	filter.from_ns = from;
	filter.to_given = to >= 0;
	filter.to_ns = to;
}

static void set_filter(int option, const char *value)
{
	cr_assert(filter_take(&filter, "test", option, value));
}

/* a { b { x {} } c {} } at 0, 10, 20, 30, 40, 50, 70, 100; each chunk has `each` of these events. */
static void a_b_c(unsigned each)
{
	static const struct {
		unsigned kind;
		uint32_t id, ticks;
	} events[] = {{WIRE_CALL, A, 0},    {WIRE_CALL, B, 10}, {WIRE_C_CALL, X, 10}, {WIRE_C_RETURN, X, 10},
		      {WIRE_RETURN, B, 10}, {WIRE_CALL, C, 10}, {WIRE_UNWIND, C, 20}, {WIRE_RETURN, A, 30}};

	for (unsigned i = 0; i < 8; i++) {
		event(events[i].kind, events[i].id, events[i].ticks);
		if ((i + 1) % each == 0)
			fixture_flush(fixture, thread);
	}
	fixture_end(fixture);
}

#define A_B_C                                                                                                          \
	"thread 11\n0 +a call\n10 +b call\n20 +x c_call\n30 -x c_return 10 (0)\n40 -b return 30 (10)\n50 +c call\n"    \
	"70 -c unwind 20 (0)\n100 -a return 100 (50)\nend\n"

Test(walk, everything)
{
	a_b_c(8);
	expect_story(A_B_C);
}

Test(walk, chunks_make_no_difference)
{
	a_b_c(1);
	expect_story(A_B_C);
}

Test(walk, a_window_of_everything)
{
	a_b_c(1);
	from_to(0, 1000);
	expect_story(A_B_C);
}

/* --- windows --- */

#define FROM_15                                                                                                        \
	"thread 11\n15 +a frame\n15 +b frame\n20 +x c_call\n30 -x c_return 10 (0)\n40 -b return 25 (10)\n50 +c call\n" \
	"70 -c unwind 20 (0)\n100 -a return 85 (45)\nend\n"

Test(walk, from_within_a_chunk)
{
	a_b_c(8);
	from_to(15, -1);
	expect_story(FROM_15);
}

/* What began in chunks that are not read is known by its end. */
Test(walk, from_in_the_middle_of_chunks)
{
	a_b_c(1);
	from_to(15, -1);
	expect_story(FROM_15);
}

/* An event at the very beginning is in the window, one at its end is not. */
Test(walk, borders)
{
	a_b_c(3);
	from_to(20, 50);
	expect_story("thread 11\n20 +a frame\n20 +b frame\n20 +x c_call\n30 -x c_return 10 (0)\n40 -b return 20 (10)\n"
		     "50 -a none 30 (20)\nend\n");
}

Test(walk, no_event_in_the_window)
{
	a_b_c(8);
	from_to(51, 69);
	expect_story("thread 11\n51 +a frame\n51 +c frame\n69 -c none 18 (0)\n69 -a none 18 (18)\nend\n");
}

/* Neither its begin nor its end are in the window or in the chunks at its borders. */
Test(walk, calls_around_the_window)
{
	a_b_c(1);
	from_to(45, 60);
	expect_story("thread 11\n45 +a frame\n50 +c call\n60 -c none 10 (0)\n60 -a none 15 (10)\nend\n");
}

/* Where a tick takes 7 ns, the window ends between two of them all the same. */
Test(walk, window_ends_between_ticks)
{
	end_trace();
	fixture = fixture_new();
	fixture_meta(fixture, 0, "{\"type\":\"process\",\"process\":0,\"pid\":10,\"clock_kind\":1,\"clock_shift\":0}");
	fixture_clock(fixture, 1, 0, 0, 1000);
	fixture_clock(fixture, 1, 0, 1000, 8000);
	fixture_code(fixture, 0, A, "a.py", 1, "a");
	thread = fixture_thread(fixture, 0, 11, 100);
	event(WIRE_CALL, A, 0);
	event(WIRE_RETURN, A, 100);
	fixture_end(fixture);
	from_to(30, 60);
	expect_story("thread 11\n30 +a frame\n60 -a none 30 (0)\nend\n");
}

static void flushed(unsigned kind, uint32_t argument, uint32_t ticks)
{
	event(kind, argument, ticks);
	fixture_flush(fixture, thread);
}

/* Calls without an end do not restore the stack, a recorded stack does; events before it are not read. */
Test(walk, a_recorded_stack)
{
	flushed(WIRE_C_CALL, Y, 0);
	event(WIRE_CALL, A, 5);
	event(WIRE_OPEN, A, 5);
	event(WIRE_OPEN, B, 0);
	flushed(WIRE_CALL, C, 5);
	flushed(WIRE_C_CALL, X, 5);
	flushed(WIRE_C_RETURN, X, 5);
	flushed(WIRE_RETURN, C, 10);
	flushed(WIRE_CALL, A, 10);
	from_to(30, 40);
	expect_story("thread 11\n30 +a frame\n30 +b frame\n30 +c frame\n35 -c return 5 (0)\n40 -b none 10 (5)\n"
		     "40 -a none 10 (10)\nend\n");
}

/* It goes on over the border of two chunks; the end that is at the beginning of a chunk is not taken for the whole. */
Test(walk, a_recorded_stack_in_two_chunks)
{
	event(WIRE_CALL, A, 0);
	event(WIRE_CALL, B, 0);
	flushed(WIRE_OPEN, A, 10);
	event(WIRE_OPEN, B, 0);
	flushed(WIRE_CALL, C, 10);
	flushed(WIRE_RETURN, C, 10);
	event(WIRE_CALL, C, 10);
	fixture_end(fixture);
	from_to(25, -1);
	expect_story("thread 11\n25 +a frame\n25 +b frame\n25 +c frame\n30 -c return 5 (0)\n40 +c call\n"
		     "40 -c none 0 (0)\n40 -b none 15 (5)\n40 -a none 15 (15)\nend\n");
}

/* It is not an event to whoever reads from the beginning, and does not touch what runs. */
Test(walk, a_stack_that_was_known)
{
	event(WIRE_CALL, A, 0);
	event(WIRE_C_CALL, X, 10);
	event(WIRE_OPEN, A, 10);
	event(WIRE_C_RETURN, X, 10);
	event(WIRE_RETURN, A, 10);
	fixture_end(fixture);
	expect_story("thread 11\n0 +a call\n10 +x c_call\n30 -x c_return 20 (0)\n40 -a return 40 (20)\nend\n");
}

/* After it, events were lost: it says nothing any more. */
Test(walk, a_gap_after_the_recorded_stack)
{
	event(WIRE_CALL, A, 0);
	event(WIRE_OPEN, A, 0);
	gap(5, 10);
	fixture_flush(fixture, thread);
	flushed(WIRE_CALL, B, 10);
	flushed(WIRE_MARK, 0, 10);
	flushed(WIRE_CALL, C, 10);
	from_to(25, -1);
	expect_story("thread 11\n25 +b frame\n30 mark\n40 +c call\n40 -c none 0 (0)\n40 -b none 15 (0)\nend\n");
}

Test(walk, hidden_frames_of_a_recorded_stack)
{
	set_filter(FILTER_EXCLUDE, "b");
	event(WIRE_CALL, A, 0);
	event(WIRE_OPEN, A, 0);
	event(WIRE_OPEN, B, 0);
	flushed(WIRE_CALL, C, 0);
	flushed(WIRE_RETURN, C, 20);
	from_to(10, -1);
	expect_story("thread 11\n10 +a frame\n10 +c frame\n20 -c return 10 (0)\n20 -a none 10 (10)\nend\n");
}

Test(walk, window_behind_all)
{
	a_b_c(2);
	from_to(1000, 2000);
	expect_story("thread 11\nend\n");
}

Test(walk, empty_and_turned_windows)
{
	a_b_c(2);
	from_to(20, 20);
	expect_story("thread 11\nend\n");
	rewind(story);
	from_to(40, 20);
	expect_story("thread 11\nend\n");
}

Test(walk, to_alone)
{
	a_b_c(2);
	from_to(-1, 20);
	expect_story("thread 11\n0 +a call\n10 +b call\n20 -b none 10 (0)\n20 -a none 20 (10)\nend\n");
}

Test(walk, a_thread_that_begins_in_the_window)
{
	uint32_t first = thread;

	event(WIRE_CALL, A, 0);
	thread = fixture_thread(fixture, process, 12, 1050);
	event(WIRE_CALL, B, 0);
	event(WIRE_RETURN, B, 20);
	fixture_event(fixture, first, WIRE_RETURN, A, 100);
	fixture_end(fixture);
	from_to(60, -1);
	expect_story("thread 11\n60 +a frame\n100 -a return 40 (0)\nend\n"
		     "thread 12\n60 +b frame\n70 -b return 10 (0)\nend\n");
}

/* Recursion: two of the same function run, one ends and begins again. */
Test(walk, recursion_at_the_border)
{
	event(WIRE_CALL, A, 0);
	event(WIRE_CALL, A, 10);
	fixture_flush(fixture, thread);
	event(WIRE_RETURN, A, 10);
	event(WIRE_CALL, A, 10);
	event(WIRE_RETURN, A, 10);
	event(WIRE_RETURN, A, 10);
	fixture_end(fixture);
	from_to(15, -1);
	expect_story("thread 11\n15 +a frame\n15 +a frame\n20 -a return 5 (0)\n30 +a call\n40 -a return 10 (0)\n"
		     "50 -a return 35 (15)\nend\n");
}

/* After a stack was taken, a C function between two Python functions is not known: its end must not end another. */
Test(walk, stack_without_natives)
{
	event(WIRE_STACK, 2, 0);
	event(WIRE_FRAME, A, 0);
	event(WIRE_FRAME, B, 0);
	event(WIRE_CALL, C, 10);
	event(WIRE_RETURN, C, 20);
	event(WIRE_RETURN, B, 10);
	event(WIRE_C_RETURN, X, 10);
	event(WIRE_RETURN, A, 10);
	fixture_end(fixture);
	from_to(20, -1);
	expect_story("thread 11\n20 +a frame\n20 +b frame\n20 +c frame\n30 -c return 10 (0)\n40 -b return 20 (10)\n"
		     "60 -a return 40 (20)\nend\n");
}

Test(walk, gap_before_the_window)
{
	event(WIRE_CALL, A, 0);
	gap(5, 10);
	event(WIRE_CALL, B, 10);
	event(WIRE_RETURN, B, 20);
	event(WIRE_RETURN, C, 10);
	fixture_end(fixture);
	from_to(30, -1);
	expect_story("thread 11\n30 +c frame\n30 +b frame\n40 -b return 10 (0)\n50 -c return 20 (10)\nend\n");
}

/* What ends after a gap says nothing about what ran before it. */
Test(walk, gap_in_the_window)
{
	event(WIRE_CALL, A, 0);
	fixture_flush(fixture, thread);
	event(WIRE_CALL, B, 10);
	gap(5, 10);
	event(WIRE_RETURN, A, 10);
	fixture_end(fixture);
	from_to(5, -1);
	expect_story("thread 11\n5 +a frame\n10 +b call\n10 -b none 0 (0)\n10 -a none 5 (0)\n20 gap 5\nend\n");
}

Test(walk, absolute_times)
{
	event(WIRE_CALL, A, 0);
	event(WIRE_TIME, 0, 0);
	fixture_extra(fixture, thread, 6000);
	event(WIRE_CALL, B, 5);
	event(WIRE_RETURN, B, 5);
	event(WIRE_RETURN, A, 5);
	fixture_end(fixture);
	from_to(5002, -1);
	expect_story("thread 11\n5002 +a frame\n5005 +b call\n5010 -b return 5 (0)\n5015 -a return 13 (5)\nend\n");
}

/* --- what is shown of it --- */

Test(walk, hidden_functions)
{
	a_b_c(8);
	set_filter(FILTER_EXCLUDE, "b");
	expect_story("thread 11\n0 +a call\n20 +x c_call\n30 -x c_return 10 (0)\n50 +c call\n70 -c unwind 20 (0)\n"
		     "100 -a return 100 (30)\nend\n");
}

Test(walk, hidden_functions_and_a_window)
{
	a_b_c(1);
	set_filter(FILTER_EXCLUDE, "b");
	from_to(15, -1);
	expect_story("thread 11\n15 +a frame\n20 +x c_call\n30 -x c_return 10 (0)\n50 +c call\n70 -c unwind 20 (0)\n"
		     "100 -a return 85 (30)\nend\n");
}

Test(walk, syspath)
{
	a_b_c(8);
	set_filter(FILTER_EXCLUDE_SYSPATH, NULL);
	expect_story("thread 11\n0 +a call\n10 +b call\n20 +x c_call\n30 -x c_return 10 (0)\n40 -b return 30 (10)\n"
		     "100 -a return 100 (30)\nend\n");
}

Test(walk, short_calls)
{
	a_b_c(8);
	set_filter(FILTER_MIN_DURATION, "20");
	expect_story("thread 11\n0 +a call\n10 +b call\n40 -b return 30 (0)\n50 +c call\n70 -c unwind 20 (0)\n"
		     "100 -a return 100 (50)\nend\n");
}

Test(walk, nothing_is_long_enough)
{
	a_b_c(8);
	set_filter(FILTER_MIN_DURATION, "101");
	expect_story("thread 11\nend\n");
}

/* A long call that still runs at the end of the thread is reported then. */
Test(walk, short_calls_that_are_open)
{
	event(WIRE_CALL, A, 0);
	event(WIRE_CALL, B, 10);
	event(WIRE_MARK, 1, 40);
	fixture_end(fixture);
	set_filter(FILTER_MIN_DURATION, "45");
	expect_story("thread 11\n50 mark\n0 +a call\n50 -a none 50 (0)\nend\n");
}

Test(walk, depth)
{
	a_b_c(8);
	set_filter(FILTER_MAX_DEPTH, "2");
	expect_story("thread 11\n0 +a call\n10 +b call\n40 -b return 30 (0)\n50 +c call\n70 -c unwind 20 (0)\n"
		     "100 -a return 100 (50)\nend\n");
}

Test(walk, depth_and_duration)
{
	a_b_c(8);
	set_filter(FILTER_MAX_DEPTH, "2");
	set_filter(FILTER_MIN_DURATION, "25");
	expect_story("thread 11\n0 +a call\n10 +b call\n40 -b return 30 (0)\n100 -a return 100 (30)\nend\n");
}

/* Depth is counted among what is shown. */
Test(walk, depth_of_the_visible)
{
	a_b_c(8);
	set_filter(FILTER_MAX_DEPTH, "2");
	set_filter(FILTER_EXCLUDE, "b");
	expect_story("thread 11\n0 +a call\n20 +x c_call\n30 -x c_return 10 (0)\n50 +c call\n70 -c unwind 20 (0)\n"
		     "100 -a return 100 (30)\nend\n");
}

Test(walk, threads_and_processes)
{
	uint32_t child;

	event(WIRE_CALL, A, 0);
	event(WIRE_RETURN, A, 5);
	child = fixture_process(fixture, 20, 10);
	fixture_code(fixture, child, A, "z.py", 1, "z");
	thread = fixture_thread(fixture, child, 20, 1000);
	event(WIRE_CALL, A, 1);
	event(WIRE_RETURN, A, 5);
	fixture_end(fixture);
	set_filter(FILTER_PROCESS, "20");
	expect_story("thread 20\n1 +z call\n6 -z return 5 (0)\nend\n");
	rewind(story);
	filter.pid = 0;
	set_filter(FILTER_THREAD, "11");
	expect_story("thread 11\n0 +a call\n5 -a return 5 (0)\nend\n");
}

/* --- gaps, ends that do not fit, errors --- */

Test(walk, gaps_end_what_runs)
{
	event(WIRE_CALL, A, 0);
	event(WIRE_CALL, B, 10);
	gap(5, 10);
	event(WIRE_RETURN, B, 10);
	event(WIRE_STACK, 1, 10);
	event(WIRE_FRAME, A, 0);
	event(WIRE_RETURN, A, 10);
	fixture_end(fixture);
	expect_story("thread 11\n0 +a call\n10 +b call\n10 -b none 0 (0)\n10 -a none 10 (0)\n20 gap 5\n"
		     "40 +a frame\n50 -a return 10 (0)\nend\n");
}

/* --- tasks and greenlets --- */

/* The event that a task's step begins with. */
static void step(uint64_t task, unsigned kind, uint32_t code, uint32_t ticks)
{
	event(WIRE_TASK, code, ticks);
	fixture_extra(fixture, thread, task);
	event(kind, code, 0);
}

/* Two tasks in turn, of one function; an address comes again, with a call. What a task awaits is no task. */
Test(walk, tasks)
{
	step(0x10, WIRE_CALL, A, 0);
	event(WIRE_CALL, B, 1);
	event(WIRE_YIELD, B, 1);
	event(WIRE_YIELD, A, 0);
	step(0x20, WIRE_CALL, A, 1);
	event(WIRE_YIELD, A, 1);
	step(0x10, WIRE_RESUME, A, 1);
	event(WIRE_RETURN, A, 1);
	step(0x10, WIRE_CALL, C, 1);
	event(WIRE_YIELD, C, 1);
	step(0x20, WIRE_THROW, A, 1);
	event(WIRE_UNWIND, A, 1);
	fixture_end(fixture);
	expect_story("thread 11\n0 +a call task 1\n1 +b call\n2 -b yield 1 (0)\n2 -a yield 2 (1)\n"
		     "3 +a call task 2\n4 -a yield 1 (0)\n5 +a resume task 1\n6 -a return 1 (0)\n"
		     "7 +c call task 3\n8 -c yield 1 (0)\n9 +a throw task 2\n10 -a unwind 1 (0)\nend\n");
}

/* A damaged trace has no step of a shown function in the task of a hidden one, whose number is no row of a table. */
Test(walk, a_task_of_a_hidden_function_has_no_shown_step)
{
	set_filter(FILTER_EXCLUDE, "a");
	step(0x10, WIRE_CALL, A, 0);
	event(WIRE_YIELD, A, 1);
	step(0x10, WIRE_RESUME, B, 0);
	event(WIRE_RETURN, B, 1);
	fixture_end(fixture);
	expect_story("thread 11\n1 +b resume\n2 -b return 1 (0)\nend\n");
}

/* Until 3.9 an exception arrives in the innermost coroutine first, which is not known as a task. */
Test(walk, an_exception_thrown_into_a_task)
{
	step(0x10, WIRE_CALL, A, 0);
	event(WIRE_CALL, B, 0);
	event(WIRE_YIELD, B, 0);
	event(WIRE_YIELD, A, 0);
	step(0x30, WIRE_THROW, B, 10);
	event(WIRE_UNWIND, B, 0);
	step(0x10, WIRE_RESUME, A, 0);
	event(WIRE_UNWIND, A, 0);
	fixture_end(fixture);
	expect_story("thread 11\n0 +a call task 1\n0 +b call\n0 -b yield 0 (0)\n0 -a yield 0 (0)\n10 +b throw\n"
		     "10 -b unwind 0 (0)\n10 +a resume task 1\n10 -a unwind 0 (0)\nend\n");
}

static void thin(unsigned kind, uint32_t code, uint64_t cpu_ns)
{
	const uint64_t words[] = {cpu_ns, code};

	fixture_extended(fixture, thread, kind, 0, words, 2, 0);
}

/* While a task is thinned it may end, and another one get its address. Other functions' tasks go on. */
Test(walk, a_task_that_was_thinned_is_another_one)
{
	thin(WIRE_THIN_END, 0, 1000); /* there is a budget */
	step(0x10, WIRE_CALL, A, 0);
	event(WIRE_YIELD, A, 1);
	step(0x20, WIRE_CALL, B, 0);
	event(WIRE_YIELD, B, 1);
	thin(WIRE_THIN, A, 2000);
	step(0x20, WIRE_RESUME, B, 0);
	event(WIRE_YIELD, B, 1);
	thin(WIRE_THIN_END, A, 3000);
	step(0x10, WIRE_RESUME, A, 0);
	event(WIRE_YIELD, A, 1);
	step(0x20, WIRE_RESUME, B, 0);
	event(WIRE_RETURN, B, 1);
	step(0x10, WIRE_RESUME, A, 0);
	event(WIRE_RETURN, A, 1);
	fixture_end(fixture);
	expect_story("thread 11\n0 +a call task 1\n1 -a yield 1 (0)\n1 +b call task 2\n2 -b yield 1 (0)\n"
		     "2 +b resume task 2\n3 -b yield 1 (0)\n3 +a resume task 3\n4 -a yield 1 (0)\n"
		     "4 +b resume task 2\n5 -b return 1 (0)\n5 +a resume task 3\n6 -a return 1 (0)\nend\n");
}

Test(walk, a_task_whose_function_is_hidden)
{
	set_filter(FILTER_EXCLUDE, "a");
	step(0x10, WIRE_CALL, A, 0);
	event(WIRE_CALL, B, 0);
	event(WIRE_RETURN, B, 0);
	event(WIRE_RETURN, A, 0);
	step(0x20, WIRE_CALL, B, 0);
	event(WIRE_RETURN, B, 0);
	fixture_end(fixture);
	expect_story("thread 11\n0 +b call\n0 -b return 0 (0)\n0 +b call task 1\n0 -b return 0 (0)\nend\n");
}

Test(walk, long_steps_of_tasks)
{
	filter.min_duration_ns = 5;
	step(0x10, WIRE_CALL, A, 0);
	event(WIRE_YIELD, A, 1);
	step(0x20, WIRE_CALL, A, 0);
	event(WIRE_YIELD, A, 9);
	fixture_end(fixture);
	expect_story("thread 11\n1 +a call task 2\n10 -a yield 9 (0)\nend\n");
}

static void switch_to(uint64_t target, uint64_t origin, uint32_t ticks)
{
	event(WIRE_SWITCH, 0, ticks);
	fixture_extra(fixture, thread, target);
	fixture_extra(fixture, thread, origin);
}

/* An address of one that has ended comes again; the thread's own keeps its number whatever is on its stack. */
Test(walk, greenlets)
{
	switch_to(0x20, 0x10, 0);
	event(WIRE_CALL, A, 1);
	switch_to(0x10, 0x20, 1);
	event(WIRE_CALL, C, 1);
	switch_to(0x20, 0x10, 1);
	event(WIRE_RETURN, A, 1);
	switch_to(0x10, 0x20, 1);
	switch_to(0x20, 0x10, 1);
	event(WIRE_CALL, B, 1);
	fixture_end(fixture);
	expect_story("thread 11\n0 switch\n1 +a call greenlet 1\n2 -a yield 1 (0)\n2 switch\n3 +c call\n"
		     "4 -c yield 1 (0)\n4 +a frame greenlet 1\n4 switch\n5 -a return 1 (0)\n6 +c frame\n6 switch\n"
		     "7 -c yield 1 (0)\n7 switch\n8 +b call greenlet 2\n8 -b none 0 (0)\nend\n");
}

/* A step goes on with its greenlet, as the same one; another task's is that of another greenlet. */
Test(walk, a_step_that_a_switch_interrupts)
{
	step(0x100, WIRE_CALL, A, 0);
	event(WIRE_CALL, B, 1);
	switch_to(0x20, 0x10, 1);
	step(0x200, WIRE_CALL, A, 1);
	switch_to(0x10, 0x20, 1);
	event(WIRE_RETURN, B, 1);
	event(WIRE_RETURN, A, 1);
	switch_to(0x20, 0x10, 1);
	event(WIRE_YIELD, A, 1);
	step(0x100, WIRE_CALL, A, 1);
	fixture_end(fixture);
	expect_story("thread 11\n0 +a call task 1\n1 +b call\n2 -b yield 1 (0)\n2 -a yield 2 (1)\n2 switch\n"
		     "3 +a call greenlet 1 task 2\n4 -a yield 1 (0)\n4 +a frame task 1\n4 +b frame\n4 switch\n"
		     "5 -b return 1 (0)\n6 -a return 2 (1)\n7 +a frame greenlet 1 task 2\n7 switch\n"
		     "8 -a yield 1 (0)\n9 +a call greenlet 1 task 3\n9 -a none 0 (0)\nend\n");
}

/* One that waits with hidden functions only has not ended. */
Test(walk, greenlets_with_hidden_functions)
{
	set_filter(FILTER_EXCLUDE, "a");
	switch_to(0x20, 0x10, 0);
	event(WIRE_CALL, A, 1);
	switch_to(0x10, 0x20, 1);
	switch_to(0x20, 0x10, 1);
	event(WIRE_CALL, B, 1);
	fixture_end(fixture);
	expect_story("thread 11\n0 switch\n2 switch\n3 switch\n4 +b call greenlet 1\n4 -b none 0 (0)\nend\n");
}

/* What ends in another greenlet says nothing about the one that ran at the border. */
Test(walk, greenlets_and_a_window)
{
	event(WIRE_CALL, A, 0);
	event(WIRE_OPEN, A, 0);
	switch_to(0x20, 0x10, 1);
	flushed(WIRE_CALL, B, 1);
	flushed(WIRE_CALL, C, 1);
	flushed(WIRE_RETURN, C, 7);
	switch_to(0x10, 0x20, 1);
	event(WIRE_RETURN, A, 1);
	fixture_end(fixture);
	from_to(5, -1);
	expect_story("thread 11\n5 +b frame greenlet 1\n5 +c frame greenlet 1\n10 -c return 5 (0)\n"
		     "11 -b yield 6 (5)\n11 +a frame\n11 switch\n12 -a return 1 (0)\nend\n");
}

/* The stack of a greenlet is no place to begin: it says nothing of the others. */
Test(walk, greenlets_that_were_suspended_before_the_stack_at_a_window)
{
	event(WIRE_CALL, A, 0);
	switch_to(0x20, 0x10, 1);
	event(WIRE_CALL, C, 1);
	switch_to(0x10, 0x20, 1);
	flushed(WIRE_OPEN, A, 1);
	switch_to(0x30, 0x10, 1);
	event(WIRE_CALL, B, 1);
	switch_to(0x20, 0x30, 1);
	fixture_extended(fixture, thread, WIRE_GREENLET_STACK, 1, NULL, 0, 0);
	flushed(WIRE_OPEN, C, 0);
	event(WIRE_CALL, B, 1);
	event(WIRE_RETURN, B, 3);
	switch_to(0x30, 0x20, 1);
	event(WIRE_RETURN, B, 1);
	fixture_end(fixture);
	from_to(9, -1);
	expect_story("thread 11\n9 +c frame greenlet 2\n9 +b frame greenlet 2\n11 -b return 2 (0)\n"
		     "12 -c yield 3 (2)\n12 +b frame greenlet 1\n12 switch\n13 -b return 1 (0)\nend\n");
}

Test(walk, an_end_takes_what_is_above_it)
{
	event(WIRE_CALL, A, 0);
	event(WIRE_CALL, B, 10);
	event(WIRE_RETURN, C, 10);
	event(WIRE_RETURN, A, 10);
	fixture_end(fixture);
	expect_story("thread 11\n0 +a call\n10 +b call\n30 -b none 20 (0)\n30 -a return 30 (20)\nend\n");
}

/* Flips a byte in the payload of the chunk that begins at that offset. */
static void damage(size_t offset)
{
	fixture->bytes[offset + sizeof(struct trace_chunk)] ^= 0xff;
}

Test(walk, damage_is_a_gap)
{
	size_t bad;

	fixture->plain = true;
	event(WIRE_CALL, A, 0);
	fixture_flush(fixture, thread);
	bad = fixture->size;
	event(WIRE_CALL, B, 10);
	event(WIRE_RETURN, B, 10);
	fixture_flush(fixture, thread);
	event(WIRE_CALL, C, 10);
	event(WIRE_RETURN, C, 10);
	fixture_end(fixture);
	damage(bad);
	expect_story("thread 11\n0 +a call\n0 -a none 0 (0)\n0 gap 2\n30 +c call\n40 -c return 10 (0)\nend\n");
	rewind(story);
	from_to(5, -1);
	expect_story("thread 11\n5 +a frame\n5 -a none 0 (0)\n5 gap 2\n30 +c call\n40 -c return 10 (0)\nend\n");
}

Test(walk, an_error_of_the_visitor_ends_it)
{
	a_b_c(1);
	fails_at = 2;
	cr_expect(walk_all(&visitor) == -EIO);
	cr_expect(strcmp(saw, "thread 11\n0 +a call\n10 +b call\n") == 0, "%s", saw);
}

static int see_progress(const struct filter *shown, uint64_t events)
{
	struct trace *trace = NULL;
	char error[200];
	uint64_t count;

	cr_assert(trace_open_memory(&trace, fixture->bytes, fixture->size, "fixture", error, sizeof(error)) == 0);
	count = walk_events(trace, shown);
	trace_close(trace);
	return count == events;
}

Test(walk, events_to_read)
{
	a_b_c(2);
	cr_expect(see_progress(&filter, 8));
	from_to(45, 60); /* in the last two chunks */
	cr_expect(see_progress(&filter, 4));
	filter.pid = 9;
	cr_expect(see_progress(&filter, 0));
}
