/*
 * handle.c - see handle.h.
 */
#include "api/handle.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "evprof/version.h"

uint32_t evprof_reader_version(void)
{
	return EVPROF_READER_VERSION;
}

const char *evprof_reader_release(void)
{
	return EVPROF_VERSION;
}

int handle_enter(struct handle_call *call, struct evprof_trace *handle, const struct why *why)
{
	if (handle->pid != getpid())
		return why_set(why, -ECHILD,
			       "evprof: the trace was opened by another process; load it again in this one");
	call->handle = handle;
	handle_return(call);
	handle->trace->clock = CPU_CLOCK_WALL;
	return 0;
}

void handle_return(struct handle_call *call)
{
	pthread_mutex_lock(&call->handle->lock);
	call->locale = uselocale(call->handle->locale);
}

void handle_leave(const struct handle_call *call)
{
	int error = errno;

	uselocale(call->locale);
	pthread_mutex_unlock(&call->handle->lock);
	errno = error;
}

struct evprof_trace *handle_share(struct evprof_trace *handle)
{
	atomic_fetch_add_explicit(&handle->references, 1, memory_order_relaxed);
	return handle;
}

void handle_drop(struct evprof_trace *handle)
{
	if (!handle || atomic_fetch_sub_explicit(&handle->references, 1, memory_order_acq_rel) > 1)
		return;
	/* The threads and locks of a parent are not in its child. What they hold is lost there. */
	if (handle->pid != getpid())
		return;
	function_names_done(&handle->names);
	if (handle->trace)
		trace_close(handle->trace);
	if (handle->locale)
		freelocale(handle->locale);
	pthread_mutex_destroy(&handle->lock);
	free(handle);
}

const struct function_names *handle_names(struct evprof_trace *handle)
{
	if (!handle->has_names && function_names_make(&handle->names, handle->trace) < 0) {
		function_names_done(&handle->names);
		return NULL;
	}
	handle->has_names = true;
	return &handle->names;
}

int request_begin(struct request *request, struct evprof_trace *handle, const char *const *options, char *error,
		  size_t error_bytes)
{
	int result;

	*request = (struct request){.why = why_begin(error, error_bytes)};
	result = handle_enter(&request->call, handle, &request->why);
	if (result)
		return result;
	request->trace = handle->trace;
	result = options_parse(&request->options, options, handle->trace, &request->why);
	handle->trace->clock = request->options.filter.clock;
	return result;
}

int request_end(struct request *request, int result)
{
	options_done(&request->options);
	if (request->trace)
		handle_leave(&request->call);
	return why_end(&request->why, result);
}

int evprof_trace_open(const char *path, struct evprof_trace **trace, char *error, size_t error_bytes)
{
	const struct why why = why_begin(error, error_bytes);
	struct evprof_trace *handle = calloc(1, sizeof(*handle));
	char reason[512] = "";
	int result;

	if (!handle)
		return why_set(&why, -ENOMEM, "evprof: out of memory");
	handle->references = 1;
	handle->pid = getpid();
	pthread_mutex_init(&handle->lock, NULL);
	handle->locale = newlocale(LC_ALL_MASK, "C", NULL);
	result = handle->locale ? trace_open(&handle->trace, path, reason, sizeof(reason)) : -ENOMEM;
	if (result < 0) {
		why_set(&why, result, "evprof: %s", reason[0] ? reason : strerror(-result));
		handle->trace = NULL;
		handle_drop(handle);
		return result;
	}
	*trace = handle;
	return 0;
}

void evprof_trace_close(struct evprof_trace *trace)
{
	handle_drop(trace);
}
