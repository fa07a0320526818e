/*
 * least_start.h - how the hooks of the bench start that record something: least_hook.c and step_hook.c. Everything but
 * what happens at an event.
 *
 * As empty_hook.c does, it covers the first thread only, and answers the same question of the harness.
 */
#ifndef BENCH_LEAST_START_H
#define BENCH_LEAST_START_H

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define SLOT_CALL 50
#define SLOT_MEMBERS 72
#define TYPE_FLAGS (1u << 18 | 1u << 11 | 1u << 7) /* DEFAULT, HAVE_VECTORCALL, DISALLOW_INSTANTIATION */
#define TOOL 3

typedef int (*audit_hook)(const char *event, void *args, void *data);
typedef int (*profile_function)(void *self, void *frame, int what, void *arg);
typedef void *(*vectorcall)(void *self, void *const *arguments, size_t count, void *names);

struct callback {
	uint64_t object[2];
	vectorcall call;
};

struct member {
	const char *name;
	int type;
	ptrdiff_t offset;
	int flags;
	const char *doc;
};

struct slot {
	int number;
	void *function;
};

struct spec {
	const char *name;
	int size;
	int item_size;
	unsigned flags;
	struct slot *slots;
};

/* What the file that includes this one does at an event. */
static profile_function profile_for(int minor);
static vectorcall callback_for(int event); /* an index of monitoring_events */
/* Before the hooks are set. */
static void prepare(void);

static const char *const monitoring_events[] = {"PY_START",  "PY_RESUME", "PY_THROW", "PY_RETURN", "PY_YIELD",
						"PY_UNWIND", "CALL",	  "C_RETURN", "C_RAISE"};

static void *(*current_thread_state)(void);
static void (*set_profile)(profile_function function, void *self);
static const char *(*get_version)(void);
static void *(*get_object)(const char *name);
static void *(*get_attribute)(void *object, const char *name);
static long (*as_long)(void *object);
static void *(*call_method)(void *object, const char *name, const char *format, ...);
static void *(*type_from_spec)(struct spec *spec);
static void *(*allocate)(void *type, ptrdiff_t items);
static void (*clear_error)(void);
static void *vectorcall_call;
static void *none;
static void *missing; /* sys.monitoring.MISSING */
static int installed;

int empty_hook_installed(void);

int empty_hook_installed(void)
{
	return installed == 2;
}

static void *make_type(void)
{
	static struct member members[] = {
	    {"__vectorcalloffset__", 19, offsetof(struct callback, call), 1, NULL},
	    {NULL, 0, 0, 0, NULL},
	};
	static struct slot slots[3];
	static struct spec spec = {"least.callback", sizeof(struct callback), 0, TYPE_FLAGS, slots};

	slots[0] = (struct slot){SLOT_CALL, vectorcall_call};
	slots[1] = (struct slot){SLOT_MEMBERS, members};
	return type_from_spec(&spec);
}

/* Returns 1 once sys.monitoring is there and has the callbacks. */
static int set_monitoring(void)
{
	void *monitoring = get_object("monitoring"), *events = NULL, *type = NULL;
	long set = 0;
	int i;

	if (!monitoring || !(events = get_attribute(monitoring, "events"))) {
		clear_error();
		return 0;
	}
	none = call_method(monitoring, "use_tool_id", "is", TOOL, "least");
	missing = get_attribute(monitoring, "MISSING");
	prepare();
	type = make_type();
	for (i = 0; i < 9 && none && type; i++) {
		struct callback *callback = allocate(type, 0);
		void *bit = get_attribute(events, monitoring_events[i]);

		if (!callback || !bit)
			return 0;
		callback->call = callback_for(i);
		call_method(monitoring, "register_callback", "ilO", TOOL, as_long(bit), callback);
		if (i < 7) /* the last two come along with CALL */
			set |= as_long(bit);
	}
	call_method(monitoring, "set_events", "il", TOOL, set);
	return none && type;
}

static int audit(const char *event, void *args, void *data)
{
	int major = 0, minor = 0;

	(void)event;
	(void)args;
	(void)data;
	if (installed || !current_thread_state())
		return 0;
	installed = 1; /* before the calls: they are audited themselves */
	sscanf(get_version(), "%d.%d", &major, &minor);
	if (minor < 12) {
		prepare();
		set_profile(profile_for(minor), NULL);
		installed = 2;
	} else {
		installed = set_monitoring() ? 2 : 0;
	}
	return 0;
}

/* POSIX lets a data pointer of dlsym hold a function; ISO C has no cast for it. */
static int find(const char *name, void *function)
{
	*(void **)function = dlsym(RTLD_DEFAULT, name);
	return *(void **)function != NULL;
}

__attribute__((constructor)) static void hook_init(void)
{
	int (*add_audit_hook)(audit_hook hook, void *data);
	int found = find("PySys_AddAuditHook", &add_audit_hook);

	found &= find("PyThreadState_GetUnchecked", &current_thread_state) ||
		 find("_PyThreadState_UncheckedGet", &current_thread_state);
	found &= find("PyEval_SetProfile", &set_profile) && find("Py_GetVersion", &get_version) &&
		 find("PySys_GetObject", &get_object) && find("PyObject_GetAttrString", &get_attribute) &&
		 find("PyLong_AsLong", &as_long) && find("PyObject_CallMethod", &call_method) &&
		 find("PyType_FromSpec", &type_from_spec) && find("PyType_GenericAlloc", &allocate) &&
		 find("PyErr_Clear", &clear_error);
	find("PyVectorcall_Call", &vectorcall_call); /* 3.8 has it under another name, and does not need it */
	if (found)
		add_audit_hook(audit, NULL);
}

#endif
