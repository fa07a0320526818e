/*
 * hooks.h - the hooks that Python calls: which there are and how they are set.
 *
 *   hooks_profile.c      calls and returns by PyEval_SetProfile, until 3.11
 *   hooks_monitoring.c   calls, returns and exceptions by sys.monitoring, from 3.12
 *   hooks_line.c         lines, where they are asked for, by PyEval_SetTrace or for hooks_monitoring.c
 *   hooks_memory.c       allocations by PyMem_SetAllocator
 *   event_blocks.h       what of these is Python's own work for the hooks
 */
#ifndef PRELOAD_HOOKS_H
#define PRELOAD_HOOKS_H

#include "python.h"

/* Sets the profile function of the current thread state. GIL held. */
void hooks_profile_set(void);

/*
 * The program has exchanged the profile function of the current thread state: ours stands where it stood, or before the
 * program's. missed: calls or returns have gone by since. Until 3.11. GIL held.
 */
void hooks_profile_put_back(bool missed);

/*
 * Sets the profile function of a thread state that was just made for the calling thread and does not run yet. Without
 * the GIL. False: this version's layout is not known, or nothing is wanted.
 */
bool hooks_profile_set_new(struct thread_state *state);

/* The same of a state that any thread may run later. */
bool hooks_profile_place(struct thread_state *state);

/* Sets the trace function of the current thread state, if line events are wanted and the program has none. GIL held. */
void hooks_line_set(void);

/* As hooks_profile_set_new() or hooks_profile_place(), which come first. */
void hooks_line_set_new(struct thread_state *state);

/* Records that the running function comes to a line. GIL held. */
void hooks_line_record(long line);

/*
 * Records at which line the frame stands that the event before put on the stack: that event was written just now, so
 * there is room.
 */
void hooks_line_stand(int line);

/* Sets the callbacks of the current interpreter. GIL held. 0; -EAGAIN: too early; other -errno: cannot, with a line. */
int hooks_monitoring_set(void);

/* Python begins once more in this process. */
void hooks_monitoring_begin_again(void);

/*
 * The program is about to use this tool's id of sys.monitoring: if it is evprof's in the current interpreter, evprof
 * moves to another that is free, or stops until one is. The program has freed one: evprof begins again. GIL held.
 */
void hooks_monitoring_give(int tool);
void hooks_monitoring_take(void);

/* Whether the tool with this id hears C calls; false where the id is none. GIL held, no exception set. */
bool hooks_monitoring_hears_calls(struct object *tool);

/* Whether a tool of the program's does. GIL held, no exception set. */
bool hooks_monitoring_others_hear_calls(void);

/*
 * A tool has just asked for the events of C calls: it is not told that the function by which it asked returns, because
 * it was not told that it was called. GIL held.
 */
void hooks_monitoring_mute(int tool, const struct python_method *returning);

/*
 * What Python is to call in place of a callback of the program's: a new reference, or NULL, without an exception, where
 * it is to call that. And what the program is to see in place of what Python called: takes a reference, gives one. GIL
 * held.
 */
struct object *hooks_monitoring_guarded(struct object *callback);
struct object *hooks_monitoring_unguarded(struct object *callback);

/* Switches the events of the current interpreter off or on again, between two instructions of the program. GIL held. */
void hooks_monitoring_hear(bool on);

/*
 * Where the cost of events is measured: integers that are no object of their own for each use lie within so many bytes
 * from there. Offsets beyond are marked (WIRE_TIME_OF_FAR) from then on.
 */
void hooks_monitoring_mark_far(const struct object *first, size_t bytes);

/* Puts evprof's allocators over Python's, where they are not there, or there no more. GIL held. */
void hooks_memory_set(void);

/*
 * Until 3.11, where memory is not recorded: has the raw domain note what may be a new thread state, for
 * bootstrap_made_state(). GIL held.
 */
void hooks_memory_watch_states(void);

/* Whether Python calls evprof's allocators first. */
bool hooks_memory_on_top(void);

/* Puts Python's own allocator of objects back for a moment in which nothing is allocated. False: it is there. */
bool hooks_memory_step_aside(void);
void hooks_memory_step_back(void);

/* Records that a block of the object domain was allocated or freed (kind), by what is no call of the allocator. */
void hooks_memory_record_object(unsigned kind, const void *block, size_t size);

/* The allocator that evprof's stands over. After hooks_memory_set(). */
struct python_allocator hooks_memory_under(int domain);

/* Calls make(), which adds an audit hook: its entry is allocated by malloc(), whatever allocator is set. */
int hooks_memory_make_audit_entry(int (*make)(void));

/*
 * Python is about to free its list of audit hooks. Ours was allocated by malloc(); frees it likewise, whatever debug
 * allocator has come since (-X dev, PYTHONMALLOC), and calls bootstrap_hook_is_gone(), which makes another. GIL held.
 */
void hooks_memory_expect_audit_entry(const void *hook, const void *data);

#endif
