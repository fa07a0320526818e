/*
 * python.c - finds the interpreter and knows the layouts of its versions.
 *
 * The layouts are those of each release's headers (Include/cpython/code.h, frameobject.h, methodobject.h,
 * descrobject.h, Include/internal/pycore_frame.h), 64-bit, without Py_TRACE_REFS. python_verify() compares them with
 * what the interpreter's functions return before a hook relies on them. Free-threaded builds have the layouts of their
 * version, except for the longer head of objects.
 */
#include "python/python.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/elf_symbols.h"
#include "base/log_line.h"
#include "base/wiped_memory.h"

struct python python;

/* Cleared in the child of a fork, where no thread that held it exists. NULL in builds with the GIL. */
static struct python_mutex *lock;
static __thread uint32_t locked __attribute__((tls_model("initial-exec"))); /* how often this thread holds it */

/* 0: the version has no such field, or hooks do not read it. */
struct layout {
	int version;
	size_t code_bytes;
	size_t frame_last;
	unsigned last_unit;
	size_t inner_previous, locals;
	size_t chain_back;
	size_t state_profile, state_tracing, state_cframe;
	size_t state_bytes;
};

/* clang-format off */
static const struct layout layouts[] = {
	/*       code   frame      inner frame      frame's thread state
	 *       bytes  last unit  previous locals  back    profile tracing cframe bytes */
	{ 0x0306,   40,   120,  1,       0,     376,    24,      48,     44,      0,  2272 },
	{ 0x0307,   40,   104,  1,       0,     360,    24,      56,     48,      0,   280 },
	{ 0x0308,   48,   104,  1,       0,     360,    24,      56,     48,      0,   264 },
	{ 0x0309,   48,   104,  1,       0,     360,    24,      56,     48,      0,   264 },
	{ 0x030a,   48,    96,  2,       0,     352,    24,      56,      0,     48,   280 },
	{ 0x030b,    0,     0,  0,      56,      72,    48,      64,      0,     56,   360 },
	{ 0x030c,    0,     0,  0,       0,       0,     8,      64,      0,      0,     0 },
	{ 0x030d,    0,     0,  0,       0,       0,     8,      80,      0,      0,     0 },
	{ 0x030e,    0,     0,  0,       0,       0,     8,      80,      0,      0,     0 },
	{ 0x030f,    0,     0,  0,       0,       0,     8,     104,      0,      0,     0 },
};
/* clang-format on */

/* Other versions have features that could not be tested, for want of an interpreter: per-thread code (3.14). */
#define FREE_THREADED_VERSION 0x030d

#define PYTHON_BEGINS "Py_Initialize" /* the library that defines it is Python's */

void *python_symbol(const char *name)
{
	return elf_symbol(name, PYTHON_BEGINS);
}

static void *find_either(const char *newer, const char *older)
{
	void *symbol = python_symbol(newer);

	return symbol ? symbol : python_symbol(older);
}

/* Resolves all symbols. Returns the first one that is missing, or NULL. */
static const char *resolve_symbols(void)
{
#define PYTHON_RESOLVE(result, name, arguments)                                                                        \
	*(void **)&python.name = python_symbol(#name);                                                                 \
	if (!python.name)                                                                                              \
		return #name;
#define PYTHON_TRY(result, name, arguments) *(void **)&python.name = python_symbol(#name);
	PYTHON_SYMBOLS(PYTHON_RESOLVE)
	PYTHON_OPTIONAL_SYMBOLS(PYTHON_TRY)
#undef PYTHON_RESOLVE
#undef PYTHON_TRY
	*(void **)&python.current_thread_state =
	    find_either("PyThreadState_GetUnchecked", "_PyThreadState_UncheckedGet");
	*(void **)&python.current_interpreter = find_either("PyInterpreterState_Get", "_PyInterpreterState_Get");
	if (!python.current_thread_state)
		return "_PyThreadState_UncheckedGet";
	python.code_type = python_symbol("PyCode_Type");
	python.c_function_type = python_symbol("PyCFunction_Type");
	python.c_method_type = python_symbol("PyCMethod_Type");
	python.method_descriptor_type = python_symbol("PyMethodDescr_Type");
	python.type_type = python_symbol("PyType_Type");
	python.function_type = python_symbol("PyFunction_Type");
	python.method_type = python_symbol("PyMethod_Type");
	python.int_type = python_symbol("PyLong_Type");
	python.generator_type = python_symbol("PyGen_Type");
	python.coroutine_type = python_symbol("PyCoro_Type");
	python.none = python_symbol("_Py_NoneStruct");
	return python.code_type && python.c_function_type && python.method_descriptor_type && python.none
		   ? NULL
		   : "PyCode_Type";
}

static void set_layout(void)
{
	const struct layout *layout = NULL;

	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++)
		if (layouts[i].version == python.version)
			layout = &layouts[i];
	if (layout) {
		python.code_bytes = layout->code_bytes;
		python.frame_last = layout->frame_last;
		python.inner_previous = layout->inner_previous;
		python.locals = layout->locals;
		python.chain_code = python.version < 0x030b ? PYTHON_FRAME_CODE
				    : python.inner_frames   ? PYTHON_INNER_CODE
							    : 0;
		python.chain_back = layout->chain_back;
		python.state_profile = layout->state_profile;
		python.state_tracing = layout->state_tracing;
		python.state_cframe = layout->state_cframe;
		python.state_bytes = layout->state_bytes;
		python.last_unit = layout->last_unit;
	}
	python.object_shift = python.free_threaded ? PYTHON_OBJECT_SHIFT : 0;
}

static bool knows_free_threaded(void)
{
	return python.version == FREE_THREADED_VERSION && python.PyMutex_Lock && python.PyMutex_Unlock &&
	       python.PyType_GetSlot && python._PyType_LookupRef && python.PyDict_GetItemStringRef;
}

bool python_is_here(void)
{
	return elf_symbol(PYTHON_BEGINS, NULL) != NULL;
}

bool python_find(void)
{
	const char *missing, *text;
	int major = 0, minor = 0;

	python.found = true;
	missing = resolve_symbols();
	if (python.Py_GetVersion)
		sscanf(python.Py_GetVersion(), "%d.%d", &major, &minor);
	if (missing || major != 3 || minor < 6) {
		log_line(LOG_INFO, "Python %d.%d is not recorded (%s); evprof records CPython 3.6 and later", major,
			 minor, missing ? missing : "too old");
		return false;
	}
	text = python.Py_GetVersion();
	python.version = major << 8 | minor;
	python.free_threaded = strstr(text, "free-threading") != NULL;
	python.monitoring = python.version >= 0x030c;
	python.inner_frames = python.version == 0x030b;
	if (python.free_threaded && !knows_free_threaded()) {
		log_line(LOG_WARNING, "free-threaded Python %d.%d is not recorded yet; use the build with the GIL",
			 major, minor);
		return false;
	}
	if (python.free_threaded && !(lock = wiped_memory_new(sizeof(*lock)))) {
		log_line(LOG_ERROR, "no memory to record with; nothing is recorded");
		return false;
	}
	set_layout();
	return true;
}

void python_lock(void)
{
	int saved_errno = errno;

	if (lock && locked++ == 0)
		python.PyMutex_Lock(lock);
	errno = saved_errno;
}

void python_unlock(void)
{
	int saved_errno = errno;

	if (lock && --locked == 0 && lock->bits)
		python.PyMutex_Unlock(lock);
	errno = saved_errno;
}

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

static bool peek_by_hand(const void *address, void *out, size_t size)
{
	uintptr_t first = (uintptr_t)address, last = first + size - 1;

	for (uintptr_t at = first; at <= last; at = (at | (PEEK_PAGE_BYTES - 1)) + 1)
		if (!may_be_read(at))
			return false;
	memcpy(out, address, size);
	return true;
}

bool python_peek(const void *address, void *out, size_t size)
{
	struct iovec to = {.iov_base = out, .iov_len = size}, from = {.iov_base = (void *)address, .iov_len = size};
	ssize_t copied = process_vm_readv(getpid(), &to, 1, &from, 1, 0);

	if (copied < 0 && (errno == EPERM || errno == ENOSYS))
		return peek_by_hand(address, out, size);
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

/* code.h: CO_GENERATOR; CO_COROUTINE, CO_ITERABLE_COROUTINE, CO_ASYNC_GENERATOR */
enum { CODE_IS_PLAIN_GENERATOR = 0x20, CODE_CAN_AWAIT = 0x80 | 0x100 | 0x200 };

#define STATE_SEARCH_BYTES 160 /* PyThreadState is longer in all versions that need the search */

const void *python_inner_frame(const struct object *frame)
{
	return python.version < 0x030b ? frame : python_object_field(frame, PYTHON_FRAME_INNER);
}

const void *python_frame_back(const void *frame)
{
	return python_field(frame, python.chain_back);
}

/* From 3.14 on the low bits are a tag. */
const void *python_frame_code(const void *frame)
{
	const void *code = (const void *)((uintptr_t)python_field(frame, python.chain_code) & ~(uintptr_t)7);

	if (!code || python_type(code) != python.code_type)
		return NULL;
	return python.version == 0x030c && ((const char *)frame)[PYTHON_FRAME_OWNER] == PYTHON_FRAME_OWNED_BY_C ? NULL
														: code;
}

/*
 * 3.11: the size that _PyFrame_New_NoTrack() computes. The code object has three adjacent fields: the size of the
 * stack, the first line, and the number of local slots.
 */
size_t python_frame_size(const struct object *frame)
{
	const void *code = python_field(python_inner_frame(frame), PYTHON_INNER_CODE);
	size_t line = python.code_line, slots;

	slots = (size_t)python_int(code, line - sizeof(int)) + (size_t)python_int(code, line + sizeof(int));
	return python_basic_size(python_type(frame)) + slots * sizeof(void *);
}

const void *python_running_frame(void)
{
	const void *frame = python_field(python.current_thread_state(), python.state_frame);

	return python.version == 0x030c ? python_field(frame, 0) : frame;
}

bool python_has_awaiter(const void *frame)
{
	for (frame = python_frame_back(frame); frame; frame = python_frame_back(frame)) {
		const void *code = python_frame_code(frame);
		int flags = code ? python_int(code, python.code_flags) : CODE_IS_PLAIN_GENERATOR;

		if (flags & CODE_CAN_AWAIT)
			return true;
		if (!(flags & CODE_IS_PLAIN_GENERATOR))
			return false;
	}
	return false;
}

/* The offset of the running frame in the thread state; 0: not found. */
static size_t find_state_frame(const void *running)
{
	const void *state = python.current_thread_state(), *word;

	for (size_t offset = 16; offset < STATE_SEARCH_BYTES; offset += 8) {
		word = python_field(state, offset);
		if (python.version == 0x030c && !python_peek(word, &word, sizeof(word)))
			continue;
		if (word == running)
			return offset;
	}
	return 0;
}

/* Whether the frame's chain leads to the frame of f_back. C code may have been entered in between. */
static bool leads_back(struct object *frame)
{
	struct object *back = python.PyObject_GetAttrString(frame, "f_back");
	const void *at = python_inner_frame(frame),
		   *wanted = back && back != python.none ? python_inner_frame(back) : NULL;
	bool found = false;

	for (int i = 0; back && i < 8 && !found; i++)
		found = (python_peek((const char *)at + python.chain_back, &at, sizeof(at)) && at == wanted) || !wanted;
	if (back)
		python.Py_DecRef(back);
	return found;
}

static bool flags_are_there(struct object *frame)
{
	struct object *code = python.PyObject_GetAttrString(frame, "f_code");
	struct object *flags = code ? python.PyObject_GetAttrString(code, "co_flags") : NULL;
	bool there = flags && python_frame_code(python_inner_frame(frame)) == code &&
		     python.PyLong_AsLong(flags) == python_int(code, python.code_flags);

	if (flags)
		python.Py_DecRef(flags);
	if (code)
		python.Py_DecRef(code);
	return there;
}

bool python_knows_frames(void)
{
	enum { UNKNOWN, KNOWN, OTHERWISE };
	static _Atomic int known; /* threads that check at the same time get the same result */
	struct object *frame;
	int state = atomic_load_explicit(&known, memory_order_acquire);

	if (state != UNKNOWN)
		return state == KNOWN;
	frame = python.chain_back && python.code_flags ? python.PyEval_GetFrame() : NULL;
	if (!frame)
		return false;
	if (python.monitoring)
		python.state_frame = find_state_frame(python_inner_frame(frame));
	state = (!python.monitoring || python.state_frame) && flags_are_there(frame) && leads_back(frame) ? KNOWN
													  : OTHERWISE;
	/* Release: a thread that sees the result sees state_frame. */
	atomic_store_explicit(&known, state, memory_order_release);
	if (state == OTHERWISE)
		log_line(LOG_INFO, "frames of Python %s are not where they are expected; tasks are not told apart",
			 python_version());
	python.PyErr_Clear();
	return state == KNOWN;
}

/* PyTypeObject: the same in all versions. */
#define TYPE_BASIC_SIZE 32
/* PyVarObject.ob_size. */
#define VARIABLE_SIZE 16
#define TYPE_DEALLOC 48
#define TYPE_MEMBERS 240

size_t python_member(const void *type, const char *name, enum python_member_type kind)
{
	const struct python_member *at = python_object_field(type, TYPE_MEMBERS);

	for (; at && at->name; at++)
		if (!strcmp(at->name, name))
			return at->type == (int)kind ? (size_t)at->offset : 0;
	return 0;
}

size_t python_basic_size(const void *type)
{
	return (size_t)python_object_field(type, TYPE_BASIC_SIZE);
}

void *python_dealloc(const struct object *object)
{
	return python_object_field(python_type(object), TYPE_DEALLOC);
}

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
	__atomic_store_n((destructor *)((char *)python.code_type + TYPE_DEALLOC + python.object_shift), dealloc,
			 __ATOMIC_RELEASE);
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
	dealloc_code = (destructor)python_object_field(python.code_type, TYPE_DEALLOC);
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
	if (bytes)
		python.Py_DecRef(bytes);
	python.PyErr_Clear();
	return offset;
}

/* Until 3.10 the instructions are a separate object. Both objects have variable size, stored after the type. */
uint64_t python_code_size(const struct object *code)
{
	const struct object *sized = python.code_bytes ? python_field(code, python.code_bytes) : code;
	unsigned unit = python.code_bytes ? 1 : 2;

	return unit * (uint64_t)(uintptr_t)python_object_field(sized, VARIABLE_SIZE);
}

/* Checks the layout with sys.exc_info, a C function in every version. */
static bool c_functions_are_as_expected(void)
{
	struct object *function = python.PySys_GetObject("exc_info");
	struct python_method *method;
	char name[9] = "";

	if (!function || python_type(function) != python.c_function_type)
		return false;
	method = python_object_field(function, PYTHON_C_FUNCTION_METHOD);
	return python_peek(method, &method, sizeof(method)) && python_peek(method, name, sizeof(name)) &&
	       !memcmp(name, "exc_info", 9);
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

int python_verify(void (*dies)(const struct object *code))
{
	if (!codes_are_as_expected(dies)) {
		log_line(LOG_ERROR, "Python %s lays out its objects in a way unknown to evprof; nothing is recorded",
			 python_version());
		return -ENOTSUP;
	}
	if (!c_functions_are_as_expected()) {
		log_line(LOG_ERROR, "Python %s lays out C functions in a way unknown to evprof; nothing is recorded",
			 python_version());
		return -ENOTSUP;
	}
	return 0;
}

/* Interpreters alive at once. With more, the threads of an older one may be left out. */
#define INTERPRETERS 4096

/* pystate.h: without it, an interpreter of 3.12 and later has its own memory and its own GIL. */
#define FEATURE_MAIN_MEMORY (1ul << 5)

/*
 * Whether the current interpreter can be recorded. In 3.12 interpreters share the code objects of frozen modules, with
 * the data that Python keeps in them, and those with their own GIL have no common lock: instrumenting such code is a
 * data race.
 */
static bool is_safe(void)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;

	if (python.version != 0x030c || !python._PyInterpreterState_HasFeature ||
	    python._PyInterpreterState_HasFeature(python.current_interpreter(), FEATURE_MAIN_MEMORY))
		return true;
	if (!atomic_flag_test_and_set(&said))
		log_line(LOG_WARNING, "interpreters with a GIL of their own are not recorded on Python 3.12; from 3.13 "
				      "on they are");
	return false;
}

/* By id, which is not reused while Python runs: 1 + id, and in the lowest bit whether it is recorded. */
static _Atomic uint64_t interpreters[INTERPRETERS];

void python_forget_interpreters(void)
{
	for (size_t i = 0; i < INTERPRETERS; i++)
		if (atomic_load_explicit(&interpreters[i],
					 memory_order_relaxed)) /* keeps untouched pages unallocated */
			atomic_store(&interpreters[i], 0);
}

bool python_enter_interpreter(void)
{
	void *interpreter = python.current_interpreter ? python.current_interpreter() : NULL;
	uint64_t id, known;
	bool ready;

	if (!interpreter || !python.PyInterpreterState_Main || interpreter == python.PyInterpreterState_Main())
		return true;
	if (!python.PyInterpreterState_GetID)
		return false;
	id = (uint64_t)python.PyInterpreterState_GetID(interpreter);
	known = atomic_load(&interpreters[id % INTERPRETERS]);
	if (known >> 1 == id + 1)
		return known & 1;
	ready = is_safe();
	atomic_store(&interpreters[id % INTERPRETERS], (id + 1) << 1 | ready);
	return ready;
}

int python_call_at_start(python_audit_hook audit, int (*start)(void *))
{
	if (python.PySys_AddAuditHook)
		return python.PySys_AddAuditHook(audit, NULL);
	/* 3.7 clears its runtime, with pending calls, when it is first initialized. */
	if (python.version == 0x0307 && python._PyRuntime_Initialize)
		python._PyRuntime_Initialize();
	return python.Py_AddPendingCall(start, NULL);
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

struct object *python_argument(int place, const char *name)
{
	struct object *frame = python.PyEval_GetFrame(), *key, *value;

	if (!frame)
		return NULL;
	if (!python.monitoring) {
		const char *at = (const char *)frame;

		if (python.inner_frames)
			at = python_field(frame, PYTHON_FRAME_INNER);
		value = *(struct object *const *)(at + python.locals + 8 * (size_t)place);
		if (value)
			python.Py_IncRef(value);
		return value;
	}
	key = python.PyFrame_GetVar ? python.PyUnicode_FromString(name) : NULL;
	if (!key)
		return NULL;
	value = python.PyFrame_GetVar(frame, key);
	python.Py_DecRef(key);
	if (!value)
		python.PyErr_Clear();
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
	if (value)
		python.Py_IncRef(value);
	return value;
}

struct object *python_type_lookup(const void *type, struct object *name)
{
	struct object *found;

	if (python.free_threaded)
		return python._PyType_LookupRef((struct object *)type, name);
	found = python._PyType_Lookup ? python._PyType_Lookup((struct object *)type, name) : NULL;
	if (found)
		python.Py_IncRef(found);
	return found;
}

const char *python_version(void)
{
	static char version[32];

	if (!version[0] && python.found && python.Py_GetVersion)
		sscanf(python.Py_GetVersion(), "%31s", version);
	return version;
}
