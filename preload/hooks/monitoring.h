/*
 * monitoring.h - what the hooks by sys.monitoring share.
 *
 *   hooks_monitoring.c    the callbacks, which record events
 *   monitoring_tool.c     the tool id, and which events are on
 *   monitoring_guards.c   what stands in for callbacks of the program
 */
#ifndef PRELOAD_MONITORING_H
#define PRELOAD_MONITORING_H

#include "python/python.h"

typedef struct object *(*vectorcall)(struct object *self, struct object *const *arguments, size_t count,
				     struct object *names);

/* The part of evprof's objects after the common object head. */
struct monitoring_callback {
	vectorcall call;
};

/* An event of sys.monitoring, and its callback as the settings ask for it. */
struct monitoring_event {
	const char *name; /* NULL: there are no more */
	vectorcall call;
	bool wanted;
	bool set; /* false: comes with CALL */
};

struct monitoring_event monitoring_event(size_t number);

/* Reads the constants that callbacks compare with and return. GIL held. */
bool monitoring_find_constants(struct object *monitoring);

/* The data of an instance of a type of ours. */
void *monitoring_body(struct object *object);

/*
 * A type with the vectorcall protocol alone. size: of the instance data after the head; it begins with a struct
 * monitoring_callback. dealloc: NULL for Python's.
 */
struct object *monitoring_new_type(const char *name, size_t size, void (*dealloc)(struct object *));

/* sys.monitoring of the current interpreter, borrowed; NULL before it exists. */
struct object *monitoring_of_interpreter(void);

/* The bit of an event in sys.monitoring.events; 0: this version does not have it. */
long monitoring_event_bit(struct object *events, const char *name);

/* evprof's tool id in this interpreter, or -1. python_lock() is held. */
int monitoring_held_tool(struct object *monitoring);

#endif
