/* budget.c - see budget.h. */
#include "hooks/budget.h"

#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/config.h"
#include "base/log_line.h"
#include "definitions/definitions.h"
#include "hooks/event_counts.h"
#include "hooks/hooks.h"
#include "life/life.h"
#include "life/thin.h"
#include "ring/clock.h"
#include "ring/process.h"
#include "ring/writer.h"

#define LISTEN_NS 2000000 /* a burst; the kernel's timer adds up to a tick of the system */
#define CREDIT_NS 1e7	  /* that recording may cost before anything is thinned: a start is no sample of the program */
#define LOOK_NS 20000000  /* between two looks at the cost, while all is recorded ... */
#define LOOK_THINNED_NS 100000000
#define AGAIN_NS 2000000
#define BURST_WAIT_MIN_NS 200000000.0 /* mean time from a burst to the next one */
#define BURST_WAIT_MAX_NS 5e9
#define BURST_SHARE 0.25 /* of the budget, for bursts */
#define LEAVE 0.75	 /* of the budget, for what is recorded all the time */
#define OVER 1.3	 /* times the budget: a new choice is made */

double budget_event_ns = 30;

static struct {
	bool on;
	bool thinned;	    /* some functions are */
	bool listens;	    /* since begin_ns, to choose; the rings still have what came since */
	uint64_t begin_ns;  /* CPU time of the process at the last change or look */
	double spent_ns;    /* cost of the events so far, up to begin_ns */
	uint64_t burst_ns;  /* CPU time of the next burst */
	double expected;    /* what recording costs while functions are thinned, relative to the program */
	uint64_t events;    /* words in all rings at begin_ns */
	uint32_t forgotten; /* process->ids_forgotten */
	uint64_t random_state;
	struct thin_set set;
	const struct object *codes[WIRE_THIN_MOST]; /* of the set; may have died since */
} budget;

static uint64_t cpu_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The C library's functions allocate. The child of a fork has no timer. */
static void set_timer(uint64_t ns)
{
	struct sigevent event = {
	    .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGURG, .sigev_value.sival_int = BUDGET_SIGNAL_VALUE};
	struct itimerspec at = {.it_value = {.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)}};
	int timer;

	if (!process->budget_timer && !syscall(SYS_timer_create, CLOCK_PROCESS_CPUTIME_ID, &event, &timer))
		process->budget_timer = timer + 1;
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

static uint64_t words_written(void)
{
	uint64_t words = 0;

	for (uint32_t i = 0; i < atomic_load(&process->slots_used); i++)
		if (process->writers[i].slot)
			words += atomic_load_explicit(&process->writers[i].slot->head, memory_order_relaxed);
	return words;
}

static void note_begin(uint64_t now_ns)
{
	uint64_t events = words_written();

	if (events > budget.events)
		budget.spent_ns += (double)(events - budget.events) * budget_event_ns;
	budget.begin_ns = now_ns;
	budget.events = events;
}

static void begin_counts(uint64_t now_ns)
{
	budget.listens = true;
	event_counts_begin();
	note_begin(now_ns);
}

static double allowed_share(void)
{
	return (double)config.budget / 100000.0;
}

/* The cost of events, relative to the CPU time without them. */
static double share_of(double events, double cpu_ns)
{
	double cost = events * budget_event_ns;

	return cost < cpu_ns ? cost / (cpu_ns - cost) : 1e9;
}

static uint32_t value_of(unsigned why)
{
	return wire_thin_value(why, (uint32_t)(budget_event_ns * 10));
}

/* The events of all functions come again, from the next instruction on. */
static void listen(bool random, uint64_t now_ns)
{
	for (uint32_t i = 0; i < budget.set.count; i++)
		definitions_thin_code(budget.codes[i], budget.set.ids[i] & WIRE_ARG_MAX, THINNED_NOT);
	thin_change(WIRE_THIN_END, value_of(random ? WIRE_BURST_RANDOM : WIRE_BURST_OTHER), now_ns, &budget.set);
	writer_reserve(WIRE_THIN_END); /* writes the change */
	budget.thinned = false;
	budget.set.count = 0;
	begin_counts(now_ns);
}

/* Takes the chosen functions whose code is plain: no coroutine, and nothing that is examined at each call. */
static void take_set(const struct event_counts *counts)
{
	budget.set.count = 0;
	for (uint32_t i = 0; i < counts->count && budget.set.count < WIRE_THIN_MOST; i++) {
		const struct function_events *function = &counts->at[i];

		enum thinned thinned = function->own.chosen ? THINNED
				       : function->c.chosen ? THINNED_C_CALLS
							    : THINNED_NOT;

		if (!thinned || !definitions_thin_code(function->code, function->id, thinned))
			continue;
		budget.codes[budget.set.count] = function->code;
		budget.set.ids[budget.set.count++] = function->id | (thinned == THINNED ? 0 : WIRE_THIN_C_CALLS);
	}
}

/* The next burst: its own cost is a part of the budget. */
static void plan_burst(double full_share, double burst_ns, uint64_t now_ns)
{
	double wait = burst_ns * full_share / (BURST_SHARE * allowed_share());

	wait = wait < BURST_WAIT_MIN_NS ? BURST_WAIT_MIN_NS : wait > BURST_WAIT_MAX_NS ? BURST_WAIT_MAX_NS : wait;
	budget.burst_ns = now_ns + (uint64_t)(wait * draw_wait());
}

static void choose(uint64_t now_ns)
{
	double full = share_of((double)(words_written() - budget.events), (double)(now_ns - budget.begin_ns));
	const struct event_counts *counts;

	if (full > allowed_share()) {
		counts = event_counts_choose(LEAVE * allowed_share() / full);
		take_set(counts);
		budget.expected = full * counts->left;
	}
	if (budget.set.count) {
		thin_change(WIRE_THIN, value_of(0), now_ns, &budget.set);
		writer_reserve(WIRE_THIN);
		budget.thinned = true;
		plan_burst(full, (double)(now_ns - budget.begin_ns), now_ns);
	}
	log_line(LOG_DEBUG, "budget: recording everything adds %.1f %%, listened for %.1f ms; %u functions are thinned",
		 100 * full, (double)(now_ns - budget.begin_ns) / 1e6, budget.set.count);
	budget.listens = false;
	note_begin(now_ns);
}

/* The time until the next burst, or the next look at the cost. */
static uint64_t next_step(uint64_t now_ns)
{
	if (!budget.thinned)
		return LOOK_NS;
	if (budget.burst_ns >= now_ns + LOOK_THINNED_NS)
		return LOOK_THINNED_NS;
	return budget.burst_ns > now_ns ? budget.burst_ns - now_ns + 1 : 1;
}

/* Returns the time until the next step. */
static uint64_t step(uint64_t now_ns)
{
	double share, allowed = allowed_share();
	bool burst = budget.thinned && now_ns >= budget.burst_ns;

	if (!(config.events & EVENT_CALL) || config.events & EVENT_LINE) { /* evprof start --events */
		note_begin(now_ns);
		return LOOK_NS;
	}
	if (budget.listens) {
		choose(now_ns);
		return next_step(now_ns);
	}
	share = share_of((double)(words_written() - budget.events), (double)(now_ns - budget.begin_ns));
	if (budget.thinned)
		allowed = OVER * (budget.expected > allowed ? budget.expected : allowed);
	if (!burst && (share <= allowed || (!budget.thinned && budget.spent_ns < CREDIT_NS))) {
		note_begin(now_ns);
		return next_step(now_ns);
	}
	if (budget.thinned) {
		listen(burst, now_ns);
		hooks_monitoring_restart();
	} else {
		begin_counts(now_ns);
	}
	return LISTEN_NS;
}

int budget_turn(void *data)
{
	(void)data;
	if (!budget.on || !process || atomic_load(&process->status) != PROCESS_JOINED ||
	    !atomic_exchange(&process->budget_due, 0))
		return 0;
	set_timer(step(cpu_now()));
	return 0;
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

bool budget_begin(void)
{
	const char *missing = NULL;

	if (!config.budget)
		return false;
	if (!python.monitoring)
		missing = "needs Python 3.12 or later";
	else if (python.free_threaded)
		missing = "needs a Python with the GIL";
	else if (!(config.events & EVENT_CALL) || config.events & EVENT_LINE)
		missing = "needs the events call, without line";
	if (missing)
		log_line(LOG_WARNING,
			 ENV_BUDGET " %s; everything is recorded, whatever it costs. EVPROF_EVENTS=sample costs little",
			 missing);
	budget.on = !missing;
	return budget.on;
}

void budget_look(void)
{
	uint32_t forgotten = atomic_load_explicit(&process->ids_forgotten, memory_order_relaxed);

	if (unlikely(atomic_load_explicit(&process->budget_due, memory_order_relaxed)))
		budget_turn(NULL);
	if (likely(!budget.on || (process->budget_timer && budget.forgotten == forgotten)))
		return;
	if (atomic_load(&process->status) != PROCESS_JOINED)
		return;
	/* Another image, or other ids: what was thinned is so no more. */
	budget.forgotten = forgotten;
	budget.random_state ^= clock_now() + (uint64_t)getpid();
	if (budget.thinned) {
		budget.thinned = false;
		budget.set.count = 0;
		thin_forget();
		hooks_monitoring_restart();
	}
	budget.events = 0;
	budget.listens = false;
	set_timer(LOOK_NS);
	note_begin(cpu_now());
	/* Nothing is thinned so far. Readers learn that it may be, and note which C functions are called by whom. */
	thin_change(WIRE_THIN_END, value_of(WIRE_BURST_OTHER), budget.begin_ns, &budget.set);
}

void budget_pause(void)
{
	if (budget.on && budget.thinned && process->budget_timer)
		listen(false, cpu_now());
}

void budget_finish(void)
{
	bool thinned = budget.thinned;

	budget_pause();
	if (thinned)
		hooks_monitoring_restart();
	budget_end();
}

void budget_end(void)
{
	if (process && process->budget_timer)
		syscall(SYS_timer_delete, process->budget_timer - 1);
	if (process)
		process->budget_timer = 0;
	budget.on = false;
}
