/*
 * greenlets.c - the trace function of the greenlet module, set once in each thread that runs Python.
 *
 * greenlet calls it after each switch, in the greenlet that resumes: earlier events of the thread belong to the
 * greenlet that stopped. The module has no other way to report a switch. Python's own hooks see the C call of switch(),
 * but not if C code calls it, as gevent does.
 *
 * A thread has one trace function. evprof's calls the program's, which it has as its self; gettrace() and settrace()
 * show the program only its own. Their PyMethodDef is redirected to the functions here, which call the module's, so
 * this also covers code that has imported them already. If the PyMethodDef cannot be written, or is not as expected,
 * the program sees evprof's function, and removes it by setting one of its own.
 *
 * The module exists some events after the audit event that announces its import, and its library, without a further
 * audit event. From then on each call of a thread searches for it on the slow path until it is found.
 */
#include "hooks/greenlets.h"

#include <string.h>

#include "base/config.h"
#include "definitions/define.h"
#include "hooks/hooks.h"
#include "life/greenlet_stacks.h"
#include "life/life.h"
#include "python/python.h"
#include "ring/process.h"
#include "ring/writer.h"

/*
 * Calls at which the module is looked for: of a library that is about to be loaded; of an import that may fail, as many
 * packages try to import greenlet. Each is on the slow path, which takes a microsecond.
 */
#define LOOKS_OF_LIBRARY 100000
#define LOOKS_OF_IMPORT 500

static bool here;
static unsigned looks_left;

#define METH_VARARGS 1

typedef struct object *(*function_call)(struct object *self, struct object *arguments);

/* The module's own functions; the first two are wrapped. */
static function_call own_gettrace, own_settrace, own_getcurrent;

static void record_switch(const void *target, const void *origin)
{
	struct writer *writer = writer_reserve(WIRE_SWITCH);

	if (!writer)
		return;
	writer_put_extra(writer, wire_head(WIRE_SWITCH, 0), (uintptr_t)target, (uintptr_t)origin);
	greenlet_stacks_switch(writer, target, origin);
}

static void take_off(struct object *program);

/* The trace function. self: the program's trace function, or NULL. */
static struct object *on_switch(struct object *self, struct object *arguments)
{
	struct object *pair = python.PyTuple_GetItem(arguments, 1), *result;
	struct object *origin = pair ? python.PyTuple_GetItem(pair, 0) : NULL;
	struct object *target = origin ? python.PyTuple_GetItem(pair, 1) : NULL;

	python.PyErr_Clear();
	if (target)
		record_switch(target, origin);
	if (unlikely(process_records_nothing()))
		take_off(self);
	if (self) {
		result = python.PyObject_Call(self, arguments, NULL);
	} else {
		python.Py_IncRef(python.none);
		result = python.none;
	}
	hooks_frame_switched();
	if (!result) {
		/* greenlet removes a trace function that raised: evprof's here. It is set again at the next event. */
		thread_self.greenlets = false;
		thread_self.raised_in = target;
		writer_set_room(thread_self.writer, 0, 0);
	}
	return result;
}

static struct python_function switched_function = {"evprof_switched", on_switch, METH_VARARGS, NULL};

static bool is_ours(struct object *function)
{
	return python_type(function) == python.c_function_type &&
	       python_object_field(function, PYTHON_C_FUNCTION_METHOD) == &switched_function;
}

/* Converts a trace function into what the program sees of it. Takes a reference and returns one. */
static struct object *without_ours(struct object *function)
{
	struct object *program;

	if (!function || !is_ours(function))
		return function;
	program = python_object_field(function, PYTHON_C_FUNCTION_SELF);
	if (!program)
		program = python.none;
	python.Py_IncRef(program);
	python.Py_DecRef(function);
	return program;
}

/*
 * Sets evprof's function in front of the program's, which may be None. Returns the previous one, or NULL with an
 * exception.
 */
static struct object *set_ours(struct object *module, struct object *program)
{
	struct object *ours, *arguments = NULL, *before = NULL;

	thread_self.nesting++;
	ours = python.PyCFunction_NewEx(&switched_function, program == python.none ? NULL : program, NULL);
	if (ours)
		arguments = python.PyTuple_Pack(1, ours);
	if (arguments) {
		before = own_settrace(module, arguments);
		python.Py_DecRef(arguments);
	}
	python.Py_DecRef(ours);
	thread_self.nesting--;
	return before;
}

static struct object *gettrace(struct object *module, struct object *arguments)
{
	return without_ours(own_gettrace(module, arguments));
}

static struct object *settrace(struct object *module, struct object *arguments)
{
	struct object *program = python.PyTuple_GetItem(arguments, 0);
	bool one = program && !python.PyTuple_GetItem(arguments, 1);

	python.PyErr_Clear();
	if (!one || !thread_self.greenlets)
		return without_ours(own_settrace(module, arguments));
	return without_ours(set_ours(module, program));
}

/* Before 1.0 the package itself is the C module. */
static const char *const modules[] = {"greenlet._greenlet", "greenlet"};
#define MODULES (sizeof(modules) / sizeof(modules[0]))

static bool is_module(const char *name)
{
	for (size_t i = 0; i < MODULES; i++)
		if (!strcmp(name, modules[i]))
			return true;
	return false;
}

/* The module that has settrace(), a new reference; NULL before it exists. */
static struct object *find_module(void)
{
	for (size_t i = 0; i < MODULES; i++) {
		struct object *module = python_module(modules[i]);

		if (module && python_succeeds(python.PyObject_GetAttrString(module, "settrace")))
			return module;
		python.Py_DecRef(module);
	}
	return NULL;
}

/*
 * Nothing is recorded: the thread gets the program's trace function back. The caller has a reference to evprof's, and
 * so to the program's.
 */
static void take_off(struct object *program)
{
	struct object *module = own_settrace ? find_module() : NULL, *arguments;

	thread_self.nesting++;
	arguments = module ? python.PyTuple_Pack(1, program ? program : python.none) : NULL;
	if (arguments)
		thread_self.greenlets = !python_succeeds(own_settrace(module, arguments));
	python.Py_DecRef(arguments);
	python.Py_DecRef(module);
	thread_self.nesting--;
}

/* The definition of a module's function, borrowed from the module; NULL if it is not as expected. */
static struct python_function *definition_of(struct object *module, const char *name, int flags)
{
	struct object *function = python.PyObject_GetAttrString(module, name);
	struct python_function *definition = NULL;

	python.PyErr_Clear();
	if (!function)
		return NULL;
	if (python_type(function) == python.c_function_type)
		definition = python_object_field(function, PYTHON_C_FUNCTION_METHOD);
	python.Py_DecRef(function);
	return definition && definition->flags == flags && !strcmp(definition->name, name) ? definition : NULL;
}

static bool redirect(const struct python_function *definition, function_call ours)
{
	return python_redirect((const struct python_method *)definition, (void *)ours);
}

static bool find_own(struct object *module)
{
	struct python_function *get = definition_of(module, "gettrace", METH_NOARGS);
	struct python_function *set = definition_of(module, "settrace", METH_VARARGS);
	struct python_function *current = definition_of(module, "getcurrent", METH_NOARGS);

	if (!get || !set || !current)
		return false;
	own_getcurrent = current->call;
	own_gettrace = get->call;
	own_settrace = set->call;
	if (redirect(get, gettrace) && !redirect(set, settrace))
		redirect(get, own_gettrace);
	return true;
}

/* Sets evprof's function through the public settrace(), for modules whose functions are not as expected. */
static struct object *replace_by_ours(struct object *module)
{
	struct object *ours = python.PyCFunction_NewEx(&switched_function, NULL, NULL), *before = NULL;

	if (ours) {
		before = python.PyObject_CallMethod(module, "settrace", "O", ours);
		python.Py_DecRef(ours);
	}
	return before;
}

static struct object *chain_trace(struct object *module)
{
	struct object *program = without_ours(own_gettrace(module, NULL)), *before = NULL;

	if (program) {
		before = set_ours(module, program);
		python.Py_DecRef(program);
	}
	return before;
}

static bool set_trace(void)
{
	struct object *module, *before;

	if (!python.PyCFunction_NewEx || !python.PyTuple_GetItem || !python.PyTuple_Pack || !python.PyObject_Call)
		return false;
	module = find_module();
	if (!module)
		return false;
	before = own_settrace || find_own(module) ? chain_trace(module) : replace_by_ours(module);
	python.Py_DecRef(module);
	return python_succeeds(before);
}

/*
 * Records the switch after an exception of a trace function ended the greenlet in which it was raised: that switch had
 * no trace function.
 */
static void record_missed(void)
{
	const void *origin = thread_self.raised_in;
	struct object *target = origin ? own_getcurrent(NULL, NULL) : NULL;

	thread_self.raised_in = NULL;
	python.PyErr_Clear();
	if (target && target != origin)
		record_switch(target, origin);
	python.Py_DecRef(target);
}

/* Starts recording this thread's switches, if the module exists. Cheap if they are recorded already. GIL held. */
static void watch(void)
{
	struct definitions_guard guard;
	bool first = !here;

	if (thread_self.greenlets || thread_self.nesting)
		return;
	definitions_enter(&guard);
	python_lock();
	if (set_trace())
		thread_self.greenlets = here = true;
	else if (!here && (!looks_left || !--looks_left)) /* 0: another thread's was the last one */
		refill_before_call = NULL;
	python_unlock();
	if (thread_self.greenlets)
		record_missed();
	definitions_leave(&guard);
	if (first && here)
		process_look_again();
}

void greenlets_forget(void)
{
	refill_before_call = NULL;
	here = thread_self.greenlets = false;
	looks_left = 0;
	thread_self.raised_in = NULL;
}

void greenlets_remove(void)
{
	struct object *module = thread_self.greenlets && own_settrace ? find_module() : NULL, *function;

	if (module) {
		function = own_gettrace(module, NULL);
		if (function && is_ours(function))
			take_off(python_object_field(function, PYTHON_C_FUNCTION_SELF));
		python_succeeds(function);
		python.Py_DecRef(module);
	}
	greenlets_forget();
}

/* Has the calls of all threads look for the module, that often at least. */
static void expect(unsigned looks)
{
	if (looks_left < looks)
		looks_left = looks;
	if (refill_before_call || !(config.events & (EVENT_CALL | EVENT_C_CALL)))
		return;
	refill_before_call = watch;
	writer_set_room(thread_self.writer, 0, 0);
}

void greenlets_note_import(struct object *name, struct object *path)
{
	const char *text = name && path && python.PyUnicode_AsUTF8 ? python.PyUnicode_AsUTF8(name) : NULL;

	if (text && is_module(text))
		expect(path == python.none ? LOOKS_OF_IMPORT : LOOKS_OF_LIBRARY);
	else if (!text)
		python.PyErr_Clear(); /* sys.audit() takes any arguments */
}

void greenlets_look(void)
{
	struct definitions_guard guard;
	struct object *module;

	definitions_enter(&guard);
	module = python_module("greenlet");
	if (module)
		expect(LOOKS_OF_LIBRARY);
	python.Py_DecRef(module);
	python.PyErr_Clear();
	definitions_leave(&guard);
}
