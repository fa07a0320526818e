/*
 * test_tools_spans.c - spans by the numbers of their ends, their parents and own times, and the table by name.
 */
#include <criterion/criterion.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tools/cmd/verbs.h"
#include "one_trace.h"

enum { A = 1, B = 2, KEY = 3, CODE = 1 };

static void set_up(void)
{
	fixture = fixture_new();
	process = fixture_process(fixture, 10, 1);
	fixture_code(fixture, process, CODE, "/x/app.py", 1, "step");
	fixture_define(fixture, process, WIRE_DEFINE_MARK, A, 0, "", "a", "", "");
	fixture_define(fixture, process, WIRE_DEFINE_MARK, B, 0, "", "b", "", "");
	fixture_define(fixture, process, WIRE_DEFINE_MARK, KEY, 0, "", "key", "", "");
	thread = fixture_thread(fixture, process, 10, 1000);
}

TestSuite(spans, .init = set_up, .fini = end_trace);

static void begin_in(uint32_t of, uint32_t name, uint64_t number, uint32_t ticks)
{
	fixture_extended(fixture, of, WIRE_SPAN_BEGIN, 0, (const uint64_t[]){name, number}, 2, ticks);
}

static void begin(uint32_t name, uint64_t number, uint32_t ticks)
{
	begin_in(thread, name, number, ticks);
}

static void end(uint32_t number, uint32_t ticks)
{
	fixture_event(fixture, thread, WIRE_SPAN_END, number, ticks);
}

static json_t *table_with(const char *options)
{
	char words[100];
	json_t *report;

	snprintf(words, sizeof(words), "--by span --json %s TRACE", options);
	run(cmd_report, words);
	cr_assert(ran.status == 0, "%s", ran.err);
	report = json_loads(ran.out, 0, NULL);
	cr_assert(report, "%s", ran.out);
	return report;
}

static json_t *table(void)
{
	return table_with("");
}

/* The row of a name, in ns. */
static void expect_row(const json_t *report, const char *name, const char *wanted)
{
	const json_t *row;
	char text[200] = "none";
	size_t i;

	json_array_foreach(json_object_get(report, "spans"), i, row)
	{
#define NUMBER(member) json_integer_value(json_object_get(row, member))
		if (strcmp(json_string_value(json_object_get(row, "span")), name) == 0)
			snprintf(text, sizeof(text), "%lld+%lld total %lld own %lld max %lld",
				 (long long)NUMBER("count"), (long long)NUMBER("unfinished"),
				 (long long)NUMBER("total_ns"), (long long)NUMBER("own_ns"),
				 (long long)NUMBER("max_ns"));
	}
	cr_assert_str_eq(text, wanted, "%s", name);
}

Test(spans, nested)
{
	json_t *report;

	begin(A, 1, 10);
	begin(B, 2, 100);
	end(2, 50);
	begin(B, 3, 5);
	end(3, 20);
	end(1, 7);
	report = table();
	expect_row(report, "a", "1+0 total 182 own 112 max 182");
	expect_row(report, "b", "2+0 total 70 own 70 max 50");
	json_decref(report);
}

/* Without calls, tasks are not known: spans that take turns look nested. A sample is recorded as a call. */
Test(spans, no_own_time_without_calls)
{
	static const char *const metas[] = {"\"events\":[\"mem\"]",
					    "\"events\":[\"call\",\"line\"],\"sample_rate\":100"};

	begin(A, 1, 10);
	begin(B, 2, 100);
	end(1, 50);
	end(2, 30);
	for (size_t i = 0; i < sizeof(metas) / sizeof(*metas); i++) {
		fixture_meta(fixture, process, "{\"type\":\"process\",\"process\":0,\"pid\":10,%s}", metas[i]);
		save();
		run(cmd_report, "--by span --json TRACE");
		cr_expect(strstr(ran.out, "\"total_ns\": 150, \"own_ns\": null, \"mean_ns\": 150"), "%s", ran.out);
		run(cmd_report, "--by span --format csv TRACE");
		cr_expect(strstr(ran.out, "\"a\",1,0,150,,150,150,150,150\n"), "%s", ran.out);
		run(cmd_report, "--by span TRACE");
		cr_expect(strstr(ran.out, "        1    0.000000           -    0.000000"), "%s", ran.out);
	}
}

/* One process without calls is enough. */
Test(spans, no_own_time_of_a_sum)
{
	uint32_t other = fixture_process(fixture, 11, 1), of = fixture_thread(fixture, other, 11, 1000);

	fixture_meta(fixture, other, "{\"type\":\"process\",\"process\":%u,\"pid\":11,\"events\":[\"mem\"]}", other);
	fixture_define(fixture, other, WIRE_DEFINE_MARK, B, 0, "", "b", "", "");
	begin(A, 1, 10);
	end(1, 50);
	begin(B, 2, 10);
	end(2, 50);
	begin_in(of, B, 1, 10);
	fixture_event(fixture, of, WIRE_SPAN_END, 1, 50);
	run(cmd_report, "--by span --json TRACE");
	cr_expect(
	    strstr(ran.out, "\"span\": \"a\", \"count\": 1, \"unfinished\": 0, \"total_ns\": 50, \"own_ns\": 50,"),
	    "%s", ran.out);
	cr_expect(
	    strstr(ran.out, "\"span\": \"b\", \"count\": 2, \"unfinished\": 0, \"total_ns\": 100, \"own_ns\": null,"),
	    "%s", ran.out);
}

/* a and b overlap: what b lasts longer than a belongs to neither's parent twice. */
Test(spans, in_another_order)
{
	json_t *report;

	begin(KEY, 9, 0);
	begin(A, 1, 10);
	begin(B, 2, 100);
	end(1, 50);
	end(2, 30);
	end(9, 4);
	report = table();
	expect_row(report, "a", "1+0 total 150 own 100 max 150");
	expect_row(report, "b", "1+0 total 80 own 80 max 80");
	expect_row(report, "key", "1+0 total 194 own 14 max 194");
	json_decref(report);
}

/* A span of another thread is no child, and ends there, too. */
Test(spans, of_another_thread)
{
	uint32_t other = fixture_thread(fixture, process, 11, 1000);
	json_t *report;

	begin(A, 1, 10);
	begin_in(other, B, 2, 20);
	fixture_event(fixture, other, WIRE_SPAN_END, 1, 30);
	end(2, 100);
	report = table();
	expect_row(report, "a", "1+0 total 40 own 40 max 40");
	expect_row(report, "b", "1+0 total 90 own 90 max 90");
	json_decref(report);
}

static void step_of(uint64_t task, unsigned kind)
{
	fixture_event(fixture, thread, WIRE_TASK, CODE, 0);
	fixture_extra(fixture, thread, task << 12);
	fixture_event(fixture, thread, kind, CODE, 0);
}

/* Whether the function of the steps is shown or not. */
static void expect_both(const char *a, const char *b)
{
	static const char *const filters[] = {"", "--exclude step"};

	for (size_t i = 0; i < sizeof(filters) / sizeof(*filters); i++) {
		json_t *report = table_with(filters[i]);

		expect_row(report, "a", a);
		expect_row(report, "b", b);
		json_decref(report);
	}
}

/* Tasks take turns: a span of one is no child of another's. */
Test(spans, of_tasks)
{
	for (uint64_t task = 1; task <= 2; task++) {
		step_of(task, WIRE_CALL);
		begin(task == 1 ? A : B, task, 10);
		fixture_event(fixture, thread, WIRE_YIELD, CODE, 10);
	}
	for (uint64_t task = 1; task <= 2; task++) {
		step_of(task, WIRE_RESUME);
		end((uint32_t)task, 10);
		fixture_event(fixture, thread, WIRE_RETURN, CODE, 10);
	}
	expect_both("1+0 total 40 own 40 max 40", "1+0 total 40 own 40 max 40");
}

/* The coroutine in which a span begins may not be recorded: a decorator's. It runs in the task of what it awaits. */
Test(spans, around_the_steps_of_tasks)
{
	for (uint64_t task = 1; task <= 2; task++) {
		fixture_extended(fixture, thread, WIRE_SPAN_BEGIN, 0, (const uint64_t[]){A, 2 * task, task << 12}, 3,
				 10);
		step_of(task, WIRE_CALL);
		begin(B, 2 * task + 1, 10);
		fixture_event(fixture, thread, WIRE_YIELD, CODE, 10);
	}
	for (uint64_t task = 1; task <= 2; task++) {
		step_of(task, WIRE_RESUME);
		end((uint32_t)(2 * task + 1), 10);
		fixture_event(fixture, thread, WIRE_RETURN, CODE, 10);
		end((uint32_t)(2 * task), 10);
	}
	expect_both("2+0 total 160 own 60 max 80", "2+0 total 100 own 100 max 50");
}

static void switch_to(uint64_t target, uint64_t origin)
{
	fixture_event(fixture, thread, WIRE_SWITCH, 0, 0);
	fixture_extra(fixture, thread, target);
	fixture_extra(fixture, thread, origin);
}

/* A greenlet that the step runs in between takes nothing from it: b's parent is the a of its task. */
Test(spans, in_a_step_that_a_switch_interrupts)
{
	for (uint64_t task = 1; task <= 2; task++) {
		step_of(task, WIRE_CALL);
		begin(A, 10 * task, 10);
		switch_to(0x20, 0x10);
		step_of(task + 2, WIRE_CALL);
		begin(B, 10 * task + 1, 10);
		switch_to(0x10, 0x20);
		begin(B, 10 * task + 2, 10);
		end((uint32_t)(10 * task + 2), 10);
		switch_to(0x20, 0x10);
		end((uint32_t)(10 * task + 1), 10);
		fixture_event(fixture, thread, WIRE_RETURN, CODE, 10);
		switch_to(0x10, 0x20);
		fixture_event(fixture, thread, WIRE_YIELD, CODE, 10);
	}
	for (uint64_t task = 1; task <= 2; task++) {
		step_of(task, WIRE_RESUME);
		end((uint32_t)(10 * task), 10);
		fixture_event(fixture, thread, WIRE_RETURN, CODE, 10);
	}
	expect_both("2+0 total 230 own 210 max 140", "4+0 total 80 own 80 max 30");
}

Test(spans, of_a_task_without_an_address)
{
	json_t *report;

	fixture_extended(fixture, thread, WIRE_SPAN_BEGIN, 0, (const uint64_t[]){A, 1, 0}, 3, 0);
	begin(B, 2, 10);
	end(2, 10);
	end(1, 10);
	report = table();
	expect_row(report, "a", "1+0 total 30 own 20 max 30");
	json_decref(report);
}

/* A hidden step ends with its function: what a function runs after it, hidden or not, is no part of the task. */
Test(spans, after_a_hidden_step)
{
	json_t *report;

	fixture_code(fixture, process, CODE + 1, "/x/app.py", 9, "loop");
	fixture_event(fixture, thread, WIRE_CALL, CODE + 1, 0);
	begin(A, 1, 10);
	step_of(1, WIRE_CALL);
	begin(B, 2, 10);
	fixture_event(fixture, thread, WIRE_YIELD, CODE, 10);
	begin(B, 3, 10);
	end(3, 10);
	end(1, 10);
	step_of(1, WIRE_RESUME);
	end(2, 10);
	fixture_event(fixture, thread, WIRE_RETURN, CODE, 0);
	fixture_event(fixture, thread, WIRE_RETURN, CODE + 1, 0);
	report = table_with("--exclude step");
	expect_row(report, "a", "1+0 total 50 own 40 max 50");
	expect_row(report, "b", "2+0 total 60 own 60 max 50");
	json_decref(report);
}

/* Ends without begins, begins without ends, numbers that come twice, and events without their words. */
Test(spans, what_does_not_match)
{
	json_t *report;

	end(77, 5);
	end(0, 5);
	begin(A, 0, 5);
	begin(A, 1, 5);
	begin(B, 1, 5);
	end(1, 10);
	end(1, 10);
	begin(A, 2, 5);
	fixture_event(fixture, thread, WIRE_SPAN_BEGIN, 0, 1);
	fixture_event(fixture, thread, WIRE_COUNTER, 0, 1);
	fixture_event(fixture, thread, WIRE_ARGUMENT, WIRE_ARGUMENT_TEXT, 1);
	fixture_extended(fixture, thread, WIRE_ARGUMENT, WIRE_ARGUMENT_INT, (const uint64_t[]){KEY}, 1, 1);
	begin(999999, 3, 5);
	end(3, 5);
	report = table();
	expect_row(report, "a", "1+1 total 15 own 15 max 15");
	expect_row(report, "b", "none");
	expect_row(report, "?", "1+0 total 5 own 5 max 5");
	json_decref(report);
}

/* Quantiles of durations 1 to 1000 us, in any order. */
Test(spans, quantiles)
{
	const json_t *row;
	json_t *report;

	for (uint32_t i = 1; i <= 1000; i++) {
		begin(A, i, 5);
		end(i, (i * 7919 % 1000 + 1) * 1000);
	}
	report = table();
	row = json_array_get(json_object_get(report, "spans"), 0);
	cr_assert(labs((long)NUMBER("p50_ns") - 500000) <= 500000 / 128, "%lld", (long long)NUMBER("p50_ns"));
	cr_assert(labs((long)NUMBER("p90_ns") - 900000) <= 900000 / 128, "%lld", (long long)NUMBER("p90_ns"));
	cr_assert(NUMBER("max_ns") == 1000000 && NUMBER("mean_ns") == 500500);
	json_decref(report);
}

/* The end in a thread that is not shown is the end all the same, wherever that thread is read. */
static void expect_ended_elsewhere(uint32_t begins, uint32_t ends, const char *tid)
{
	static const char *const formats[] = {"chrome", "firefox", "speedscope"};
	static const char *const wanted[] = {"\"ts\":0.030,\"cat\":\"span\"", "\"endTime\":[0.00003,",
					     "{\"type\":\"C\",\"frame\":0,\"at\":30}"};
	char words[100];

	begin_in(begins, A, 1, 0);
	fixture_event(fixture, begins, WIRE_PAUSE, 0, 90);
	fixture_event(fixture, ends, WIRE_SPAN_END, 1, 30);
	for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++) {
		snprintf(words, sizeof(words), "--format %s --thread %s TRACE -o -", formats[i], tid);
		cr_assert(run(cmd_export, words) == 0, "%s", ran.err);
		cr_expect(!strstr(ran.out, "unfinished") && strstr(ran.out, wanted[i]), "%s: %s", formats[i], ran.out);
	}
	snprintf(words, sizeof(words), "--format speedscope --to 20ns --thread %s TRACE -o -", tid);
	cr_expect(run(cmd_export, words) == 0 && strstr(ran.out, "unfinished"), "%s", ran.out);
}

Test(spans, that_a_later_thread_ends)
{
	expect_ended_elsewhere(thread, fixture_thread(fixture, process, 11, 1000), "10");
}

Test(spans, that_an_earlier_thread_ends)
{
	expect_ended_elsewhere(fixture_thread(fixture, process, 11, 1000), thread, "11");
}

/* A marker of the thread in which it began, whichever is read first. The stack at its end is another thread's. */
static void expect_firefox(uint32_t begins, uint32_t ends)
{
	const json_t *thread_of_it, *markers;
	json_t *profile;
	size_t i;

	fixture_event(fixture, begins, WIRE_CALL, CODE, 0);
	begin_in(begins, A, 1, 10);
	begin_in(begins, B, 2, 0);
	fixture_event(fixture, begins, WIRE_SPAN_END, 2, 2);
	begin_in(begins, B, 3, 0);
	fixture_event(fixture, begins, WIRE_PAUSE, 0, 90);
	fixture_event(fixture, ends, WIRE_CALL, CODE, 15);
	fixture_event(fixture, ends, WIRE_SPAN_END, 1, 15);
	cr_assert(run(cmd_export, "--format firefox TRACE -o -") == 0, "%s", ran.err);
	profile = json_loads(ran.out, 0, NULL);
	json_array_foreach(json_object_get(profile, "threads"), i, thread_of_it)
	{
		bool is_first =
		    json_integer_value(json_object_get(thread_of_it, "tid")) == (begins == thread ? 10 : 11);

		markers = json_object_get(thread_of_it, "markers");
		cr_expect_eq(json_integer_value(json_object_get(markers, "length")), is_first ? 4 : 0, "%s", ran.out);
	}
	cr_expect(strstr(ran.out, "\"data\":[{\"type\":\"evprof\",\"text\":\"\"},"
				  "{\"type\":\"evprof\",\"text\":\"\",\"cause\":{\"stack\":0}},"),
		  "%s", ran.out);
	cr_expect(strstr(ran.out, "\"endTime\":[0.00003,0.000012,null,0.000102]"), "%s", ran.out);
	cr_expect(strstr(ran.out, "{\"type\":\"evprof\",\"text\":\"unfinished\"}]"), "%s", ran.out);
	json_decref(profile);
}

Test(spans, in_firefox_where_a_later_thread_ends_them)
{
	expect_firefox(thread, fixture_thread(fixture, process, 11, 1000));
}

Test(spans, in_firefox_where_an_earlier_thread_ends_them)
{
	expect_firefox(fixture_thread(fixture, process, 11, 1000), thread);
}

/* Profiles of a thread in speedscope hold spans that are nested. Those that need more than 1000 are counted. */
Test(spans, too_many_that_overlap)
{
	for (uint64_t number = 1; number <= 1003; number++)
		begin(A, number, 1);
	for (uint32_t number = 1; number <= 1003; number++)
		end(number, 1);
	cr_assert(run(cmd_export, "--format speedscope TRACE -o -") == 0, "%s", ran.err);
	cr_expect(strstr(ran.out, " spans #1000\"") && !strstr(ran.out, " spans #1001\""));
	cr_expect_str_eq(ran.err, "evprof: 3 spans are left out: more than 1000 of their thread overlap without being "
				  "nested\n");
}

/* A long text is in pieces; arguments that precede a gap belong to nothing. */
Test(spans, arguments)
{
	static const char text[] = "0123456789abcdef";
	uint64_t words[3] = {KEY, 0, 0}, yes[2] = {KEY, 1};

	memcpy(words + 1, text, sizeof(text) - 1);
	fixture_extended(fixture, thread, WIRE_ARGUMENT, WIRE_ARGUMENT_TEXT, words, 3, 0);
	words[0] = 0;
	fixture_extended(fixture, thread, WIRE_ARGUMENT, WIRE_ARGUMENT_TEXT, words, 3, 0);
	begin(A, 1, 5);
	end(1, 5);
	fixture_extended(fixture, thread, WIRE_ARGUMENT, WIRE_ARGUMENT_BOOL, yes, 2, 0);
	fixture_event(fixture, thread, WIRE_GAP, 0, 1);
	fixture_extra(fixture, thread, 5);
	begin(B, 2, 5);
	run(cmd_export, "--format chrome TRACE -o -");
	cr_assert(strstr(ran.out, "\"name\":\"a\",\"args\":{\"key\":\"0123456789abcdef0123456789abcdef\"}}"), "%s",
		  ran.out);
	cr_assert(strstr(ran.out, "\"name\":\"b\"}"), "%s", ran.out);
}
