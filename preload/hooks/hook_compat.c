/*
 * hook_compat.c - wraps the builtins with which other tools use the hooks that evprof uses.
 *
 *   sys.setprofile, sys._setprofileallthreads   until 3.11 a thread has one profile function: evprof's is restored in
 *                                               front of the program's at once. In all versions the program's does not
 *                                               get the ends of C calls whose starts it did not get.
 *   cProfile's enable() and disable()           until 3.11, likewise
 *   sys.settrace                                to distinguish it from Python's removal of a trace function that
 *                                               raised, and to remove evprof's before
 *   sys.monitoring's functions with a tool id   the id that the program names is the program's: evprof takes another
 *   sys.monitoring.register_callback            exceptions of the program's callbacks are detected
 *   id, and the attribute f_code of frames      raise no audit events that nobody but evprof would get
 *   _tracemalloc.stop                           if tracemalloc started before evprof (PYTHONTRACEMALLOC), stopping it
 *                                               removes evprof's allocators with its own
 *
 * All wrappers have one signature for every calling convention: the arguments of each convention fit four registers,
 * and a function ignores registers that its convention does not use.
 */
#include "hooks/hook_compat.h"

#include <stdatomic.h>
#include <string.h>

#include "definitions/definitions.h"
#include "hooks/greenlets.h"
#include "hooks/hooks.h"
#include "ring/process.h"
#include "ring/writer.h"

/* PyThreadState: c_profilefunc, c_tracefunc, c_profileobj. */
#define OBJECT_AFTER_PROFILE 16

/* Owners of methods, as named in definitions. */
#define LSPROF "_lsprof.Profiler"
#define TRACEMALLOC "_tracemalloc"

typedef struct object *(*c_function)(struct object *self, void *a, void *b, void *c);

/* State of the program's profile function of this thread. */
struct reported {
	uint32_t setting; /* the value of the global at that time */
	uint32_t open;	  /* C calls reported to it that have not ended */
};

static __thread struct reported reported __attribute__((tls_model("initial-exec")));
static _Atomic uint32_t setting;       /* counts the functions set for all threads at once */
static python_profile program_profile; /* of sysmodule.c, calls the program's object; the same for all threads */

static c_function real_setprofile, real_setprofile_all, real_settrace, real_enable, real_disable, real_stop,
    real_create_dynamic, real_statistics, real_id, real_f_code;

#define WRAPPED_MOST 24

/* What is redirected now. Guarded by the process's lock. */
static struct {
	const struct python_method *method;
	c_function *real;
} wrapped[WRAPPED_MOST];
static size_t wrapped_count;

/*
 * Redirects a method, if there is one, to a wrapper, once; *real is the original. Several interpreters may do so at the
 * same time.
 */
static void wrap_method(const struct python_method *method, c_function wrapper, c_function *real)
{
	process_lock();
	if (method && !*real && wrapped_count < WRAPPED_MOST) {
		*real = (c_function)method->function;
		if (python_redirect(method, (void *)wrapper)) {
			wrapped[wrapped_count].method = method;
			wrapped[wrapped_count++].real = real;
		} else {
			*real = NULL;
		}
	}
	process_unlock();
}

void hook_compat_end(void)
{
	process_lock();
	definitions_meet = NULL;
	while (wrapped_count) {
		wrapped_count--;
		if (python_redirect(wrapped[wrapped_count].method, (void *)*wrapped[wrapped_count].real))
			*wrapped[wrapped_count].real = NULL;
	}
	process_unlock();
}

static struct python_method *method_of(struct object *function)
{
	if (!function)
		return NULL;
	if (python_type(function) == python.c_function_type)
		return python_object_field(function, PYTHON_C_FUNCTION_METHOD);
	if (python_type(function) == python.method_descriptor_type)
		return python_object_field(function, PYTHON_DESCRIPTOR_METHOD);
	return NULL;
}

/* ---- profile functions ------------------------------------------------------------------------------------------ */

static struct object *profile_object(struct thread_state *state)
{
	return python_field(state, python.layout.state_profile + OBJECT_AFTER_PROFILE);
}

/*
 * 3.12+: between the interpreter and the program's profile function. With evprof's hook set, the interpreter reports
 * the return of a C function even if nothing was set when it was called: of sys.setprofile() itself, first of all. Such
 * returns are left out.
 */
static int call_program_profile(struct object *self, struct object *frame, int what, struct object *argument)
{
	uint32_t now = atomic_load_explicit(&setting, memory_order_relaxed);

	if (reported.setting != now)
		reported = (struct reported){.setting = now};
	if (what == PYTHON_TRACE_C_CALL)
		reported.open++;
	if ((what == PYTHON_TRACE_C_RETURN || what == PYTHON_TRACE_C_EXCEPTION) && reported.open-- == 0) {
		reported.open = 0;
		return 0;
	}
	return program_profile(self, frame, what, argument);
}

static void chain_profile(python_profile *place)
{
	if (*place != call_program_profile) {
		program_profile = *place;
		*place = call_program_profile;
	}
}

/* Calls the real function. The audit event that it raises is ignored. */
static struct object *call_unaudited(c_function real, struct object *self, void *a, void *b, void *c)
{
	uint32_t entered = thread_self.entered;
	bool traced = hooks_frame_traces();
	struct object *result;

	thread_self.entered = 1;
	result = real(self, a, b, c);
	thread_self.entered = entered;
	hooks_frame_tracing_changed(traced);
	return result;
}

/* a: the program's function, or None. */
static struct object *setprofile(struct object *self, void *a, void *b, void *c)
{
	struct thread_state *state = python.current_thread_state();
	struct object *before = profile_object(state);
	bool within = thread_self.entered; /* nested: in a destructor of what was set before */
	/* From 3.12 on the interpreter reports the end of this call if any tool receives CALL events. */
	bool reports_end = python.monitoring && !before && hooks_monitoring_others_have_calls();
	struct object *result = call_unaudited(real_setprofile, self, a, b, c);

	if (!before)
		reported.open = reports_end;
	if (!python.monitoring)
		hooks_profile_put_back(within);
	else if (result && profile_object(state) == a) /* not None; and the layout is the known one */
		chain_profile(hooks_profile_field(state));
	return result;
}

/* Wrapped to distinguish it from what Python does with a trace function that raised, and for hooks_line.c. */
static struct object *settrace(struct object *self, void *a, void *b, void *c)
{
	hooks_line_take_off();
	return call_unaudited(real_settrace, self, a, b, c);
}

/* Replaces the program's function in every thread. Other threads run meanwhile, so only Python can exchange theirs. */
static void chain_profile_all(struct object *object)
{
	struct thread_state *state = python.current_thread_state();

	if (profile_object(state) != object)
		return;
	chain_profile(hooks_profile_field(state));
	thread_self.entered++; /* the audit event is ignored */
	python.PyEval_SetProfileAllThreads(call_program_profile, object);
	thread_self.entered--;
}

/* 3.12+: sets a profile function for all threads of the interpreter. */
static struct object *setprofile_all(struct object *self, void *a, void *b, void *c)
{
	struct object *result = call_unaudited(real_setprofile_all, self, a, b, c);
	struct thread_state *state;

	atomic_fetch_add(&setting, 1);
	if (python.free_threaded) {
		chain_profile_all(a);
		return result;
	}
	state = python.PyInterpreterState_ThreadHead(python.current_interpreter());
	for (; state; state = python.PyThreadState_Next(state))
		if (profile_object(state) == a)
			chain_profile(hooks_profile_field(state));
	return result;
}

static struct object *call_and_put_back(c_function real, struct object *self, void *a, void *b, void *c)
{
	bool within = thread_self.entered;
	struct object *result = call_unaudited(real, self, a, b, c);

	hooks_profile_put_back(within);
	return result;
}

static struct object *enable(struct object *self, void *a, void *b, void *c)
{
	return call_and_put_back(real_enable, self, a, b, c);
}

static struct object *disable(struct object *self, void *a, void *b, void *c)
{
	return call_and_put_back(real_disable, self, a, b, c);
}

static struct python_method *method_named(struct object *object, const char *name)
{
	struct object *function = object ? python.PyObject_GetAttrString(object, name) : NULL;
	struct python_method *method = method_of(function);

	python_succeeds(function); /* its owner keeps it */
	return method;
}

/* ---- sys.monitoring ---------------------------------------------------------------------------------------------- */

/* Yields a tool id to the program; ignores calls by evprof itself. Python reports an id that is no int. */
static void release_tool(struct object *id)
{
	if (thread_self.nesting || python_type(id) != python.int_type)
		return;
	thread_self.nesting++;
	hooks_monitoring_release_tool((int)python.PyLong_AsLong(id));
	python.PyErr_Clear();
	thread_self.nesting--;
}

static void acquire_tool(void)
{
	if (thread_self.nesting)
		return;
	thread_self.nesting++;
	hooks_monitoring_acquire_tool();
	thread_self.nesting--;
}

/* A function of one argument gets it; a function of more gets an array. */
#define OF_ONE(name)                                                                                                   \
	static c_function real_##name;                                                                                 \
	static struct object *name(struct object *self, void *a, void *b, void *c)                                     \
	{                                                                                                              \
		release_tool(a);                                                                                       \
		return real_##name(self, a, b, c);                                                                     \
	}
#define OF_MORE(name)                                                                                                  \
	static c_function real_##name;                                                                                 \
	static struct object *name(struct object *self, void *a, void *b, void *c)                                     \
	{                                                                                                              \
		if ((ssize_t)b > 0)                                                                                    \
			release_tool(*(struct object **)a);                                                            \
		return real_##name(self, a, b, c);                                                                     \
	}

OF_ONE(get_tool)
OF_ONE(get_events)
OF_ONE(clear_tool_id)
OF_MORE(use_tool_id)
OF_MORE(get_local_events)
OF_MORE(set_local_events)

static c_function real_register_callback;

/* tool_id, event, func */
static struct object *register_callback(struct object *self, void *a, void *b, void *c)
{
	struct object *const *arguments = a, *result;
	struct object *guarded[3] = {0};

	if ((ssize_t)b > 0)
		release_tool(arguments[0]);
	if ((ssize_t)b != 3 || thread_self.nesting)
		return real_register_callback(self, a, b, c);
	if (arguments[2] != python.none)
		guarded[2] = hooks_monitoring_guarded(arguments[2]);
	if (guarded[2]) {
		guarded[0] = arguments[0];
		guarded[1] = arguments[1];
	}
	result = real_register_callback(self, guarded[2] ? (void *)guarded : a, b, c);
	if (guarded[2])
		python.Py_DecRef(guarded[2]);
	return result ? hooks_monitoring_unguarded(result) : NULL;
}

static c_function real_set_events;
static const struct python_method *set_events_method;

/* tool_id, event_set. If they are no ints, Python has raised an error. */
static struct object *set_events(struct object *self, void *a, void *b, void *c)
{
	struct object *const *arguments = a, *result;
	bool had_calls, has_calls;

	if ((ssize_t)b != 2 || thread_self.nesting)
		return real_set_events(self, a, b, c);
	release_tool(arguments[0]);
	had_calls = hooks_monitoring_has_calls(arguments[0]);
	result = real_set_events(self, a, b, c);
	has_calls = result && hooks_monitoring_has_calls(arguments[0]);
	if (has_calls && !had_calls) {
		thread_self.nesting++;
		hooks_monitoring_mute((int)python.PyLong_AsLong(arguments[0]), set_events_method);
		thread_self.nesting--;
	}
	return result;
}

static c_function real_free_tool_id;

static struct object *free_tool_id(struct object *self, void *a, void *b, void *c)
{
	struct object *result;

	release_tool(a);
	result = real_free_tool_id(self, a, b, c);
	if (result)
		acquire_tool();
	return result;
}

static c_function real_all_events;

/* Returns which tool receives which events; evprof's are switched off for the moment. */
static struct object *all_events(struct object *self, void *a, void *b, void *c)
{
	struct object *result;

	if (thread_self.nesting)
		return real_all_events(self, a, b, c);
	thread_self.nesting++;
	hooks_monitoring_enable(false);
	result = real_all_events(self, a, b, c);
	if (result)
		hooks_monitoring_enable(true);
	thread_self.nesting--;
	return result;
}

static const struct {
	const char *name;
	c_function wrapper, *real;
} of_tools[] = {
#define OF_TOOL(name)                                                                                                  \
	{                                                                                                              \
#name, name, &real_##name                                                                              \
	}
    OF_TOOL(get_tool),	       OF_TOOL(get_events),	   OF_TOOL(clear_tool_id),
    OF_TOOL(use_tool_id),      OF_TOOL(register_callback), OF_TOOL(set_events),
    OF_TOOL(get_local_events), OF_TOOL(set_local_events),  OF_TOOL(free_tool_id),
};

void hook_compat_wrap_monitoring(struct object *monitoring)
{
	wrap_method(method_named(monitoring, "_all_events"), all_events, &real_all_events);
	for (size_t i = 0; i < sizeof(of_tools) / sizeof(of_tools[0]); i++) {
		struct python_method *method = method_named(monitoring, of_tools[i].name);

		wrap_method(method, of_tools[i].wrapper, of_tools[i].real);
		if (method && of_tools[i].wrapper == set_events)
			set_events_method = method;
	}
}

/* ---- sys._debugmallocstats --------------------------------------------------------------------------------------- */

/* Steps aside, because the function prints nothing about Python's allocator if another one is on top. */
static struct object *statistics(struct object *self, void *a, void *b, void *c)
{
	bool aside = hooks_memory_step_aside();
	struct object *result = real_statistics(self, a, b, c);

	if (aside)
		hooks_memory_step_back();
	return result;
}

void hook_compat_of_memory(void)
{
	wrap_method(method_of(python.PySys_GetObject("_debugmallocstats")), statistics, &real_statistics);
}

/* ---- tracemalloc ------------------------------------------------------------------------------------------------- */

static struct object *stop(struct object *self, void *a, void *b, void *c)
{
	bool on_top = hooks_memory_on_top();
	struct object *result = real_stop(self, a, b, c);

	if (on_top && !hooks_memory_on_top())
		hooks_memory_set();
	return result;
}

/* ---- imports ----------------------------------------------------------------------------------------------------- */

/* Until 3.7: an extension module was loaded. The package that it belongs to is there already. */
static struct object *create_dynamic(struct object *self, void *a, void *b, void *c)
{
	struct object *result = real_create_dynamic(self, a, b, c);

	greenlets_look();
	return result;
}

void hook_compat_meet_import(const struct python_method *method)
{
	if (!python.PySys_AddAuditHook && !strcmp(method->name, "create_dynamic"))
		wrap_method(method, create_dynamic, &real_create_dynamic);
}

/* ---- audit events ------------------------------------------------------------------------------------------------ */

/*
 * With any audit hook Python makes a tuple of the arguments of each event, which takes 80 ns. Programs that copy or
 * pickle objects call id() by the million; logging reads f_code four times for a message. evprof has no use for these.
 */
static const struct audit_entry *audit_entry; /* of evprof's hook */
static _Atomic bool audits_shared;

/* PySys_AddAuditHook() appends to the list, and reports that to the other hooks only if Python runs. */
static bool audits_are_ours(void)
{
	return !atomic_load_explicit(&audits_shared, memory_order_relaxed) &&
	       !__atomic_load_n(&audit_entry->next, __ATOMIC_RELAXED);
}

static struct object *id_unaudited(struct object *self, void *a, void *b, void *c)
{
	return audits_are_ours() ? python.PyLong_FromVoidPtr(a) : real_id(self, a, b, c);
}

static struct object *f_code_unaudited(struct object *self, void *a, void *b, void *c)
{
	return audits_are_ours() ? python.PyFrame_GetCode(self) : real_f_code(self, a, b, c);
}

/* From 3.11 on. A PyGetSetDef begins with its name and its getter, as a PyMethodDef does with its function. */
static const struct python_method *f_code_of_frames(void)
{
	struct object *frame = python.PyEval_GetFrame(), *name, *found;
	const struct python_method *getter = NULL;

	if (!frame || !python.PyFrame_GetCode)
		return NULL;
	name = python.PyUnicode_InternFromString("f_code");
	found = name ? python_type_lookup(python_type(frame), name) : NULL;
	if (found && !strcmp(python_object_field(python_type(found), PYTHON_TYPE_NAME), "getset_descriptor"))
		getter = python_object_field(found, PYTHON_DESCRIPTOR_METHOD);
	python.Py_DecRef(name);
	python.Py_DecRef(found); /* its type keeps it */
	return getter;
}

void hook_compat_of_audits(const void *hook)
{
	const struct audit_entry *entry = hooks_memory_audit_entry();
	struct object *builtins;

	if (real_id || !python.PyLong_FromVoidPtr || !entry || entry->hook != hook || !python.PyEval_GetFrame() ||
	    atomic_load_explicit(&audits_shared, memory_order_relaxed))
		return;
	audit_entry = entry;
	builtins = python_module("builtins");
	wrap_method(method_named(builtins, "id"), id_unaudited, &real_id);
	wrap_method(f_code_of_frames(), f_code_unaudited, &real_f_code);
	python.Py_DecRef(builtins);
	python.PyErr_Clear();
}

void hook_compat_share_audits(void)
{
	atomic_store(&audits_shared, true);
}

/* ---- which and when ---------------------------------------------------------------------------------------------- */

/* owner: its class ("" if it has none) or its module. */
static void wrap_if_ours(const struct python_method *method, const char *owner)
{
	if (!python.monitoring && python.layout.state_profile && !strcmp(owner, LSPROF)) {
		if (!strcmp(method->name, "enable"))
			wrap_method(method, enable, &real_enable);
		else if (!strcmp(method->name, "disable"))
			wrap_method(method, disable, &real_disable);
	}
	if (!strcmp(owner, TRACEMALLOC) && !strcmp(method->name, "stop"))
		wrap_method(method, stop, &real_stop);
	if (!strcmp(owner, "_imp"))
		hook_compat_meet_import(method);
}

void hook_compat_begin(void)
{
	definitions_meet = wrap_if_ours;
	if (!python.layout.state_profile)
		return;
	wrap_method(method_of(python.PySys_GetObject("setprofile")), setprofile, &real_setprofile);
	wrap_method(method_of(python.PySys_GetObject("settrace")), settrace, &real_settrace);
	if (python.PyInterpreterState_ThreadHead && python.PyThreadState_Next && python.current_interpreter &&
	    (python.PyEval_SetProfileAllThreads || !python.free_threaded))
		wrap_method(method_of(python.PySys_GetObject("_setprofileallthreads")), setprofile_all,
			    &real_setprofile_all);
}

/* Wraps functions of a module that is imported already. */
static void look_for(const char *module_name, const char *owner, const char *const names[2])
{
	struct object *module = python_module(module_name), *object = module;

	if (!module)
		return;
	if (owner)
		object = python.PyObject_GetAttrString(module, owner);
	for (size_t i = 0; object && i < 2 && names[i]; i++) {
		struct python_method *method = method_named(object, names[i]);

		if (method)
			wrap_if_ours(method, owner ? LSPROF : TRACEMALLOC);
	}
	if (owner && object)
		python.Py_DecRef(object);
	python.Py_DecRef(module);
	python.PyErr_Clear();
}

void hook_compat_look(void)
{
	static const char *const of_profiler[2] = {"enable", "disable"}, *const of_tracemalloc[2] = {"stop"};

	if (!python.monitoring && !real_enable)
		look_for("_lsprof", "Profiler", of_profiler);
	if (!real_stop)
		look_for("_tracemalloc", NULL, of_tracemalloc);
}
