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
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/config.h"
#include "base/elf_symbols.h"
#include "base/filter.h"
#include "base/log_line.h"
#include "calibrate/calibrate.h"
#include "evprof/control.h"
#include "hooks/greenlets.h"
#include "hooks/hook_compat.h"
#include "hooks/budget.h"
#include "hooks/budget_timer.h"
#include "hooks/hooks.h"
#include "hooks/sampled.h"
#include "hooks/switch.h"
#include "join/handshake.h"
#include "join/spawn.h"
#include "life/life.h"
#include "life/memory_stack.h"
#include "life/sampler.h"
#include "python/python.h"
#include "ring/clock.h"
#include "ring/process.h"
#include "start/interposed.h"
#include "start/requests.h"

__thread int bootstrap_forking __attribute__((tls_model("initial-exec")));

static bool ended;	/* Python has ended and has not started again */
static bool constructs; /* the library's constructor runs */
static bool first;	/* it has added its audit hook then, before any other */
static bool late; /* the library was loaded into a running Python: recording begins when evprof_start() is called */

static void set_hooks(void)
{
	uint64_t begin_ns = budget_clock();

	if (!late && install_in_thread())
		calibrate_soon();
	if (!late)
		requests_begin();
	budget_charge(begin_ns);
}

void bootstrap_begin(void)
{
	if (!late || !python_is_held())
		return;
	late = false;
	set_hooks();
	install_in_others(true);
	sampling_begin();
	memory_stack_begin();
	if (!python.PySys_AddAuditHook)
		requests_look();
}

static int pending_call(void *data)
{
	(void)data;
	set_hooks();
	if (late)
		return 0;
	sampling_begin();
	memory_stack_begin();
	return 0;
}

static int on_audit(const char *event, struct object *arguments, void *data);

static int have_python_call(void)
{
	return python_call_at_start(on_audit, pending_call);
}

/* Python has just freed its entry of evprof's audit hook, at its end, and has no audit hooks any more. */
static int hook_is_gone(void)
{
	ended = true;
	return have_python_call();
}

/*
 * The last audit event of this runtime: Python frees its list of audit hooks, evprof's included. The hook is then set
 * again, in case the program starts Python once more (Py_Initialize). The next audit event belongs to the new runtime.
 */
static void runtime_ends(void *data)
{
	python.over = true; /* a little earlier than `ended` */
	hook_compat_share_audits();
	budget_finish();
	install_runtime_ends();
	sampler_forget();
	hooks_memory_expect_audit_entry((const void *)on_audit, data, hook_is_gone);
}

/*
 * Forgets all objects, thread states and interpreters of the earlier runtime. Types and C functions that are no objects
 * remain.
 */
static void runtime_begins_again(void)
{
	ended = python.over = false;
	life_begin_again();
	python_forget_interpreters();
	greenlets_forget();
	install_runtime_begins();
	requests_begin_again();
}

/*
 * object.__getattr__, sys._getframe: logging and warnings raise several for each message; builtins.id: copy and pickle,
 * for each object (hook_compat_of_audits()). They ask for nothing.
 */
static bool is_frequent(const char *event)
{
	if (event[0] == 'o')
		return event[1] == 'b';
	if (event[0] == 'b')
		return true;
	return event[0] == 's' && event[1] == 'y' && event[2] == 's' && event[3] == '.' && event[4] == '_';
}

static void before_import(struct object *arguments)
{
	if (first)
		hook_compat_of_audits((const void *)on_audit);
	if (!install_has_begun())
		return;
	if (python.PyTuple_GetItem)
		greenlets_note_import(python.PyTuple_GetItem(arguments, 0), python.PyTuple_GetItem(arguments, 1));
	hook_compat_look();
}

static int on_audit(const char *event, struct object *arguments, void *data)
{
	if (unlikely(late))
		return 0;
	if (unlikely(ended))
		runtime_begins_again();
	if (unlikely(thread_self.hooked_state != python.current_thread_state()))
		set_hooks();
	requests_look();
	hooks_frame_look();
	budget_note_audit();
	if (is_frequent(event))
		return 0;
	sampling_begin();
	memory_stack_begin();
	sampled_names_look();
	if (event[0] == 'c' && !strcmp(event, "cpython._PySys_ClearAuditHooks"))
		runtime_ends(data);
	if (event[0] == 's' && !strcmp(event, "sys.setprofile"))
		install_profile_changes();
	if (event[0] == 's' && !strcmp(event, "sys.settrace"))
		install_trace_changes();
	if (event[0] == 's' && !strcmp(event, "sys.excepthook"))
		process_note_uncaught();
	if (event[0] == 's' && !strcmp(event, "sys.addaudithook"))
		hook_compat_share_audits();
	if (event[0] == 'i' && !strcmp(event, "import"))
		before_import(arguments);
	if (event[0] == 'c' && !strcmp(event, "cpython.PyInterpreterState_Clear"))
		install_interpreter_ends();
	if (event[0] == 'o' && (!strcmp(event, "os.fork") || !strcmp(event, "os.forkpty"))) {
		bootstrap_forking = 1;
		sampled_names_before_fork();
	}
	return 0;
}

/* The program calls exit() or returns from main(). Unlike a destructor, this gets the status, but not from musl. */
#ifdef __GLIBC__
static void program_exits(int status, void *data)
{
	(void)data;
	life_finish(status);
}
#else
static void program_exits(void)
{
	life_finish(LIFE_STATUS_UNKNOWN);
}

#define on_exit(function, data) atexit(function)
#endif

/* Python is in the process and is to be recorded: makes it call evprof. */
static void wait_for_start(void)
{
	config_read(true);
	filter_read(!config.session[0] || config.session_first == getpid());
	if (config.session[0] && !config.children && config.session_first != getpid())
		return;
	late = constructs && python.PyGILState_GetThisThreadState();
	first = constructs && !late;
	log_line_late |= late;
	config.program_only &= !late; /* evprof_start() says when recording begins */
	clock_init();
	if (config.events & EVENT_MALLOC)
		interpose_malloc_begin();
	on_exit(program_exits, NULL);
	if (process_init() < 0) {
		log_line(LOG_ERROR, "no memory to record with; nothing is recorded");
		return;
	}
	if (hooks_memory_make_audit_entry(have_python_call))
		log_line(LOG_WARNING, "Python %s refuses evprof's start; nothing is recorded", python_version());
}

/* Whether the library is ready to record: it is if it was loaded into a Python that it knows. */
static bool is_prepared(void)
{
	if (!process && python.found) { /* the environment kept it from preparing: EVPROF=0 */
		constructs = true;
		wait_for_start();
		constructs = false;
	}
	return python.found && process;
}

static bool buried; /* the program's allocators stand over those of an earlier recording */

static const void *own_symbol(void)
{
	return elf_symbol_within((const void *)own_symbol, "evprof_active");
}

/* Another installation's library in this process: the first in load order records, for each of them the same. */
static const void *library_before(void)
{
	const void *found = elf_symbol("evprof_active", NULL);

	return found != own_symbol() ? found : NULL;
}

static bool stands_down(void)
{
	static bool said;
	const void *before = library_before();
	Dl_info info;

	if (before && config.enabled && !said && dladdr(before, &info) && info.dli_fname)
		log_line(LOG_WARNING, "two evprof libraries are loaded: %s records this process, %s does not",
			 info.dli_fname, library_path);
	said |= before != NULL;
	return before;
}

static uint32_t status_now(void)
{
	return process ? atomic_load(&process->status) : PROCESS_UNJOINED;
}

/* The hooks come off, and recording may begin again. */
static void remove_hooks(void)
{
	late = true;
	requests_end();
	buried |= !install_remove();
}

/* No collector took the process: it is as if nothing had been tried. */
static void undo_attach(void)
{
	remove_hooks();
	session.id[0] = 0;
	if (status_now() == PROCESS_OFF)
		atomic_store(&process->status, PROCESS_UNJOINED);
}

const char *bootstrap_attach(const char *settings)
{
	if (status_now() != PROCESS_UNJOINED && !late)
		return "this process is recorded already: see evprof status, evprof start and evprof snapshot";
	if (!config_use(settings))
		return "the settings are too long";
	if (library_before())
		return "another evprof has its library in this process: use that one";
	if (!is_prepared())
		return "this Python cannot be recorded: its version or its build is not known";
	if (!late)
		return "the library was loaded with the program, which it is set not to record";
	if (buried)
		return "the program put allocators over those of the last recording (tracemalloc); restart it";
	config_read(true);
	filter_read(true);
	config.program_only = false;
	if (config.events & EVENT_MALLOC)
		interpose_malloc_begin();
	bootstrap_begin();
	if (status_now() == PROCESS_JOINED || status_now() == PROCESS_STOPPED)
		return NULL;
	undo_attach();
	return "no collector took this process: its stderr has the reason";
}

const char *bootstrap_detach(void)
{
	if (status_now() != PROCESS_JOINED && status_now() != PROCESS_STOPPED)
		return "this process is not recorded";
	switch_stop();
	remove_hooks();
	return life_leave() ? NULL : "no memory to leave the collector with";
}

void bootstrap_look(void)
{
	static atomic_flag looks = ATOMIC_FLAG_INIT;
	static uint64_t loads;
	int saved_errno = errno, cancel_state;

	if (atomic_flag_test_and_set(&looks)) /* another thread */
		return;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	if (!python.found && elf_symbols_changed(&loads) && python_is_here()) {
		config_read(false); /* log level and switch; complaints only if Python is recorded */
		if (!stands_down() && python_find() && config.enabled)
			wait_for_start();
	}
	pthread_setcancelstate(cancel_state, NULL);
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
static void log_no_python(void)
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
	uint64_t begin_ns = budget_clock();
	int saved_errno = errno;

	if (on && !strcmp(on, "0"))
		return;
	find_library_path();
	make_preload_absolute();
	constructs = true;
	bootstrap_look();
	constructs = false;
	if (!python.found)
		log_no_python();
	budget_charge(begin_ns);
	errno = saved_errno;
}
