/*
 * handle.h - a trace that callers of the library hold: the trace, its lock, and what is made of it once.
 */
#ifndef EVPROF_TOOLS_API_HANDLE_H
#define EVPROF_TOOLS_API_HANDLE_H

#include <locale.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "api/api.h"
#include "api/function_names.h"
#include "api/options.h"
#include "trace/reader.h"
#include "util/progress.h"

struct evprof_trace {
	_Atomic uint32_t references; /* of the caller, and of streams */
	pid_t pid;		     /* of the process that opened it: the lock and threads of another are not valid */
	pthread_mutex_t lock;	     /* of everything below */
	locale_t locale;	     /* C: patterns and numbers mean the same in any program */
	struct trace *trace;
	struct function_names names;
	bool has_names;
	bool checked; /* trace_check() has read the whole file */
};

/* A call: from handle_enter() to handle_leave(). */
struct handle_call {
	struct evprof_trace *handle;
	locale_t locale; /* the caller's */
};

/* Locks the trace, and sets the locale of the thread. Returns 0, or -ECHILD after a fork. */
int handle_enter(struct handle_call *call, struct evprof_trace *handle, const struct why *why);
void handle_leave(const struct handle_call *call);
/* Goes on with a call that handle_leave() interrupted. The clock of the trace may be another one by then. */
void handle_return(struct handle_call *call);

/* For streams, which outlive evprof_trace_close(). */
struct evprof_trace *handle_share(struct evprof_trace *handle);
void handle_drop(struct evprof_trace *handle);

/* The names of all functions, made at the first call. NULL if memory ran out. Within a call. */
const struct function_names *handle_names(struct evprof_trace *handle);

/* A request with options: from request_begin() to request_end(). */
struct request {
	struct trace *trace;
	struct options options;
	struct progress progress; /* shown to nobody */
	struct why why;
	struct handle_call call;
};

/* Locks the trace and parses the options. Returns 0 or -errno; request_end() follows in both cases. */
int request_begin(struct request *request, struct evprof_trace *handle, const char *const *options, char *error,
		  size_t error_bytes);
/* result: of the request. Returns it, with a line about an error that has none yet. */
int request_end(struct request *request, int result);

#endif
