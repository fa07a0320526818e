/*
 * monitoring_guards.c - stands in for callbacks of the program: mutes one return, or detects that a callback raises.
 */
#include "hooks/hooks.h"
#include "hooks/monitoring.h"
#include "ring/writer.h"

/* Stands in for a tool's C_RETURN callback until the next C_RETURN of the thread that set the events. */
struct muted {
	struct monitoring_callback callback;
	struct object *original; /* the tool's own callback; owned */
	const void *thread;	 /* &thread_self */
	int tool;
	long bit;
	const struct python_method *returning;
};

static void restore_callback(const struct muted *muted)
{
	struct object *monitoring = monitoring_of_interpreter();

	thread_self.nesting++;
	if (monitoring)
		python_succeeds(python.PyObject_CallMethod(monitoring, "register_callback", "ilO", muted->tool,
							   muted->bit, muted->original));
	thread_self.nesting--;
}

/*
 * Suppresses one C_RETURN, or passes it on. The interpreter does not use the callback after the call, so it may be
 * freed during it. A reference to the tool's callback is taken before anything can stop this thread: another thread may
 * then free the stand-in.
 */
static struct object *on_muted(struct object *self, struct object *const *arguments, size_t count, struct object *names)
{
	struct muted muted = *(struct muted *)monitoring_body(self);
	struct object *callable = arguments[2], *result;
	bool same = muted.thread == &thread_self && python_type(callable) == python.c_function_type &&
		    python_object_field(callable, PYTHON_C_FUNCTION_METHOD) == muted.returning;

	python.Py_IncRef(muted.original);
	if (muted.thread == &thread_self) {
		restore_callback(&muted);
		python.Py_DecRef(muted.original); /* the callback's */
	}
	result = same ? python.none : python.PyObject_Vectorcall(muted.original, arguments, count, names);
	python.Py_DecRef(muted.original);
	return result;
}

/* Registers a callback. Returns the previous one, or NULL if there was none. */
static struct object *exchange_callback(struct object *monitoring, int tool, long bit, struct object *callback)
{
	struct object *before = python.PyObject_CallMethod(monitoring, "register_callback", "ilO", tool, bit, callback);

	if (!before)
		python.PyErr_Clear();
	else if (before == python.none)
		before = NULL; /* immortal */
	return before;
}

/* python_lock() is held. */
static void mute_callback(struct object *monitoring, struct object *type, const struct muted *muted)
{
	struct object *callback = python.PyType_GenericAlloc(type, 0);
	struct muted *body = callback ? monitoring_body(callback) : NULL;

	if (!callback)
		return;
	*body = *muted;
	body->original = exchange_callback(monitoring, muted->tool, muted->bit, callback);
	if (!body->original)
		exchange_callback(monitoring, muted->tool, muted->bit, python.none);
	python.Py_DecRef(callback);
}

void hooks_monitoring_mute(int tool, const struct python_method *returning)
{
	struct object *monitoring = monitoring_of_interpreter(), *events, *type;
	struct muted muted = {.callback.call = on_muted, .thread = &thread_self, .tool = tool, .returning = returning};

	if (!monitoring || !python.PyObject_Vectorcall)
		return;
	events = python.PyObject_GetAttrString(monitoring, "events");
	muted.bit = events ? monitoring_event_bit(events, "C_RETURN") : 0;
	type = muted.bit ? monitoring_new_type("evprof.muted", sizeof(struct muted), NULL) : NULL;
	python_lock();
	if (type && monitoring_held_tool(monitoring) >= 0)
		mute_callback(monitoring, type, &muted);
	python_unlock();
	python.Py_DecRef(type);
	python.Py_DecRef(events);
	python.PyErr_Clear();
}

/* Stands in for a callback of the program, to detect that it raises. */
struct guard {
	struct monitoring_callback callback;
	struct object *original; /* the program's own callback; owned */
};

/*
 * The interpreter calls tools one after the other until one raises. evprof may have recorded an event that then does
 * not happen, or missed one that does. The function continues with the exception.
 */
static struct object *on_guarded(struct object *self, struct object *const *arguments, size_t count,
				 struct object *names)
{
	struct object *original = ((struct guard *)monitoring_body(self))->original, *result;

	python.Py_IncRef(original); /* another thread, or the callback itself, may register another one */
	result = python.PyObject_Vectorcall(original, arguments, count, names);
	if (!result)
		writer_expect_stack();
	python.Py_DecRef(original);
	return result;
}

static void free_guard(struct object *self)
{
	struct object *type = (struct object *)python_type(self),
		      *original = ((struct guard *)monitoring_body(self))->original;

	python.PyObject_Free(self);
	python.Py_DecRef(type);
	python.Py_DecRef(original);
}

struct object *hooks_monitoring_guarded(struct object *callback)
{
	struct object *type, *guarded = NULL;
	struct guard *guard;

	if (!python.PyObject_Vectorcall || !python.PyObject_Free)
		return NULL;
	thread_self.nesting++;
	type = monitoring_new_type("evprof.guard", sizeof(struct guard), free_guard);
	if (type)
		guarded = python.PyType_GenericAlloc(type, 0);
	python.Py_DecRef(type); /* its instance keeps it */
	if (guarded) {
		guard = monitoring_body(guarded);
		guard->callback.call = on_guarded;
		guard->original = callback;
		python.Py_IncRef(callback);
	}
	python.PyErr_Clear();
	thread_self.nesting--;
	return guarded;
}

struct object *hooks_monitoring_unguarded(struct object *callback)
{
	struct object *original = callback;

	if (python_dealloc(callback) == (void *)free_guard) {
		original = ((struct guard *)monitoring_body(callback))->original;
		python.Py_IncRef(original);
		python.Py_DecRef(callback);
	}
	return original;
}
