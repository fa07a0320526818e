/* budget.c - see budget.h. */
#include "hooks/budget.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/config.h"
#include "base/log_line.h"
#include "definitions/definitions.h"
#include "hooks/budget_account.h"
#include "hooks/budget_timer.h"
#include "hooks/event_counts.h"
#include "hooks/frame_evaluator.h"
#include "hooks/hooks.h"
#include "hooks/thinned_frames.h"
#include "hooks/thinned_set.h"
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
#define LEAST_OF_BUDGET 0.02 /* a function that costs less is left alone, or has few events */
#define OVER 1.3	     /* times what was expected: more functions are chosen */
#define AFTER_REPORTS 4	     /* of a thinned function after a burst, until its places are switched off again */
/*
 * A full set is made anew once what is recorded beyond the wanted share has cost as much as that does; each time twice
 * that, until a burst is due.
 */
#define ANEW_NS 3000000.0
/*
 * Times event_ns, in the part of a burst that is a sample, as that has warmed up. So much makes the estimates of a
 * program agree with its calls: 0.9 to 1.7 on 3.13 (chaos, go, logging, raytrace of pyperformance), 1.2 to 2.3 on 3.12,
 * and 0.9 to 1.5 on 3.9 and 3.11 (chaos, deltablue, go, hexiom, richards).
 */
#define SAMPLE 1.5
#define SAMPLE_PROFILED 1.25
#define KEEP_NS 2000000000	 /* CPU time for which a function stays thinned after it was called too often */
#define KEEP_LONG_NS 8000000000	 /* likewise, one that takes long: bursts are too short to choose it again */
#define LEAST_AFTER_NS 5e8	 /* CPU time */
#define LONG_AGAIN_NS 1000000000 /* CPU time between two looks at what takes long, if that was in vain */

/* Once it is set, what follows belongs to the threads of the main interpreter. */
static _Atomic bool several_interpreters;

static struct {
	bool on;
	uint64_t listens_until_ns; /* CLOCK_MONOTONIC: the CPU time is read from then on */
	uint64_t burst_ns;	   /* CPU time of the next burst */
	double burst_wait_ns;	   /* the mean time to it */
	uint64_t listen_ns;	   /* CPU time from which on all may be listened to for another reason */
	uint64_t look_ns;	   /* between the last look and the next one, while functions are thinned */
	double anew_ns;		   /* what choosing a full set anew has to save */
	double choice_ns;	   /* what the last choice has cost: likewise, where the set is not full */
	uint64_t chosen_ns;	   /* CPU time of the last choice of a set */
	double burst_cost_ns;	   /* budget_account.cost_ns when the last burst began */
	uint64_t long_ns;	   /* CPU time from which on functions that take long may be left out */
	double expected; /* what recording costs though all is thinned that can be, relative to the program; 0: less */
	double least_share;  /* the last of these, until it is said; 0: none */
	bool least_said;     /* that the budget cannot be kept */
	uint64_t words_most; /* account_words() for which recording costs too much before the next step is due */
	uint32_t forgotten;  /* process->ids_forgotten */
	uint64_t random_state;
	_Atomic uint64_t queued_ns;	 /* CPU time when the signal queued this step; 0: it did not */
	_Atomic uint64_t queued_main_ns; /* likewise, of the main thread */
} budget;

static bool is_thinned(void)
{
	return budget_account.phase == ACCOUNT_THINNED;
}

/* Since begin_ns, to choose: the rings still have what came since. */
static bool listens(void)
{
	return budget_account.phase == ACCOUNT_WARMS || budget_account.phase == ACCOUNT_LISTENS;
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

static void begin_counts(uint64_t now_ns)
{
	account_post(now_ns);
	event_counts_begin();
}

/* With the event's cost: until 3.11 less what a call without events costs. */
static uint32_t value_of(unsigned why)
{
	double cost_ns = python.monitoring ? SAMPLE * account_size_factor() * budget_costs.event_ns
					   : SAMPLE_PROFILED * budget_costs.event_ns - budget_costs.pass_call_ns / 2;

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
		hooks_monitoring_leave_out_exceptions(thinned_set_has_exceptions());
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
	return is_begun() && !atomic_load(&several_interpreters) ? thinned_set_of(id) : THINNED_NOT;
}

/* No function is thinned any more: the events of all come again after switch_hooks(false). */
static void thin_nothing(void)
{
	thinned_set_end();
	definitions_thin();
}

static void write_change(unsigned kind, unsigned why, uint64_t now_ns, const struct thin_set *set)
{
	thin_change(kind, value_of(why), now_ns, set);
	writer_reserve(kind); /* writes it */
}

static uint64_t listening_ns(void)
{
	return budget_account.phase == ACCOUNT_WARMS ? WARM_NS : LISTEN_NS;
}

/* phase: whether it is a sample already. */
static void listen_from(uint64_t now_ns, enum account_phase phase)
{
	begin_counts(now_ns); /* first: what has come so far costs what it did until now */
	budget_account.phase = phase;
	budget.listens_until_ns = clock_ns(CLOCK_MONOTONIC) + listening_ns();
}

/* After thin_nothing(). random: to become a sample, see listen_for_sample(). now_ns: read after it. */
static void listen(bool random, uint64_t now_ns)
{
	write_change(WIRE_THIN_END, WIRE_BURST_OTHER, now_ns, thinned_set_before());
	listen_from(now_ns, random ? ACCOUNT_WARMS : ACCOUNT_LISTENS);
	budget.burst_cost_ns = budget_account.cost_ns;
}

/* From here on the burst is a sample. */
static void listen_for_sample(uint64_t now_ns)
{
	write_change(WIRE_THIN_END, WIRE_BURST_RANDOM, now_ns, thinned_set_before());
	listen_from(now_ns, ACCOUNT_LISTENS);
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
		    !thinned_set_take(function->id, times == &function->own ? THINNED : THINNED_C_CALLS,
				      now_ns + keep_ns))
			continue;
		if (times->mean_ns > budget_account.longest_ns)
			budget_account.longest_ns = times->mean_ns;
		taken++;
	}
	return taken + (counts->exceptions && thinned_set_take_exceptions(now_ns + KEEP_NS));
}

/* The next burst: its own cost is a part of the budget. Savings are spent on more of them, debts paid by fewer. */
static void plan_burst(double cost_ns, uint64_t now_ns)
{
	double share = BURST_SHARE * account_allowed_share() + budget_account.balance_ns / ACCOUNT_SAVED_NS, wait;

	if (python.monitoring)
		cost_ns += thinned_set()->count * AFTER_REPORTS * account_report_cost();
	share = share > BURST_SHARE_MIN * account_allowed_share() ? share : BURST_SHARE_MIN * account_allowed_share();
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
	write_change(WIRE_THIN_END, WIRE_BURST_RANDOM, now_ns - LISTEN_NS, thinned_set());
	write_change(WIRE_THIN, 0, now_ns, thinned_set());
	budget.burst_ns = now_ns + (uint64_t)(budget.burst_wait_ns * draw_wait());
	begin_counts(now_ns);
}

/* Whether what is thinned has not paid a debt. */
static bool in_lasting_debt(uint64_t now_ns)
{
	return is_thinned() && budget_account.balance_ns < 0 && now_ns - budget.chosen_ns >= LOOK_LONG_NS;
}

/* Thins what was taken, if anything was. share: what recording has cost before. */
static void write_choice(uint32_t taken, double share, uint64_t now_ns)
{
	bool listened = listens(), thinned = is_thinned();

	if (taken) {
		definitions_thin();
		write_change(WIRE_THIN, 0, now_ns, thinned_set());
		switch_hooks(true);
		budget_account.phase = ACCOUNT_THINNED;
	} else if (listened) { /* what comes until something is thinned is no sample */
		write_change(WIRE_THIN_END, WIRE_BURST_OTHER, now_ns, thinned_set_before());
		budget_account.phase = ACCOUNT_ALL;
	}
	if (taken && !thinned) {
		budget.chosen_ns = now_ns;
		plan_burst((listened ? budget_account.cost_ns - budget.burst_cost_ns : share * LISTEN_NS) +
			       (double)(budget_clock() - now_ns), /* this step ends it */
			   now_ns);
	}
}

/*
 * Chooses from the events since begin_ns; long_too: what takes long, too. False: the rings have none of them any more.
 */
static bool choose(uint64_t now_ns, bool long_too)
{
	double full = account_share_since(now_ns), wanted = account_wanted_share(),
	       ns = (double)(now_ns - budget_account.begin_ns);
	double most_left = ACCOUNT_LEAVE * account_allowed_share() / full;
	const struct event_counts *counts = NULL;
	bool over = full > wanted;
	uint32_t taken = 0;

	if (over || listens())
		counts = event_counts_choose(over ? wanted / full : 1, in_lasting_debt(now_ns) ? most_left : 1,
					     long_too ? most_left : 1, LEAST_OF_BUDGET * account_allowed_share() / full,
					     account_events_slowed_ns());
	if (over) {
		taken = take_set(counts, now_ns);
		budget.expected = taken || !counts->events ? 0 : full;
		if (long_too && budget.expected > 0) { /* in vain */
			budget.least_share = full;
			budget.long_ns = now_ns + LONG_AGAIN_NS;
		}
	}
	if (listens()) {
		uint32_t chosen = taken;

		budget_account.functions = counts->count;
		taken += thinned_set_take_before(now_ns);
		/* The code of each is instrumented again, since restart_events() or when it is called next. */
		account_charge_instrumented(counts->count + taken - chosen);
	}
	account_post(now_ns);
	write_choice(taken, full, now_ns);
	log_line(LOG_DEBUG,
		 "budget: recording adds %.1f %% for %.1f ms; %u functions are thinned, %u of them now; in all %.1f ms "
		 "of %.1f, balance %.1f",
		 100 * full, ns / 1e6, thinned_set()->count, taken, budget_account.cost_ns / 1e6, (double)now_ns / 1e6,
		 budget_account.balance_ns / 1e6);
	begin_counts(now_ns);
	budget.look_ns = LOOK_SOON_NS;
	budget.choice_ns = (double)(budget_clock() - now_ns);
	return !over || counts->events;
}

/* The time until the next burst, or the next look at the cost. */
static uint64_t next_step(uint64_t now_ns)
{
	uint64_t look_ns = budget.look_ns;

	if (!is_thinned())
		return LOOK_NS;
	budget.look_ns = 2 * look_ns < LOOK_THINNED_NS ? 2 * look_ns : LOOK_THINNED_NS;
	if (budget.burst_ns >= now_ns + look_ns)
		return look_ns;
	return budget.burst_ns > now_ns ? budget.burst_ns - now_ns + 1 : 1;
}

/* The share that recording may have while functions are thinned. */
static double most_share(void)
{
	double wanted = account_wanted_share();

	return OVER * (budget.expected > wanted ? budget.expected : wanted);
}

/* Whether recording costs more than it may; while functions are thinned, more than was foreseen. */
static bool is_over(uint64_t now_ns)
{
	double share = account_share_since(now_ns), wanted = account_wanted_share(), beyond = share - wanted;
	bool full = thinned_set_is_full();

	if (!is_thinned())
		return budget_account.balance_ns < 0 && share > wanted;
	return share > most_share() && beyond * (double)(now_ns - (full ? budget.chosen_ns : budget_account.begin_ns)) >
					   (full ? budget.anew_ns : budget.choice_ns);
}

/*
 * Whether there is a debt that cannot be paid, although all short functions are thinned that can be: bursts need the
 * rest of the budget.
 */
static bool is_in_debt(uint64_t now_ns)
{
	double allowed = account_allowed_share();

	return is_thinned() && now_ns >= budget.long_ns && now_ns - budget_account.begin_ns >= LOOK_LONG_NS &&
	       budget_account.balance_ns < 0 && account_share_since(now_ns) > (1 - BURST_SHARE_MIN) * allowed &&
	       account_passes_share() < allowed && !thinned_set_is_full();
}

/* Says once that the budget cannot be kept. */
static void note_least(void)
{
	double calls = account_passes_share(), least = OVER * account_allowed_share();

	if (budget.least_said || budget_account.cpu_ns < LEAST_AFTER_NS ||
	    (calls < least && budget.least_share < least))
		return;
	budget.least_said = true;
	log_line(LOG_WARNING,
		 "%s cost %.1f %% alone with Python %s: no less is possible. EVPROF_EVENTS=sample costs little",
		 calls < least ? "the calls and exceptions that " ENV_BUDGET " does not leave out"
			       : "the calls that " ENV_BUDGET " leaves out",
		 100 * (calls < least ? budget.least_share : calls), python_version());
}

/* Returns the time until the next step. */
static uint64_t step(uint64_t now_ns)
{
	bool burst = is_thinned() && now_ns >= budget.burst_ns, in_debt;
	uint64_t late = late_ns(now_ns);

	account_look();
	if (!config_may_thin()) { /* evprof start --events */
		begin_counts(now_ns);
		return LOOK_NS;
	}
	if (budget_account.phase == ACCOUNT_WARMS) {
		listen_for_sample(now_ns);
		return listening_ns();
	}
	if (burst && is_empty_burst(late)) {
		write_empty_burst(now_ns);
		return next_step(now_ns);
	}
	in_debt = !burst && is_in_debt(now_ns);
	if (!burst && !listens() && !in_debt && !is_over(now_ns)) {
		begin_counts(now_ns);
		return next_step(now_ns);
	}
	if (!burst && (listens() || !thinned_set_is_full()))
		return choose(now_ns, in_debt) ? next_step(now_ns) : LISTEN_NS;
	budget.anew_ns = !burst && now_ns < budget.listen_ns ? 2 * budget.anew_ns : ANEW_NS;
	thin_nothing();
	switch_hooks(false);
	listen(burst, budget_clock());
	return listening_ns();
}

static void pause_budget(void)
{
	if (!budget.on || !process->budget_timer)
		return;
	if (is_thinned()) {
		thin_nothing();
		listen(false, budget_clock());
	} else if (budget_account.phase == ACCOUNT_LISTENS) { /* the time until recording begins again is no sample */
		write_change(WIRE_THIN_END, WIRE_BURST_OTHER, budget_clock(), thinned_set_before());
	}
}

/* Another image, or other ids: what was thinned is so no more. */
static void forget_thinned(void)
{
	if (!is_thinned())
		return;
	budget_account.phase = ACCOUNT_ALL;
	thinned_set_forget();
	thin_forget();
	switch_hooks(false);
}

/* Everything is recorded from here on. */
static void leave_budget(void)
{
	bool thinned;

	if (budget.on && !process->budget_timer) /* the child of a fork */
		forget_thinned();
	thinned = is_thinned();
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
	if (account_begin()) {
		budget.chosen_ns = budget.long_ns = 0;
		budget.least_share = 0;
		budget.least_said = false;
	}
	budget.words_most = UINT64_MAX;
	budget_account.phase = ACCOUNT_ALL;
	budget_timer_set(LOOK_FIRST_NS);
	begin_counts(budget_clock());
	/* Nothing is thinned so far. Readers learn that it may be, and note which C functions are called by whom. */
	thin_change(WIRE_THIN_END, value_of(WIRE_BURST_OTHER), budget_account.begin_ns, thinned_set());
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
	wait_ns = step(begin_ns = budget_clock());
	budget.words_most = listens() ? UINT64_MAX : account_words_within(most_share(), wait_ns);
	budget_timer_set(wait_ns);
	note_least();
	budget_charge(begin_ns);
	return 0;
}

void budget_charge(uint64_t since_ns)
{
	if (!config.budget || atomic_load(&several_interpreters))
		return;
	account_charge(since_ns);
}

void budget_note_audit(void)
{
	if (budget.on)
		account_note_audit();
}

void budget_due(void)
{
	atomic_store(&process->budget_due, 1);
	process_look_again();
}

void budget_sample(bool in_interpreter)
{
	const struct thread_state *state = python.current_thread_state();

	if (!python.monitoring && state && thread_self.hooked_state == state && !hooks_profile_is_off(state))
		account_note_sample(in_interpreter);
}

void budget_again(void)
{
	budget_timer_set(AGAIN_NS);
}

void budget_queued(void)
{
	atomic_store(&budget.queued_main_ns, clock_ns((clockid_t)(~(uint32_t)getpid() << 3 | 6)));
	atomic_store(&budget.queued_ns, budget_clock());
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
	budget_timer_begin();
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
	cpu_ns = budget_clock() - budget_account.begin_ns;
	if (cpu_ns >= listening_ns())
		return true;
	budget.listens_until_ns = now_ns + listening_ns() - cpu_ns;
	return false;
}

void budget_look(void)
{
	if (ends_with_interpreters())
		return;
	if (budget.on && is_begun() &&
	    (listens() ? has_listened() : account_words() > budget.words_most || budget_timer_has_ended_silently()))
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
	if (budget.on && !is_thinned() && !atomic_load(&several_interpreters))
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
		account_write(budget_clock());
	leave_budget();
	atomic_store(&several_interpreters, false);
}

void budget_end(void)
{
	budget_timer_end();
	budget.on = false;
}
