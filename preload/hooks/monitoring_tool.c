/*
 * monitoring_tool.c - evprof as a tool of sys.monitoring: its type, its tool id, its events.
 *
 * Taking or freeing a tool id requires python_lock().
 */
#include <errno.h>

#include "base/config.h"
#include "base/log_line.h"
#include "definitions/definitions.h"
#include "hooks/budget.h"
#include "hooks/hook_compat.h"
#include "hooks/hooks.h"
#include "hooks/monitoring.h"
#include "python/superinstructions.h"
#include "ring/process.h"

/* typeslots.h, structmember.h, object.h: the stable ABI. */
enum { SLOT_CALL = 50, SLOT_DEALLOC = 52, SLOT_MEMBERS = 72 };
enum { MEMBER_SSIZE = 19, MEMBER_READONLY = 1 };
#define TYPE_FLAGS (1u << 18 | 1u << 11 | 1u << 7) /* DEFAULT, HAVE_VECTORCALL, DISALLOW_INSTANTIATION */

/*
 * PEP 669: 0 debugger, 1 coverage, 2 profiler (cProfile), 5 optimizer; 3 and 4 are unassigned. evprof uses any free id,
 * because it yields an id that the program asks for (hook_compat.c).
 */
static const int tool_ids[] = {3, 4, 5, 2, 1, 0};
#define TOOL_NAME "evprof"

static size_t head_bytes(void)
{
	return PYTHON_OBJECT_BYTES + python.object_shift;
}

void *monitoring_body(struct object *object)
{
	return (char *)object + head_bytes();
}

struct object *monitoring_new_type(const char *name, size_t size, void (*dealloc)(struct object *))
{
	static struct python_member members[] = {
	    {"__vectorcalloffset__", MEMBER_SSIZE, 0, MEMBER_READONLY, NULL},
	    {0},
	};
	struct python_slot slots[4] = {{SLOT_CALL, (void *)python.PyVectorcall_Call}, {SLOT_MEMBERS, members}};
	struct python_spec spec = {name, (int)(head_bytes() + size), 0, TYPE_FLAGS, slots};

	members[0].offset = (ssize_t)(head_bytes() + offsetof(struct monitoring_callback, call));
	if (dealloc)
		slots[2] = (struct python_slot){SLOT_DEALLOC, (void *)dealloc};
	return python.PyVectorcall_Call ? python.PyType_FromSpec(&spec) : NULL;
}

static void free_tool_id(struct object *monitoring, int tool)
{
	python_succeeds(python.PyObject_CallMethod(monitoring, "free_tool_id", "i", tool));
}

/* Which events a tool has, in this interpreter; -1: that is not known. */
static long events_of(struct object *monitoring, int tool)
{
	struct object *events = python.PyObject_CallMethod(monitoring, "get_events", "i", tool);

	return events ? python_take_long(events) : -1;
}

/* Up to 3.13 the events of a tool stay on after its id is freed. Such an id counts as taken. */
static bool take_tool_id(struct object *monitoring, int tool)
{
	if (!python_succeeds(python.PyObject_CallMethod(monitoring, "use_tool_id", "is", tool, TOOL_NAME)))
		return false;
	if (events_of(monitoring, tool) == 0)
		return true;
	free_tool_id(monitoring, tool);
	return false;
}

static int use_tool_id(struct object *monitoring, int not_this)
{
	for (size_t i = 0; i < sizeof(tool_ids) / sizeof(tool_ids[0]); i++)
		if (tool_ids[i] != not_this && take_tool_id(monitoring, tool_ids[i]))
			return tool_ids[i];
	return -EBUSY;
}

long monitoring_event_bit(struct object *events, const char *name)
{
	return python_take_long(python.PyObject_GetAttrString(events, name));
}

static int register_callback(struct object *monitoring, struct object *type, int tool, long bit, vectorcall call)
{
	struct object *callback = python.PyType_GenericAlloc(type, 0), *before;

	if (!callback)
		return -ENOMEM;
	((struct monitoring_callback *)monitoring_body(callback))->call = call;
	before = python.PyObject_CallMethod(monitoring, "register_callback", "ilO", tool, bit, callback); /* None */
	python.Py_DecRef(callback);
	return python_succeeds(before) ? 0 : -EINVAL;
}

/* Python has instrumented the code that runs, and instruments other code when that is entered. */
static void note_instrumented(void)
{
	if (!superinstructions_are_split())
		return;
	definitions_mark_split();
	superinstructions_join_running();
}

static int set_events(struct object *monitoring, int tool, long set)
{
	int r = python_succeeds(python.PyObject_CallMethod(monitoring, "set_events", "il", tool, set)) ? 0 : -EINVAL;

	note_instrumented();
	return r;
}

/* What has returned DISABLE is reported again. */
static void restart_events(struct object *monitoring)
{
	python_succeeds(python.PyObject_CallMethod(monitoring, "restart_events", NULL));
	note_instrumented();
}

static long wanted_events(struct object *events)
{
	struct monitoring_event event;
	long wanted = 0;

	for (size_t i = 0; (event = monitoring_event(i)).name; i++)
		if (event.set && event.wanted)
			wanted |= monitoring_event_bit(events, event.name);
	return wanted;
}

static unsigned times_begun_again;

void hooks_monitoring_begin_again(void)
{
	times_begun_again++;
}

/*
 * The frozen code objects of 3.12 survive the end of Python. They keep the version number of their last
 * instrumentation, but not the instrumentation. Version numbers restart with Python, so the numbers of earlier runs are
 * skipped.
 */
static int set_first_events(struct object *monitoring, int tool, long set)
{
	unsigned passed = python_has(PYTHON_SHARES_FROZEN_CODE) ? times_begun_again : 0;
	int r = set_events(monitoring, tool, set);

	for (unsigned i = 0; i < passed && !r; i++) {
		r = set_events(monitoring, tool, 0);
		if (!r)
			r = set_events(monitoring, tool, set);
	}
	return r;
}

static int set_callbacks(struct object *monitoring, struct object *type, struct object *events, int not_this)
{
	int tool = use_tool_id(monitoring, not_this), r = 0;
	struct monitoring_event event;

	if (tool < 0)
		return tool;
	for (size_t i = 0; (event = monitoring_event(i)).name && !r; i++) {
		long bit = monitoring_event_bit(events, event.name);

		if (bit && event.wanted)
			r = register_callback(monitoring, type, tool, bit, event.call);
	}
	return r ? r : set_first_events(monitoring, tool, wanted_events(events));
}

static int set_in_interpreter(struct object *monitoring, int not_this)
{
	struct object *events = python.PyObject_GetAttrString(monitoring, "events");
	struct object *type = monitoring_new_type("evprof.callback", sizeof(struct monitoring_callback), NULL);
	int r = -EINVAL;

	if (monitoring_find_constants(monitoring) && events && type)
		r = set_callbacks(monitoring, type, events, not_this);
	python.Py_DecRef(events);
	python.Py_DecRef(type); /* its instances keep it */
	python.PyErr_Clear();
	return r;
}

int monitoring_held_tool(struct object *monitoring)
{
	for (size_t i = 0; i < sizeof(tool_ids) / sizeof(tool_ids[0]); i++) {
		struct object *name = python.PyObject_CallMethod(monitoring, "get_tool", "i", tool_ids[i]);
		bool ours = name && name != python.none && !python.PyUnicode_CompareWithASCIIString(name, TOOL_NAME);

		if (python_succeeds(name) && ours)
			return tool_ids[i];
	}
	return -1;
}

/* Removes the callbacks, too: up to 3.13 they stay when a tool id is freed. */
static void release_tool(struct object *monitoring, int tool)
{
	struct object *events = python.PyObject_GetAttrString(monitoring, "events");
	struct monitoring_event event;

	set_events(monitoring, tool, 0);
	for (size_t i = 0; events && (event = monitoring_event(i)).name; i++)
		python_succeeds(python.PyObject_CallMethod(monitoring, "register_callback", "ilO", tool,
							   monitoring_event_bit(events, event.name), python.none));
	python.Py_DecRef(events);
	free_tool_id(monitoring, tool);
}

struct object *monitoring_of_interpreter(void)
{
	struct object *monitoring = python.PySys_GetObject("monitoring");

	return monitoring && monitoring != python.none ? monitoring : NULL;
}

static bool leaves_out_exceptions;

/* python_lock() is held. */
static int switch_events(struct object *monitoring, bool on)
{
	struct object *events = python.PyObject_GetAttrString(monitoring, "events");
	int tool = events ? monitoring_held_tool(monitoring) : -1, r = -EINVAL;

	if (tool >= 0 && on && python.free_threaded)
		process_expect_stacks();
	leaves_out_exceptions = false;
	if (tool >= 0)
		r = set_events(monitoring, tool, on ? wanted_events(events) : 0);
	if (!r && on && config.budget) /* what was thinned is not */
		restart_events(monitoring);
	python.Py_DecRef(events);
	python.PyErr_Clear();
	return r;
}

/* python_lock() is held. */
static int set_hook(struct object *monitoring)
{
	static bool said;
	int tool = monitoring_held_tool(monitoring), r;

	if (tool >= 0) /* to switch on what is on would make Python instrument all code again */
		return events_of(monitoring, tool) ? 0 : switch_events(monitoring, true);
	if (!python_is_main())
		budget_note_interpreter();
	hook_compat_wrap_monitoring(monitoring);
	r = set_in_interpreter(monitoring, -1);
	if (r && said)
		return r; /* another thread or interpreter has printed the line */
	said = r != 0;
	if (r == -EBUSY)
		log_line(LOG_WARNING, "other tools hold all ids of sys.monitoring; calls are not recorded");
	else if (r)
		log_line(LOG_ERROR, "sys.monitoring of Python %s refuses evprof's callbacks; calls are not recorded",
			 python_version());
	return r;
}

int hooks_monitoring_set(void)
{
	struct object *monitoring = monitoring_of_interpreter();
	int r = -EAGAIN;

	python_lock();
	if (monitoring)
		r = set_hook(monitoring);
	python_unlock();
	return r;
}

/*
 * Moves evprof to another tool id. python_lock() is held. In free-threaded builds other threads run meanwhile; events
 * are switched off for that moment, so that no event is recorded twice, through the old id and the new one. Here and
 * below the stacks are requested before events are switched on again, so that no thread continues with a stale stack.
 */
static void move_to_other_tool(struct object *monitoring, int tool)
{
	int r;

	if (python.free_threaded) {
		set_events(monitoring, tool, 0);
		process_expect_stacks();
	}
	r = set_in_interpreter(monitoring, tool);
	if (r == -EBUSY)
		log_line(LOG_WARNING, "the program takes all ids of sys.monitoring; calls are not recorded until it "
				      "frees one");
	if (r == -EBUSY)
		process_expect_stacks();
	release_tool(monitoring, tool);
}

void hooks_monitoring_release_tool(int tool)
{
	struct object *monitoring = monitoring_of_interpreter();

	python_lock();
	if (monitoring && monitoring_held_tool(monitoring) == tool)
		move_to_other_tool(monitoring, tool);
	python_unlock();
}

void hooks_monitoring_acquire_tool(void)
{
	struct object *monitoring = monitoring_of_interpreter();

	python_lock();
	if (monitoring && monitoring_held_tool(monitoring) < 0) {
		process_expect_stacks();
		set_in_interpreter(monitoring, -1);
	}
	python_unlock();
}

void hooks_monitoring_remove(void)
{
	struct object *monitoring = monitoring_of_interpreter();
	int tool;

	thread_self.nesting++;
	python_lock();
	tool = monitoring ? monitoring_held_tool(monitoring) : -1;
	if (tool >= 0) {
		release_tool(monitoring, tool);
		/* What a filter hid is reported again to the next one with this id. */
		restart_events(monitoring);
	}
	leaves_out_exceptions = false;
	python.PyErr_Clear();
	python_unlock();
	thread_self.nesting--;
}

bool hooks_monitoring_leaves_out_exceptions(void)
{
	return leaves_out_exceptions;
}

/* python_lock() is held. */
static void switch_exceptions(struct object *monitoring, bool on)
{
	struct object *events = python.PyObject_GetAttrString(monitoring, "events");
	int tool = events ? monitoring_held_tool(monitoring) : -1;

	if (tool >= 0)
		set_events(monitoring, tool, wanted_events(events) & ~(on ? 0 : monitoring_event_bit(events, "RAISE")));
	python.Py_DecRef(events);
	leaves_out_exceptions = !on;
}

void hooks_monitoring_leave_out_exceptions(bool leaves_out)
{
	struct object *monitoring = monitoring_of_interpreter();

	if (!monitoring || leaves_out == leaves_out_exceptions)
		return;
	thread_self.nesting++;
	python_lock();
	switch_exceptions(monitoring, !leaves_out);
	python.PyErr_Clear();
	python_unlock();
	thread_self.nesting--;
}

void hooks_monitoring_restart(void)
{
	struct object *monitoring = monitoring_of_interpreter();

	thread_self.nesting++;
	if (monitoring)
		restart_events(monitoring);
	python.PyErr_Clear();
	thread_self.nesting--;
}

void hooks_monitoring_enable(bool on)
{
	struct object *monitoring = monitoring_of_interpreter();

	thread_self.nesting++;
	python_lock();
	if (monitoring)
		switch_events(monitoring, on);
	python_unlock();
	thread_self.nesting--;
}

static bool tool_has_calls(struct object *monitoring, int tool)
{
	struct object *events;
	long calls = 0, bits = 0;

	thread_self.nesting++;
	events = python.PyObject_GetAttrString(monitoring, "events");
	if (events) {
		calls = monitoring_event_bit(events, "CALL");
		bits = python_take_long(python.PyObject_CallMethod(monitoring, "get_events", "i", tool));
	}
	python_succeeds(events);
	thread_self.nesting--;
	return bits & calls;
}

bool hooks_monitoring_has_calls(struct object *tool)
{
	struct object *monitoring = monitoring_of_interpreter();
	long id;

	if (!monitoring || python_type(tool) != python.int_type)
		return false;
	id = python.PyLong_AsLong(tool);
	python.PyErr_Clear();
	return tool_has_calls(monitoring, (int)id);
}

bool hooks_monitoring_others_have_calls(void)
{
	struct object *monitoring = monitoring_of_interpreter();
	int ours;

	if (!monitoring)
		return false;
	thread_self.nesting++;
	python_lock();
	ours = monitoring_held_tool(monitoring);
	python_unlock();
	thread_self.nesting--;
	for (size_t i = 0; i < sizeof(tool_ids) / sizeof(tool_ids[0]); i++)
		if (tool_ids[i] != ours && tool_has_calls(monitoring, tool_ids[i]))
			return true;
	return false;
}
