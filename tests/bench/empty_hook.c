/*
 * empty_hook.c - the yardstick of the bench: a preloaded library whose profile function does nothing.
 *
 * Owns build/bench/libemptyhook.so, which tests/bench/run builds and preloads. It starts as libevprof.so does (an audit
 * hook added before Py_Initialize; at the first audit event that has a thread state, PyEval_SetProfile), so what it
 * adds to a run is the price of CPython's own hook and nothing else. One library for 3.8 and later: everything is
 * looked up at run time. It covers the first thread only; the programs that are timed have no other.
 *
 * It prints nothing. empty_hook_installed() says whether PyEval_SetProfile was called.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

typedef int (*audit_hook)(const char *event, void *args, void *data);
typedef int (*profile_function)(void *self, void *frame, int what, void *arg);

static void *(*current_thread_state)(void);
static void (*set_profile)(profile_function function, void *self);
static int installed;

int empty_hook_installed(void);

/* What the harness asks by ctypes before it believes a figure. */
int empty_hook_installed(void)
{
	return installed;
}

static int empty_profile(void *self, void *frame, int what, void *arg)
{
	(void)self;
	(void)frame;
	(void)what;
	(void)arg;
	return 0;
}

static int empty_audit(const char *event, void *args, void *data)
{
	(void)event;
	(void)args;
	(void)data;
	if (installed || !current_thread_state())
		return 0;
	installed = 1; /* before the call: PyEval_SetProfile is audited itself */
	set_profile(empty_profile, NULL);
	return 0;
}

/* POSIX lets a data pointer of dlsym hold a function; ISO C has no cast for it. */
static void find(const char *name, void *function)
{
	*(void **)function = dlsym(RTLD_DEFAULT, name);
}

__attribute__((constructor)) static void empty_hook_init(void)
{
	int (*add_audit_hook)(audit_hook hook, void *data);

	find("PySys_AddAuditHook", &add_audit_hook);
	find("PyEval_SetProfile", &set_profile);
	find("PyThreadState_GetUnchecked", &current_thread_state); /* 3.13 and later */
	if (!current_thread_state)
		find("_PyThreadState_UncheckedGet", &current_thread_state);
	if (add_audit_hook && set_profile && current_thread_state)
		add_audit_hook(empty_audit, NULL);
}
