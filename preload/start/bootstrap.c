/*
 * bootstrap.c - starts evprof in a process.
 *
 *   constructor -> is Python here? -> audit hook (3.8+) or pending call (before)
 *   first audit event with a thread state, GIL held -> join a collector, set the allocators, set the hooks
 *
 * Python replaces allocators that are set before it starts (PYTHONMALLOC, -X dev), so they are set after its start. In
 * a process without Python the constructor only checks for Python.
 */
#include "start/bootstrap.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/config.h"
#include "base/elf_symbols.h"
#include "base/filter.h"
#include "base/log_line.h"
#include "calibrate/calibrate.h"
#include "definitions/definitions.h"
#include "definitions/native.h"
#include "definitions/thread_names.h"
#include "evprof/control.h"
#include "hooks/greenlets.h"
#include "hooks/hook_compat.h"
#include "hooks/hooks.h"
#include "join/process.h"
#include "join/sampling.h"
#include "join/spawn.h"
#include "python/python.h"
#include "ring/clock.h"

#define UNSETTLED_EVENTS 64

__thread int bootstrap_forking __attribute__((tls_model("initial-exec")));

static bool verified, calls_possible;
static bool calls_known;	   /* the value of calls_possible while Python runs */
static bool ended;		   /* Python has ended and has not started again */
static bool over;		   /* likewise, but set a little earlier: no code of the program runs any more */
static _Atomic int state_key = -1; /* the thread-specific key of thread states; -1: not seen yet */
static const char no_state;	   /* its address is that of no thread state */

static void name_main_thread(void)
{
	struct object *name = python.PyUnicode_FromString("MainThread");

	if (name) {
		definitions_thread_name((uint32_t)getpid(), name);
		python.Py_DecRef(name);
	}
}

/* Everything that is done once, in the first thread. */
static void begin_once(void)
{
	if (verified)
		return;
	verified = true;
	native_begin();
	if (process_join(WIRE_START_EXEC) < 0)
		return;
	calls_known = config.events & ~(unsigned)(EVENT_MEM | EVENT_SAMPLE | EVENT_CPU) &&
		      !python_verify(definitions_forget_code);
	calls_possible = calls_known;
	writer_fast = clock_kind != RING_CLOCK_MONOTONIC;
	name_main_thread();
	if (calls_possible)
		hook_compat_begin();
	if (config.events & EVENT_MEM) {
		hook_compat_of_memory();
		hooks_memory_set();
	}
	if (calls_possible)
		hooks_memory_watch_states();
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

	if (!python.state_profile || python_field(state, python.state_profile) || !hooks_profile_set_new(state))
		hooks_profile_set();
	else if (thread_self.writer->slot)
		thread_self.writer->resync = 1;
	if (!python.PyEval_GetFrame())
		thread_self.writer->resync = resync;
}

void bootstrap_thread(void)
{
	struct thread_state *state = python.current_thread_state();
	int saved_errno = errno;
	bool done = true;

	if (!state || (thread_self.hooked_state == state && !thread_self.unsettled) || thread_self.entered)
		return;
	thread_self.entered = 1; /* setting a hook raises audit events, which come back here */
	thread_self.nesting++;
	if (begin_recording() && calls_possible && python_enter_interpreter()) {
		if (python.monitoring) {
			done = hooks_monitoring_set() != -EAGAIN;
		} else {
			set_profile(state);
			hooks_line_set();
		}
		if (done)
			calibrate_soon();
	}
	if (done)
		thread_self.hooked_state = state;
	thread_self.nesting--;
	thread_self.entered = 0;
	errno = saved_errno;
}

static int pending(void *data)
{
	(void)data;
	bootstrap_thread();
	sampling_begin();
	return 0;
}

bool bootstrap_may_be_state(pthread_key_t key)
{
	int known = atomic_load_explicit(&state_key, memory_order_relaxed);

	return known < 0 || known == (int)key;
}

void bootstrap_new_state(pthread_key_t key, const void *value)
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

void bootstrap_made_state(void)
{
	const void *made = thread_self.made_state;

	thread_self.made_state = NULL;
	if (!calls_possible || !made || !is_linked(made))
		return;
	if (hooks_profile_place((struct thread_state *)made))
		hooks_line_set_new((struct thread_state *)made);
}

/*
 * Until 3.11: the program is about to replace evprof's profile function, or to remove its own. Once it has, evprof's is
 * put in front of it at one of the next events. Several events check for it, because some come while it is being set.
 * From 3.12 on: Python removes the program's function, which raised (hook_compat.c handles the other cases). Events
 * that it refused are not reported to evprof.
 */
static void profile_changes(void)
{
	if (thread_self.entered || thread_self.telling || !calls_possible)
		return;
	if (python.monitoring) {
		writer_expect_stack();
		return;
	}
	thread_self.unsettled = UNSETTLED_EVENTS;
	thread_self.writer->limit = 0;
	python.Py_AddPendingCall(pending, NULL); /* for programs whose memory is not recorded; main thread only */
}

/*
 * From 3.11 on: Python removes a trace function that raised. An end that it refused is not reported to profile
 * functions.
 */
static void trace_changes(void)
{
	if (!thread_self.entered && calls_possible && python.version >= 0x030b)
		writer_expect_stack();
}

static int audit(const char *event, struct object *arguments, void *data);

/*
 * The last audit event of this runtime: Python frees its list of audit hooks, evprof's included. The hook is then set
 * again, in case the program starts Python once more (Py_Initialize). The next audit event belongs to the new runtime.
 */
static void runtime_ends(void *data)
{
	calls_possible = false;
	over = true;
	thread_self.hooked_state = &no_state;
	sampling_forget();
	hooks_memory_expect_audit_entry((const void *)audit, data);
}

bool bootstrap_python_is_over(void)
{
	return over;
}

static int have_python_call(void)
{
	return python_call_at_start(audit, pending);
}

int bootstrap_hook_is_gone(void)
{
	ended = true;
	return have_python_call();
}

/*
 * Forgets all objects, thread states and interpreters of the earlier runtime. Types and C functions that are no objects
 * remain.
 */
static void runtime_begins_again(void)
{
	ended = over = false;
	thread_self.hooked_state = &no_state; /* its memory may have been seen before it could have a hook */
	process_begin_again();
	python_forget_interpreters();
	greenlets_forget();
	hooks_monitoring_begin_again();
	atomic_store(&state_key, -1);
	if (verified && config.events & EVENT_MEM)
		hooks_memory_set();
	calls_possible = calls_known;
	if (verified && calls_possible)
		hooks_memory_watch_states();
}

static int audit(const char *event, struct object *arguments, void *data)
{
	if (unlikely(ended))
		runtime_begins_again();
	if (unlikely(thread_self.hooked_state != python.current_thread_state()))
		bootstrap_thread();
	sampling_begin();
	thread_names_look();
	if (event[0] == 'c' && !strcmp(event, "cpython._PySys_ClearAuditHooks"))
		runtime_ends(data);
	if (event[0] == 's' && !strcmp(event, "sys.setprofile"))
		profile_changes();
	if (event[0] == 's' && !strcmp(event, "sys.settrace"))
		trace_changes();
	if (event[0] == 'i' && verified && !strcmp(event, "import")) {
		if (python.PyTuple_GetItem)
			greenlets_expect(python.PyTuple_GetItem(arguments, 0));
		hook_compat_look();
	}
	/*
	 * The next interpreter's thread state may get the address of this one's. No more hooks are set in this
	 * interpreter.
	 */
	if (event[0] == 'c' && !strcmp(event, "cpython.PyInterpreterState_Clear"))
		thread_self.hooked_state = &no_state;
	if (event[0] == 'o' && (!strcmp(event, "os.fork") || !strcmp(event, "os.forkpty"))) {
		bootstrap_forking = 1;
		thread_names_before_fork();
	}
	return 0;
}

/* The program calls exit() or returns from main(). Unlike a destructor, this gets the status. */
static void program_exits(int status, void *data)
{
	(void)data;
	process_finish(status);
}

/* Python is in the process and is to be recorded: makes it call evprof. */
static void wait_for_start(void)
{
	config_read(true);
	filter_read(!config.session[0] || config.session_first == getpid());
	if (config.session[0] && !config.children && config.session_first != getpid())
		return;
	clock_init();
	on_exit(program_exits, NULL);
	if (process_init() < 0) {
		log_line(LOG_ERROR, "no memory to record with; nothing is recorded");
		return;
	}
	if (hooks_memory_make_audit_entry(have_python_call))
		log_line(LOG_WARNING, "Python %s refuses evprof's start; nothing is recorded", python_version());
}

void bootstrap_look(void)
{
	static atomic_flag looks = ATOMIC_FLAG_INIT;
	static uint64_t loads;
	int saved_errno = errno;

	if (atomic_flag_test_and_set(&looks)) /* another thread */
		return;
	if (!python.found && elf_symbols_changed(&loads) && python_is_here()) {
		config_read(false); /* log level and switch; complaints only if Python is recorded */
		if (python_find() && config.enabled)
			wait_for_start();
	}
	atomic_flag_clear(&looks);
	errno = saved_errno;
}

/*
 * Makes the path in LD_PRELOAD absolute for children. They may have another working directory, in which a relative path
 * would not be found and the loader would complain on their stderr.
 */
static void make_preload_absolute(void)
{
	const char *list = getenv("LD_PRELOAD"), *name = strrchr(library_path, '/');
	char value[8192];
	size_t used = 0;

	if (!list || !name || (list[0] == '/' && !strpbrk(list, ": ")))
		return;
	while (*list) {
		size_t length = strcspn(list, ": "), base = strlen(name);
		bool ours = list[0] != '/' && length >= base && !strncmp(list + length - base, name, base);
		const char *entry = ours ? library_path : list;
		size_t n = ours ? strlen(library_path) : length;

		if (used + n + 2 > sizeof(value))
			return;
		memcpy(value + used, entry, n);
		used += n;
		if (list[length])
			value[used++] = ':';
		list += length + (list[length] != 0);
	}
	value[used] = 0;
	setenv("LD_PRELOAD", value, 1);
}

static void find_library_path(void)
{
	Dl_info info;

	if (!dladdr((void *)bootstrap_look, &info) || !info.dli_fname || !realpath(info.dli_fname, library_path))
		library_path[0] = 0;
}

/* Only on request: EVPROF_LOG is set for a whole tree, most of whose programs are not recorded. */
static void say_that_there_is_none(void)
{
	if (!getenv(ENV_LOG))
		return;
	config_read(false);
	log_line(LOG_INFO, "%s is not Python; nothing is recorded unless it loads Python later",
		 program_invocation_short_name);
}

static __attribute__((constructor)) void library_loaded(void)
{
	const char *on = getenv(ENV_SWITCH);
	int saved_errno = errno;

	if (on && !strcmp(on, "0"))
		return;
	find_library_path();
	make_preload_absolute();
	bootstrap_look();
	if (!python.found)
		say_that_there_is_none();
	errno = saved_errno;
}
