/* budget_account.c - see budget_account.h. */
#include "hooks/budget_account.h"

#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "base/config.h"
#include "base/log_line.h"
#include "base/text.h"
#include "definitions/define.h"
#include "definitions/definitions.h"
#include "hooks/budget_timer.h"
#include "hooks/event_counts.h"
#include "hooks/frame_evaluator.h"
#include "hooks/hooks.h"
#include "hooks/thinned_set.h"
#include "ring/clock.h"
#include "ring/process.h"
#include "ring/writer.h"

#define LEAVE_MIN 0.25	   /* of the budget, instead of ACCOUNT_LEAVE, with debts ... */
#define LEAVE_MAX 2	   /* ... and with savings */
#define SETTLE_NS 5e8	   /* CPU time in which a debt is paid */
#define EVENTS_LEAST 10000 /* between two looks, but for the timer's */
/*
 * Times report_ns: the instrumentation of a function's code, in which Python goes through all instructions. Functions
 * of 120 code units of two bytes take 0.31 us each, of 27,500 units 52 us (3.12 and 3.13, at first and after
 * restart_events()); those of django_load, 109 units on average, 0.55 us, as they are not in the caches.
 */
#define INSTRUMENT_REPORTS 4
#define INSTRUMENT_REPORTS_BYTE 0.075
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
/* Python makes a tuple of the arguments and calls the hook: 80 to 130 on 3.13, of which 80 with an empty hook. */
#define AUDIT_NS 100
/* Of an event, where it is not measured: at low rates it is more than in docs/performance.md. */
#define COLLECTOR_NS 10
/*
 * A collector with less CPU time at the beginning is that of this session. Its CPU time counts, but for what cannot be
 * due to the events of this process.
 */
#define COLLECTOR_NEW_NS 30000000
#define COLLECTOR_MOST 4 /* times COLLECTOR_NS an event */
#define COLLECTOR_IDLE_SHARE 0.01
#define SAMPLES 32.0	    /* the last ones that count */
#define IN_INTERPRETER 0.85 /* of the samples, in programs whose functions are all Python: 0.74 to 0.94 */

struct budget_costs budget_costs = {.report_ns = 20, .event_ns = 25, .pass_call_ns = 9, .pass_step_ns = 9};

struct budget_account budget_account;

/* At begin_ns, and what is not counted since then. */
static struct {
	uint64_t words;	     /* account_words() */
	uint64_t unrecorded; /* count_others() */
	struct frame_passes passes;
	uint32_t codes;		 /* definitions_codes */
	uint64_t code_bytes;	 /* definitions_code_bytes */
	uint64_t definitions_ns; /* likewise */
	uint64_t collector_ns;	 /* its CPU time; 0: not known */
	bool collector_tried;
	bool exceptions;  /* they are left out */
	double due_ns;	  /* of the program's part: measured, not counted */
	double slowed_ns; /* account_look(): of CPU time in which instructions were slowed */
	_Atomic uint32_t audits;
	bool begun;
	pid_t pid;
} since;

/* Without those of thin_put(), which are no events and cost less. */
uint64_t account_words(void)
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
	return words > since.words ? (double)(words - since.words) : 0;
}

double account_allowed_share(void)
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
	uint64_t now = since.collector_tried && !since.collector_ns ? 0 : collector_cpu(), before;
	double most = COLLECTOR_MOST * events * COLLECTOR_NS + COLLECTOR_IDLE_SHARE * cpu_ns, cost;

	if (!since.collector_tried && now) {
		since.collector_tried = true;
		since.collector_ns = config.session_first == getpid() && now < COLLECTOR_NEW_NS ? now : 0;
		return (double)since.collector_ns;
	}
	if (!now || !since.collector_ns)
		return events * COLLECTOR_NS;
	before = since.collector_ns;
	since.collector_ns = now > before ? now : before;
	cost = (double)(since.collector_ns - before);
	return cost < most ? cost : most;
}

/* 1 to LARGE. */
double account_size_factor(void)
{
	double size = ((double)budget_account.functions - SMALL_FUNCTIONS) / (LARGE_FUNCTIONS - SMALL_FUNCTIONS);

	return 1 + (LARGE - 1) * (size < 0 ? 0 : size > 1 ? 1 : size);
}

double account_report_cost(void)
{
	double cost = budget_costs.report_ns * account_size_factor();

	switch (budget_account.phase) {
	case ACCOUNT_THINNED:
		return COLD * account_size_factor() * cost;
	case ACCOUNT_WARMS:
	case ACCOUNT_LISTENS:
		return COLD * cost;
	default:
		return cost;
	}
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

/* Of thinned functions since begin_ns, until 3.11: no less is possible. */
static double passes_cost(void)
{
	const struct frame_passes *now = &frame_evaluator_passes, *before = &since.passes;

	return (double)(now->calls - before->calls) * budget_costs.pass_call_ns +
	       (double)(now->steps - before->steps) * budget_costs.pass_step_ns;
}

/* To take the profile function off and to set it again takes as long as an event. */
static double switches_cost(void)
{
	return (double)(frame_evaluator_passes.switches - since.passes.switches) * budget_costs.report_ns;
}

/* Of that CPU time, what the program's instructions have taken more. */
static double slowed_cost(double cpu_ns)
{
	double ns = since.slowed_ns < cpu_ns ? since.slowed_ns : cpu_ns;

	return ns * budget_costs.slowed / (1 + budget_costs.slowed);
}

static void note_definitions(void)
{
	since.codes = definitions_codes;
	since.code_bytes = definitions_code_bytes;
	since.definitions_ns = definitions_ns;
}

bool account_begin(void)
{
	bool other = since.pid && since.pid != getpid();

	if (other) { /* the child of a fork: its CPU time begins at 0, its counters go on from the parent's */
		budget_account = (struct budget_account){.functions = budget_account.functions};
		since.collector_ns = 0;
		since.collector_tried = since.exceptions = false;
		since.begun = true;
		since.due_ns = 0;
		since.audits = 0;
		since.unrecorded = count_others();
		since.passes = frame_evaluator_passes;
	}
	since.pid = getpid();
	note_definitions();
	since.words = account_words();
	return other;
}

void account_charge(uint64_t since_ns)
{
	if (!since.begun)
		budget_account.begin_ns = since_ns;
	since.begun = true;
	since.due_ns += (double)(budget_clock() - since_ns);
}

static double mean_code_bytes(void)
{
	return definitions_codes ? (double)definitions_code_bytes / (double)definitions_codes : 0;
}

void account_charge_instrumented(uint32_t functions)
{
	since.due_ns += instrument_cost(functions, functions * mean_code_bytes());
}

void account_note_audit(void)
{
	atomic_fetch_add_explicit(&since.audits, 1, memory_order_relaxed);
}

/* Operators and calls of classes run C code, too, which no event shows and nothing slows down. */
static struct {
	_Atomic double share; /* of the last samples in the interpreter's loop */
} samples = {1};

/* What has been reported since begin_ns has cost, with so many events in so much CPU time. */
static double reports_cost(double events, double cpu_ns)
{
	double cost = (events + (double)(count_others() - since.unrecorded)) * account_report_cost() + switches_cost();

	cost = cost < COST_MOST * cpu_ns ? cost : COST_MOST * cpu_ns;
	return cost + slowed_cost(cpu_ns - cost);
}

void account_note_sample(bool in_interpreter)
{
	double share = atomic_load_explicit(&samples.share, memory_order_relaxed);

	share += ((double)in_interpreter - share) / SAMPLES;
	atomic_store_explicit(&samples.share, share, memory_order_relaxed);
}

/* 0 to 1: of the time of functions that are not thinned, that of instructions. */
static double instructions_share(void)
{
	double share = atomic_load_explicit(&samples.share, memory_order_relaxed) / IN_INTERPRETER;

	return share < 1 ? share : 1;
}

void account_look(void)
{
	since.slowed_ns = budget_costs.slowed > 0 ? instructions_share() * event_counts_slowed_ns() : 0;
}

double account_events_slowed_ns(void)
{
	return instructions_share() * budget_costs.slowed / (1 + budget_costs.slowed) / account_report_cost();
}

void account_post(uint64_t now_ns)
{
	uint64_t words = account_words();
	double events = events_since(words), cpu_ns = (double)(now_ns - budget_account.begin_ns), passes_ns;
	double cost = reports_cost(events, cpu_ns) + (double)since.audits * AUDIT_NS + since.due_ns;
	double most = ACCOUNT_SAVED_NS * account_allowed_share();

	cost += (double)(definitions_ns - since.definitions_ns);
	cost += instrument_cost((double)(definitions_codes - since.codes),
				(double)(definitions_code_bytes - since.code_bytes));
	passes_ns = passes_cost();
	budget_account.passes_ns += passes_ns;
	cost += passes_ns;
	budget_account.program_ns += cost;
	budget_account.cpu_ns += cpu_ns;
	budget_account.balance_ns += account_allowed_share() * (cpu_ns > cost ? cpu_ns - cost : 0);
	cost += collector_cost(events, cpu_ns);
	budget_account.balance_ns -= cost;
	budget_account.balance_ns = budget_account.balance_ns < most ? budget_account.balance_ns : most;
	budget_account.cost_ns += cost;
	budget_account.exceptions_ns += since.exceptions ? cpu_ns : 0;
	since.exceptions = thinned_set_has_exceptions();
	since.due_ns = 0;
	note_definitions();
	since.passes = frame_evaluator_passes;
	since.slowed_ns = 0;
	budget_account.begin_ns = now_ns;
	since.audits = 0;
	since.words = words;
	since.unrecorded = count_others();
}

double account_share_since(uint64_t now_ns)
{
	double events = events_since(account_words()), cpu_ns = (double)(now_ns - budget_account.begin_ns);
	double cost = reports_cost(events, cpu_ns);

	return cpu_ns > 0 ? (cost + events * COLLECTOR_NS) / (cpu_ns - cost) : 0;
}

double account_wanted_share(void)
{
	double allowed = account_allowed_share(),
	       wanted = ACCOUNT_LEAVE * allowed + budget_account.balance_ns / SETTLE_NS;

	return wanted < LEAVE_MIN * allowed   ? LEAVE_MIN * allowed
	       : wanted > LEAVE_MAX * allowed ? LEAVE_MAX * allowed
					      : wanted;
}

double account_passes_share(void)
{
	return budget_account.passes_ns / (budget_account.cpu_ns - budget_account.passes_ns);
}

/* In another phase more come, and sooner. A step takes some us, so there are no more than a few in a ms. */
uint64_t account_words_within(double share, uint64_t cpu_ns)
{
	double program_ns = (double)cpu_ns / (1 + share);
	double events = share * program_ns / (account_report_cost() + COLLECTOR_NS);

	return since.words + (uint64_t)(events > EVENTS_LEAST ? events : EVENTS_LEAST);
}

void account_write(uint64_t now_ns)
{
	char bytes[128];
	struct text text;

	account_look();
	account_post(now_ns);
	log_line(LOG_DEBUG, "budget: %.2f of the time with the profile function in the interpreter's loop",
		 atomic_load(&samples.share));
	text_init(&text, bytes, sizeof(bytes));
	text_add(&text, "%.3f %.3f %.3f %.6f %.3f", budget_account.cost_ns / 1e6, budget_account.program_ns / 1e6,
		 budget_account.cpu_ns / 1e6, budget_account.longest_ns / 1e6, budget_account.exceptions_ns / 1e6);
	define_named(WIRE_DEFINE_BUDGET, 1, string_c(text.bytes));
}
