/*
 * definitions.c - gives ids to code objects, C functions, exception types and marks, and writes their definitions.
 *
 * Runs inside hooks with the GIL held. That does not exclude other threads: there may be several GILs (one per
 * interpreter, from 3.13 on) or none (free-threaded builds). The process's lock therefore guards the shared state:
 * assigning an id and writing its definition. Code here never runs code of the program: it reads only attributes that
 * are plain C slots, never one that a class of the program can override, and creates no object that the garbage
 * collector tracks. thread_self.nesting keeps the little memory that it allocates out of the trace.
 */
#include "definitions/definitions.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/config.h"
#include "base/filter.h"
#include "base/lock.h"
#include "definitions/thread_names.h"
#include "hooks/hook_compat.h"

#define NAMES_PROBES 16 /* places in which a key may be */

#define CODE_COROUTINE_FLAGS (0x80 | 0x100 | 0x200) /* CO_ITERABLE_COROUTINE, too */

/* The calling thread's name, for the child that it may fork. Longer names are cut. */
static __thread char own_name[128] __attribute__((tls_model("initial-exec")));

void definitions_enter(struct definitions_guard *guard)
{
	guard->saved_errno = errno;
	thread_self.nesting++;
	python.PyErr_Fetch(&guard->type, &guard->value, &guard->traceback);
}

void definitions_leave(struct definitions_guard *guard)
{
	python.PyErr_Restore(guard->type, guard->value, guard->traceback);
	thread_self.nesting--;
	errno = guard->saved_errno;
}

/* A string of a definition, and the object that owns its bytes. */
struct string {
	const char *bytes;
	size_t length;
	struct object *holder;
};

static struct string string_of(struct object *text)
{
	struct string string = {.bytes = ""};
	ssize_t length;
	char *bytes;

	if (!text)
		goto none;
	string.holder = python.PyUnicode_AsUTF8String(text);
	if (!string.holder) { /* lone surrogates, which the faster function rejects */
		python.PyErr_Clear();
		string.holder = python.PyUnicode_AsEncodedString(text, "utf-8", "surrogatepass");
	}
	if (!string.holder || python.PyBytes_AsStringAndSize(string.holder, &bytes, &length) < 0)
		goto none;
	string.bytes = bytes;
	string.length = (size_t)length;
	return string;
none:
	python.PyErr_Clear();
	return string;
}

/* As string_of(), for a new reference; takes the reference. */
static struct string string_of_new(struct object *text)
{
	struct string string = string_of(text);

	if (text)
		python.Py_DecRef(text);
	return string;
}

static struct string string_c(const char *text)
{
	return (struct string){.bytes = text, .length = strlen(text)};
}

/* A string attribute of a code object. offset: of its field, or 0: look the attribute up by name. */
static struct string code_string(struct object *code, size_t offset, const char *name)
{
	struct object *value = offset ? python_field(code, offset) : python_attribute(code, name);
	struct string string = string_of(value);

	if (value && !offset)
		python.Py_DecRef(value);
	return string;
}

static int code_number(struct object *code, size_t offset, const char *name)
{
	struct object *value;
	long number;

	if (offset)
		return python_int(code, offset);
	value = python_attribute(code, name);
	number = value ? python.PyLong_AsLong(value) : 0;
	if (value)
		python.Py_DecRef(value);
	else
		python.PyErr_Clear();
	return (int)number;
}

static int count_arguments(struct object *code)
{
	return code_number(code, python.code_arguments, "co_argcount");
}

static void release(struct string strings[WIRE_DEFINITION_STRINGS])
{
	for (int i = 0; i < WIRE_DEFINITION_STRINGS; i++)
		if (strings[i].holder)
			python.Py_DecRef(strings[i].holder);
}

/* Includes the right to write: the sampler of a sampled process writes definitions, too. */
static int has_room(const void *size)
{
	if (!process->defines && !ring_definitions_take(process->header, RING_DEFINES_PROCESS))
		return 0;
	process->defines = ring_definitions_room(&process->layout, process->header) >= *(const uint64_t *)size;
	if (!process->defines)
		ring_definitions_give(process->header);
	return process->defines;
}

static bool wait_for_room(uint64_t size)
{
	if (has_room(&size) || process_wait_for(has_room, &size))
		return true;
	atomic_fetch_add(&process->header->lost_definitions, 1);
	return false;
}

static void cut_string(struct string *string, uint16_t *flags)
{
	if (string->length <= WIRE_STRING_MAX_BYTES)
		return;
	string->length = WIRE_STRING_MAX_BYTES;
	while (string->length && ((unsigned char)string->bytes[string->length] & 0xc0) == 0x80)
		string->length--;
	*flags |= WIRE_CUT;
}

/* Writes one definition. Lock held. Returns 0 or -EAGAIN. */
static int write_definition(struct wire_definition *record, struct string strings[WIRE_DEFINITION_STRINGS])
{
	const char *bytes[WIRE_DEFINITION_STRINGS];

	for (int i = 0; i < WIRE_DEFINITION_STRINGS; i++) {
		cut_string(&strings[i], &record->flags);
		record->length[i] = (uint32_t)strings[i].length;
		bytes[i] = strings[i].bytes;
	}
	record->size_bytes = wire_definition_bytes(record);
	if (!wait_for_room(record->size_bytes))
		return -EAGAIN;
	ring_define(&process->layout, process->base, record, bytes);
	process->defines = false;
	ring_definitions_give(process->header);
	return 0;
}

/* Assigns the next id of a kind to a definition. Lock held. Returns 0 if the definition could not be written. */
static uint32_t give_id(struct wire_definition *record, struct string strings[WIRE_DEFINITION_STRINGS], uint32_t *last)
{
	if (*last >= WIRE_ARG_MAX)
		return 0;
	record->id = *last + 1;
	if (write_definition(record, strings))
		return 0;
	return *last = record->id;
}

/*
 * The value of an address that another thread has given an id since the caller's lookup. 0: none, or the value is of
 * the other kind (code object or C function). The start and the end of a call must have the same id.
 */
static uint64_t given_meanwhile(const void *address, uint64_t flags)
{
	uint64_t value = ids_find(&process->ids, address), native = (uint64_t)CODE_CLOSER_NATIVE << 32;

	return (value & native) == (flags & native) ? value : 0;
}

/*
 * Assigns the next id, with these flags, to the object at an address. The id is written and stored under one lock: a
 * process that joins another collector in between (rejoin.c) keeps no stale id. Returns the stored value, or 0 if the
 * definition could not be written.
 */
static uint64_t define(struct wire_definition *record, struct string strings[WIRE_DEFINITION_STRINGS], uint32_t *last,
		       const void *address, uint64_t flags)
{
	uint64_t value;
	uint32_t id;

	process_lock();
	value = given_meanwhile(address, flags);
	id = value ? 0 : give_id(record, strings, last);
	if (id) {
		value = flags | id;
		ids_insert(&process->ids, address, value);
	}
	process_unlock();
	return value;
}

/* Stores an address as not recorded. It gets no id. */
static uint64_t hide(const void *address, uint64_t flags)
{
	ids_insert(&process->ids, address, flags | DEFINITION_HIDDEN);
	return flags | DEFINITION_HIDDEN;
}

static bool ends_with(const struct string *string, const char *end)
{
	size_t n = strlen(end);

	return string->length >= n && !memcmp(string->bytes + string->length - n, end, n);
}

static bool is(const struct string *string, const char *text)
{
	return string->length == strlen(text) && !memcmp(string->bytes, text, string->length);
}

/*
 * The functions of threading.py after which a thread may have a new name, see thread_names_learn(). In frozen programs
 * the file has no folder.
 */
static bool names_threads(struct object *code, const struct string strings[WIRE_DEFINITION_STRINGS])
{
	if (!ends_with(&strings[0], "/threading.py") && !is(&strings[0], "threading.py"))
		return false;
	return (is(&strings[1], "_bootstrap_inner") && count_arguments(code) == 1) ||
	       (is(&strings[1], "name") && count_arguments(code) == 2);
}

/* Matches the names of filter.h. strings[0] of a C function, which has no file, is its class. */
static bool matches(const struct string strings[WIRE_DEFINITION_STRINGS], bool native)
{
	static char texts[4][2 * 1024]; /* the lock is held; longer names are cut */
	const char *names[4] = {texts[0], texts[1], texts[2], texts[3]};
	const struct string *qualified = strings[2].length ? &strings[2] : &strings[1];
	const struct string *module = &strings[3];
	int class = native ? (int)strings[0].length : 0;

	snprintf(texts[0], sizeof(texts[0]), "%.*s", native ? 1 : (int)strings[0].length,
		 native ? "~" : strings[0].bytes);
	snprintf(texts[1], sizeof(texts[1]), "%.*s", (int)strings[1].length, strings[1].bytes);
	snprintf(texts[2], sizeof(texts[2]), "%.*s%s%.*s", class, class ? strings[0].bytes : "", class ? "." : "",
		 (int)qualified->length, qualified->bytes);
	snprintf(texts[3], sizeof(texts[3]), "%.*s%s%.1023s", (int)module->length, module->length ? module->bytes : "",
		 module->length ? "." : "", texts[2]);
	return filter_function(names, native);
}

static bool is_chosen(const struct string strings[WIRE_DEFINITION_STRINGS], bool native)
{
	bool chosen;

	if (!filter_any)
		return true;
	process_lock();
	chosen = matches(strings, native);
	process_unlock();
	return chosen;
}

static uint64_t generator_flags(int flags)
{
	uint64_t value = CODE_IS_GENERATOR, closer = 0;

	if (flags & CODE_COROUTINE_FLAGS && python_knows_frames())
		value |= CODE_IS_COROUTINE;
	if (!python.monitoring || value & CODE_IS_COROUTINE)
		closer = CODE_CLOSER_GENERATOR;
	return closer << 32 | value;
}

/* globals: of the frame that runs the code; borrowed, may be NULL. */
static uint64_t define_code(struct object *code, struct object *globals, bool entered)
{
	struct string strings[WIRE_DEFINITION_STRINGS] = {
	    code_string(code, python.code_file, "co_filename"),
	    code_string(code, python.code_name, "co_name"),
	    python.version >= 0x030b ? code_string(code, python.code_qualified_name, "co_qualname") : string_c(""),
	    string_of_new(globals ? python_item(globals, "__name__") : NULL),
	};
	int flags = code_number(code, python.code_flags, "co_flags");
	int line = code_number(code, python.code_line, "co_firstlineno");
	bool generator = flags & WIRE_GENERATOR_CO_FLAGS;
	struct wire_definition record = {.type = WIRE_DEFINE_CODE,
					 .flags = (generator ? WIRE_GENERATOR : 0) | (entered ? WIRE_ENTERED : 0),
					 .number = line < 0 ? 0 : (uint32_t)line,
					 .address = python_code_size(code)};
	uint64_t value = names_threads(code, strings) ? (uint64_t)CODE_CLOSER_SPECIAL << 32 : 0;

	if (is_chosen(strings, false))
		value = define(&record, strings, &process->next_code, code,
			       value | (generator ? generator_flags(flags) : 0));
	else
		value = hide(code, value | (uint64_t)CODE_CLOSER_HIDDEN << 32);
	release(strings);
	return value;
}

/* running: the code's frame is the current one. Of frames below only the code is read. */
static uint32_t code_slow(struct object *code, struct object *globals, bool running)
{
	uint64_t value = ids_find(&process->ids, code);
	bool known = value && !(value >> 32 & CODE_CLOSER_NATIVE);
	struct definitions_guard guard;

	/* Until 3.11 every resume of a generator comes here: return before the exception is saved. */
	if (known && !(running && value >> 32 & CODE_CLOSER_SPECIAL))
		return (uint32_t)value;
	definitions_enter(&guard);
	if (!known)
		value = define_code(code, globals, running && thread_self.untold);
	if (running && value >> 32 & CODE_CLOSER_SPECIAL)
		thread_names_learn(count_arguments(code) == 1);
	python.PyErr_Clear();
	definitions_leave(&guard);
	return (uint32_t)value;
}

uint64_t definitions_look_again(struct writer *writer, const struct object *code)
{
	writer->ids = ids_look(&process->ids);
	return ids_find(&process->ids, code);
}

uint32_t definitions_code(struct object *code)
{
	return code_slow(code, python.PyEval_GetGlobals(), true);
}

static bool may_hide(void)
{
	return filter_any && thread_self.writer->slot;
}

bool definitions_hides_code(struct object *code)
{
	return may_hide() && definitions_code(code) & DEFINITION_HIDDEN;
}

bool definitions_is_generator(struct object *code)
{
	if (python.code_flags)
		return python_int(code, python.code_flags) & WIRE_GENERATOR_CO_FLAGS;
	return thread_self.writer->slot && ids_find(&process->ids, code) & CODE_IS_GENERATOR;
}

void definitions_forget_code(const struct object *code)
{
	ids_remove(&process->ids, code);
}

static const char *type_name(const void *type)
{
	return python_object_field(type, PYTHON_TYPE_NAME);
}

/* The method_descriptor of a bound C method in its class, found by the same PyMethodDef; or NULL. A new reference. */
static struct object *descriptor_of(const struct python_method *method, const void *self)
{
	struct object *name = self ? python.PyUnicode_InternFromString(method->name) : NULL, *found;

	if (!name)
		return NULL;
	found = python_type_lookup(python_type(self), name);
	python.Py_DecRef(name);
	if (!found || python_type(found) == python.method_descriptor_type)
		return found;
	python.Py_DecRef(found);
	return NULL;
}

static struct string module_of(struct object *callable)
{
	struct object *module = python_object_field(callable, PYTHON_C_FUNCTION_MODULE);

	return string_of(module);
}

static bool throws(const struct python_method *method, const char *class)
{
	return (!strcmp(method->name, "throw") || !strcmp(method->name, "close")) &&
	       (strstr(class, "generator") || strstr(class, "coroutine"));
}

static uint64_t define_function(const struct python_method *method, struct object *callable)
{
	struct object *descriptor;
	struct string strings[WIRE_DEFINITION_STRINGS] = {string_c(""), string_c(method->name), string_c(""),
							  string_c("")};
	struct wire_definition record = {.type = WIRE_DEFINE_C_FUNCTION, .address = (uintptr_t)method->function};
	uint64_t value = (uint64_t)CODE_CLOSER_NATIVE << 32;

	if (python_type(callable) == python.method_descriptor_type) {
		descriptor = callable;
		python.Py_IncRef(descriptor);
	} else {
		descriptor = descriptor_of(method, python_object_field(callable, PYTHON_C_FUNCTION_SELF));
		strings[3] = module_of(callable);
	}
	if (descriptor) {
		strings[0] = string_c(type_name(python_object_field(descriptor, PYTHON_DESCRIPTOR_CLASS)));
		record.flags |= WIRE_METHOD;
	}
	hook_compat_meet(method, descriptor ? strings[0].bytes : strings[3].bytes);
	if (descriptor && throws(method, strings[0].bytes))
		value |= FUNCTION_THROWS;
	value = is_chosen(strings, true) ? define(&record, strings, &process->next_function, method, value)
					 : hide(method, value);
	release(strings);
	if (descriptor)
		python.Py_DecRef(descriptor);
	return value;
}

uint32_t definitions_function(const struct python_method *method, struct object *callable)
{
	uint64_t value = ids_find(&process->ids, method);
	struct definitions_guard guard;

	if (value)
		return (uint32_t)value;
	definitions_enter(&guard);
	value = define_function(method, callable);
	definitions_leave(&guard);
	return (uint32_t)value;
}

bool definitions_hides_function(const struct python_method *method, struct object *callable)
{
	return may_hide() && definitions_function(method, callable) & DEFINITION_HIDDEN;
}

/* A hash of an address and a name (FNV-1a). Never 0. */
static uint64_t key_of(const void *address, const char *name)
{
	uint64_t key = (uintptr_t)address ^ UINT64_C(0xcbf29ce484222325);

	for (; *name; name++)
		key = (key ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
	return key | 1;
}

static size_t name_place(uint64_t key, size_t probe)
{
	return (size_t)((key * UINT64_C(0x9e3779b97f4a7c15) >> (64 - NAMES_BITS)) + probe) & ((1u << NAMES_BITS) - 1);
}

/* The id of a key, or 0. Takes no lock: without a GIL, threads raise exceptions at the same time. */
static uint32_t recall(uint64_t key)
{
	for (size_t i = 0; i < NAMES_PROBES; i++) {
		struct name *name = &process->names.at[name_place(key, i)];
		uint32_t id;

		/* Acquire: pairs with the release in remember(). */
		if (atomic_load_explicit(&name->key, memory_order_acquire) != key)
			continue;
		id = atomic_load_explicit(&name->id, memory_order_acquire);
		/* If the key of the place has changed since, the id may belong to the other key. */
		if (atomic_load_explicit(&name->key, memory_order_relaxed) == key)
			return id;
	}
	return 0;
}

/* Stores the id of a key. If none of its places is free, it replaces the first one. */
static void remember(uint64_t key, uint32_t id)
{
	struct names *names = &process->names;
	size_t place = name_place(key, 0);

	lock_take(&names->lock);
	for (size_t i = NAMES_PROBES; i-- > 0;)
		if (!names->at[name_place(key, i)].key)
			place = name_place(key, i);
	atomic_store_explicit(&names->at[place].key, 0, memory_order_relaxed);
	/* Release: a reader that sees the id sees that the old key is gone. */
	atomic_store_explicit(&names->at[place].id, id, memory_order_release);
	atomic_store_explicit(&names->at[place].key, key, memory_order_release);
	lock_give(&names->lock);
}

/* As define(), for definitions that are found by a hash of their name. */
static uint32_t define_name(struct wire_definition *record, struct string strings[WIRE_DEFINITION_STRINGS],
			    uint32_t *last, uint64_t key)
{
	uint32_t id;

	process_lock();
	id = give_id(record, strings, last);
	if (id)
		remember(key, id);
	process_unlock();
	return id;
}

/* Reads an attribute through the type of types, because a metaclass of the program may override it. */
static struct string type_attribute(struct object *type, const char *name)
{
	struct object *key = python.PyUnicode_InternFromString(name), *value = NULL, *found = NULL;

	if (key && python.type_type)
		found = python_type_lookup(python.type_type, key);
	if (found) {
		value = python.PyObject_CallMethod(found, "__get__", "O", type);
		python.Py_DecRef(found);
	}
	if (key)
		python.Py_DecRef(key);
	return string_of_new(value);
}

uint32_t definitions_type(const void *type)
{
	/* The name is part of the key: a class may die and another get its address. */
	uint64_t key = key_of(type, type_name(type));
	uint32_t id = recall(key);
	struct definitions_guard guard;

	if (id)
		return id;
	definitions_enter(&guard);
	{
		struct object *object = (struct object *)type;
		struct string strings[WIRE_DEFINITION_STRINGS] = {string_c(""), type_attribute(object, "__name__"),
								  type_attribute(object, "__qualname__"),
								  type_attribute(object, "__module__")};
		struct wire_definition record = {.type = WIRE_DEFINE_TYPE};

		id = define_name(&record, strings, &process->next_type, key);
		release(strings);
	}
	definitions_leave(&guard);
	return id;
}

uint32_t definitions_mark(const char *name)
{
	struct string strings[WIRE_DEFINITION_STRINGS] = {string_c(""), string_c(name), string_c(""), string_c("")};
	struct wire_definition record = {.type = WIRE_DEFINE_MARK};
	uint64_t key = key_of(NULL, name);
	uint32_t id = recall(key);

	return id ? id : define_name(&record, strings, &process->next_mark, key);
}

/* --- names of tasks --- */

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
	if (value)
		python.Py_DecRef(value);
	if (method)
		python.Py_DecRef(method);
	if (key)
		python.Py_DecRef(key);
	return found;
}

/* Whether the frame is that of the task's coroutine. From 3.11 on the frame is part of the coroutine object. */
static bool runs_in(const struct object *task, const void *frame)
{
	struct object *coroutine = task_coroutine > 1 ? python_field(task, task_coroutine) : NULL, *its;

	if (!coroutine || python_type(coroutine) != python.coroutine_type)
		return false;
	if (python.version >= 0x030b)
		return (uintptr_t)frame - (uintptr_t)coroutine < 256;
	its = python_attribute(coroutine, "cr_frame");
	if (its)
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
	if (name.holder)
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
	if (task)
		python.Py_IncRef(task);
	if (tasks)
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
	if (task)
		python.Py_DecRef(task);
	if (type)
		python.Py_DecRef(type);
	return id;
}

uint64_t definitions_task(unsigned kind, const void *frame)
{
	struct object *modules, *module;
	uint32_t name = 0;
	struct definitions_guard guard;

	if (kind != WIRE_CALL || python.version < 0x0308 || python.free_threaded || !python.PyDict_Next ||
	    !python.PyType_IsSubtype)
		return wire_task_word((uintptr_t)frame, 0);
	definitions_enter(&guard);
	modules = python.PySys_GetObject("modules");
	module = modules ? python_item(modules, "_asyncio") : NULL;
	if (module) {
		name = look_for_name(module, frame);
		python.Py_DecRef(module);
	}
	python.PyErr_Clear();
	definitions_leave(&guard);
	return wire_task_word((uintptr_t)frame, name);
}

int definitions_write(struct wire_definition *record, const char *const strings[WIRE_DEFINITION_STRINGS])
{
	struct string own[WIRE_DEFINITION_STRINGS];

	for (int i = 0; i < WIRE_DEFINITION_STRINGS; i++)
		own[i] = string_c(strings[i]);
	return write_definition(record, own);
}

void definitions_calibration(const char *costs)
{
	struct string strings[WIRE_DEFINITION_STRINGS] = {string_c(""), string_c(costs), string_c(""), string_c("")};
	struct wire_definition record = {.type = WIRE_DEFINE_CALIBRATION, .id = 1};

	process_lock();
	write_definition(&record, strings);
	process_unlock();
}

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

void definitions_remember_name(struct object *name)
{
	struct string string = string_of(name);

	remember_own_name(&string);
	if (string.holder)
		python.Py_DecRef(string.holder);
}

void definitions_thread_name(uint32_t tid, struct object *name)
{
	struct string strings[WIRE_DEFINITION_STRINGS] = {string_c(""), string_of(name), string_c(""), string_c("")};
	struct wire_definition record = {.type = WIRE_DEFINE_THREAD_NAME, .id = tid};

	process_lock();
	write_definition(&record, strings);
	process_unlock();
	if (tid == own_tid())
		remember_own_name(&strings[1]);
	release(strings);
}

void definitions_inherited_name(void)
{
	struct string strings[WIRE_DEFINITION_STRINGS] = {string_c(""), string_c(own_name), string_c(""), string_c("")};
	struct wire_definition record = {.type = WIRE_DEFINE_THREAD_NAME, .id = (uint32_t)getpid()};

	if (!own_name[0])
		return;
	process_lock();
	write_definition(&record, strings);
	process_unlock();
}

/* The caller's frame: a new reference, NULL at the end of the stack. */
static struct object *frame_back(struct object *frame)
{
	struct object *back =
	    python.PyFrame_GetBack ? python.PyFrame_GetBack(frame) : python_attribute(frame, "f_back");

	if (back == python.none) {
		python.Py_DecRef(back);
		back = NULL;
	}
	return back;
}

/* As definitions_code(). Reads the names only of code that has no id yet. */
static uint32_t frame_value(struct object *frame)
{
	struct object *code =
	    python.PyFrame_GetCode ? python.PyFrame_GetCode(frame) : python_attribute(frame, "f_code");
	struct object *globals = NULL;
	uint32_t value = 0;

	if (code && !ids_find(&process->ids, code))
		globals = python_attribute(frame, "f_globals");
	if (code) {
		value = code_slow(code, globals, false);
		python.Py_DecRef(code);
	}
	if (globals)
		python.Py_DecRef(globals);
	return value;
}

static struct object *top_frame(bool skip_top)
{
	struct object *frame = python.PyEval_GetFrame(), *back;

	if (!frame)
		return NULL;
	python.Py_IncRef(frame);
	if (!skip_top)
		return frame;
	back = frame_back(frame);
	python.Py_DecRef(frame);
	return back;
}

static struct object *next_frame(struct object *frame)
{
	struct object *back = frame_back(frame);

	python.Py_DecRef(frame);
	return back;
}

static int frame_line(struct object *frame)
{
	return python.PyFrame_GetLineNumber ? python.PyFrame_GetLineNumber(frame) : 0;
}

/*
 * Reads the stack from the interpreter's own frames, from 3.12 on: a frame object would be created on request and freed
 * as the program's memory. Returns false if a function has no id yet; its frame object is needed to define it.
 */
static bool find_stack(bool skip_top, uint32_t *ids, uint32_t most, uint32_t *count, bool *more)
{
	*count = 0;
	*more = false;
	if (!python.monitoring || !python_knows_frames())
		return false;
	for (const void *frame = python_running_frame(); frame; frame = python_frame_back(frame)) {
		const void *code = python_frame_code(frame);
		uint64_t value = code ? ids_find(&process->ids, code) : 0;

		if (!code || skip_top) {
			skip_top &= !code;
			continue;
		}
		if (!value || value >> 32 & CODE_CLOSER_NATIVE)
			return false;
		if (value & DEFINITION_HIDDEN)
			continue;
		if (*count == most) {
			*more = true;
			return true;
		}
		ids[(*count)++] = DEFINITION_ID((uint32_t)value);
	}
	return true;
}

uint32_t definitions_stack(unsigned kind, uint32_t *ids, int *lines, uint32_t most, bool *more)
{
	bool skip_top = kind == WIRE_CALL || kind == WIRE_RESUME || kind == WIRE_THROW;
	struct object *frame;
	struct definitions_guard guard;
	uint32_t count = 0;
	bool nameless =
	    false; /* a name did not fit into the ring: the stack is written again soon, as if it had been cut */

	definitions_enter(&guard);
	if (!lines && find_stack(skip_top, ids, most, &count, more)) {
		definitions_leave(&guard);
		return count;
	}
	count = 0;
	for (frame = top_frame(skip_top); frame; frame = next_frame(frame)) {
		uint32_t value = frame_value(frame);

		nameless |= !value;
		if (!value || value & DEFINITION_HIDDEN)
			continue;
		if (count == most)
			break;
		if (lines)
			lines[count] = frame_line(frame);
		ids[count++] = DEFINITION_ID(value);
	}
	*more = frame || nameless;
	if (frame)
		python.Py_DecRef(frame);
	definitions_leave(&guard);
	return count;
}
