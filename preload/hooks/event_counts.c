/* event_counts.c - see event_counts.h. */
#include "hooks/event_counts.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/seccomp.h"
#include "definitions/definitions.h"
#include "evprof/proc.h"
#include "evprof/wire.h"
#include "hooks/thinned_set.h"
#include "python/python.h"
#include "ring/clock.h"
#include "ring/process.h"

#define FUNCTIONS 4096 /* functions that are counted; events of others belong to nobody */
#define WORDS_MOST 65536
#define LOOK_WORDS_MOST 8192 /* of all threads, to look only */
#define DEPTH 256
#define MANY_CALLS 64
#define OWN_SHARES 4096
#define OWN_SHARES_KEPT 0.75f /* of what earlier bursts had */
#define LONG_SHARE 0.15 /* of what is left otherwise: exceptions, or what takes long, have it or are not left out */
#define LESS_SHARE 0.01 /* of all events: a function with less is left alone if those with more suffice */

static struct {
	uint64_t heads[RING_SLOTS]; /* of the rings, at the beginning */
	uint64_t unrecorded;	    /* count_unrecorded() then */
	uint64_t left_out;	    /* count_left_out() then */
	uint64_t raised;	    /* count_raised() then */
	uint64_t begin_ticks, begin_ns;
	uint64_t waited_ns;	       /* waited_ns() then, of the thread of stack_of */
	double ns, run_ns;	       /* from the beginning to the end, and without what that thread waited */
	uint64_t ticks;		       /* from the beginning to the end */
	double tick_ns;		       /* of a tick */
	const struct writer *stack_of; /* the thread whose stack at the beginning this is: ids, innermost first */
	uint32_t stack[DEPTH], depth;
	uint64_t events;
	uint32_t numbers[2 * FUNCTIONS]; /* open addressing by id: 1 + index in at */
	struct function_events at[FUNCTIONS];
	uint32_t count;
	struct candidate {
		struct function_events *function;
		struct call_times *times; /* of its own, or of the C functions that it calls */
	} candidates[2 * FUNCTIONS];
	uint32_t candidate_count;
	struct event_counts result;
} counts;

struct unrecorded unrecorded;

struct open_call {
	struct function_events *function;
	uint64_t begin;	  /* 0: not known */
	uint64_t c_begin; /* of the C function that it calls; 0: none */
};

struct reading {
	struct open_call stack[DEPTH];
	uint32_t depth; /* may be above DEPTH */
	uint64_t now;
};

/* What reads a ring does with the time until an event, and with the event. */
struct pass {
	void (*take_time)(struct reading *reading, uint64_t ticks);
	void (*take_event)(struct reading *reading, uint32_t head);
};

/*
 * Of the time in which a function that is not thinned is the innermost one that is recorded: its own, and that of
 * thinned functions below it, as the last bursts had it. By id; a function at the place of another one takes it.
 */
static struct own_share {
	uint32_t id;
	float own, below;
} own_shares[OWN_SHARES];

/* Of the calling thread. What a thread has called before the beginning may last beyond the end. */
static void note_stack(void)
{
	const void *frame = python_knows_frames() && python_is_held() ? python_running_frame() : NULL;

	counts.stack_of = thread_self.writer;
	counts.depth = 0;
	for (; frame && counts.depth < DEPTH; frame = python_frame_back(frame)) {
		uint32_t id = DEFINITION_ID((uint32_t)ids_find(&process->ids, python_frame_code(frame)));

		if (id)
			counts.stack[counts.depth++] = id;
	}
}

/* In which the calling thread has waited for a processor so far; 0: not known. */
static uint64_t waited_ns(void)
{
	int saved_errno = errno, cancel_state;
	char text[64], *second;
	ssize_t n;

	if (seccomp_active())
		return 0;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	n = proc_read("/proc/thread-self/schedstat", text, sizeof(text));
	pthread_setcancelstate(cancel_state, NULL);
	errno = saved_errno;
	second = n > 0 ? strchr(text, ' ') : NULL;
	return second ? strtoull(second, NULL, 10) : 0;
}

void event_counts_begin(void)
{
	note_stack();
	for (uint32_t i = 0; i < atomic_load(&process->slots_used); i++)
		counts.heads[i] = process->writers[i].slot ? process->writers[i].head : 0;
	counts.unrecorded = count_unrecorded();
	counts.left_out = count_left_out();
	counts.raised = count_raised();
	counts.begin_ticks = clock_now();
	counts.begin_ns = clock_ns(CLOCK_MONOTONIC);
	counts.waited_ns = waited_ns(); /* last, and first at the end: a wait in between is no part of it */
}

/* The place of a function's number; the number is 0 if it has no events. */
static uint32_t *number_of(uint32_t id)
{
	uint32_t place = id * UINT32_C(2654435761) % (2 * FUNCTIONS), *number;

	for (;; place = (place + 1) % (2 * FUNCTIONS)) {
		number = &counts.numbers[place];
		if (!*number || counts.at[*number - 1].id == id)
			return number;
	}
}

/* NULL: there are too many. */
static struct function_events *function_of(uint32_t id)
{
	uint32_t *number = number_of(id);

	if (!*number && counts.count == FUNCTIONS)
		return NULL;
	if (!*number) {
		*number = ++counts.count;
		counts.at[*number - 1] = (struct function_events){.id = id};
	}
	return &counts.at[*number - 1];
}

static struct open_call *top_of(struct reading *reading)
{
	return reading->depth && reading->depth <= DEPTH ? &reading->stack[reading->depth - 1] : NULL;
}

static void take_begin(struct reading *reading, struct function_events *function)
{
	function->own.events++;
	if (reading->depth < DEPTH)
		reading->stack[reading->depth] = (struct open_call){.function = function, .begin = reading->now};
	reading->depth++;
}

/* Keeps the longest calls, the longest first. */
static void take_time(struct call_times *times, uint64_t ticks)
{
	times->calls++;
	times->ticks += ticks;
	for (int i = 0; i < EVENT_COUNTS_LONGEST; i++) {
		uint64_t shorter = times->longest[i];

		if (ticks <= shorter)
			continue;
		times->longest[i] = ticks;
		ticks = shorter;
	}
}

static void take_end(struct reading *reading, struct function_events *function)
{
	struct open_call *top = top_of(reading);

	function->own.events++;
	if (reading->depth > DEPTH) {
		reading->depth--;
	} else if (top && top->function == function) {
		if (top->begin)
			take_time(&function->own, reading->now - top->begin);
		reading->depth--;
	} else {
		reading->depth = 0; /* what has begun before is not known */
	}
}

/* The event of a C function that the innermost function calls. */
static void take_c_event(struct open_call *caller, bool begins, uint64_t now)
{
	caller->function->own.events++;
	caller->function->c.events++;
	if (!begins && caller->c_begin)
		take_time(&caller->function->c, now - caller->c_begin);
	caller->c_begin = begins ? now : 0;
}

static void take_event(struct reading *reading, uint32_t head)
{
	unsigned kind = wire_head_kind(head);
	struct open_call *top = top_of(reading);
	struct function_events *function;

	if (!wire_is_bookkeeping(kind))
		counts.events++;
	if (kind >= WIRE_C_CALL && kind <= WIRE_C_EXCEPTION && top)
		take_c_event(top, kind == WIRE_C_CALL, reading->now);
	if (kind == WIRE_TASK && (function = function_of(wire_head_arg(head)))) {
		function->steps = true;
		function->own.events++;
	}
	if (kind < WIRE_CALL || kind > WIRE_UNWIND || !(function = function_of(wire_head_arg(head))))
		return;
	if (kind <= WIRE_THROW)
		take_begin(reading, function);
	else
		take_end(reading, function);
}

/* The stack at the beginning, if it is known. */
static void set_stack(struct reading *reading, const struct writer *writer)
{
	struct function_events *function;

	for (uint32_t i = writer == counts.stack_of ? counts.depth : 0; i-- > 0;)
		if ((function = function_of(counts.stack[i])))
			reading->stack[reading->depth++] = (struct open_call){.function = function};
}

/* In all no more than since the beginning: the time until the first event began before. */
static uint64_t ticks_since(const struct reading *reading, uint64_t ticks)
{
	uint64_t most = reading->now <= counts.ticks ? counts.ticks - (reading->now - 1) : 0;

	return ticks < most ? ticks : most;
}

/* The innermost function has run, but for the C function that it calls. */
static void take_own(struct reading *reading, uint64_t ticks)
{
	struct open_call *top = top_of(reading);

	if (top && !top->c_begin)
		top->function->own_ticks += ticks_since(reading, ticks);
}

/* The first words of the ring's thread since the beginning, unless they were written over. Returns the ticks. */
static uint64_t read_ring(const struct writer *writer, uint64_t at, uint64_t words_most, const struct pass *pass)
{
	uint64_t end = atomic_load_explicit(&writer->slot->head, memory_order_acquire);
	struct reading reading = {.now = 1};
	bool whole = end - at <= words_most;

	if (at > end || end - at > writer->mask)
		return 0;
	end = whole ? end : at + words_most;
	set_stack(&reading, writer);
	while (at < end) {
		uint64_t word = __atomic_load_n(&writer->words[at & writer->mask], __ATOMIC_RELAXED);
		uint64_t ticks = wire_head_kind((uint32_t)word) == WIRE_CPU ? 0 : word >> 32;

		pass->take_time(&reading, ticks);
		reading.now += ticks;
		pass->take_event(&reading, (uint32_t)word);
		at += 1 + wire_extra_words((uint32_t)word);
	}
	if (whole && writer == thread_self.writer)
		pass->take_time(&reading, counts.ticks);
	return whole ? counts.ticks : reading.now;
}

/* Returns how much of the time since the beginning they show, as a part of it: 0 to 1. */
static double read_rings(uint64_t words_most, const struct pass *pass)
{
	uint64_t shown = 0, ticks;

	for (uint32_t i = 0; i < atomic_load(&process->slots_used); i++) {
		if (!process->writers[i].slot)
			continue;
		ticks = read_ring(&process->writers[i], counts.heads[i], words_most, pass);
		shown = ticks > shown ? ticks : shown;
	}
	return counts.ticks && shown < counts.ticks ? (double)shown / (double)counts.ticks : 1;
}

static void forget_events(void)
{
	memset(counts.numbers, 0, sizeof(counts.numbers));
	counts.count = 0;
	counts.events = 0;
	counts.ticks = clock_now() - counts.begin_ticks + 1;
}

static const struct pass counting = {take_own, take_event};

static void note_own_share(const struct function_events *function)
{
	struct own_share *share = &own_shares[function->id % OWN_SHARES];

	if (share->id != function->id)
		*share = (struct own_share){.id = function->id};
	share->own = OWN_SHARES_KEPT * share->own + (float)function->own_ticks;
	share->below = OWN_SHARES_KEPT * share->below + (float)function->below_ticks;
}

/* While a thinned function runs, the profile function is off. It has no events: its caller seems to run. */
static uint64_t slowed_ticks(const struct function_events *function)
{
	const struct own_share *share = &own_shares[function->id % OWN_SHARES];

	if (thinned_set_of(function->id) != THINNED_NOT)
		return 0;
	if (!thinned_set()->count || share->id != function->id || share->own + share->below <= 0)
		return function->own_ticks;
	return (uint64_t)((float)function->own_ticks * share->own / (share->own + share->below));
}

double event_counts_slowed_ns(void)
{
	uint64_t ticks = 0;
	double shown;

	if (!counts.begin_ns)
		return 0;
	forget_events();
	shown = read_rings(1 + LOOK_WORDS_MOST / (1 + atomic_load(&process->slots_used)), &counting);
	for (uint32_t i = 0; i < counts.count; i++)
		ticks += slowed_ticks(&counts.at[i]);
	return shown > 0 ? (double)ticks / shown / (double)counts.ticks *
			       (double)(clock_ns(CLOCK_MONOTONIC) - counts.begin_ns)
			 : 0;
}

/* What a function's instructions have taken more, as events: they are gone if its C functions are left out. */
static void take_slowed(struct function_events *function, double each_tick)
{
	uint32_t events = (uint32_t)((double)slowed_ticks(function) * each_tick);

	function->slowed = events;
	function->own.events += events;
	function->c.events += events;
	counts.events += events;
}

/* A call that is not recorded takes no time from anybody's sight: nothing is lost without it. */
static void take_unrecorded(struct function_events *function, double each)
{
	uint32_t events = (uint32_t)((double)function->unrecorded * each);

	function->own.events += events;
	function->c.events += events;
	function->c.calls += events;
}

/* All reports since the beginning are attributed as the last ones are. */
static void read_unrecorded(void)
{
	uint64_t all = count_unrecorded(), since = all - counts.unrecorded;
	uint64_t seen = since < UNRECORDED_CALLERS ? since : UNRECORDED_CALLERS;

	for (uint64_t i = all - seen; i < all; i++) {
		const struct object *code =
		    atomic_load_explicit(&unrecorded.callers[i % UNRECORDED_CALLERS], memory_order_relaxed);
		uint32_t id = DEFINITION_ID((uint32_t)ids_find(&process->ids, code));
		struct function_events *function = id ? function_of(id) : NULL;

		if (function)
			function->unrecorded++;
	}
	for (uint32_t i = 0; seen && i < counts.count; i++)
		take_unrecorded(&counts.at[i], (double)since / (double)seen);
	counts.events += since + count_left_out() - counts.left_out;
}

static int by_events(const void *left, const void *right)
{
	const struct function_events *a = left, *b = right;

	return (a->own.events < b->own.events) - (a->own.events > b->own.events);
}

/* Whether a function may be left out. value: of its code in ids.h. */
static uint64_t note_plain(uint64_t value)
{
	uint32_t number = definitions_may_thin(value, THINNED) ? *number_of(value & WIRE_ARG_MAX) : 0;

	if (number) {
		counts.at[number - 1].plain = true;
		counts.at[number - 1].c_apart = definitions_may_thin(value, THINNED_C_CALLS);
	}
	return value;
}

/*
 * Without the waits for a processor: those in the longest calls, or, where the calls take more than the time in which
 * the thread had one, the part that all of these waits are.
 */
static void set_mean(struct call_times *times)
{
	double whole_ns = (double)times->ticks * counts.tick_ns, all_ns = whole_ns;
	uint64_t ticks = times->ticks, calls = times->calls;

	times->mean_ns = EVENT_COUNTS_MOST_NS;
	if (!calls)
		return;
	if (all_ns > counts.ns) /* calls within calls, or in several threads */
		all_ns = counts.ns;
	if (all_ns > counts.run_ns)
		whole_ns *= counts.run_ns / all_ns;
	times->mean_ns = whole_ns / (double)calls;
	for (int i = 0; i < EVENT_COUNTS_LONGEST && times->calls >= MANY_CALLS; i++, calls--)
		ticks -= times->longest[i];
	if ((double)ticks * counts.tick_ns / (double)calls < times->mean_ns)
		times->mean_ns = (double)ticks * counts.tick_ns / (double)calls;
}

static int by_mean(const void *left, const void *right)
{
	const struct candidate *a = left, *b = right;

	return (a->times->mean_ns > b->times->mean_ns) - (a->times->mean_ns < b->times->mean_ns);
}

static void add_candidate(struct function_events *function, struct call_times *times)
{
	set_mean(times);
	if (times == &function->c && !times->calls && times->events == function->slowed)
		times->mean_ns = 0; /* it calls none, and none runs: nothing is lost */
	if (function->plain && times->events && times->mean_ns < EVENT_COUNTS_MOST_NS)
		counts.candidates[counts.candidate_count++] = (struct candidate){function, times};
}

/* What may be left out, the shortest mean first. */
static void find_candidates(void)
{
	counts.candidate_count = 0;
	for (uint32_t i = 0; i < counts.count; i++) {
		add_candidate(&counts.at[i], &counts.at[i].own);
		if (counts.at[i].c_apart)
			add_candidate(&counts.at[i], &counts.at[i].c);
	}
	qsort(counts.candidates, counts.candidate_count, sizeof(counts.candidates[0]), by_mean);
}

/* Which functions may be left out. */
struct which {
	double below_ns; /* those with a shorter mean */
	double least;	 /* those with so many events */
	bool steps;	 /* coroutines that are tasks, too */
};

/* Leaves out such functions until no more than `most` of all events are left. Returns these. */
static double leave_out(struct which which, double events, double most)
{
	for (uint32_t i = 0; i < counts.candidate_count && events > most; i++) {
		struct function_events *function = counts.candidates[i].function;
		struct call_times *times = counts.candidates[i].times;

		if (times->mean_ns >= which.below_ns)
			break;
		if (function->own.chosen || times->chosen || times->events < which.least ||
		    (function->steps && !which.steps))
			continue;
		times->chosen = true;
		events -=
		    times == &function->own && function->c.chosen ? times->events - function->c.events : times->events;
	}
	return events;
}

/* Exceptions, unless that is in vain. Returns the events that are left. */
static double leave_out_exceptions(double events, double most)
{
	double raised = (double)(count_raised() - counts.raised);

	counts.result.exceptions = python.monitoring && events > most && raised >= LONG_SHARE * events;
	return counts.result.exceptions ? events - raised : events;
}

/* Those that take long, too, unless that is in vain: they are worth more than the others. */
static void leave_out_long(double least, double events, double most)
{
	double left = leave_out((struct which){EVENT_COUNTS_MOST_NS, least, false}, events, most);

	left = leave_out((struct which){EVENT_COUNTS_MOST_NS, 0, false}, left, most);
	if (left <= most || left <= (1 - LONG_SHARE) * events)
		return;
	for (uint32_t i = 0; i < counts.candidate_count; i++)
		if (counts.candidates[i].times->mean_ns >= EVENT_COUNTS_LONG_NS)
			counts.candidates[i].times->chosen = false;
}

/* What waits in another thread is not known; it waits for the same processors. */
static void note_time(void)
{
	bool same = counts.stack_of == thread_self.writer;
	double waited = counts.waited_ns && same ? (double)(waited_ns() - counts.waited_ns) : 0;

	counts.ns = (double)(clock_ns(CLOCK_MONOTONIC) - counts.begin_ns);
	counts.tick_ns = counts.ns / (double)(clock_now() - counts.begin_ticks + 1);
	counts.run_ns = waited > 0 && waited < counts.ns ? counts.ns - waited : counts.ns;
}

/* The functions with the most events since the beginning. */
static void count_events(double slowed)
{
	forget_events();
	read_rings(WORDS_MOST, &counting);
	read_unrecorded();
	for (uint32_t i = 0; slowed > 0 && i < counts.count; i++)
		take_slowed(&counts.at[i], slowed * counts.tick_ns);
	ids_each(&process->ids, note_plain); /* before they are sorted */
	qsort(counts.at, counts.count, sizeof(counts.at[0]), by_events);
	find_candidates();
	counts.result = (struct event_counts){.at = counts.at, .count = counts.count, .events = counts.events};
}

/* The time of what is left out is that of the function that calls it, directly or not. */
static void take_below(struct reading *reading, uint64_t ticks)
{
	uint32_t at = reading->depth;

	while (at > 0 && reading->stack[at - 1].function->own.chosen)
		at--;
	if (at > 0 && at < reading->depth)
		reading->stack[at - 1].function->below_ticks += ticks_since(reading, ticks);
}

static void take_switch(struct reading *reading, uint32_t head)
{
	unsigned kind = wire_head_kind(head);
	struct open_call *caller = top_of(reading);
	uint32_t number = kind >= WIRE_CALL && kind <= WIRE_UNWIND ? *number_of(wire_head_arg(head)) : 0;
	struct function_events *function = number ? &counts.at[number - 1] : NULL;

	if (!function)
		return;
	if (kind > WIRE_THROW) {
		reading->depth = caller && caller->function == function ? reading->depth - 1 : 0;
		return;
	}
	if (caller && function->own.chosen)
		caller->function->switches++;
	if (reading->depth == DEPTH)
		reading->depth = 0;
	reading->stack[reading->depth++] = (struct open_call){.function = function};
}

static const struct pass judging = {take_below, take_switch};

/* Reads the rings again: who calls what is left out. */
static void read_below(void)
{
	memset(counts.numbers, 0, sizeof(counts.numbers)); /* they were sorted */
	for (uint32_t i = 0; i < counts.count; i++)
		*number_of(counts.at[i].id) = i + 1;
	read_rings(WORDS_MOST, &judging);
	for (uint32_t i = 0; i < counts.count; i++)
		if (!counts.at[i].own.chosen)
			note_own_share(&counts.at[i]);
}

/*
 * Until 3.11: a function that calls those that are chosen pays for taking the profile function off and setting it, each
 * time. That is gone if the C functions that it calls are left out, too.
 */
static void leave_out_switches(double least)
{
	for (uint32_t i = 0; i < counts.count; i++) {
		struct function_events *function = &counts.at[i];

		if (function->c_apart && !function->own.chosen && function->switches > least &&
		    function->c.mean_ns < EVENT_COUNTS_LONG_NS)
			function->c.chosen = true;
	}
}

const struct event_counts *event_counts_choose(double left, double left_exceptions, double left_long, double least,
					       double slowed)
{
	double all, events;

	note_time();
	count_events(slowed);
	events = all = (double)counts.events;
	for (int steps = 0; steps < 2; steps++) {
		events = leave_out((struct which){EVENT_COUNTS_LONG_NS, LESS_SHARE * all, steps}, events, left * all);
		events = leave_out((struct which){EVENT_COUNTS_LONG_NS, least * all, steps}, events, left * all);
		events = leave_out((struct which){EVENT_COUNTS_LONG_NS, 0, steps}, events, left * all);
	}
	events = leave_out_exceptions(events, left_exceptions * all);
	leave_out_long(least * all, events, left_long * all);
	if (!python.monitoring && events < all) {
		read_below();
		leave_out_switches(least * all);
	}
	return &counts.result;
}
