/*
 * sampled.c - see sampled.h.
 *
 * Runs with the GIL held, or attached to Python where there is none. No code of the program runs here.
 */
#include "hooks/sampled.h"

#include "base/config.h"
#include "definitions/define.h"
#include "definitions/thread_names.h"
#include "life/life.h"
#include "life/sampler.h"
#include "python/python.h"
#include "python/sampled_layout.h"

#include <errno.h>

static void learn_present_name(struct object *thread)
{
	struct object *name = python_own_attribute(thread, "_name");

	if (!name)
		return;
	thread_names_define_new(thread, name);
	python.Py_DecRef(name);
}

/* Where calls are hooked, those of two functions of threading.py provide the names. */
static bool names_are_looked_for(void)
{
	return python.found && !(config.events & EVENT_CALL) && !thread_self.entered && !thread_self.nesting;
}

static bool is_text(struct object *object, const char *wanted)
{
	static const void *text_type;

	text_type = text_type ? text_type : python_symbol("PyUnicode_Type");
	return python_type(object) == text_type && python.PyUnicode_CompareWithASCIIString &&
	       !python.PyUnicode_CompareWithASCIIString(object, wanted);
}

/* Whether Thread.start() is the running function. */
static bool starts_thread(void)
{
	struct object *frame = python.PyEval_GetFrame(), *globals = frame ? python.PyEval_GetGlobals() : NULL;
	struct object *module = globals ? python_item(globals, "__name__") : NULL;
	const void *code = module ? python_frame_code(python_inner_frame(frame)) : NULL;
	bool starts = code && is_text(module, "threading") && is_text(python_field(code, python.code_name), "start");

	python.Py_DecRef(module);
	return starts;
}

void sampled_names_created(pthread_t created)
{
	struct definitions_guard guard;
	struct object *thread, *name;
	uint32_t tid;

	if (!names_are_looked_for() || !python_is_held() || !sampled_layout_thread_id((const void *)created, &tid) ||
	    !life_recording())
		return;
	definitions_enter(&guard);
	thread = starts_thread() ? python_argument(0, "self") : NULL;
	name = thread ? python_own_attribute(thread, "_name") : NULL;
	if (name) {
		thread_names_define(tid, name);
		python.Py_DecRef(name);
	}
	python.Py_DecRef(thread);
	python.PyErr_Clear();
	definitions_leave(&guard);
}

typedef struct object *(*function_call)(struct object *, struct object *const *, size_t, struct object *);

static function_call call_function; /* the vectorcall function of all Python functions */

/* Wraps the setter of Thread.name. */
static struct object *set_name(struct object *function, struct object *const *arguments, size_t count,
			       struct object *names)
{
	struct object *result = call_function(function, arguments, count, names);
	struct definitions_guard guard;

	if (!result || (count & ~((size_t)1 << 63)) != 2 || names || !names_are_looked_for() || !life_recording())
		return result;
	definitions_enter(&guard);
	learn_present_name(arguments[0]);
	python.PyErr_Clear();
	definitions_leave(&guard);
	return result;
}

/* Replaces the function pointer by which Python calls the setter. */
static void watch_setter(struct object *property)
{
	struct object *setter = python_attribute(property, "fset");
	ssize_t offset = (ssize_t)python_object_field(python.function_type, PYTHON_TYPE_VECTORCALL);

	if (setter && python_type(setter) == python.function_type && offset > 0) {
		function_call *call = (function_call *)((char *)setter + offset);

		if (*call != set_name) {
			call_function = *call;
			__atomic_store_n(call, set_name, __ATOMIC_RELEASE);
		}
	}
	python.Py_DecRef(setter);
}

/* An attribute of the threading module: a new reference, or NULL. */
static struct object *of_threading(const char *name)
{
	struct object *module = python_module("threading");
	struct object *value = module ? python_own_attribute(module, name) : NULL;

	python.Py_DecRef(module);
	return value;
}

static bool watch_names(void)
{
	struct object *main = of_threading("_main_thread"), *type = main ? of_threading("Thread") : NULL;
	struct object *property = NULL;

	if (type && python_type(type) == python.type_type)
		property = python_attribute(type, "name");
	if (property) {
		watch_setter(property);
		python.Py_DecRef(property);
		learn_present_name(main);
	}
	python.Py_DecRef(type);
	python.Py_DecRef(main);
	return property != NULL;
}

void sampled_names_look(void)
{
	static bool watched;
	struct definitions_guard guard;

	if (watched || !names_are_looked_for() || !python_has(PYTHON_NATIVE_IDS) || !life_recording())
		return;
	definitions_enter(&guard);
	watched = watch_names();
	python.PyErr_Clear();
	definitions_leave(&guard);
}

void sampled_names_before_fork(void)
{
	struct definitions_guard guard;
	struct object *threads, *thread = NULL, *name;

	if (!names_are_looked_for())
		return;
	definitions_enter(&guard);
	threads = of_threading("_active");
	if (threads && python_type(threads) == python_symbol("PyDict_Type"))
		thread = python.PyObject_CallMethod(threads, "get", "k", (unsigned long)pthread_self());
	name = thread ? python_own_attribute(thread, "_name") : NULL;
	if (name) {
		thread_names_remember(name);
		python.Py_DecRef(name);
	}
	python.Py_DecRef(thread);
	python.Py_DecRef(threads);
	python.PyErr_Clear();
	definitions_leave(&guard);
}

void sampling_begin(void)
{
	int saved_errno;

	if (!(config.events & EVENT_SAMPLE) || thread_self.entered || !sampler_wants_layout())
		return;
	saved_errno = errno;
	thread_self.entered = 1; /* reading a frame raises audit events, which come back here */
	thread_self.nesting++;
	python_lock();
	if (life_recording() && sampler_wants_layout() &&
	    (sampled_layout_known || sampled_layout_find("nothing is sampled")))
		sampler_publish();
	python_unlock();
	thread_self.nesting--;
	thread_self.entered = 0;
	errno = saved_errno;
}
