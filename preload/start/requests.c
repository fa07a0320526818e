/* requests.c - see requests.h. */
#include "start/requests.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/config.h"
#include "base/elf_symbols.h"
#include "base/log_line.h"
#include "evprof/evprof.h"
#include "hooks/budget.h"
#include "hooks/budget_timer.h"
#include "hooks/switch.h"
#include "python/pending_calls.h"
#include "python/python.h"
#include "ring/process.h"
#include "start/interposed.h"

#define AGAIN_NS 2000000 /* then twice as long each time, up to ... */
#define AGAIN_MOST_NS 128000000

enum { WANTED_NOTHING = 0, WANTED_STOP = 1, WANTED_START = 2, WANTED_SNAPSHOT = 3 };

static uintptr_t instructions, instructions_end; /* of the function that runs Python's instructions */

enum source { SOURCE_USER, SOURCE_COLLECTOR };

static bool is_joined(void)
{
	uint32_t status = process ? atomic_load(&process->status) : PROCESS_OFF;

	return status == PROCESS_JOINED || status == PROCESS_STOPPED;
}

static bool has_request(void)
{
	const struct ring_header *header = process->header;

	return atomic_load_explicit(&header->request, memory_order_acquire) !=
	       atomic_load_explicit(&header->followed, memory_order_relaxed);
}

/* The collector may change the name meanwhile. */
static void read_name(char name[RING_REQUEST_NAME_BYTES])
{
	memcpy(name, process->header->request_name, RING_REQUEST_NAME_BYTES);
	name[RING_REQUEST_NAME_BYTES - 1] = 0;
}

static void set_mark(uint32_t request)
{
	char name[RING_REQUEST_NAME_BYTES];

	if (process_is_stopped()) {
		atomic_store(&process->header->refused, request);
		return;
	}
	read_name(name);
	evprof_mark(name);
}

static void change_events(uint32_t request)
{
	char list[RING_REQUEST_NAME_BYTES];

	read_name(list);
	if (!switch_events(list))
		atomic_store(&process->header->refused, request);
}

static void follow_collector(void)
{
	uint32_t request = atomic_load_explicit(&process->header->request, memory_order_acquire);

	/* Setting hooks raises audit events, which come back here. */
	if (!has_request() || (request % 4 == RING_REQUEST_EVENTS && !python_is_main()) ||
	    atomic_exchange(&process->following, 1))
		return;
	switch (request % 4) {
	case RING_REQUEST_STOP:
		switch_stop();
		break;
	case RING_REQUEST_START:
		switch_start();
		break;
	case RING_REQUEST_MARK:
		set_mark(request);
		break;
	case RING_REQUEST_EVENTS:
		change_events(request);
		break;
	}
	atomic_store(&process->header->followed, request);
	atomic_store(&process->following, 0);
	process_wake_collector(); /* the next one may wait for this one */
}

static void follow_user(void)
{
	uint32_t wanted = atomic_exchange(&process->switch_wanted, WANTED_NOTHING);

	if (wanted == WANTED_STOP)
		switch_stop();
	else if (wanted == WANTED_START)
		switch_start();
	else if (wanted == WANTED_SNAPSHOT)
		process_wake_collector();
}

/* The child of a fork of a stopped process joins when it is started (hooks/switch.h). */
static bool may_switch(void)
{
	return is_joined() || process_is_stopped_child();
}

static int follow(void *data)
{
	(void)data;
	if (may_switch())
		follow_user();
	if (is_joined())
		follow_collector();
	return 0;
}

/* The kernel goes on behind the instruction that made a system call. The page before may not be readable. */
static bool is_behind_system_call(uintptr_t at)
{
	if (at % 4096 < 4)
		return false;
#if defined(__x86_64__)
	return !memcmp((const void *)(at - 2), "\x0f\x05", 2); /* NOLINT(performance-no-int-to-ptr): syscall */
#elif defined(__aarch64__)
	return *(const uint32_t *)(at - 4) == 0xd4000001; /* NOLINT(performance-no-int-to-ptr): svc #0 */
#else
	return false;
#endif
}

static uintptr_t interrupted_at(const void *context)
{
	const ucontext_t *user = context;

#if defined(__x86_64__)
	return (uintptr_t)user->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
	return (uintptr_t)user->uc_mcontext.pc;
#else
	(void)user;
	return 0;
#endif
}

/* The library's own code, from the linker. */
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char etext[] __attribute__((visibility("hidden")));

static bool is_within(uintptr_t at, const char *begin, const char *end)
{
	return at - (uintptr_t)begin < (uintptr_t)end - (uintptr_t)begin;
}

/* Whether it is between two of Python's instructions, or in one. */
static bool is_in_interpreter(uintptr_t at)
{
	return at - instructions < instructions_end - instructions;
}

/* Whether the interrupted thread is between two of Python's instructions, in a system call, or in a hook. */
static bool is_between(uintptr_t at)
{
	bool in_hook =
	    is_within(at, __ehdr_start, etext) && !is_within(at, __start_evprof_releases, __stop_evprof_releases);

	return !thread_self.releases && (is_in_interpreter(at) || in_hook || is_behind_system_call(at));
}

/*
 * Whether Python takes calls, and the interrupted thread does not hold their lock. Interpreters with tail calls have a
 * function for each instruction, so there the lock alone tells.
 */
static bool may_call(const void *context)
{
	return (pending_calls_are_free() || is_between(interrupted_at(context))) && python_takes_pending_calls();
}

/*
 * In a handler. Python releases a lock here, too; that is no sign that the thread's state that it makes is complete
 * (install_made_state()).
 */
static bool add_call(int (*call)(void *))
{
	const void *made = thread_self.made_state;
	bool added;

	thread_self.made_state = NULL;
	added = !python.Py_AddPendingCall(call, NULL);
	thread_self.made_state = made;
	return added;
}

/* Has the kernel send the signal again. The timer is the image's: a fork does not inherit it. */
static void ask_again(int number, enum source source)
{
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = number};
	struct itimerspec soon = {.it_value.tv_nsec = process->request_wait_ns[source]};
	int *made = &process->request_timers[source], timer;

	if (process->request_wait_ns[source] < AGAIN_MOST_NS)
		process->request_wait_ns[source] *= 2;

	/* The C library's functions allocate, or may not be called here. */
	if (!*made && !syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, &timer))
		*made = timer + 1;
	if (*made)
		syscall(SYS_timer_settime, *made - 1, 0, &soon, NULL);
}

/* first: the request is new. */
static void follow_soon(int number, enum source source, bool first, const void *context)
{
	int saved_errno = errno;

	if (first)
		process->request_wait_ns[source] = AGAIN_NS;

	if (!python.over && (!may_call(context) || !add_call(follow)))
		ask_again(number, source);
	errno = saved_errno;
}

static uint32_t wanted_now(void)
{
	if (config.signal_snapshot)
		return WANTED_SNAPSHOT; /* the collector, which may sleep, is to be woken */
	return process_is_stopped() ? WANTED_START : WANTED_STOP;
}

static void on_user_signal(int number, siginfo_t *info, void *context)
{
	if (!may_switch() || (config.signal_snapshot && !is_joined()))
		return;
	if (info->si_code != SI_TIMER && config.signal_snapshot)
		process_ask_snapshot(RING_SNAPSHOT_SIGNAL);
	if (info->si_code != SI_TIMER)
		atomic_store(&process->switch_wanted, wanted_now());
	if (atomic_load(&process->switch_wanted) != WANTED_NOTHING)
		follow_soon(number, SOURCE_USER, info->si_code != SI_TIMER, context);
}

static void turn_budget(const void *context)
{
	int saved_errno = errno;

	if (is_joined()) {
		budget_sample(is_in_interpreter(interrupted_at(context)));
		budget_due();
		if (!may_call(context) || !add_call(budget_turn))
			budget_again();
		else
			budget_queued();
	}
	errno = saved_errno;
}

static void on_request(int number, siginfo_t *info, void *context)
{
	if (info->si_code == SI_TIMER && info->si_value.sival_int == BUDGET_SIGNAL_VALUE) {
		turn_budget(context);
		return;
	}
	if (is_joined() && has_request())
		follow_soon(number, SOURCE_COLLECTOR, info->si_code != SI_TIMER, context);
}

static bool set_handler(int number, void (*handler)(int, siginfo_t *, void *))
{
	struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK}, before;

	sigemptyset(&action.sa_mask);
	return !sigaction(number, NULL, &before) && before.sa_handler == SIG_DFL && !sigaction(number, &action, NULL);
}

static bool is_handled(int number)
{
	struct sigaction action;

	return !sigaction(number, NULL, &action) && action.sa_flags & SA_SIGINFO &&
	       (action.sa_sigaction == on_request || action.sa_sigaction == on_user_signal);
}

static void find_instructions(void)
{
	size_t bytes = 0;

	instructions = (uintptr_t)elf_symbol_sized("_PyEval_EvalFrameDefault", &bytes);
	instructions_end = instructions + bytes;
}

static bool begun, handled, tried; /* requests_begin() and requests_look() have done what they do once */

bool requests_wait;
static atomic_flag look_asked = ATOMIC_FLAG_INIT;

void requests_begin(void)
{
	if (begun || !is_joined())
		return;
	begun = true;
	requests_wait = !python.PySys_AddAuditHook;
	find_instructions();
	pending_calls_find();
	if (config.signal && !set_handler((int)config.signal, on_user_signal))
		log_line(LOG_WARNING, "signal %u has a handler, or is ignored; %s does nothing", config.signal,
			 ENV_SIGNAL);
}

/* Whether Python has read which signals have handlers. 3.6 says that it is initialized before it does. */
static bool has_handlers(void)
{
	struct object *modules, *module;

	if (python.PySys_AddAuditHook || !python.Py_IsInitialized())
		return python.Py_IsInitialized();
	modules = python.PySys_GetObject("modules");
	module = modules ? python_item(modules, "_signal") : NULL;
	python.Py_DecRef(module);
	python.PyErr_Clear();
	return module != NULL;
}

static void begin_budget(void)
{
	if (!handled && config.budget)
		log_line(LOG_WARNING, "SIGURG has a handler, or is ignored; " ENV_BUDGET " does nothing");
	else if (budget_begin())
		budget_look();
}

void requests_look(void)
{
	switch_join_stopped();
	if (!is_joined())
		return;
	if (unlikely(!tried) && has_handlers()) {
		tried = true;
		handled = handled || (config.signal != SIGURG && set_handler(SIGURG, on_request));
		begin_budget();
	}
	if (unlikely(handled != atomic_load_explicit(&process->header->follows, memory_order_relaxed))) {
		handled = handled && is_handled(SIGURG);
		atomic_store(&process->header->follows, handled);
	}
	requests_wait &= !tried;
	if (unlikely(has_request()))
		follow_collector();
}

void requests_begin_again(void)
{
	tried = false;
}

static int look(void *data)
{
	(void)data;
	atomic_flag_clear(&look_asked);
	requests_look();
	return 0;
}

/* A pending call releases locks itself, so not each time: it would call itself at each instruction. */
void requests_ask_look(void)
{
	static _Atomic unsigned released;

	if (atomic_fetch_add(&released, 1) % 16 || !is_joined() || process->pid != getpid() ||
	    atomic_flag_test_and_set(&look_asked))
		return;
	if (python.Py_AddPendingCall(look, NULL))
		atomic_flag_clear(&look_asked);
}

static void remove_handler(int number)
{
	if (is_handled(number))
		signal(number, SIG_DFL);
}

const sigset_t *requests_without_own(const sigset_t *set, sigset_t *without)
{
	const int own[] = {handled ? SIGURG : 0, begun ? (int)config.signal : 0};

	if (!set)
		return set;
	*without = *set;
	for (int i = 0; i < 2; i++)
		if (own[i] && sigismember(set, own[i]) == 1 && is_handled(own[i]))
			sigdelset(without, own[i]);
	return sigisemptyset(without) ? set : without;
}

static void delete_timer(enum source source)
{
	if (process->request_timers[source])
		syscall(SYS_timer_delete, process->request_timers[source] - 1);
	process->request_timers[source] = 0;
}

void requests_handler_changes(int number)
{
	int saved_errno = errno;

	/* The child of vfork() has handlers of its own, but this memory. In the child of a fork there is no pid yet. */
	if (number != SIGURG || !handled || (process->pid && process->pid != getpid()))
		return;
	handled = false;
	if (process->header)
		atomic_store(&process->header->follows, 0);
	budget_timer_silence();
	delete_timer(SOURCE_COLLECTOR);
	remove_handler(SIGURG); /* with its pending signals, because its default is to be ignored */
	errno = saved_errno;
}

void requests_end(void)
{
	budget_end();
	if (handled)
		remove_handler(SIGURG);
	if (begun && config.signal)
		remove_handler((int)config.signal);
	if (process) {
		delete_timer(SOURCE_USER);
		delete_timer(SOURCE_COLLECTOR);
	}
	begun = handled = tried = requests_wait = false;
}
