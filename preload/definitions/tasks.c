/*
 * tasks.c - see tasks.h.
 */
#include "definitions/tasks.h"

#include <string.h>

#include "base/filter.h"
#include "definitions/define.h"
#include "definitions/definitions.h"
#include "definitions/names.h"
#include "python/python.h"
#include "ring/process.h"

/* code.h: CO_GENERATOR; CO_COROUTINE, CO_ITERABLE_COROUTINE, CO_ASYNC_GENERATOR */
enum { CODE_IS_PLAIN_GENERATOR = 0x20, CODE_CAN_AWAIT = 0x80 | 0x100 | 0x200 };

/* Offsets of the name and the coroutine in asyncio's Task, a C type. 0: not searched yet, 1: not found. */
static size_t task_name, task_coroutine;

/* Calls a C method without arguments. Makes no argument tuple, which might start the garbage collector. */
static struct object *call_method(const struct python_function *method, struct object *self)
{
	return method->flags == METH_NOARGS ? method->call(self, NULL) : NULL;
}

/*
 * The offset of the field that holds what a C getter returns. The call also creates the name, which Task creates
 * lazily.
 */
static size_t find_task_field(struct object *type, struct object *task, const char *getter)
{
	struct object *key = python.PyUnicode_InternFromString(getter), *method = NULL, *value = NULL;
	size_t found = 1;

	if (key)
		method = python_type_lookup(type, key);
	if (method && python_type(method) == python.method_descriptor_type)
		value = call_method(python_object_field(method, PYTHON_DESCRIPTOR_METHOD), task);
	for (size_t at = PYTHON_OBJECT_BYTES; value && at + sizeof(void *) <= python_basic_size(type); at += 8)
		if (python_field(task, at) == value)
			found = at;
	python.PyErr_Clear();
	python.Py_DecRef(value);
	python.Py_DecRef(method);
	python.Py_DecRef(key);
	return found;
}

/* Whether the frame is that of the task's coroutine. From 3.11 on the frame is part of the coroutine object. */
static bool runs_in(const struct object *task, const void *frame)
{
	struct object *coroutine = task_coroutine > 1 ? python_field(task, task_coroutine) : NULL, *its;

	if (!coroutine || python_type(coroutine) != python.coroutine_type)
		return false;
	if (python_has(PYTHON_OWN_FRAMES))
		return (uintptr_t)frame - (uintptr_t)coroutine < 256;
	its = python_attribute(coroutine, "cr_frame");
	python.Py_DecRef(its);
	return its == frame;
}

static bool is_task(const struct object *type, const struct object *task)
{
	return python_type(type) == python.type_type && python.PyType_IsSubtype(python_type(task), type);
}

/* The mark of a task's name. 0 for a default name, which is "Task-" and a number, or the number alone (no str). */
static uint32_t name_of_task(const struct object *task)
{
	static const void *text_type;
	struct object *value = task_name > 1 ? python_field(task, task_name) : NULL;
	struct string name;
	uint32_t id = 0;

	text_type = text_type ? text_type : python_symbol("PyUnicode_Type");
	if (!value || python_type(value) != text_type)
		return 0;
	name = string_of(value);
	if (name.length &&
	    (strncmp(name.bytes, "Task-", 5) != 0 || name.bytes[5 + strspn(name.bytes + 5, "0123456789")]))
		id = definitions_mark(name.bytes);
	python.Py_DecRef(name.holder);
	return id <= WIRE_TASK_NAME_MAX ? id : 0;
}

/* The current task, as asyncio reports it: a new reference, or NULL. Until 3.11 each running loop may have one. */
static struct object *running_task(struct object *module, const struct object *type, const void *frame)
{
	struct object *current = python_own_attribute(module, "current_task"), *tasks, *loop, *task = NULL;
	ssize_t at = 0;

	if (current) {
		if (python_type(current) == python.c_function_type)
			task = python.PyObject_CallMethod(current, "__call__", NULL);
		python.Py_DecRef(current);
		return task;
	}
	tasks = python_own_attribute(module, "_current_tasks");
	while (tasks && python.PyDict_Next(tasks, &at, &loop, &task)) {
		if (is_task(type, task) && (!task_coroutine || runs_in(task, frame)))
			break;
		task = NULL;
	}
	python.Py_IncRef(task);
	python.Py_DecRef(tasks);
	return task;
}

static uint32_t look_for_name(struct object *module, const void *frame)
{
	struct object *type = python_own_attribute(module, "Task"),
		      *task = type ? running_task(module, type, frame) : NULL;
	uint32_t id = 0;

	if (task && is_task(type, task)) {
		if (!task_coroutine) {
			task_name = find_task_field(type, task, "get_name");
			task_coroutine = find_task_field(type, task, "get_coro");
		}
		id = runs_in(task, frame) ? name_of_task(task) : 0;
	}
	python.Py_DecRef(task);
	python.Py_DecRef(type);
	return id;
}

/* An entry from C is passed over like a generator that a coroutine awaits. */
static int flags_of(const void *frame)
{
	const void *code = python_frame_code(frame);

	return code ? python_int(code, python.code_flags) : CODE_IS_PLAIN_GENERATOR;
}

static bool is_hidden(const void *frame)
{
	const void *code = python_frame_code(frame);

	return code && ids_find(&process->ids, code) & DEFINITION_HIDDEN;
}

static __attribute__((noinline)) const void *find_task_frame(const void *frame, const void *back)
{
	for (; back; back = python_frame_back(back)) {
		int flags = flags_of(back);

		if (flags & CODE_CAN_AWAIT) {
			if (!filter_hides || !is_hidden(back))
				return NULL;
			frame = back;
		} else if (!(flags & CODE_IS_PLAIN_GENERATOR)) {
			break;
		}
	}
	return frame;
}

const void *definitions_task_frame(const void *frame, const void *back)
{
	if (likely(back && !filter_hides && flags_of(back) & CODE_CAN_AWAIT))
		return NULL;
	return find_task_frame(frame, back);
}

/* Until 3.11 the current state is that of whichever thread has the GIL. */
static bool is_attached(void)
{
	const struct thread_state *state = python.current_thread_state ? python.current_thread_state() : NULL;

	return state && (python.monitoring || state == python.PyGILState_GetThisThreadState());
}

static const void *hidden_task_frame(void)
{
	const void *frame = python_knows_frames() ? python_running_frame() : NULL;

	for (; frame; frame = python_frame_back(frame)) {
		if (python_frame_code(frame) && !is_hidden(frame))
			return NULL;
		if (flags_of(frame) & CODE_CAN_AWAIT)
			return definitions_task_frame(frame, python_frame_back(frame));
	}
	return NULL;
}

uint64_t definitions_hidden_task(void)
{
	struct definitions_guard guard;
	const void *frame;

	if (!filter_hides || !process->base || !is_attached())
		return 0;
	definitions_enter(&guard);
	frame = hidden_task_frame();
	definitions_leave(&guard);
	return wire_task_word((uintptr_t)frame, 0);
}

uint64_t definitions_task(unsigned kind, const void *frame)
{
	struct object *module;
	uint32_t name = 0;
	struct definitions_guard guard;

	if (kind != WIRE_CALL || !python_has(PYTHON_NAMES_TASKS) || python.free_threaded || !python.PyDict_Next ||
	    !python.PyType_IsSubtype)
		return wire_task_word((uintptr_t)frame, 0);
	definitions_enter(&guard);
	module = python_module("_asyncio");
	if (module) {
		name = look_for_name(module, frame);
		python.Py_DecRef(module);
	}
	python.PyErr_Clear();
	definitions_leave(&guard);
	return wire_task_word((uintptr_t)frame, name);
}
