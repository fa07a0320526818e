/*
 * install.c - sets the hooks, see hooks.h.
 */

#include <errno.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/config.h"
#include "definitions/define.h"
#include "definitions/definitions.h"
#include "definitions/native.h"
#include "definitions/thread_names.h"
#include "hooks/budget.h"
#include "hooks/greenlets.h"
#include "hooks/hook_compat.h"
#include "hooks/hooks.h"
#include "hooks/hooks_malloc.h"
#include "hooks/program.h"
#include "hooks/switch.h"
#include "hooks/thinned_frames.h"
#include "life/life.h"
#include "life/memory_place.h"
#include "life/memory_stack.h"
#include "ring/clock.h"
#include "ring/process.h"

#define PROFILE_CHECKS 64

static bool verified, calls_possible;
static bool calls_known;	   /* the value of calls_possible while Python runs */
static _Atomic int state_key = -1; /* the thread-specific key of thread states; -1: not seen yet */
static const char no_state;	   /* its address is that of no thread state */

static void name_main_thread(void)
{
	struct object *name = python.PyUnicode_FromString("MainThread");

	if (name) {
		thread_names_define((uint32_t)getpid(), name);
		python.Py_DecRef(name);
	}
}

/* What follows where the layouts are unknown. Allocations need none of them, but for their stacks. */
static const char *lost_without_layouts(void)
{
	if (!(config.events & EVENT_MEM))
		return "nothing is recorded";
	return calls_known ? "only allocations are recorded, without Python stacks"
			   : "allocations have no Python stack";
}

/* Everything that is done once, in the first thread. */
static void begin_once(void)
{
	if (verified)
		return;
	verified = true;
	program_begin();
	native_stacks_begin();
	budget_verify();
	if (life_join(WIRE_START_EXEC) < 0)
		return;
	calls_known = config.events & ~(unsigned)(EVENT_MEM | EVENT_MALLOC | EVENT_SAMPLE | EVENT_CPU);
	if ((calls_known || memory_stack_wanted()) && python_verify(definitions_forget_code, lost_without_layouts()))
		calls_known = false;
	else
		definitions_lines = memory_stack_wanted() || (memory_place_wanted() && sampled_layout_find_lines());
	calls_possible = calls_known;
	if (!calls_possible)
		program_is_not_seen();
	writer_fast = clock_kind != RING_CLOCK_MONOTONIC;
	name_main_thread();
	if (calls_possible)
		hook_compat_begin();
	if (config.events & EVENT_MEM) {
		hook_compat_of_memory();
		hooks_memory_set();
		hooks_malloc_set();
	}
	if (calls_possible)
		hooks_memory_watch_states();
	if (!config.start)
		switch_stop();
}

static bool begin_recording(void)
{
	python_lock(); /* other threads wait until it is done */
	begin_once();
	python_unlock();
	return atomic_load(&process->status) != PROCESS_OFF;
}

/*
 * A thread that enters another interpreter keeps its stack, which the new frames are pushed on. The stack is unknown
 * only if frames that were not recorded are running already. If no profile function is set, evprof's is stored without
 * PyEval_SetProfile(), whose audit event the program could see.
 */
static void set_profile(struct thread_state *state)
{
	uint32_t resync = thread_self.writer->resync;

	if (!python.layout.state_profile || python_field(state, python.layout.state_profile) ||
	    !hooks_profile_set_new(state))
		hooks_profile_set();
	else if (thread_self.writer->slot)
		thread_self.writer->resync = 1;
	if (!python.PyEval_GetFrame())
		thread_self.writer->resync = resync;
}

bool install_in_thread(void)
{
	struct thread_state *state = python.current_thread_state();
	int saved_errno = errno;
	bool done = true, set = false;

	if (!state || (thread_self.hooked_state == state && !thread_self.profile_checks) || thread_self.entered)
		return false;
	if (verified && process_is_stopped())
		return false;
	thread_self.entered = 1; /* setting a hook raises audit events, which come back here */
	thread_self.nesting++;
	if (begin_recording() && calls_possible && python_enter_interpreter()) {
		if (python.monitoring) {
			done = hooks_monitoring_set() != -EAGAIN;
		} else {
			set_profile(state);
			hooks_line_set();
		}
		set = done;
	}
	if (done)
		thread_self.hooked_state = state;
	thread_self.nesting--;
	thread_self.entered = 0;
	errno = saved_errno;
	return set;
}

/* Whether the program has set a profile function; that thread sets evprof's in front of it at its next event. */
static bool is_taken(struct thread_state *state)
{
	return python.layout.state_profile && python_field(state, python.layout.state_profile);
}

/* Until 3.11 each thread has a profile function. From 3.12 on all have the events of their interpreter. */
static void place_in_others(void)
{
	const struct thread_state *own = python.current_thread_state();

	if (python.monitoring || !calls_possible || !python.PyInterpreterState_Head ||
	    !python.PyInterpreterState_ThreadHead || !python.PyThreadState_Next)
		return;
	for (void *interpreter = python.PyInterpreterState_Head(); interpreter;
	     interpreter = python.PyInterpreterState_Next(interpreter))
		for (struct thread_state *state = python.PyInterpreterState_ThreadHead(interpreter); state;
		     state = python.PyThreadState_Next(state))
			if (state != own && !is_taken(state) && hooks_profile_place(state))
				hooks_line_set_new(state);
}

void install_profile_everywhere(void)
{
	struct thread_state *own = python.current_thread_state();

	if (!python.monitoring && calls_possible && thread_self.hooked_state == own && !is_taken(own))
		hooks_profile_place(own);
	place_in_others();
}

void install_again(void)
{
	if (config.events & EVENT_MEM) {
		hooks_memory_set_again();
		hooks_malloc_set();
	}
	thread_self.hooked_state = NULL;
	install_in_thread();
	place_in_others();
	greenlets_look();
}

void install_in_others(bool late)
{
	struct definitions_guard guard;

	if (!process || atomic_load(&process->status) == PROCESS_OFF)
		return;
	place_in_others();
	if (calls_possible && late)
		hooks_memory_watch_threads();
	definitions_enter(&guard);
	thread_names_define_present(python.PySys_GetObject("modules"));
	python.PyErr_Clear();
	definitions_leave(&guard);
	greenlets_look();
	hook_compat_look();
}

/* Until 3.11 each thread has its own. */
static void remove_from_threads(void)
{
	if (python.monitoring || !python.layout.state_profile || !python.PyInterpreterState_Head ||
	    !python.PyInterpreterState_ThreadHead || !python.PyThreadState_Next)
		return;
	for (void *interpreter = python.PyInterpreterState_Head(); interpreter;
	     interpreter = python.PyInterpreterState_Next(interpreter)) {
		struct thread_state *state = python.PyInterpreterState_ThreadHead(interpreter);

		for (; state; state = python.PyThreadState_Next(state)) {
			hooks_profile_remove(state);
			hooks_line_remove(state);
			python_unmark_traced(state);
		}
	}
	hooks_profile_forget();
}

bool install_remove(void)
{
	bool removed;

	thread_self.entered++; /* audit events of what is taken off */
	remove_from_threads();
	hooks_frame_remove();
	hooks_monitoring_remove();
	greenlets_remove();
	removed = hooks_memory_remove();
	hook_compat_end();
	memory_stack_end_all();
	python_unverify();
	thread_self.entered--;
	thread_self.hooked_state = NULL;
	verified = calls_known = calls_possible = false;
	return removed;
}

bool install_may_be_state(pthread_key_t key)
{
	int known = atomic_load_explicit(&state_key, memory_order_relaxed);

	return known < 0 || known == (int)key;
}

void install_new_state(pthread_key_t key, const void *value)
{
	struct thread_state *state;

	if (!calls_possible || thread_self.entered)
		return;
	if (!value) {
		if (atomic_load(&state_key) >= 0)
			thread_self.hooked_state = NULL;
		return;
	}
	state = python.PyGILState_GetThisThreadState();
	if (state != value || state == thread_self.hooked_state)
		return;
	atomic_store(&state_key, (int)key);
	if (!hooks_profile_set_new(state))
		return;
	hooks_line_set_new(state);
	thread_self.hooked_state = state;
}

/*
 * Python links a new state before all others of its interpreter, under a lock that is held until the semaphore is
 * posted.
 */
static bool is_linked(const void *state)
{
	if (!python.PyInterpreterState_Head || !python.PyInterpreterState_Next || !python.PyInterpreterState_ThreadHead)
		return false;
	for (void *interpreter = python.PyInterpreterState_Head(); interpreter;
	     interpreter = python.PyInterpreterState_Next(interpreter))
		if (python.PyInterpreterState_ThreadHead(interpreter) == state)
			return true;
	return false;
}

void install_made_state(void)
{
	const void *made = thread_self.made_state;

	thread_self.made_state = NULL;
	if (!calls_possible || !made || !is_linked(made))
		return;
	/* A signal handler may post a semaphore before the state is filled in. */
	if (python.layout.state_cframe && !python_field(made, python.layout.state_cframe))
		return;
	if (hooks_profile_place((struct thread_state *)made))
		hooks_line_set_new((struct thread_state *)made);
}

static int pending_call(void *data)
{
	(void)data;
	install_in_thread();
	return 0;
}

void install_profile_changes(void)
{
	if (thread_self.entered || thread_self.in_program_profile || !calls_possible)
		return;
	if (python.monitoring) {
		writer_expect_stack();
		return;
	}
	if (hooks_frame_records(python.current_thread_state()))
		return;
	thread_self.profile_checks = PROFILE_CHECKS;
	thread_self.writer->limit = 0;
	python.Py_AddPendingCall(pending_call, NULL); /* for programs whose memory is not recorded; main thread only */
}

void install_trace_changes(void)
{
	if (!thread_self.entered && calls_possible)
		hooks_line_take_off(); /* by PyEval_SetTrace() */
	if (!thread_self.entered && calls_possible && python_has(PYTHON_OWN_FRAMES))
		writer_expect_stack();
}

void install_runtime_ends(void)
{
	calls_possible = false;
	thread_self.hooked_state = &no_state;
}

void install_interpreter_ends(void)
{
	thread_self.hooked_state = &no_state;
}

void install_runtime_begins(void)
{
	thread_self.hooked_state = &no_state; /* its memory may have been seen before it could have a hook */
	program_begin();
	hooks_monitoring_begin_again();
	hooks_frame_forget();
	thinned_frames_forget();
	atomic_store(&state_key, -1);
	if (verified && config.events & EVENT_MEM)
		hooks_memory_set();
	calls_possible = calls_known;
	if (verified && calls_possible)
		hooks_memory_watch_states();
}

bool install_has_begun(void)
{
	return verified;
}
