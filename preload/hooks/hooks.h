/*
 * hooks.h - the hooks that Python calls, and how they are set.
 *
 *   install.c            sets the hooks: once in the process, and in each thread
 *   hooks_profile.c      calls and returns by PyEval_SetProfile, until 3.11
 *   hooks_frame.c        calls and returns by a frame evaluator from 3.9 to 3.11, if no C calls are recorded
 *   thinned_frames.c     takes the profile function off while thinned functions run, from 3.9 to 3.11
 *   frame_evaluator.h    the one frame evaluator of the process, which these two share
 *   hooks_monitoring.c   calls, returns and exceptions by sys.monitoring, from 3.12 (monitoring.h)
 *   hooks_line.c         lines, if requested, by PyEval_SetTrace or for hooks_monitoring.c
 *   hooks_memory.c       allocations by PyMem_SetAllocator
 *   event_blocks.h       hides blocks that Python allocates only for the hooks
 */
#ifndef PRELOAD_HOOKS_H
#define PRELOAD_HOOKS_H

#include <pthread.h>

#include "python/python.h"

/* Sets the profile function of the current thread state. GIL held. */
void hooks_profile_set(void);

/*
 * Restores evprof's profile function after the program exchanged that of the current thread state: alone, or in front
 * of the program's. missed: calls or returns went unrecorded meanwhile. Until 3.11. GIL held.
 */
void hooks_profile_put_back(bool missed);

/*
 * Sets the profile function of a thread state that was just created for the calling thread and does not run yet.
 * Without the GIL. False: this version's layout is not known, or no calls are recorded.
 */
bool hooks_profile_set_new(struct thread_state *state);

/* As hooks_profile_set_new(), for a state that any thread may run later. */
bool hooks_profile_place(struct thread_state *state);

/* Whether a state has no other profile function than evprof's, and no trace function. GIL held. */
bool hooks_profile_is_alone(const struct thread_state *state);

/* Where a state has its profile function; its trace function follows (c_profilefunc, c_tracefunc). */
static inline python_profile *hooks_profile_field(const struct thread_state *state)
{
	return (python_profile *)((char *)state + python.layout.state_profile);
}

/* Whether it has neither. GIL held. */
static inline bool hooks_profile_is_off(const struct thread_state *state)
{
	const python_profile *functions = hooks_profile_field(state);

	return !functions[0] && !functions[1];
}

/* Takes it off until hooks_profile_place(). It is alone. GIL held. */
void hooks_profile_take_off(struct thread_state *state);

/* Records an event as the profile function does. GIL held. */
void hooks_profile_record(struct object *frame, int what, struct object *argument);

/*
 * Sets the frame evaluator, if it is possible, at the first call. True: the calls of the current thread are recorded by
 * it. Then its state needs no profile function. GIL held, as for all of these.
 */
bool hooks_frame_set(void);
bool hooks_frame_records(const struct thread_state *state);

/* Takes it off and sets it again, while no function of the program runs. False: it was not set. */
bool hooks_frame_enable(bool on);

/* Takes it off for good. Frames that run end without an event. */
void hooks_frame_remove(void);

/* Where another one is set, or little of the stack is left, the profile function goes on, in all threads. */
void hooks_frame_look(void);

/*
 * Whether the running function is traced only because it has subscripts; and, with that as it was before, after the
 * program has set or taken off a profile function or a trace function of the current thread.
 */
bool hooks_frame_traces(void);
void hooks_frame_tracing_changed(bool traced);

/* greenlet's trace function is about to return in the greenlet that resumes. */
void hooks_frame_switched(void);

/* Python starts once more. */
void hooks_frame_forget(void);

/* Sets the trace function of the current thread state, if line events are wanted and the program has none. GIL held. */
void hooks_line_set(void);

/* As hooks_profile_set_new() and hooks_profile_place(). Called after them. */
void hooks_line_set_new(struct thread_state *state);

/*
 * Take evprof's profile function, and its trace function, off a thread state that has them. GIL held; the functions of
 * free-threaded builds are none of these.
 */
void hooks_profile_remove(struct thread_state *state);
/* Those that are set next may be for other events. */
void hooks_profile_forget(void);
void hooks_line_remove(struct thread_state *state);

/* Takes it off the calling thread, which is stopped, or in which the program is about to set its own. GIL held. */
void hooks_line_take_off(void);

/* Records that the running function reaches a line. GIL held. */
void hooks_line_record(long line);

/*
 * Records the current line of the frame that the last event pushed. That event was written just now, so there is room.
 */
void hooks_line_put_current(int line);

/* Sets the callbacks of the current interpreter. GIL held. Returns 0; -EAGAIN: too early; other -errno, with a line. */
int hooks_monitoring_set(void);

/* Python starts once more in this process. */
void hooks_monitoring_begin_again(void);

/*
 * give: the program is about to use this tool id of sys.monitoring. If evprof has it in the current interpreter, evprof
 * moves to another free one, or stops recording until one is free. take: the program has freed an id; evprof resumes if
 * it has none. GIL held.
 */
void hooks_monitoring_release_tool(int tool);
void hooks_monitoring_acquire_tool(void);

/* Whether the tool with this id receives CALL events. False if it is not a valid id. GIL held, no exception set. */
bool hooks_monitoring_has_calls(struct object *tool);

/* Whether any tool of the program receives CALL events. GIL held, no exception set. */
bool hooks_monitoring_others_have_calls(void);

/*
 * A tool has just switched CALL events on. Suppresses the C_RETURN of the function by which it did so, because the tool
 * did not receive that function's CALL. GIL held.
 */
void hooks_monitoring_mute(int tool, const struct python_method *returning);

/*
 * guarded: the callback that Python calls in place of one of the program's; a new reference, or NULL without an
 * exception if the program's is to be called directly. unguarded: the program's callback for one that Python returned;
 * takes a reference and returns one. GIL held.
 */
struct object *hooks_monitoring_guarded(struct object *callback);
struct object *hooks_monitoring_unguarded(struct object *callback);

/* Frees evprof's tool id of the current interpreter. GIL held. */
void hooks_monitoring_remove(void);

/* Switches the events of the current interpreter off or on, between two instructions of the program. GIL held. */
void hooks_monitoring_enable(bool on);

/*
 * Exceptions are reported no more, or again, in the current interpreter: those of all code, as Python up to 3.14 knows
 * no less. GIL held.
 */
void hooks_monitoring_leave_out_exceptions(bool leaves_out);
bool hooks_monitoring_leaves_out_exceptions(void);

/* Events that a callback has switched off by DISABLE come again, those of all tools. GIL held. */
void hooks_monitoring_restart(void);

/* Sets evprof's allocators over Python's where they are missing or were removed. GIL held. */
void hooks_memory_set(void);

/* Sets evprof's allocators again where they were taken off while recording was stopped. GIL held. */
void hooks_memory_set_again(void);

/* Whether the program has set allocators over evprof's (tracemalloc), so that evprof's cannot be removed. GIL held. */
bool hooks_memory_is_covered(void);

/*
 * Gives Python its allocators back. False: the program has set others over evprof's, which stay below them and record
 * nothing. GIL held, recording is stopped.
 */
bool hooks_memory_remove(void);

/*
 * Until 3.11, if memory is not recorded: notes blocks of the raw domain that may be new thread states, for
 * install_made_state(). GIL held.
 */
void hooks_memory_watch_states(void);

/*
 * The same for a library that was loaded into a running Python, where install_made_state() is not called: a thread gets
 * its profile function at its first object, before any function of Python's runs. GIL held.
 */
void hooks_memory_watch_threads(void);

/* Whether Python calls evprof's allocators first. */
bool hooks_memory_on_top(void);

/* Restores Python's own object allocator for a moment in which nothing is allocated. False: evprof's is not in use. */
bool hooks_memory_step_aside(void);
void hooks_memory_step_back(void);

/* Records that a block of the object domain was allocated or freed (kind) other than by a call of the allocator. */
void hooks_memory_record_object(unsigned kind, const void *block, size_t size);

/* Records an allocation that is in the sample (memory_sampling.h). kind: no realloc. block NULL: it failed. */
void hooks_memory_record_sampled(unsigned kind, unsigned domain, const void *block, size_t size)
    __attribute__((cold, noinline));

/* A realloc, after memory_sampling_realloc_begin(). parts: not 0. made NULL: it failed. */
void hooks_memory_record_sampled_realloc(unsigned domain, unsigned parts, const void *old, const void *made,
					 size_t size) __attribute__((cold, noinline));

/* The allocator below evprof's. After hooks_memory_set(). */
struct python_allocator hooks_memory_under(int domain);

/* sysmodule.c: Python's record of an audit hook. */
struct audit_entry {
	struct audit_entry *next;
	const void *hook;
	const void *data;
};

/* Calls make(), which adds an audit hook whose entry is allocated by malloc(), whatever allocator is set. */
int hooks_memory_make_audit_entry(int (*make)(void));

/* The last entry that was made so, or another block of its size; NULL: none. Python frees it at its end. */
const struct audit_entry *hooks_memory_audit_entry(void);

/*
 * Python is about to free its list of audit hooks. evprof's entry was allocated by malloc(): it is freed by free(),
 * even if a debug allocator was set since (-X dev, PYTHONMALLOC). Then calls gone(), which adds another. GIL held.
 */
void hooks_memory_expect_audit_entry(const void *hook, const void *data, int (*gone)(void));

/* ---- setting the hooks ------------------------------------------------------------------------------------------- */

/*
 * Sets the hooks of the current thread, if its thread state has none. The first call joins a collector. True: calls are
 * recorded from here on. GIL held.
 */
bool install_in_thread(void);

/*
 * After the first install_in_thread() of a Python that has run without evprof: sets the hooks of its other threads,
 * records their names, and finds the modules that are imported already. late: the library was loaded after Python had
 * begun. GIL held.
 */
void install_in_others(bool late);

/* Recording goes on after a stop: sets the hooks that took themselves off meanwhile. GIL held. */
void install_again(void);

/* Sets the profile function in all threads that have none. Until 3.11. GIL held. */
void install_profile_everywhere(void);

/*
 * Takes all hooks off, in all threads, after which install_in_thread() begins from the start. Recording is stopped, GIL
 * held. False: see hooks_memory_remove(); recording cannot begin again.
 */
bool install_remove(void);

/*
 * Until 3.11: the calling thread has stored value under a thread-specific key. If value is the thread state with which
 * it will enter Python, sets its profile function. If value is NULL in place of one, the thread has left Python.
 * Without the GIL.
 */
void install_new_state(pthread_key_t key, const void *value);

/*
 * Until 3.11: the calling thread may have created a thread state, for itself or for another thread, and is about to
 * release the lock under which it did. A thread's key holds only its first state, and a thread that serves several
 * interpreters has one in each. So each state gets its profile function when it is created. Without the GIL.
 */
void install_made_state(void);

/* False: the key is known not to hold thread states. */
bool install_may_be_state(pthread_key_t key);

/*
 * Until 3.11: the program is about to replace evprof's profile function, or to remove its own. Once it has, evprof's is
 * put in front of it at one of the next events. Several events check for it, because some come while it is being set.
 * From 3.12 on: Python removes the program's function, which raised (hook_compat.c handles the other cases). Events
 * that it refused are not reported to evprof.
 */
void install_profile_changes(void);

/*
 * The program sets a trace function, or Python removes one that raised. From 3.11 on an end that it refused is not
 * reported to profile functions.
 */
void install_trace_changes(void);

/* Whether the first thread has installed what is installed once. */
bool install_has_begun(void);

/*
 * The next interpreter's thread state may get the address of this one's. No more hooks are set in this interpreter.
 */
void install_interpreter_ends(void);

/* Python ends. No hooks are set from here on, until it starts once more. */
void install_runtime_ends(void);
void install_runtime_begins(void);

#endif
