/*
 * python.c - finds the interpreter: its functions, its version, its interpreters.
 */
#include "python/python.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/elf_symbols.h"
#include "base/log_line.h"
#include "base/lock.h"

struct python python;

/* Cleared in the child of a fork, where no thread that held it exists. NULL in builds with the GIL. */
static struct python_mutex *lock;
static __thread uint32_t locked __attribute__((tls_model("initial-exec"))); /* how often this thread holds it */

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
	python.system_exit = python_symbol("PyExc_SystemExit");
	python.none = python_symbol("_Py_NoneStruct");
	return python.code_type && python.c_function_type && python.method_descriptor_type && python.none
		   ? NULL
		   : "PyCode_Type";
}

static bool knows_free_threaded(void)
{
	return python_has(PYTHON_KNOWN_WITHOUT_GIL) && python.PyMutex_Lock && python.PyMutex_Unlock &&
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
	python_choose_version(minor);
	python.free_threaded = strstr(text, "free-threading") != NULL;
	if (python.free_threaded && !knows_free_threaded()) {
		log_line(LOG_WARNING, "free-threaded Python %d.%d is not recorded yet; use the build with the GIL",
			 major, minor);
		return false;
	}
	if (python.free_threaded && !(lock = wiped_memory_new(sizeof(*lock)))) {
		log_line(LOG_ERROR, "no memory to record with; nothing is recorded");
		return false;
	}
	python.object_shift = python.free_threaded ? PYTHON_OBJECT_SHIFT : 0;
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

	if (!python_has(PYTHON_SHARES_FROZEN_CODE) || !python._PyInterpreterState_HasFeature ||
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

static bool is_main(const void *interpreter)
{
	return !interpreter || !python.PyInterpreterState_Main || interpreter == python.PyInterpreterState_Main();
}

bool python_is_main(void)
{
	return is_main(python.current_interpreter ? python.current_interpreter() : NULL);
}

bool python_enter_interpreter(void)
{
	void *interpreter = python.current_interpreter ? python.current_interpreter() : NULL;
	uint64_t id, known;
	bool ready;

	if (is_main(interpreter))
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
	if (python_has(PYTHON_CLEARS_PENDING_CALLS) && python._PyRuntime_Initialize)
		python._PyRuntime_Initialize();
	return python.Py_AddPendingCall(start, NULL);
}

bool python_takes_pending_calls(void)
{
	/* pycore_ceval.h of 3.8: two words, two atomic ones, then the pending calls, which begin with `finishing` */
	struct {
		int recursion_limit, tracing, breaker, drop_request, finishing;
	} ceval;
	static const char *runtime;

	if (python.over)
		return false;
	if (!python.layout.runtime_ceval || python.current_thread_state())
		return true;
	runtime = runtime ? runtime : python_symbol("_PyRuntime");
	if (!runtime || !python.Py_GetRecursionLimit)
		return false;
	memcpy(&ceval, runtime + python.layout.runtime_ceval, sizeof(ceval));
	return ceval.recursion_limit == python.Py_GetRecursionLimit() && !ceval.finishing;
}

bool python_is_held(void)
{
	const struct thread_state *state = python.current_thread_state();

	return state && state == python.PyGILState_GetThisThreadState();
}

const char *python_version(void)
{
	static char version[32];

	if (!version[0] && python.found && python.Py_GetVersion)
		sscanf(python.Py_GetVersion(), "%31s", version);
	return version;
}
