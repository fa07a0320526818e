/*
 * greenlets.c - the trace function of the greenlet module, one for each thread that runs Python.
 *
 * greenlet calls it after each switch, in the greenlet that goes on: whatever came before in the thread belongs to the one
 * that stopped. The module has no other way to tell; what Python's own hooks see of a switch (the C call of switch())
 * is missing where it is called by C code, as gevent does. A program that sets a trace function of its own gets ours as
 * the one before, and as a rule calls it.
 *
 * The module is there some time after the audit event that announces its import, with no event of its own. From then on
 * each call of the thread looks for it, on the slow path, until it is found.
 */
#include "greenlets.h"

#include <string.h>

#include "config.h"
#include "process.h"
#include "python.h"
#include "writer.h"

#define LOOKS_MAX 100000 /* the import has failed, or never comes to an end */

bool greenlets_expected;
static bool here;
static unsigned looks;

static struct object *switched(struct object *self, struct object *arguments)
{
	struct object *pair = python.PyTuple_GetItem(arguments, 1), *origin, *target;
	struct writer *writer;

	(void)self;
	origin = pair ? python.PyTuple_GetItem(pair, 0) : NULL;
	target = origin ? python.PyTuple_GetItem(pair, 1) : NULL;
	python.PyErr_Clear();
	writer = target ? writer_reserve(WIRE_SWITCH) : NULL;
	if (writer)
		writer_put_extra(writer, wire_head(WIRE_SWITCH, 0), (uintptr_t)target, (uintptr_t)origin);
	python.Py_IncRef(python.none);
	return python.none;
}

static struct python_function switched_function = {"evprof_switched", switched, 1 /* METH_VARARGS */, NULL};

/* Borrowed: what has settrace() now; NULL while it is not there. Before 1.0 the package is the C module itself. */
static struct object *find_module(void)
{
	static const char *const names[] = {"greenlet._greenlet", "greenlet"};
	struct object *modules = python.PySys_GetObject("modules"), *module, *function;

	for (size_t i = 0; modules && i < sizeof(names) / sizeof(names[0]); i++) {
		module = python.PyDict_GetItemString(modules, names[i]);
		function = module ? python.PyObject_GetAttrString(module, "settrace") : NULL;
		python.PyErr_Clear();
		if (!function)
			continue;
		python.Py_DecRef(function);
		return module;
	}
	return NULL;
}

static bool set_trace(void)
{
	struct object *module = find_module(), *function, *before = NULL;

	if (!module || !python.PyCFunction_NewEx || !python.PyTuple_GetItem)
		return false;
	function = python.PyCFunction_NewEx(&switched_function, NULL, NULL);
	if (function)
		before = python.PyObject_CallMethod(module, "settrace", "O", function);
	if (before)
		python.Py_DecRef(before);
	if (function)
		python.Py_DecRef(function);
	python.PyErr_Clear();
	return before != NULL;
}

void greenlets_watch(void)
{
	struct object *type, *value, *traceback;
	bool first = !here;

	if (thread_self.greenlets || thread_self.nesting)
		return;
	thread_self.nesting++;
	python.PyErr_Fetch(&type, &value, &traceback);
	if (set_trace())
		thread_self.greenlets = here = true;
	else if (!here && ++looks >= LOOKS_MAX)
		greenlets_expected = false;
	python.PyErr_Restore(type, value, traceback);
	thread_self.nesting--;
	if (first && here)
		process_look_again();
}

void greenlets_expect(struct object *name)
{
	const char *text = name && python.PyUnicode_AsUTF8 ? python.PyUnicode_AsUTF8(name) : NULL;

	if (!text)
		python.PyErr_Clear();
	if (!text || greenlets_expected || strcmp(text, "greenlet") != 0 ||
	    !(config.events & (EVENT_CALL | EVENT_C_CALL)))
		return;
	greenlets_expected = true;
	writer_set_room(thread_self.writer, 0, 0);
}
