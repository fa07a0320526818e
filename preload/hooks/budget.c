/* budget.c - see budget.h. */
#include "hooks/budget.h"

#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/config.h"
#include "base/log_line.h"
#include "base/text.h"
#include "definitions/define.h"
#include "definitions/definitions.h"
#include "hooks/event_counts.h"
#include "hooks/frame_evaluator.h"
#include "hooks/hooks.h"
#include "hooks/thinned_frames.h"
#include "life/life.h"
#include "life/thin.h"
#include "ring/clock.h"
#include "ring/process.h"
#include "ring/writer.h"

/*
 * A burst, and the time before it is a sample, in which all is slower: code is instrumented again, and neither it nor
 * that of the hooks is in the processor's caches. richards has 270 events in the first 100 us, 830 in the fourth,
 * 1,000 from the sixth on. Threads that write end both when they next look for room, each 512 words; else the kernel's
 * timer does, up to a tick of the system (4 ms) later.
 */
#define WARM_NS 400000
#define LISTEN_NS 800000
#define LOOK_FIRST_NS 5000000
#define LOOK_NS 20000000	  /* between two looks at the cost, while all is recorded ... */
#define LOOK_SOON_NS 10000000	  /* ... after a choice, and twice the time after each look ... */
#define LOOK_THINNED_NS 100000000 /* ... up to this */
#define LOOK_LONG_NS 40000000	  /* shows functions that take up to EVENT_COUNTS_MOST_NS; a debt that lasts */
#define AGAIN_NS 2000000
#define BURST_WAIT_MIN_NS 100000000.0 /* mean time from a burst to the next one */
#define BURST_WAIT_MAX_NS 5e9
#define BURST_SHARE 0.25 /* of the budget, for bursts, without debts or savings; with debts ... */
#define BURST_SHARE_MIN 0.15
#define LEAVE 0.75	     /* of the budget, for what is recorded all the time */
#define LEAVE_MIN 0.25	     /* ... with debts, and ... */
#define LEAVE_MAX 2	     /* ... with savings */
#define LEAST_OF_BUDGET 0.02 /* a function that costs less is left alone, or has few events */
#define OVER 1.3	     /* times what was expected: more functions are chosen */
#define EVENTS_LEAST 10000   /* between two looks, but for the timer's */
#define AFTER_REPORTS 4	     /* of a thinned function after a burst, until its places are switched off again */
/*
 * Times report_ns: the instrumentation of a function's code, in which Python goes through all instructions. Functions
 * of 120 code units of two bytes take 0.31 us each, of 27,500 units 52 us (3.12 and 3.13, at first and after
 * restart_events()); those of django_load, 109 units on average, 0.55 us, as they are not in the caches.
 */
#define INSTRUMENT_REPORTS 4
#define INSTRUMENT_REPORTS_BYTE 0.075
/*
 * A full set is made anew once what is recorded beyond the wanted share has cost as much as that does; each time twice
 * that, until a burst is due.
 */
#define ANEW_NS 3000000.0
/*
 * Where few events come, or come for a millisecond only, their code is not in the processor's caches: 24 to 54 ns
 * instead of 17 to 23 in ten programs of pyperformance on 3.13.
 */
#define COLD 2.0       /* times report_ns or event_ns, while functions are thinned and in bursts */
#define COST_MOST 0.62 /* of the time, where events come without a pause: 0.50 to 0.75 in bursts of these programs */
/*
 * Nor is the code of a large program. With all recorded an event costs 1.05 times event_ns where 25 to 45 functions run
 * in a millisecond, 1.75 times where 200 to 300 do (3.13, ten programs of pyperformance, flask, django). While
 * functions are thinned, a report costs 5.3 times report_ns there, with what it displaces from the caches.
 */
#define LARGE 1.75
#define LARGE_FUNCTIONS 300.0
#define SMALL_FUNCTIONS 50.0
/*
 * Times event_ns, in the part of a burst that is a sample, as that has warmed up. So much makes the estimates of a
 * program agree with its calls: 0.9 to 1.7 on 3.13 (chaos, go, logging, raytrace of pyperformance), 1.2 to 2.3 on 3.12,
 * and 0.9 to 1.5 on 3.9 and 3.11 (chaos, deltablue, go, hexiom, richards).
 */
#define SAMPLE 1.5
#define SAMPLE_PROFILED 1.25
/* Python makes a tuple of the arguments and calls the hook: 80 to 130 on 3.13, of which 80 with an empty hook. */
#define AUDIT_NS 100
#define KEEP_NS 2000000000	/* CPU time for which a function stays thinned after it was called too often */
#define KEEP_LONG_NS 8000000000 /* likewise, one that takes long: bursts are too short to choose it again */
#define KEEP_MOST (WIRE_THIN_SET_MOST * 3 / 4) /* the rest is for other phases */
#define PLACES (2 * WIRE_THIN_SET_MOST)
#define NO_FUNCTION 0		 /* no id; with WIRE_THIN_C_CALLS: WIRE_THIN_EXCEPTIONS */
#define SETTLE_NS 5e8		 /* CPU time in which a debt is paid */
#define LEAST_AFTER_NS 5e8	 /* CPU time */
#define LONG_AGAIN_NS 1000000000 /* CPU time between two looks at what takes long, if that was in vain */
#define SAVED_NS 2e9		 /* CPU time whose budget may be saved */
/*
 * A collector with less CPU time at the beginning is that of this session. Its CPU time counts, but for what cannot be
 * due to the events of this process.
 */
#define COLLECTOR_NEW_NS 30000000
#define COLLECTOR_MOST 4 /* times BUDGET_COLLECTOR_NS an event */
#define COLLECTOR_IDLE_SHARE 0.01

struct budget_costs budget_costs = {.report_ns = 20, .event_ns = 25};

/* Once it is set, what follows belongs to the threads of the main interpreter. */
static _Atomic bool several_interpreters;

static struct {
	bool on;
	bool thinned;		   /* some functions are */
	bool listens;		   /* since begin_ns, to choose; the rings still have what came since */
	bool warms;		   /* likewise, but it is no sample yet */
	uint64_t listens_until_ns; /* CLOCK_MONOTONIC: the CPU time is read from then on */
	uint64_t begin_ns;	   /* CPU time of the process at the last change or look */
	uint64_t burst_ns;	   /* CPU time of the next burst */
	double burst_wait_ns;	   /* the mean time to it */
	uint64_t listen_ns;	   /* CPU time from which on all may be listened to for another reason */
	uint64_t look_ns;	   /* between the last look and the next one, while functions are thinned */
	double anew_ns;		   /* what choosing a full set anew has to save */
	double choice_ns;	   /* what the last choice has cost: likewise, where the set is not full */
	uint64_t chosen_ns;	   /* CPU time of the last choice of a set */
	double burst_cost_ns;	   /* account.cost_ns when the last burst began */
	uint64_t long_ns;	   /* CPU time from which on functions that take long may be left out */
	double expected; /* what recording costs though all is thinned that can be, relative to the program; 0: less */
	uint64_t events; /* words in all rings at begin_ns */
	uint64_t events_most;	 /* words in all rings for which recording costs too much before the next step is due */
	uint64_t unrecorded;	 /* count_others() then */
	_Atomic uint32_t audits; /* since begin_ns */
	uint32_t functions;	 /* that had events when the hooks last listened */
	uint32_t forgotten;	 /* process->ids_forgotten */
	uint64_t random_state;
	_Atomic uint64_t queued_ns;	 /* CPU time when the signal queued this step; 0: it did not */
	_Atomic uint64_t queued_main_ns; /* likewise, of the main thread */
	struct thinned_set {
		struct thin_set set;
		uint64_t until_ns[WIRE_THIN_SET_MOST]; /* CPU time until which each stays thinned after a burst */
	} now, before;				       /* what is thinned; what was until the last burst began */
	uint16_t places[PLACES];		       /* open addressing by id: 1 + index in now */
} budget;

/*
 * What recording has cost, and what it might have: balance_ns = sum of (share * CPU time without recording - cost), at
 * most what SAVED_NS gives.
 */
static struct {
	double balance_ns;
	double cost_ns, program_ns; /* so far, all of it, and the program's part */
	double cpu_ns;		    /* of the process, likewise */
	double passes_ns;	    /* what the calls of thinned functions have cost: no less is possible */
	double due_ns;		    /* of the program's part, since begin_ns: measured, not counted */
	uint32_t codes;		    /* definitions_codes at begin_ns */
	uint64_t code_bytes;	    /* definitions_code_bytes then */
	uint64_t definitions_ns;    /* likewise */
	uint64_t passes;	    /* count_passes() at begin_ns */
	uint64_t collector_ns;	    /* its CPU time at begin_ns; 0: not known */
	double least_share;	    /* what recording costs though all is left out that can be; 0: not known */
	double longest_ns;	    /* the longest mean of what was left out */
	double exceptions_ns;	    /* CPU time in which exceptions were left out */
	bool exceptions;	    /* they are, since begin_ns */
	bool begun, collector_tried, least_said;
	pid_t pid;
} account;

/*
 * While a timer of the process's CPU time is armed, the kernel advances that clock at its ticks alone, each 4 ms or so;
 * and when a thread reads its own clock.
 */
static uint64_t cpu_now(void)
{
	clock_ns(CLOCK_THREAD_CPUTIME_ID);
	return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

static _Atomic bool silent; /* the timer sends no signal: the program has its own handler of SIGURG */

/* 1 + its number; 0: there are too many. The C library's functions allocate. */
static int make_timer(void)
{
	struct sigevent event = {.sigev_notify = atomic_load(&silent) ? SIGEV_NONE : SIGEV_SIGNAL,
				 .sigev_signo = SIGURG,
				 .sigev_value.sival_int = BUDGET_SIGNAL_VALUE};
	int timer;

	return syscall(SYS_timer_create, CLOCK_PROCESS_CPUTIME_ID, &event, &timer) ? 0 : timer + 1;
}

/* The child of a fork has no timer. */
static void set_timer(uint64_t ns)
{
	struct itimerspec at = {.it_value = {.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)}};

	if (!process->budget_timer)
		process->budget_timer = make_timer();
	if (process->budget_timer)
		syscall(SYS_timer_settime, process->budget_timer - 1, 0, &at, NULL);
}

/* 0 to 1. */
static double draw(void)
{
	budget.random_state = budget.random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (double)(budget.random_state >> 11) / (double)(UINT64_C(1) << 53);
}

/* Exponentially distributed with the mean 1, from a uniform number, in steps: the library has no libm. */
static double draw_wait(void)
{
	double waited = 0;

	for (int i = 0; i < 640 && draw() >= 1.0 / 64; i++)
		waited += 1.0 / 64;
	return waited;
}

/* Without those of thin_put(), which are no events and cost less. */
static uint64_t words_written(void)
{
	uint64_t words = atomic_load_explicit(&process->words_ended, memory_order_relaxed);

	for (uint32_t i = 0; i < atomic_load(&process->slots_used); i++) {
		const struct writer *writer = &process->writers[i];

		if (writer->slot)
			words += atomic_load_explicit(&writer->slot->head, memory_order_relaxed) -
				 __atomic_load_n(&writer->thin_words, __ATOMIC_RELAXED);
	}
	return words;
}

/* Since begin_ns. In a new ring they begin at 0. */
static double events_since(uint64_t words)
{
	return words > budget.events ? (double)(words - budget.events) : 0;
}

static double allowed_share(void)
{
	return (double)config.budget / 100000.0;
}

/* The kernel's clock of another process's CPU time, see clock_getcpuclockid(3). */
static uint64_t collector_cpu(void)
{
	int pid = atomic_load_explicit(&process->header->collector_pid, memory_order_relaxed);

	return pid > 0 ? clock_ns((clockid_t)(~(uint32_t)pid << 3 | 2)) : 0;
}

/* The collector's share since begin_ns: its CPU time if it works for this session alone, else a constant an event. */
static double collector_cost(double events, double cpu_ns)
{
	uint64_t now = account.collector_tried && !account.collector_ns ? 0 : collector_cpu(), before;
	double most = COLLECTOR_MOST * events * BUDGET_COLLECTOR_NS + COLLECTOR_IDLE_SHARE * cpu_ns, cost;

	if (!account.collector_tried && now) {
		account.collector_tried = true;
		account.collector_ns = config.session_first == getpid() && now < COLLECTOR_NEW_NS ? now : 0;
		return (double)account.collector_ns;
	}
	if (!now || !account.collector_ns)
		return events * BUDGET_COLLECTOR_NS;
	before = account.collector_ns;
	account.collector_ns = now > before ? now : before;
	cost = (double)(account.collector_ns - before);
	return cost < most ? cost : most;
}

/* 1 to LARGE: how much more an event costs in a program of this size than in a loop. */
static double size_factor(void)
{
	double size = ((double)budget.functions - SMALL_FUNCTIONS) / (LARGE_FUNCTIONS - SMALL_FUNCTIONS);

	return 1 + (LARGE - 1) * (size < 0 ? 0 : size > 1 ? 1 : size);
}

/* Of what the interpreter reports to the hooks. */
static double report_cost(void)
{
	double cost = budget_costs.report_ns * size_factor();

	return budget.thinned ? COLD * size_factor() * cost : budget.listens ? COLD * cost : cost;
}

/* Of the instrumentation of functions' code: at their first events, and after restart_events(). */
static double instrument_cost(double functions, double bytes)
{
	double reports = functions * INSTRUMENT_REPORTS + bytes * INSTRUMENT_REPORTS_BYTE;

	return python.monitoring ? reports * budget_costs.report_ns : 0;
}

/* What the interpreter has reported to the hooks and they have not recorded. */
static uint64_t count_others(void)
{
	return count_unrecorded() + count_left_out();
}

/* Calls of thinned functions, until 3.11, each of which has cost thinned_frames_ns(). */
static uint64_t count_passes(void)
{
	return thinned_frames_passes() + hooks_frame_passes();
}

/* The place of a function in the set; 0 there: it is not in the set. */
static uint16_t *place_of(uint32_t id)
{
	uint32_t at = id * UINT32_C(2654435761) % PLACES;

	while (budget.places[at] && (budget.now.set.ids[budget.places[at] - 1] & WIRE_ARG_MAX) != id)
		at = (at + 1) % PLACES;
	return &budget.places[at];
}

static void note_definitions(void)
{
	account.codes = definitions_codes;
	account.code_bytes = definitions_code_bytes;
	account.definitions_ns = definitions_ns;
}

/* What has been reported since begin_ns has cost, with so many events in so much CPU time. */
static double reports_cost(double events, double cpu_ns)
{
	double cost = (events + (double)(count_others() - budget.unrecorded)) * report_cost();

	return cost < COST_MOST * cpu_ns ? cost : COST_MOST * cpu_ns;
}

/* Posts what has happened since begin_ns to the account. */
static void note_begin(uint64_t now_ns)
{
	uint64_t words = words_written();
	double events = events_since(words), cpu_ns = (double)(now_ns - budget.begin_ns), passes_ns;
	double cost = reports_cost(events, cpu_ns) + (double)budget.audits * AUDIT_NS + account.due_ns;
	double most = SAVED_NS * allowed_share();

	cost += (double)(definitions_ns - account.definitions_ns);
	cost += instrument_cost((double)(definitions_codes - account.codes),
				(double)(definitions_code_bytes - account.code_bytes));
	passes_ns = (double)(count_passes() - account.passes) * thinned_frames_ns();
	account.passes_ns += passes_ns;
	cost += passes_ns;
	account.program_ns += cost;
	account.cpu_ns += cpu_ns;
	account.balance_ns += allowed_share() * (cpu_ns > cost ? cpu_ns - cost : 0);
	cost += collector_cost(events, cpu_ns);
	account.balance_ns -= cost;
	account.balance_ns = account.balance_ns < most ? account.balance_ns : most;
	account.cost_ns += cost;
	account.exceptions_ns += account.exceptions ? cpu_ns : 0;
	account.exceptions = *place_of(NO_FUNCTION);
	account.due_ns = 0;
	note_definitions();
	account.passes = count_passes();
	budget.begin_ns = now_ns;
	budget.audits = 0;
	budget.events = words;
	budget.unrecorded = count_others();
}

static void begin_counts(uint64_t now_ns)
{
	event_counts_begin();
	note_begin(now_ns);
}

/* The cost of the events since begin_ns, relative to the CPU time without them. */
static double share_since(uint64_t now_ns)
{
	double events = events_since(words_written()), cpu_ns = (double)(now_ns - budget.begin_ns);
	double cost = reports_cost(events, cpu_ns);

	return cpu_ns > 0 ? (cost + events * BUDGET_COLLECTOR_NS) / (cpu_ns - cost) : 0;
}

/* The share of what is recorded all the time, which leaves room for bursts, and pays debts. */
static double wanted_share(void)
{
	double allowed = allowed_share(), wanted = LEAVE * allowed + account.balance_ns / SETTLE_NS;

	return wanted < LEAVE_MIN * allowed   ? LEAVE_MIN * allowed
	       : wanted > LEAVE_MAX * allowed ? LEAVE_MAX * allowed
					      : wanted;
}

/* With the event's cost: until 3.11 less what a call without events costs. */
static uint32_t value_of(unsigned why)
{
	double cost_ns = python.monitoring ? SAMPLE * size_factor() * budget_costs.event_ns
					   : SAMPLE_PROFILED * budget_costs.event_ns - thinned_frames_ns() / 2;

	return wire_thin_value(why, (uint32_t)(cost_ns > 0 ? cost_ns * 10 : 0));
}

/* The interpreter reports what is recorded now. any: something is thinned. */
static void switch_hooks(bool any)
{
	if (!python.monitoring && any && !hooks_frame_set())
		thinned_frames_begin(); /* that of hooks_frame.c may have been taken off since budget_begin() */
	if (!python.monitoring)
		thinned_frames_changed(any);
	else
		hooks_monitoring_leave_out_exceptions(*place_of(NO_FUNCTION));
	if (python.monitoring && !any) /* callbacks return DISABLE by themselves */
		hooks_monitoring_restart();
}

/* Whether the budget is that of this image and of these ids. The child of a fork has no timer. */
static bool is_begun(void)
{
	return process->budget_timer &&
	       budget.forgotten == atomic_load_explicit(&process->ids_forgotten, memory_order_relaxed);
}

static enum thinned left_out(uint32_t id)
{
	uint16_t place = is_begun() && !atomic_load(&several_interpreters) ? *place_of(id) : 0;

	return !place ? THINNED_NOT : budget.now.set.ids[place - 1] & WIRE_THIN_C_CALLS ? THINNED_C_CALLS : THINNED;
}

static void empty_set(void)
{
	budget.now.set.count = 0;
	memset(budget.places, 0, sizeof(budget.places));
}

/* No function is thinned any more: the events of all come again after switch_hooks(false). */
static void thin_nothing(void)
{
	budget.before = budget.now;
	empty_set();
	definitions_thin();
}

static void write_change(unsigned kind, unsigned why, uint64_t now_ns, const struct thin_set *set)
{
	thin_change(kind, value_of(why), now_ns, set);
	writer_reserve(kind); /* writes it */
}

static uint64_t listening_ns(void)
{
	return budget.warms ? WARM_NS : LISTEN_NS;
}

/* warms: it is no sample yet. */
static void listen_from(uint64_t now_ns, bool warms)
{
	begin_counts(now_ns); /* first: what has come so far costs what it did until now */
	budget.thinned = false;
	budget.listens = true;
	budget.warms = warms;
	budget.listens_until_ns = clock_ns(CLOCK_MONOTONIC) + listening_ns();
}

/* After thin_nothing(). random: to become a sample, see listen_for_sample(). now_ns: read after it. */
static void listen(bool random, uint64_t now_ns)
{
	write_change(WIRE_THIN_END, WIRE_BURST_OTHER, now_ns, &budget.before.set);
	listen_from(now_ns, random);
	budget.burst_cost_ns = account.cost_ns;
}

/* From here on the burst is a sample. */
static void listen_for_sample(uint64_t now_ns)
{
	write_change(WIRE_THIN_END, WIRE_BURST_RANDOM, now_ns, &budget.before.set);
	listen_from(now_ns, false);
}

/* Thins a function, from definitions_thin() on. False: it is thinned so already, or the set is full. */
static bool take(uint32_t id, enum thinned thinned, uint64_t until_ns)
{
	uint32_t entry = id | (thinned == THINNED ? 0 : WIRE_THIN_C_CALLS), at;
	uint16_t *place = place_of(id);

	at = *place ? *place - 1u : budget.now.set.count;
	if (*place ? budget.now.set.ids[at] == id || budget.now.set.ids[at] == entry : at == WIRE_THIN_SET_MOST)
		return false;
	if (!*place)
		*place = (uint16_t)++budget.now.set.count;
	budget.now.set.ids[at] = entry;
	budget.now.until_ns[at] = until_ns;
	return true;
}

/* Returns how many are taken. */
static uint32_t take_set(const struct event_counts *counts, uint64_t now_ns)
{
	uint32_t taken = 0;

	for (uint32_t i = 0; i < counts->count; i++) {
		const struct function_events *function = &counts->at[i];
		const struct call_times *times = function->own.chosen ? &function->own : &function->c;
		uint64_t keep_ns = times->mean_ns < EVENT_COUNTS_LONG_NS ? KEEP_NS : KEEP_LONG_NS;

		if (!times->chosen ||
		    !take(function->id, times == &function->own ? THINNED : THINNED_C_CALLS, now_ns + keep_ns))
			continue;
		account.longest_ns = times->mean_ns > account.longest_ns ? times->mean_ns : account.longest_ns;
		taken++;
	}
	/* As the C functions of no function: WIRE_THIN_EXCEPTIONS. */
	return taken + (counts->exceptions && take(NO_FUNCTION, THINNED_C_CALLS, now_ns + KEEP_NS));
}

/*
 * After a burst: what was thinned before it, and was called too often not long ago. A burst shows one phase of the
 * program, and the next phase may be one that was there before.
 */
static uint32_t take_before(uint64_t now_ns)
{
	const struct thinned_set *before = &budget.before;
	uint32_t taken = 0;

	for (uint32_t i = 0; i < before->set.count && budget.now.set.count < KEEP_MOST; i++) {
		uint32_t entry = before->set.ids[i];

		if (now_ns <= before->until_ns[i])
			taken += take(entry & WIRE_ARG_MAX, entry & WIRE_THIN_C_CALLS ? THINNED_C_CALLS : THINNED,
				      before->until_ns[i]);
	}
	return taken;
}

/* The next burst: its own cost is a part of the budget. Savings are spent on more of them, debts paid by fewer. */
static void plan_burst(double cost_ns, uint64_t now_ns)
{
	double share = BURST_SHARE * allowed_share() + account.balance_ns / SAVED_NS, wait;

	if (python.monitoring)
		cost_ns += budget.now.set.count * AFTER_REPORTS * report_cost();
	share = share > BURST_SHARE_MIN * allowed_share() ? share : BURST_SHARE_MIN * allowed_share();
	wait = cost_ns / share;
	wait = wait < BURST_WAIT_MIN_NS ? BURST_WAIT_MIN_NS : wait > BURST_WAIT_MAX_NS ? BURST_WAIT_MAX_NS : wait;
	budget.burst_wait_ns = wait;
	budget.burst_ns = now_ns + (uint64_t)(wait * draw_wait());
	budget.listen_ns = now_ns + (uint64_t)wait;
}

/*
 * CPU time that the main thread has spent in a C function since the signal that has queued this step; 0: not known, or
 * other threads have run, too.
 */
static uint64_t late_ns(uint64_t now_ns)
{
	uint64_t queued_ns = atomic_exchange(&budget.queued_ns, 0), all_ns = now_ns - queued_ns, main_ns;

	if (!queued_ns || now_ns < queued_ns || syscall(SYS_gettid) != getpid())
		return 0;
	main_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - atomic_load(&budget.queued_main_ns);
	return main_ns >= all_ns - all_ns / 10 ? all_ns : 0;
}

/*
 * Whether nothing was called in the burst that was due: a C function ran all the time. If it ran for a part of the
 * time, the burst is whole or empty by chance, so that on average it has what came in that part.
 */
static bool is_empty_burst(uint64_t late)
{
	return late > WARM_NS && draw() * LISTEN_NS >= (double)WARM_NS + LISTEN_NS - (double)late;
}

/* Else bursts would show nothing but what follows long C functions. */
static void write_empty_burst(uint64_t now_ns)
{
	write_change(WIRE_THIN_END, WIRE_BURST_RANDOM, now_ns - LISTEN_NS, &budget.now.set);
	write_change(WIRE_THIN, 0, now_ns, &budget.now.set);
	budget.burst_ns = now_ns + (uint64_t)(budget.burst_wait_ns * draw_wait());
	begin_counts(now_ns);
}

static double mean_code_bytes(void)
{
	return definitions_codes ? (double)definitions_code_bytes / (double)definitions_codes : 0;
}

/* Whether what is thinned has not paid a debt. */
static bool in_lasting_debt(uint64_t now_ns)
{
	return budget.thinned && account.balance_ns < 0 && now_ns - budget.chosen_ns >= LOOK_LONG_NS;
}

/* Thins what was taken, if anything was. share: what recording has cost before. */
static void write_choice(uint32_t taken, double share, uint64_t now_ns)
{
	if (taken) {
		definitions_thin();
		write_change(WIRE_THIN, 0, now_ns, &budget.now.set);
		switch_hooks(true);
	} else if (budget.listens) { /* what comes until something is thinned is no sample */
		write_change(WIRE_THIN_END, WIRE_BURST_OTHER, now_ns, &budget.before.set);
	}
	if (taken && !budget.thinned) {
		budget.thinned = true;
		budget.chosen_ns = now_ns;
		plan_burst((budget.listens ? account.cost_ns - budget.burst_cost_ns : share * LISTEN_NS) +
			       (double)(cpu_now() - now_ns), /* this step ends it */
			   now_ns);
	}
}

/*
 * Chooses from the events since begin_ns; long_too: what takes long, too. False: the rings have none of them any more.
 */
static bool choose(uint64_t now_ns, bool long_too)
{
	double full = share_since(now_ns), wanted = wanted_share(), ns = (double)(now_ns - budget.begin_ns);
	double most_left = LEAVE * allowed_share() / full;
	const struct event_counts *counts = NULL;
	bool over = full > wanted;
	uint32_t taken = 0;

	if (over || budget.listens)
		counts = event_counts_choose(over ? wanted / full : 1, in_lasting_debt(now_ns) ? most_left : 1,
					     long_too ? most_left : 1, LEAST_OF_BUDGET * allowed_share() / full);
	if (over) {
		taken = take_set(counts, now_ns);
		budget.expected = taken || !counts->events ? 0 : full;
		if (long_too && budget.expected > 0) { /* in vain */
			account.least_share = full;
			budget.long_ns = now_ns + LONG_AGAIN_NS;
		}
	}
	if (budget.listens) {
		uint32_t chosen = taken, again;

		budget.functions = counts->count;
		taken += take_before(now_ns);
		/* The code of each is instrumented again, since restart_events() or when it is called next. */
		again = counts->count + taken - chosen;
		account.due_ns += instrument_cost(again, again * mean_code_bytes());
	}
	note_begin(now_ns);
	write_choice(taken, full, now_ns);
	log_line(LOG_DEBUG,
		 "budget: recording adds %.1f %% for %.1f ms; %u functions are thinned, %u of them now; in all %.1f ms "
		 "of %.1f, balance %.1f",
		 100 * full, ns / 1e6, budget.now.set.count, taken, account.cost_ns / 1e6, (double)now_ns / 1e6,
		 account.balance_ns / 1e6);
	budget.listens = false;
	begin_counts(now_ns);
	budget.look_ns = LOOK_SOON_NS;
	budget.choice_ns = (double)(cpu_now() - now_ns);
	return !over || counts->events;
}

/* The time until the next burst, or the next look at the cost. */
static uint64_t next_step(uint64_t now_ns)
{
	uint64_t look_ns = budget.look_ns;

	if (!budget.thinned)
		return LOOK_NS;
	budget.look_ns = 2 * look_ns < LOOK_THINNED_NS ? 2 * look_ns : LOOK_THINNED_NS;
	if (budget.burst_ns >= now_ns + look_ns)
		return look_ns;
	return budget.burst_ns > now_ns ? budget.burst_ns - now_ns + 1 : 1;
}

/* The share that recording may have while functions are thinned. */
static double most_share(void)
{
	double wanted = wanted_share();

	return OVER * (budget.expected > wanted ? budget.expected : wanted);
}

/* Whether recording costs more than it may; while functions are thinned, more than was foreseen. */
static bool is_over(uint64_t now_ns)
{
	double share = share_since(now_ns), wanted = wanted_share(), beyond = share - wanted;
	bool full = budget.now.set.count == WIRE_THIN_SET_MOST;

	if (!budget.thinned)
		return account.balance_ns < 0 && share > wanted;
	return share > most_share() && beyond * (double)(now_ns - (full ? budget.chosen_ns : budget.begin_ns)) >
					   (full ? budget.anew_ns : budget.choice_ns);
}

/* What the calls of thinned functions have cost alone. */
static double passes_share(void)
{
	return account.passes_ns / (account.cpu_ns - account.passes_ns);
}

/*
 * Whether there is a debt that cannot be paid, although all short functions are thinned that can be: bursts need the
 * rest of the budget.
 */
static bool is_in_debt(uint64_t now_ns)
{
	double allowed = allowed_share();

	return budget.thinned && now_ns >= budget.long_ns && now_ns - budget.begin_ns >= LOOK_LONG_NS &&
	       account.balance_ns < 0 && share_since(now_ns) > (1 - BURST_SHARE_MIN) * allowed &&
	       passes_share() < allowed && budget.now.set.count < WIRE_THIN_SET_MOST;
}

/* Says once that the budget cannot be kept. */
static void note_least(void)
{
	double calls = passes_share(), least = OVER * allowed_share();

	if (account.least_said || account.cpu_ns < LEAST_AFTER_NS || (calls < least && account.least_share < least))
		return;
	account.least_said = true;
	log_line(LOG_WARNING,
		 "%s cost %.1f %% alone with Python %s: no less is possible. EVPROF_EVENTS=sample costs little",
		 calls < least ? "the calls and exceptions that " ENV_BUDGET " does not leave out"
			       : "the calls that " ENV_BUDGET " leaves out",
		 100 * (calls < least ? account.least_share : calls), python_version());
}

/* Returns the time until the next step. */
static uint64_t step(uint64_t now_ns)
{
	bool burst = budget.thinned && now_ns >= budget.burst_ns, in_debt;
	uint64_t late = late_ns(now_ns);

	if (!config_may_thin()) { /* evprof start --events */
		begin_counts(now_ns);
		return LOOK_NS;
	}
	if (budget.listens && budget.warms) {
		listen_for_sample(now_ns);
		return listening_ns();
	}
	if (burst && is_empty_burst(late)) {
		write_empty_burst(now_ns);
		return next_step(now_ns);
	}
	in_debt = !burst && is_in_debt(now_ns);
	if (!burst && !budget.listens && !in_debt && !is_over(now_ns)) {
		begin_counts(now_ns);
		return next_step(now_ns);
	}
	if (!burst && (budget.listens || budget.now.set.count < WIRE_THIN_SET_MOST))
		return choose(now_ns, in_debt) ? next_step(now_ns) : LISTEN_NS;
	budget.anew_ns = !burst && now_ns < budget.listen_ns ? 2 * budget.anew_ns : ANEW_NS;
	thin_nothing();
	switch_hooks(false);
	listen(burst, cpu_now());
	return listening_ns();
}

/*
 * Words in all rings after so much CPU time if recording costs what it may. In another phase more come, and sooner. A
 * step takes some us, so there are no more than a few in a ms.
 */
static uint64_t events_within(uint64_t cpu_ns)
{
	double share = most_share(), program_ns = (double)cpu_ns / (1 + share);
	double events = share * program_ns / (report_cost() + BUDGET_COLLECTOR_NS);

	return budget.events + (uint64_t)(events > EVENTS_LEAST ? events : EVENTS_LEAST);
}

static void pause_budget(void)
{
	if (!budget.on || !process->budget_timer)
		return;
	if (budget.thinned) {
		thin_nothing();
		listen(false, cpu_now());
	} else if (budget.listens && !budget.warms) { /* the time until recording begins again is no sample */
		write_change(WIRE_THIN_END, WIRE_BURST_OTHER, cpu_now(), &budget.before.set);
	}
}

static void write_account(void)
{
	char bytes[128];
	struct text text;

	note_begin(cpu_now());
	text_init(&text, bytes, sizeof(bytes));
	text_add(&text, "%.3f %.3f %.3f %.6f %.3f", account.cost_ns / 1e6, account.program_ns / 1e6,
		 account.cpu_ns / 1e6, account.longest_ns / 1e6, account.exceptions_ns / 1e6);
	define_named(WIRE_DEFINE_BUDGET, 1, string_c(text.bytes));
}

/* Another image, or other ids: what was thinned is so no more. */
static void forget_thinned(void)
{
	if (!budget.thinned)
		return;
	budget.thinned = false;
	empty_set();
	budget.before.set.count = 0;
	thin_forget();
	switch_hooks(false);
}

/* Everything is recorded from here on. */
static void leave_budget(void)
{
	bool thinned;

	if (budget.on && !process->budget_timer) /* the child of a fork */
		forget_thinned();
	thinned = budget.thinned;
	pause_budget();
	if (thinned)
		switch_hooks(false);
	budget_end();
}

/* Whether there is a second interpreter; ends the budget in the main one. */
static bool ends_with_interpreters(void)
{
	if (likely(!atomic_load_explicit(&several_interpreters, memory_order_relaxed)))
		return false;
	if (budget.on && python_is_main())
		leave_budget();
	return true;
}

/* In an image that has no budget yet, or with other ids: nothing is thinned. */
static void begin_anew(void)
{
	budget.forgotten = atomic_load_explicit(&process->ids_forgotten, memory_order_relaxed);
	budget.random_state ^= clock_now() + (uint64_t)getpid();
	forget_thinned();
	if (account.pid && account.pid != getpid()) {
		memset(&account, 0, sizeof(account));
		account.begun = true;
		account.passes = count_passes(); /* the parent's */
		budget.begin_ns = budget.chosen_ns = budget.long_ns = 0;
	}
	account.pid = getpid();
	note_definitions();
	budget.events = words_written();
	budget.events_most = UINT64_MAX;
	budget.listens = false;
	set_timer(LOOK_FIRST_NS);
	begin_counts(cpu_now());
	/* Nothing is thinned so far. Readers learn that it may be, and note which C functions are called by whom. */
	thin_change(WIRE_THIN_END, value_of(WIRE_BURST_OTHER), budget.begin_ns, &budget.now.set);
}

int budget_turn(void *data)
{
	uint64_t begin_ns, wait_ns;

	(void)data;
	if (ends_with_interpreters())
		return 0;
	if (!budget.on || !process || atomic_load(&process->status) != PROCESS_JOINED ||
	    !atomic_exchange(&process->budget_due, 0))
		return 0;
	if (!is_begun()) {
		begin_anew();
		return 0;
	}
	wait_ns = step(begin_ns = cpu_now());
	budget.events_most = budget.listens ? UINT64_MAX : events_within(wait_ns);
	set_timer(wait_ns);
	note_least();
	budget_charge(begin_ns);
	return 0;
}

void budget_charge(uint64_t since_ns)
{
	if (!config.budget || atomic_load(&several_interpreters))
		return;
	if (!account.begun)
		budget.begin_ns = since_ns;
	account.begun = true;
	account.due_ns += (double)(cpu_now() - since_ns);
}

uint64_t budget_clock(void)
{
	return cpu_now();
}

void budget_note_audit(void)
{
	if (budget.on)
		atomic_fetch_add_explicit(&budget.audits, 1, memory_order_relaxed);
}

void budget_due(void)
{
	atomic_store(&process->budget_due, 1);
	process_look_again();
}

void budget_again(void)
{
	set_timer(AGAIN_NS);
}

void budget_queued(void)
{
	atomic_store(&budget.queued_main_ns, clock_ns((clockid_t)(~(uint32_t)getpid() << 3 | 6)));
	atomic_store(&budget.queued_ns, cpu_now());
}

void budget_verify(void)
{
	const char *missing = NULL;

	if (!config.budget || budget.on) /* on: for a while the events are others, see step() */
		return;
	if (!python.monitoring && !frame_evaluator_is_possible())
		missing = "needs Python 3.9 or later";
	else if (python.free_threaded)
		missing = "needs a Python with the GIL";
	else if (!config_may_thin())
		missing = "needs the events call, without line";
	if (!missing)
		return;
	config.budget = 0;
	log_line(LOG_WARNING,
		 ENV_BUDGET " %s; everything is recorded, whatever it costs. EVPROF_EVENTS=sample costs little",
		 missing);
}

bool budget_begin(void)
{
	budget.on = config.budget;
	budget.anew_ns = ANEW_NS;
	atomic_store(&silent, false);
	if (budget.on)
		definitions_left_out = left_out;
	if (budget.on && !python.monitoring && !hooks_frame_set() && !thinned_frames_begin())
		log_line(LOG_INFO,
			 "another frame evaluator is set (PEP 523); what " ENV_BUDGET " leaves out costs more");
	return budget.on;
}

/* Whether there was enough CPU time since begin_ns: on a busy machine that takes longer. */
static bool has_listened(void)
{
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC), cpu_ns;

	if (now_ns < budget.listens_until_ns)
		return false;
	cpu_ns = cpu_now() - budget.begin_ns;
	if (cpu_ns >= listening_ns())
		return true;
	budget.listens_until_ns = now_ns + listening_ns() - cpu_ns;
	return false;
}

/* Whether a timer has ended that sends no signal. */
static bool has_ended_silently(void)
{
	struct itimerspec left;

	return atomic_load_explicit(&silent, memory_order_relaxed) &&
	       !syscall(SYS_timer_gettime, process->budget_timer - 1, &left) && !left.it_value.tv_sec &&
	       !left.it_value.tv_nsec;
}

void budget_look(void)
{
	if (ends_with_interpreters())
		return;
	if (budget.on && is_begun() &&
	    (budget.listens ? has_listened() : words_written() > budget.events_most || has_ended_silently()))
		atomic_store(&process->budget_due, 1);
	if (unlikely(atomic_load_explicit(&process->budget_due, memory_order_relaxed)))
		budget_turn(NULL);
	if (unlikely(budget.on && !is_begun()) && atomic_load(&process->status) == PROCESS_JOINED)
		begin_anew();
}

void budget_pause(void)
{
	if (atomic_load(&several_interpreters))
		return; /* the main one ends it */
	pause_budget();
}

void budget_resume(void)
{
	if (budget.on && !budget.thinned && !atomic_load(&several_interpreters))
		switch_hooks(false);
}

void budget_note_interpreter(void)
{
	if (config.budget && !atomic_exchange(&several_interpreters, true))
		log_line(LOG_WARNING, ENV_BUDGET
			 " ends where a second interpreter begins; everything is recorded from here on, whatever it "
			 "costs. EVPROF_EVENTS=sample costs little");
}

void budget_finish(void)
{
	if (budget.on && process->budget_timer && !atomic_load(&several_interpreters))
		write_account();
	leave_budget();
	atomic_store(&several_interpreters, false);
}

/* The new timer has ended at once: the next event of the slow path takes a step. */
void budget_silence(void)
{
	int before = process->budget_timer;

	if (atomic_exchange(&silent, true) || !before)
		return;
	process->budget_timer = make_timer();
	syscall(SYS_timer_delete, before - 1);
}

void budget_end(void)
{
	if (process && process->budget_timer)
		syscall(SYS_timer_delete, process->budget_timer - 1);
	if (process)
		process->budget_timer = 0;
	budget.on = false;
}
