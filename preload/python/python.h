/*
 * python.h - the interpreter in this process: its functions, found with dlsym, and the few layouts that hooks read.
 *
 * Everything that differs between Python versions is in this room and in evprof/python_versions.h, where a new
 * version is a row. The
 * library links no libpython and includes no Python header: a PyObject is an opaque pointer, whose type is at a known
 * offset.
 */
#ifndef PRELOAD_PYTHON_H
#define PRELOAD_PYTHON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "evprof/python_versions.h"

struct object;	     /* PyObject */
struct thread_state; /* PyThreadState */

typedef int (*python_audit_hook)(const char *event, struct object *arguments, void *data);
typedef int (*python_profile)(struct object *self, struct object *frame, int what, struct object *argument);

/* pystate.h: PyTrace_*, what a profile function gets. */
enum {
	PYTHON_TRACE_CALL = 0,
	PYTHON_TRACE_RETURN = 3,
	PYTHON_TRACE_C_CALL = 4,
	PYTHON_TRACE_C_EXCEPTION = 5,
	PYTHON_TRACE_C_RETURN = 6,
};

/* pymem.h: PyMemAllocatorEx, the same since 3.5. */
struct python_allocator {
	void *context;
	void *(*malloc)(void *context, size_t size);
	void *(*calloc)(void *context, size_t count, size_t size);
	void *(*realloc)(void *context, void *block, size_t size);
	void (*free)(void *context, void *block);
};

/* objimpl.h: PyObjectArenaAllocator, the same since 3.4. */
struct python_arena_allocator {
	void *context;
	void *(*alloc)(void *context, size_t size);
	void (*free)(void *context, void *arena, size_t size);
};

/* object.h, the stable ABI: PyType_Slot, PyType_Spec, PyMemberDef. */
struct python_slot {
	int slot;
	void *value;
};

struct python_spec {
	const char *name;
	int basic_size;
	int item_size;
	unsigned flags;
	struct python_slot *slots;
};

struct python_member {
	const char *name;
	int type;
	ssize_t offset;
	int flags;
	const char *doc;
};

/* 3.7: what _PyRuntime_Initialize() returns. */
struct python_init_error {
	const char *prefix, *message;
	int user_error;
};

/* PyMethodDef, complete, for functions that evprof defines. */
struct python_function {
	const char *name;
	struct object *(*call)(struct object *self, struct object *arguments);
	int flags;
	const char *doc;
};

#define METH_NOARGS 4 /* methodobject.h */

/* lock.h: PyMutex (3.13). All zeros: free. */
struct python_mutex {
	uint8_t bits;
};

/* The first words of PyMethodDef. */
struct python_method {
	const char *name;
	void *function;
};

/*
 * Functions of the interpreter. All are required: if one is missing, nothing is recorded. Py_IncRef() and Py_DecRef()
 * accept NULL.
 */
#define PYTHON_SYMBOLS(X)                                                                                              \
	X(const char *, Py_GetVersion, (void))                                                                         \
	X(int, Py_IsInitialized, (void))                                                                               \
	X(void, PyEval_SetProfile, (python_profile profile, struct object * self))                                     \
	X(struct object *, PyEval_GetFrame, (void))                                                                    \
	X(struct thread_state *, PyGILState_GetThisThreadState, (void))                                                \
	X(struct object *, PyObject_GetAttr, (struct object *, struct object *))                                       \
	X(struct object *, PyObject_GetAttrString, (struct object *, const char *))                                    \
	X(struct object *, PyObject_CallMethod, (struct object *, const char *, const char *, ...))                    \
	X(struct object *, PyUnicode_AsEncodedString, (struct object *, const char *, const char *))                   \
	X(struct object *, PyUnicode_AsUTF8String, (struct object *))                                                  \
	X(struct object *, PyUnicode_FromString, (const char *))                                                       \
	X(struct object *, PyUnicode_InternFromString, (const char *))                                                 \
	X(int, PyBytes_AsStringAndSize, (struct object *, char **, ssize_t *))                                         \
	X(long, PyLong_AsLong, (struct object *))                                                                      \
	X(void, Py_IncRef, (struct object *))                                                                          \
	X(void, Py_DecRef, (struct object *))                                                                          \
	X(void, PyErr_Fetch, (struct object **, struct object **, struct object **))                                   \
	X(void, PyErr_Restore, (struct object *, struct object *, struct object *))                                    \
	X(void, PyErr_Clear, (void))                                                                                   \
	X(void, PyMem_GetAllocator, (int domain, struct python_allocator *))                                           \
	X(void, PyMem_SetAllocator, (int domain, struct python_allocator *))                                           \
	X(struct object *, PySys_GetObject, (const char *))                                                            \
	X(struct object *, PyType_FromSpec, (struct python_spec *))                                                    \
	X(struct object *, PyType_GenericAlloc, (struct object *, ssize_t))                                            \
	X(struct object *, PyCode_NewEmpty, (const char *, const char *, int))                                         \
	X(int, Py_AddPendingCall, (int (*call)(void *), void *))                                                       \
	X(struct object *, PyDict_GetItemString, (struct object *, const char *))                                      \
	X(struct object *, PyEval_GetGlobals, (void))

#define PYTHON_OPTIONAL_SYMBOLS(X)                                                                                     \
	X(int, PySys_AddAuditHook, (python_audit_hook, void *data))                                                    \
	X(struct object *, _PyType_Lookup, (struct object *, struct object *))                                         \
	X(struct object *, PyVectorcall_Call, (struct object *, struct object *, struct object *))                     \
	X(struct object *, PyFrame_GetVar, (struct object *, struct object *))                                         \
	X(struct python_init_error, _PyRuntime_Initialize, (void))                                                     \
	X(struct thread_state *, PyInterpreterState_ThreadHead, (void *interpreter))                                   \
	X(void *, PyInterpreterState_Head, (void))                                                                     \
	X(void *, PyInterpreterState_Next, (void *interpreter))                                                        \
	X(struct thread_state *, PyThreadState_Next, (struct thread_state *))                                          \
	X(const char *, _PyMem_GetCurrentAllocatorName, (void))                                                        \
	X(void, PyObject_GetArenaAllocator, (struct python_arena_allocator *))                                         \
	X(void, PyObject_SetArenaAllocator, (struct python_arena_allocator *))                                         \
	X(void, PyObject_Free, (void *))                                                                               \
	X(struct object *, PyObject_Vectorcall,                                                                        \
	  (struct object *, struct object *const *, size_t, struct object *names))                                     \
	X(void *, PyInterpreterState_Main, (void))                                                                     \
	X(int64_t, PyInterpreterState_GetID, (void *interpreter))                                                      \
	X(int, _PyInterpreterState_HasFeature, (void *interpreter, unsigned long feature))                             \
	X(struct object *, PyException_GetTraceback, (struct object *))                                                \
	X(struct object *, PyObject_GenericGetDict, (struct object *, void *))                                         \
	X(int, PyUnicode_CompareWithASCIIString, (struct object *, const char *))                                      \
	X(struct object *, PyFrame_GetBack, (struct object *))                                                         \
	X(struct object *, PyFrame_GetCode, (struct object *))                                                         \
	X(struct object *, PyCFunction_NewEx, (struct python_function *, struct object *, struct object *))            \
	X(struct object *, PyTuple_GetItem, (struct object *, ssize_t))                                                \
	X(struct object *, PyLong_FromVoidPtr, (void *))                                                               \
	X(struct object *, PyTuple_Pack, (ssize_t, ...))                                                               \
	X(struct object *, PyObject_Call, (struct object *, struct object *, struct object *))                         \
	X(const char *, PyUnicode_AsUTF8, (struct object *))                                                           \
	X(void, PyEval_SetTrace, (python_profile trace, struct object * self))                                         \
	X(int, PyFrame_GetLineNumber, (struct object *))                                                               \
	X(int, PyCode_Addr2Line, (struct object *, int offset))                                                        \
	X(struct object *, PyFunction_GetCode, (struct object *))                                                      \
	X(struct object *, PyMethod_Function, (struct object *))                                                       \
	X(struct object *, PyEval_GetBuiltins, (void))                                                                 \
	X(int, PyDict_Next, (struct object *, ssize_t *, struct object **, struct object **))                          \
	X(int, PyType_IsSubtype, (const void *, const void *))                                                         \
	X(struct object *, PyDict_New, (void))                                                                         \
	X(ssize_t, PyGC_Collect, (void))                                                                               \
	X(void *, PyType_GetSlot, (struct object *, int slot))                                                         \
	X(void, PyMutex_Lock, (struct python_mutex *))                                                                 \
	X(void, PyMutex_Unlock, (struct python_mutex *))                                                               \
	X(struct object *, _PyType_LookupRef, (struct object *, struct object *))                                      \
	X(int, PyDict_GetItemStringRef, (struct object *, const char *, struct object **))                             \
	X(void, PyEval_SetProfileAllThreads, (python_profile profile, struct object *))                                \
	X(void *, _PyInterpreterState_GetEvalFrameFunc, (void *interpreter))                                           \
	X(void, _PyInterpreterState_SetEvalFrameFunc, (void *interpreter, void *evaluator))                            \
	X(int, Py_GetRecursionLimit, (void))                                                                           \
	X(void, PyErr_GetExcInfo, (struct object **, struct object **, struct object **))

struct python {
	bool found;
	bool over;	    /* it has ended, and has not started again: no code of the program runs in it */
	unsigned traits;    /* enum python_trait */
	bool free_threaded; /* a build without the GIL (PEP 703), also where it is switched on */
	bool monitoring;    /* sys.monitoring is the hook (3.12+) */
	bool inner_frames;  /* the profile function's frames lead to the interpreter's own (3.11) */

#define PYTHON_DECLARE(result, name, arguments) result(*name) arguments;
	PYTHON_SYMBOLS(PYTHON_DECLARE)
	PYTHON_OPTIONAL_SYMBOLS(PYTHON_DECLARE)
#undef PYTHON_DECLARE
	/* Under other names in some versions. */
	struct thread_state *(*current_thread_state)(void);
	void *(*current_interpreter)(void);
	/* Objects. */
	_Alignas(64) const void *code_type; /* what hooks read at each event is in one cache line */
	const void *c_function_type, *c_method_type, *method_descriptor_type, *int_type;
	struct object *none;
	struct object *type_type;			/* may be NULL */
	struct object *generator_type, *coroutine_type; /* may be NULL */
	struct object **system_exit;			/* PyExc_SystemExit; may be NULL */
	const void *function_type, *method_type;	/* of functions and methods written in Python */
	size_t object_shift; /* added to the offsets of fields of objects: PYTHON_OBJECT_SHIFT or 0 */

	/* Offsets, in bytes; 0 where the field is not read in this version. */
	size_t code_instructions;		      /* PyCodeObject.co_code_adaptive (from 3.12 on) */
	size_t code_file, code_name;		      /* PyCodeObject.co_filename, .co_name */
	size_t code_qualified_name;		      /* PyCodeObject.co_qualname (from 3.11 on) */
	size_t code_line, code_flags, code_arguments; /* PyCodeObject.co_firstlineno, .co_flags, .co_argcount: int */
	size_t state_frame; /* PyThreadState.current_frame (3.13+), or cframe, which begins with it (3.12) */
	struct python_layout layout;
	uint32_t lines; /* enum sampling_lines: how code objects store their lines */
};

/* Hidden, so that access needs no global offset table: hooks read it at each event. */
extern struct python python __attribute__((visibility("hidden")));

static inline bool python_has(enum python_trait trait)
{
	return (python.traits & trait) != 0;
}

/*
 * Whether Py_AddPendingCall() may be called without the GIL. It reads the main interpreter, which is not there once
 * Python is over; and while 3.8 ends, a thread state that is not there. Any thread, any signal handler.
 */
bool python_takes_pending_calls(void);

/* Fills in what depends on the version 3.minor. minor: at least 6. */
void python_choose_version(int minor);

/* Whether the process has a Python. */
bool python_is_here(void);

/* Resolves the process's Python, once. True if evprof can record it. */
bool python_find(void);

/* The address of a symbol of Python, or NULL. */
void *python_symbol(const char *name);

/*
 * Verifies the layouts of the table, and sets the callback for the death of code objects in all interpreters: the
 * address of a code object is valid until then. GIL held; dies is called with the GIL of its interpreter. 0 or -errno,
 * with a line that ends in else_what, what follows from it.
 */
int python_verify(void (*dies)(const struct object *code), const char *else_what);

/*
 * Registers the current interpreter. Called for each before anything of it is recorded. False: it is not recorded, with
 * a line. GIL held.
 */
bool python_enter_interpreter(void);
/* Whether the current interpreter is the first one. GIL held. */
bool python_is_main(void);

/* Python starts once more, and ids of interpreters with it. GIL held. */
void python_forget_interpreters(void);

/*
 * Whether the two functions below can be called. Checks once whether the fields that they read are at the expected
 * places of the running frame. GIL held; while a Python function runs, with no exception set.
 */
bool python_knows_frames(void);

/* Bytes of the instructions of a code object. */
uint64_t python_code_size(const struct object *code);

/* The offset of its first RESUME, in bytes (from 3.12 on); negative: not known. */
int64_t python_first_resume(const struct object *code);

/*
 * Whether x[i] may call a __getitem__() that is written in Python without the frame evaluator (3.11.0 to 3.11.3),
 * unless the thread counts as traced; and whether code has such an instruction.
 */
bool python_inlines_subscripts(void);
bool python_has_subscripts(const struct object *code);

/*
 * 3.11.0 to 3.11.3: from here on x[i] in this code calls a __getitem__() by the frame evaluator. Specialized
 * instructions become the plain one again, of which they are faster forms. all: not only those that call Python, or may
 * be about to; the others do after they have met another type 53 times, in which they call by the evaluator. False: the
 * code has not run often enough, and would be specialized later. GIL held; keeps the exception that is set.
 */
bool python_despecialize_subscripts(struct object *code, bool all);

/* Likewise: whether the instruction is a subscript that may still be specialized otherwise. */
bool python_is_specialized_subscript(const uint8_t *instruction);

/* The interpreter's frame that runs in this thread; until 3.10 a PyFrameObject. GIL held. */
const void *python_running_frame(void);

/*
 * A lock for code that calls Python while other threads must wait, in free-threaded builds; elsewhere the GIL excludes
 * them and the lock does nothing. A waiting thread is detached, so that Python can stop all threads meanwhile: a lock
 * of evprof's own (lock.h) must not be waited for by an attached thread while its holder calls Python. The lock is
 * recursive, because the called code raises audit events. It is free in the child of a fork. errno is kept.
 */
void python_lock(void);
void python_unlock(void);

/*
 * The value of a name in a dict, or NULL without an exception. A new reference, because another thread may replace it.
 */
struct object *python_item(struct object *dictionary, const char *name);

/* The value of a name in the object's own dict, or NULL: likewise. */
struct object *python_own_attribute(struct object *object, const char *name);

/* The argument at this place, and of this name, of the running Python function, or NULL: likewise. */
struct object *python_argument(int place, const char *name);

/* The value of a name in the type and its bases, or NULL: likewise. */
struct object *python_type_lookup(const void *type, struct object *name);

/*
 * As PyObject_GetAttrString(), for repeated lookups. That function creates a string for each call, of which Python's
 * attribute cache keeps thousands, in place of entries that the program needs.
 */
struct object *python_attribute(struct object *object, const char *name);

/*
 * Redirects a C function. The kernel writes, so that a read-only page is an error and not a signal. False: it could not
 * be written. errno is kept.
 */
bool python_redirect(const struct python_method *method, void *function);

/* The frame object of the caller, NULL at the end of the stack; and the code of a frame object. New references. */
struct object *python_frame_caller(struct object *frame);
struct object *python_code_of_frame(struct object *frame);

/* The interpreter's frame of a frame object, and its code, or NULL where C code was entered. chain_code is known. */
const void *python_inner_frame(const struct object *frame);
const void *python_frame_code(const void *inner);
/* The interpreter's frame that called this one, or NULL. After python_knows_frames(). */
const void *python_frame_back(const void *inner);

/*
 * Whether a frame was unwound at RESUME, the instruction with which a function starts or a generator resumes. offset:
 * the int that PY_UNWIND or RAISE reports. From 3.12 on.
 */
bool python_unwinds_at_resume(const struct object *code, struct object *offset);

/* Marks a thread state as having a profile function. Until 3.11. */
void python_mark_traced(struct thread_state *state);

/* Whether it is marked so. Not while its profile function, or its trace function, runs. */
bool python_is_traced(const struct thread_state *state);

/* The reverse, if the state has neither a profile nor a trace function. Until 3.11. */
void python_unmark_traced(struct thread_state *state);

/* Python's destructor of code objects is its own again, until the next python_verify(). GIL held. */
void python_unverify(void);

/* Bytes of a frame object, without the garbage collector's head before it. 3.11. */
size_t python_frame_size(const struct object *frame);

/* Reads memory that may be unmapped. False: it is. */
bool python_peek(const void *address, void *out, size_t size);

/* structmember.h: T_INT, T_OBJECT */
enum python_member_type { PYTHON_MEMBER_INT = 1, PYTHON_MEMBER_OBJECT = 6 };

/* The offset of the field behind an attribute of the type; 0: the attribute is not such a field. */
size_t python_member(const void *type, const char *name, enum python_member_type kind);

/* Finds the members of code objects. python_verify() does so, too. */
void python_find_members(void);

/* PyTypeObject.tp_basicsize */
size_t python_basic_size(const void *type);

/* PyTypeObject.tp_dealloc of an object's type */
void *python_dealloc(const struct object *object);

/*
 * Whether the calling thread is attached to Python (has the GIL, where there is one), in the interpreter of its first
 * state.
 */
bool python_is_held(void);

/* "3.11.2", or "" before it is found. */
const char *python_version(void);

/*
 * Makes Python call start once it runs, with the GIL held: at audit events (3.8 and later), or once in its main thread.
 * 0 or -1.
 */
int python_call_at_start(python_audit_hook audit, int (*start)(void *));

/* Whether a call has succeeded. result: a new reference, or NULL with an exception; both are removed. */
bool python_succeeds(struct object *result);

/* The value of an int object, a new reference that is given up; 0 without an exception where it is NULL. */
long python_take_long(struct object *number);

/* Looks up a module that was imported: a new reference, or NULL without an exception. */
struct object *python_module(const char *name);

static inline void *python_field(const void *object, size_t offset)
{
	return *(void *const *)((const char *)object + offset);
}

static inline int python_int(const void *object, size_t offset)
{
	return *(const int *)((const char *)object + offset);
}

/* With the GIL. */
static inline ssize_t python_references(const void *object)
{
	return (ssize_t)python_field(object, PYTHON_REFERENCES);
}

/* A field of an object, at one of the offsets above. */
static inline void *python_object_field(const void *object, size_t offset)
{
	return python_field(object, offset + python.object_shift);
}

static inline const void *python_type(const void *object)
{
	return python_object_field(object, PYTHON_TYPE);
}

#endif
