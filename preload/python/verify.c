/*
 * verify.c - compares the layouts with what the interpreter's functions return, and watches code objects die.
 */
#include <errno.h>
#include <string.h>

#include "base/log_line.h"
#include "python/python.h"

static size_t code_member(const char *name, enum python_member_type kind)
{
	return python_member(python.code_type, name, kind);
}

void python_find_members(void)
{
	python.code_file = code_member("co_filename", PYTHON_MEMBER_OBJECT);
	python.code_name = code_member("co_name", PYTHON_MEMBER_OBJECT);
	python.code_qualified_name = code_member("co_qualname", PYTHON_MEMBER_OBJECT);
	python.code_line = code_member("co_firstlineno", PYTHON_MEMBER_INT);
	python.code_flags = code_member("co_flags", PYTHON_MEMBER_INT);
	python.code_arguments = code_member("co_argcount", PYTHON_MEMBER_INT);
}

typedef void (*destructor)(struct object *object);

static destructor dealloc_code;
static void (*code_dies)(const struct object *code);
static const struct object *checked_code; /* whether its destructor runs is being checked */

static void dealloc_known_code(struct object *code)
{
	code_dies(code);
	dealloc_code(code);
}

static void dealloc_sample(struct object *code)
{
	if (code == checked_code)
		checked_code = NULL;
	dealloc_code(code);
}

static void set_dealloc(destructor dealloc)
{
	__atomic_store_n((destructor *)((char *)python.code_type + PYTHON_TYPE_DEALLOC + python.object_shift), dealloc,
			 __ATOMIC_RELEASE);
}

void python_unverify(void)
{
	if (dealloc_code &&
	    python_object_field(python.code_type, PYTHON_TYPE_DEALLOC) == (const void *)dealloc_known_code)
		set_dealloc(dealloc_code);
}

#define SLOT_DEALLOC 52 /* typeslots.h */

/* PyObject.ob_ref_local, .ob_ref_shared: free-threaded builds. */
#define REFERENCES_LOCAL 12
#define REFERENCES_SHARED 16

/*
 * Free-threaded builds do not count some references to code, so only the garbage collector finds code that has none
 * left, and when to collect is up to the program. The one reference to the sample is ours: the sample is destroyed here
 * as the collector would destroy it.
 */
static bool watch_codes_of_collector(struct object *sample)
{
	if ((destructor)python.PyType_GetSlot((struct object *)python.code_type, SLOT_DEALLOC) != dealloc_code)
		return false;
	*(uint32_t *)((char *)sample + REFERENCES_LOCAL) = 0;
	*(ssize_t *)((char *)sample + REFERENCES_SHARED) = 0;
	dealloc_code(sample);
	set_dealloc(dealloc_known_code);
	return true;
}

/*
 * Replaces the destructor of code objects, as there is no other way to see one die without storing data in it. co_extra
 * has a free function, but its memory is the program's, and from 3.14 on code with co_extra is not shared between
 * interpreters. Watchers of code objects (3.12) are few, and per interpreter. The type is one for all interpreters.
 */
static bool watch_codes(struct object *sample, void (*dies)(const struct object *code))
{
	dealloc_code = (destructor)python_object_field(python.code_type, PYTHON_TYPE_DEALLOC);
	code_dies = dies;
	if (python.free_threaded)
		return watch_codes_of_collector(sample);
	checked_code = sample;
	set_dealloc(dealloc_sample);
	python.Py_DecRef(sample);
	set_dealloc(checked_code ? dealloc_code : dealloc_known_code);
	return !checked_code;
}

/* The offset of the instructions: they follow the fixed part, whose size the type has. 0: they are not there. */
static size_t find_instructions(struct object *code)
{
	struct object *bytes = python.PyObject_GetAttrString(code, "_co_code_adaptive");
	size_t offset = python_basic_size(python.code_type);
	char *expected, found[64];
	ssize_t size;

	if (!bytes || python.PyBytes_AsStringAndSize(bytes, &expected, &size) < 0 || size > (ssize_t)sizeof(found) ||
	    !python_peek((const char *)code + offset, found, (size_t)size) ||
	    memcmp(found, expected, (size_t)size) != 0)
		offset = 0;
	python.Py_DecRef(bytes);
	python.PyErr_Clear();
	return offset;
}

/*
 * Checks the layout with dict.fromkeys, a C function in every version and at any time: at Python's end, when the events
 * may be changed once more, modules have none. NULL: it is as expected; else what is not.
 */
static const char *unknown_of_c_functions(void)
{
	struct object *dict = python_symbol("PyDict_Type");
	struct object *function = dict ? python.PyObject_GetAttrString(dict, "fromkeys") : NULL;
	struct python_method *method;
	const char *unknown = NULL;
	char name[9] = "";

	if (!function || python_type(function) != python.c_function_type) {
		unknown = "C functions (dict.fromkeys is none)";
	} else {
		method = python_object_field(function, PYTHON_C_FUNCTION_METHOD);
		if (!python_peek(method, &method, sizeof(method)) || !python_peek(method, name, sizeof(name)))
			unknown = "C functions (they cannot be read)";
		else if (memcmp(name, "fromkeys", 9) != 0)
			unknown = "C functions";
	}
	if (function)
		python.Py_DecRef(function);
	else
		python.PyErr_Clear();
	return unknown;
}

static bool codes_are_as_expected(void (*dies)(const struct object *code))
{
	struct object *sample = python.PyCode_NewEmpty("evprof", "evprof", 1);

	python.PyErr_Clear();
	if (!sample || python_type(sample) != python.code_type)
		return false;
	python_find_members();
	if (python.monitoring)
		python.code_instructions = find_instructions(sample);
	return watch_codes(sample, dies);
}

int python_verify(void (*dies)(const struct object *code), const char *else_what)
{
	const char *unknown = codes_are_as_expected(dies) ? unknown_of_c_functions() : "its objects";

	if (!unknown)
		return 0;
	log_line(LOG_ERROR, "Python %s lays out %s in a way unknown to evprof; %s", python_version(), unknown,
		 else_what);
	return -ENOTSUP;
}
