/*
 * objects.c - reads objects and types, and memory that may be unmapped.
 */
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "python/python.h"

/*
 * Whether an address is readable, where process_vm_readv() is refused (containers with a seccomp filter from before
 * kernel 4.8, emulators). rt_sigprocmask() reads the mask before it checks how to apply it. That argument is invalid
 * here, so the call changes nothing, and returns EFAULT or EINVAL depending on the address.
 */
static bool may_be_read(uintptr_t address)
{
	return syscall(SYS_rt_sigprocmask, ~0, address & ~(sizeof(uint64_t) - 1), NULL, sizeof(uint64_t)) < 0 &&
	       errno == EINVAL;
}

#define PEEK_PAGE_BYTES 4096 /* readability changes only at multiples of the smallest page */

static bool all_may_be_read(const void *address, size_t size)
{
	uintptr_t first = (uintptr_t)address, last = first + size - 1;

	for (uintptr_t at = first; at <= last; at = (at | (PEEK_PAGE_BYTES - 1)) + 1)
		if (!may_be_read(at))
			return false;
	return true;
}

static bool peek_by_hand(const void *address, void *out, size_t size)
{
	if (!all_may_be_read(address, size))
		return false;
	memcpy(out, address, size);
	return true;
}

#define PEEK_TRIES 4

/*
 * process_vm_readv() was seen to fail with EFAULT on a busy machine for memory that is there: the kernel pins the pages
 * that it reads. The other check brings them in. process_vm_writev() reads them as a load does, and pins those that it
 * writes, which are ours. A copy by hand instead would not survive another thread that unmaps them in between.
 */
bool python_peek(const void *address, void *out, size_t size)
{
	struct iovec to = {.iov_base = out, .iov_len = size}, from = {.iov_base = (void *)address, .iov_len = size};
	ssize_t copied = -1;

	for (int i = 0; i < PEEK_TRIES && copied != (ssize_t)size; i++) {
		copied = i % 2 ? process_vm_writev(getpid(), &from, 1, &to, 1, 0)
			       : process_vm_readv(getpid(), &to, 1, &from, 1, 0);
		if (copied < 0 && (errno == EPERM || errno == ENOSYS))
			return peek_by_hand(address, out, size);
		if (copied != (ssize_t)size && !all_may_be_read(address, size))
			return false;
	}
	return copied == (ssize_t)size;
}

bool python_redirect(const struct python_method *method, void *function)
{
	struct iovec from = {.iov_base = &function, .iov_len = sizeof(function)};
	struct iovec to = {.iov_base = (void *)&method->function, .iov_len = sizeof(function)};
	int saved_errno = errno;
	bool done = process_vm_writev(getpid(), &from, 1, &to, 1, 0) == (ssize_t)sizeof(function);

	errno = saved_errno;
	return done;
}

size_t python_member(const void *type, const char *name, enum python_member_type kind)
{
	const struct python_member *at = python_object_field(type, PYTHON_TYPE_MEMBERS);

	for (; at && at->name; at++)
		if (!strcmp(at->name, name))
			return at->type == (int)kind ? (size_t)at->offset : 0;
	return 0;
}

size_t python_basic_size(const void *type)
{
	return (size_t)python_object_field(type, PYTHON_TYPE_BASIC_SIZE);
}

void *python_dealloc(const struct object *object)
{
	return python_object_field(python_type(object), PYTHON_TYPE_DEALLOC);
}

/* Until 3.10 the instructions are a separate object. Both objects have variable size, stored after the type. */
uint64_t python_code_size(const struct object *code)
{
	const struct object *sized = python.layout.code_bytes ? python_field(code, python.layout.code_bytes) : code;
	unsigned unit = python.layout.code_bytes ? 1 : 2;

	return unit * (uint64_t)(uintptr_t)python_object_field(sized, PYTHON_SIZE);
}

bool python_succeeds(struct object *result)
{
	if (result)
		python.Py_DecRef(result);
	else
		python.PyErr_Clear();
	return result != NULL;
}

long python_take_long(struct object *number)
{
	long value = number ? python.PyLong_AsLong(number) : 0;

	python_succeeds(number);
	return value;
}

struct object *python_module(const char *name)
{
	struct object *modules = python.PySys_GetObject("modules");

	return modules ? python_item(modules, name) : NULL;
}

struct object *python_attribute(struct object *object, const char *name)
{
	struct object *key = python.PyUnicode_InternFromString(name), *value = NULL;

	if (!key)
		return NULL;
	value = python.PyObject_GetAttr(object, key);
	python.Py_DecRef(key);
	return value;
}

struct object *python_own_attribute(struct object *object, const char *name)
{
	struct object *dictionary = python.PyObject_GenericGetDict(object, NULL), *value;

	if (!dictionary) {
		python.PyErr_Clear();
		return NULL;
	}
	value = python_item(dictionary, name);
	python.Py_DecRef(dictionary);
	return value;
}

struct object *python_item(struct object *dictionary, const char *name)
{
	struct object *value = NULL;

	if (python.free_threaded) {
		if (python.PyDict_GetItemStringRef(dictionary, name, &value) < 0)
			python.PyErr_Clear();
		return value;
	}
	value = python.PyDict_GetItemString(dictionary, name);
	python.Py_IncRef(value);
	return value;
}

struct object *python_type_lookup(const void *type, struct object *name)
{
	struct object *found;

	if (python.free_threaded)
		return python._PyType_LookupRef((struct object *)type, name);
	found = python._PyType_Lookup ? python._PyType_Lookup((struct object *)type, name) : NULL;
	python.Py_IncRef(found);
	return found;
}
