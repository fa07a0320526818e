/*
 * test_accounting.c - events that find no room: for each thread and kind, what was emitted is what was written and what
 * was lost; the gaps are where the loss was; after a gap the stack is right; no name is lost.
 *
 * What a thread emits is known: programs/accounting.py does the same in each run, and a run without loss counts it.
 */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "strike.h"

#define THREADS 4
#define DEPTH_MAX 64

static const char *const kinds[] = {"call",   "return", "unwind",  "c_call", "c_return", "c_exception", "exception",
				    "malloc", "calloc", "realloc", "free",   "resume",	 "throw",	"yield"};

struct account {
	struct outcome *outcome;
	json_t *info;
	long tids[THREADS];
};

static void read_threads(struct account *account)
{
	char *threads = file_read(text("%s/threads", account->outcome->directory), NULL);

	expect(account->outcome,
	       threads && sscanf(threads, "%ld %ld %ld %ld", &account->tids[0], &account->tids[1], &account->tids[2],
				 &account->tids[3]) == THREADS,
	       "it names its threads: %s", threads);
	free(threads);
}

/* round_ms: of the collector's stops; 0: it is well. */
static struct account record(const struct python *python, const char *const *words, long round_ms,
			     const char *const *variables)
{
	struct account account = {0};
	const char *directory = run(.how = JOB_BARE, .args = {"true"})->directory;
	struct oracle *oracle = oracle_new(directory);

	if (round_ms)
		strike((struct strike){.oracle = oracle, .act = strike_collector_slow, .argument = round_ms});
	account.outcome =
	    run(.python = python, .args = {words[0], words[1], words[2], words[3]}, .directory = directory,
		.env = {"EVPROF_OUTPUT=account.evp", variables[0], variables[1], variables[2]});
	expect(account.outcome, account.outcome->status == 0, "the program runs");
	read_threads(&account);
	account.info = trace_info(account.outcome->trace);
	expect(account.outcome, json_is_true(json_object_get(account.info, "complete")), "the trace is complete");
	return account;
}

static const json_t *thread_of(const struct account *account, long tid)
{
	const json_t *process = json_array_get(json_object_get(account->info, "processes"), 0), *thread;
	size_t i;

	json_array_foreach(json_object_get(process, "threads"), i, thread)
	{
		if (json_integer_value(json_object_get(thread, "tid")) == tid)
			return thread;
	}
	expect(account->outcome, false, "thread %ld is in the trace", tid);
	return NULL;
}

static long count(const json_t *thread, const char *member, const char *kind)
{
	return (long)json_integer_value(json_object_get(json_object_get(thread, member), kind));
}

static long sum(const json_t *thread, const char *member)
{
	const char *kind;
	json_t *value;
	long total = 0;

	json_object_foreach(json_object_get(thread, member), kind, value) total += (long)json_integer_value(value);
	return total;
}

/* emitted = written + lost, for each thread and kind. Returns what was lost. */
static long expect_sums(const struct account *whole, const struct account *lossy)
{
	long lost = 0;

	for (int i = 0; i < THREADS; i++) {
		const json_t *emitted = thread_of(whole, whole->tids[i]), *thread = thread_of(lossy, lossy->tids[i]);

		expect(whole->outcome, sum(emitted, "lost") == 0, "the first run loses nothing");
		for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++) {
			long all = count(emitted, "events", kinds[k]), written = count(thread, "events", kinds[k]);

			expect(lossy->outcome, written + count(thread, "lost", kinds[k]) == all,
			       "thread %d emitted %ld of kind %s; %ld are written and %ld lost", i, all, kinds[k],
			       written, count(thread, "lost", kinds[k]));
		}
		lost += sum(thread, "lost");
	}
	return lost;
}

/* One thread, as dump prints it. */
struct replayed {
	const char *stack[DEPTH_MAX];
	int depth;
	bool known, stack_comes;
	long in_gaps, calls_after_gaps;
};

static const char *caller_of(const char *name)
{
	static const char *const callers[][2] = {{"a", "worker"}, {"b", "a"}, {"c", "b"}, {"d", "c"}};

	for (size_t i = 0; i < sizeof(callers) / sizeof(*callers); i++)
		if (strcmp(name, callers[i][0]) == 0)
			return callers[i][1];
	return NULL;
}

static const char *top_of(const struct replayed *thread)
{
	return thread->depth > 0 ? thread->stack[thread->depth - 1] : "";
}

static void replay_call(const struct outcome *outcome, struct replayed *thread, const struct event *event)
{
	const char *caller = caller_of(event->name);

	expect(outcome, thread->known, "after a gap a call comes with the stack that it is made on");
	expect(outcome, !caller || strcmp(top_of(thread), caller) == 0, "%s is called by %s, not %s", event->name,
	       top_of(thread), caller ? caller : "");
	expect(outcome, thread->depth < DEPTH_MAX, "the stack is not as deep as %d", thread->depth);
	thread->stack[thread->depth++] = event->name;
	thread->calls_after_gaps += thread->in_gaps > 0;
}

static void replay_event(const struct outcome *outcome, struct replayed *thread, const struct event *event)
{
	if (strcmp(event->kind, "gap") == 0) {
		thread->in_gaps += atol(event->name);
		thread->depth = 0;
		thread->known = false;
	} else if (strcmp(event->kind, "stack") == 0) {
		thread->depth = 0;
		thread->known = true;
	} else if (strcmp(event->kind, "frame") == 0) {
		thread->stack[thread->depth++] = event->name;
	} else if (strcmp(event->kind, "call") == 0) {
		replay_call(outcome, thread, event);
	} else if (strcmp(event->kind, "return") == 0 || strcmp(event->kind, "unwind") == 0) {
		expect(outcome, thread->known && strcmp(top_of(thread), event->name) == 0, "%s ends, and on top is %s",
		       event->name, top_of(thread));
		thread->depth--;
	}
	expect(outcome, strcmp(event->name, "?") != 0 && strcmp(event->place, "?:0") != 0, "a %s has no name",
	       event->kind);
}

static void expect_stacks(const struct account *account)
{
	struct replayed threads[THREADS] = {0};
	size_t events;
	struct event *dump = trace_dump(account->outcome->trace, &events);

	for (int i = 0; i < THREADS; i++)
		threads[i].known = true;
	for (size_t k = 0; k < events; k++)
		for (int i = 0; i < THREADS; i++)
			if (dump[k].tid == account->tids[i])
				replay_event(account->outcome, &threads[i], &dump[k]);
	for (int i = 0; i < THREADS; i++) {
		long lost = sum(thread_of(account, account->tids[i]), "lost");

		expect(account->outcome, threads[i].in_gaps == lost, "thread %d lost %ld events, its gaps say %ld", i,
		       lost, threads[i].in_gaps);
		expect(account->outcome, lost == 0 || threads[i].calls_after_gaps > 0 || lost > 1000,
		       "there are calls after the gaps of thread %d", i);
	}
}

/* The export shows a gap for what is missing. */
static void expect_gaps_shown(const struct account *account)
{
	static const char mark[] = " events lost\",\"args\":{\"events\":";
	char *path = text("%s/chrome.json", account->outcome->directory), *json;
	struct outcome *result = tool("export", "--format", "chrome", account->outcome->trace, "-o", path);
	long missing = 0, at = 0, shown = 0;

	expect(result, result->status == 0, "the export succeeds");
	for (int i = 0; i < THREADS; i++)
		missing += sum(thread_of(account, account->tids[i]), "lost");
	json = file_read(path, NULL);
	for (const char *place = json; (place = strstr(place, mark)); at++) {
		place += strlen(mark);
		shown += atol(place);
	}
	expect(result, at > 0, "the export shows gaps");
	expect(result, shown >= missing, "the gaps that it shows stand for %ld events, of %ld", shown, missing);
	free(json);
}

static const char *const chain[] = {"@accounting.py", "4", "6000", NULL};
static const char *const lossless[] = {"EVPROF_EVENTS=call,c_call,exception", NULL, NULL};
static const char *const dropping[] = {"EVPROF_EVENTS=call,c_call,exception", "EVPROF_ON_FULL=drop",
				       "EVPROF_RING_SIZE=64K"};

static void expect_drop(const struct python *python, const char *const *without_loss, const char *const *with_loss)
{
	struct account whole = record(python, chain, 0, without_loss);
	struct account lossy = record(python, chain, 30, with_loss);

	expect(lossy.outcome, expect_sums(&whole, &lossy) > 1000, "much is lost");
	expect_stacks(&lossy);
	expect_gaps_shown(&lossy);
}

SCENARIO(accounting, drop_with_a_slow_collector, SUPPORTED)
{
	expect_drop(python, lossless, dropping);
}

/* By the frame evaluator of preload/hooks/hooks_frame.c. */
SCENARIO_RANGE(accounting, drop_of_calls_only, 9, 11)
{
	static const char *const calls[] = {"EVPROF_EVENTS=call", NULL, NULL};
	static const char *const dropping_calls[] = {"EVPROF_EVENTS=call", "EVPROF_ON_FULL=drop",
						     "EVPROF_RING_SIZE=64K"};

	expect_drop(python, calls, dropping_calls);
}

SCENARIO(accounting, wait_with_a_slow_collector, SUPPORTED)
{
	static const char *const waiting[] = {"EVPROF_EVENTS=call,c_call,exception", "EVPROF_ON_FULL=wait:10000",
					      "EVPROF_RING_SIZE=64K"};
	struct account whole = record(python, chain, 0, lossless);
	struct account slow = record(python, chain, 30, waiting);

	expect(slow.outcome, expect_sums(&whole, &slow) == 0, "nothing is lost");
	expect_stacks(&slow);
}

/* The test, and with it the program and its collector. */
static void keep_to_one_processor(void)
{
	cpu_set_t allowed, one;
	int processor = 0;

	cr_assert_eq(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
	while (!CPU_ISSET(processor, &allowed))
		processor++;
	CPU_ZERO(&one);
	CPU_SET(processor, &one);
	cr_assert_eq(sched_setaffinity(0, sizeof(one), &one), 0);
}

#define SLACK_S 0.1 /* of the kernel's account, and threads that wait for each other */

/*
 * Each wait ends soon, as the collector goes on for 3 of every 30 ms, and there are many: all together are bounded. By
 * the program's own stopwatch, without the time for which others have its processor.
 */
SCENARIO(accounting, waiting_is_bounded_in_all, SUPPORTED)
{
	static const char *const longer[] = {"@accounting.py", "4", "40000", "in_turn"};
	static const char *const waiting[] = {"EVPROF_EVENTS=call,c_call,exception", "EVPROF_ON_FULL=wait:100",
					      "EVPROF_RING_SIZE=64K"};
	struct account whole = record(python, longer, 0, lossless), slow;
	double seconds = 0, idle = 0;
	char *result;

	keep_to_one_processor();
	slow = record(python, longer, 30, waiting);
	result = file_read(text("%s/seconds", slow.outcome->directory), NULL);
	expect(slow.outcome, result && sscanf(result, "%lf %lf", &seconds, &idle) == 2, "it says how long it took: %s",
	       result);
	expect(slow.outcome, idle < 0.1 + seconds / 10 + SLACK_S, "of %.2f s it stood still for %.2f s", seconds, idle);
	expect(slow.outcome, expect_sums(&whole, &slow) > 1000, "events that no wait saves are lost");
	free(result);
}

static void expect_names(const struct account *account, const char *what)
{
	size_t events;
	struct event *dump = trace_dump(account->outcome->trace, &events);

	for (size_t k = 0; k < events; k++)
		expect(account->outcome, strcmp(dump[k].name, "?") != 0, "%s: event %zu, a %s, has no name", what, k,
		       dump[k].kind);
}

/* Names have a ring of their own, which is full too. */
SCENARIO(accounting, names, SUPPORTED)
{
	static const char *const words[] = {"@many_names.py", "names", "20000", NULL};
	struct account whole = record(python, words, 0, lossless);
	struct account lossy = record(python, words, 300, dropping);

	expect(lossy.outcome, expect_sums(&whole, &lossy) > 1000, "much is lost");
	expect_names(&lossy, "names");
}

SCENARIO(accounting, memory, SUPPORTED)
{
	static const char *const words[] = {"@many_names.py", "memory", "60000", NULL};
	static const char *const kept[] = {"EVPROF_EVENTS=mem", NULL, NULL};
	static const char *const lost[] = {"EVPROF_EVENTS=mem", "EVPROF_ON_FULL=drop", "EVPROF_RING_SIZE=64K"};
	struct account whole = record(python, words, 0, kept);
	struct account lossy = record(python, words, 30, lost);

	expect(lossy.outcome, expect_sums(&whole, &lossy) > 1000, "much is lost");
}

/*
 * Generators, blocks that Python makes only for the hooks, and functions that are left out: what is lost is counted as
 * what would have been written.
 */
SCENARIO(accounting, shapes_and_memory, SUPPORTED)
{
	static const char *const words[] = {"@accounting_shapes.py", "4000", NULL, NULL};
	static const char *const kept[] = {"EVPROF_EXCLUDE=*left_out.py", NULL, NULL};
	static const char *const lost[] = {"EVPROF_EXCLUDE=*left_out.py", "EVPROF_ON_FULL=drop",
					   "EVPROF_RING_SIZE=64K"};
	struct account whole = record(python, words, 0, kept);
	struct account lossy = record(python, words, 30, lost);

	expect(whole.outcome, count(thread_of(&whole, whole.tids[1]), "events", "throw") > 0, "it throws");
	expect(lossy.outcome, expect_sums(&whole, &lossy) > 1000, "much is lost");
}

/*
 * The stack after a gap goes through the functions that name threads: what runs above them is not asked for the name.
 */
SCENARIO(accounting, thread_names, SUPPORTED)
{
	static const char *const words[] = {"@other_self.py", "200000", NULL, NULL};
	struct account lossy = record(python, words, 30, dropping);
	const json_t *thread = thread_of(&lossy, lossy.tids[0]);
	const char *name = json_string_value(json_object_get(thread, "name"));

	expect(lossy.outcome, sum(thread, "lost") > 1000, "much is lost");
	expect(lossy.outcome, name && strcmp(name, "its own") == 0, "the thread is called %s", name);
}
