/*
 * thread_names.c - see thread_names.h.
 *
 * Runs with the GIL held, or attached to Python where there is none. No code of the program runs here.
 */
#include "definitions/thread_names.h"

#include <string.h>
#include <unistd.h>

#include "definitions/define.h"
#include "python/python.h"
#include "ring/writer.h"

/* The calling thread's name, for the child that it may fork. Longer names are cut. */
static __thread char own_name[128] __attribute__((tls_model("initial-exec")));

/* The calling thread's kernel id, without a system call that the program itself might not make. */
static uint32_t own_tid(void)
{
	return thread_self.writer->slot ? thread_self.writer->slot->tid : (uint32_t)getpid();
}

static void remember_own_name(const struct string *name)
{
	size_t length = name->length < sizeof(own_name) ? name->length : sizeof(own_name) - 1;

	while (length < name->length && length > 0 && ((unsigned char)name->bytes[length] & 0xc0) == 0x80)
		length--;
	memcpy(own_name, name->bytes, length);
	own_name[length] = 0;
}

void thread_names_remember(struct object *name)
{
	struct string string = string_of(name);

	remember_own_name(&string);
	python.Py_DecRef(string.holder);
}

void thread_names_define(uint32_t tid, struct object *name)
{
	struct string string = string_of(name);

	define_named(WIRE_DEFINE_THREAD_NAME, tid, string);
	if (tid == own_tid())
		remember_own_name(&string);
	python.Py_DecRef(string.holder);
}

void thread_names_define_inherited(void)
{
	if (own_name[0])
		define_named(WIRE_DEFINE_THREAD_NAME, (uint32_t)getpid(), string_c(own_name));
}

/* Reads the name in Thread._bootstrap_inner(), in the new thread. */
static void learn_first_name(struct object *thread)
{
	struct object *name = python_own_attribute(thread, "_name");

	if (name && thread_self.writer->slot)
		thread_names_define(thread_self.writer->slot->tid, name);
	python.Py_DecRef(name);
}

void thread_names_define_new(struct object *thread, struct object *name)
{
	struct object *id = python_own_attribute(thread, "_native_id");
	long tid = id && python_type(id) == python.int_type ? python.PyLong_AsLong(id) : 0;

	python.Py_DecRef(id);
	if (tid > 0)
		thread_names_define((uint32_t)tid, name);
}

void thread_names_learn(bool first)
{
	struct object *thread = python_argument(0, "self"), *name = first ? NULL : python_argument(1, "name");

	if (thread && first)
		learn_first_name(thread);
	else if (thread && name)
		thread_names_define_new(thread, name);
	python.Py_DecRef(name);
	python.Py_DecRef(thread);
	python.PyErr_Clear();
}

void thread_names_define_present(struct object *modules)
{
	struct object *module = modules ? python_item(modules, "threading") : NULL, *key, *thread;
	struct object *active = module ? python_own_attribute(module, "_active") : NULL;
	ssize_t at = 0;

	while (active && python.PyDict_Next && python.PyDict_Next(active, &at, &key, &thread)) {
		struct object *name = python_own_attribute(thread, "_name");

		if (name) {
			thread_names_define_new(thread, name);
			python.Py_DecRef(name);
		}
	}
	if (active)
		python.Py_DecRef(active);
	if (module)
		python.Py_DecRef(module);
}
